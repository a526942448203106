"""By what the steps of episodes stand side by side."""
