"""The log: time-major rows (row, environment, ...) per field in blocks on the device or the host."""
