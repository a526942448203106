"""What a Recorder hands its rows to as they come, whether it keeps them or not."""
