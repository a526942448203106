"""Other packages' environments, recorded; each module is imported only where it is used."""
