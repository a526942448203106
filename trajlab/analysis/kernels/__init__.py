"""Kernels on plain arrays: nothing here knows a Dataset."""
