"""Plots of what the functions of `trajlab.analysis` with the same noun return, and beside it of single episodes."""
