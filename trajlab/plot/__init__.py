"""Plots: each draws exactly what the function of `trajlab.analysis` with the same noun returns."""
