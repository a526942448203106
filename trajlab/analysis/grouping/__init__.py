"""What `by=` and `groups=` mean, and where groups stand along an axis."""
