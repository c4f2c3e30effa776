"""Experiments with the estimators: the paper's, the contamination benchmark, and the demo."""
