"""From the chunk a user hands over to named fields and flags."""
