"""Datasets in files and in other forms; storage packages are imported where they are used."""
