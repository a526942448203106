"""The Dataset: lazy padded arrays over a log, its schema, and the views made from it."""
