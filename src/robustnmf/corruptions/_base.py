"""Types of corruptions, and functions that several of them use."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

Shape = tuple[int, int] | None
"""Height and width of images; None where samples are not images."""

Corruption = Callable[[np.ndarray, np.random.Generator, Shape], np.ndarray]
"""Takes clean rows, a random generator and the shape of images; returns the corrupted rows."""


class SpoiledEntries(NamedTuple):
    """A table with bad entries, their mask, and the mask of the samples that count as bad.

    Attributes
    ----------
    X : ndarray (n_samples, n_features)
        The spoiled table; NaN where a value is missing.
    bad : ndarray of bool (n_samples, n_features)
        Entries with another value than before; missing ones are not among them.
    bad_samples : ndarray of bool (n_samples,)
        None of them where bad entries are scattered over all samples.
    """

    X: np.ndarray
    bad: np.ndarray
    bad_samples: np.ndarray


EntryCorruption = Callable[[np.ndarray, float, np.random.Generator, Shape], SpoiledEntries]
"""Takes a clean table, the share that is spoiled, a random generator and the shape of images."""


def random_block(
    shape: tuple[int, int], height: int, width: int, rng: np.random.Generator
) -> tuple[slice, slice]:
    """Return the rows and columns of a block at a random place of an image."""
    top = int(rng.integers(shape[0] - height + 1))
    left = int(rng.integers(shape[1] - width + 1))
    return slice(top, top + height), slice(left, left + width)
