"""When something first happens in each episode: conditions on transitions, and the first time each holds."""
