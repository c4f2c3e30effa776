"""Warnings that users may want to filter or turn into errors, and a message of several errors."""

OUT_OF_RANGE = (
    "the factorisation left the range of its floating-point numbers. Give X as float64, or scale "
    "its features to comparable sizes."
)


class WeightCollapseWarning(UserWarning):
    """A fit gave (nearly) all weight to fewer samples than it has components.

    Such a fit describes those few samples and nothing else. The message says which
    hyperparameter to raise, and to what.
    """


class OutlierWarning(UserWarning):
    """A fit left out many samples, or samples that resemble each other, or had very few samples.

    Many or similar samples may be a group that belongs to the data. The message says how many there
    are, and what to do if they are.
    """
