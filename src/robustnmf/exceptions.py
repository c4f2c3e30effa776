"""Warnings that users may want to filter or turn into errors."""


class WeightCollapseWarning(UserWarning):
    """A fit gave (nearly) all weight to fewer samples than it has components.

    Such a fit describes those few samples and nothing else. The message says which
    hyperparameter to raise, and to what.
    """
