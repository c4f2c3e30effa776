"""Experiments on top of the estimators: what spoils data, and what that does to methods."""
