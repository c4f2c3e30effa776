"""The benchmark of bad entries."""
