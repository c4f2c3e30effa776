"""Ways to corrupt entries: scattered entries, blocks of samples, and missing values as well."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

LARGEST_FACTOR = 5.0
"""Largest bad value of ``large``, relative to the largest value of the table."""

MISSING = 0.1
"""Share of the entries that ``missing`` removes in addition to the bad entries."""

Shape = tuple[int, int] | None
"""Height and width of images; None if samples are not images."""


class SpoiledEntries(NamedTuple):
    """A table with bad entries, their mask, and the mask of bad samples.

    Attributes
    ----------
    X : ndarray (n_samples, n_features)
        The corrupted table; NaN is a missing value.
    bad : ndarray of bool (n_samples, n_features)
        Entries with a changed value, without missing values.
    bad_samples : ndarray of bool (n_samples,)
        All False if bad entries are scattered over all samples.
    """

    X: np.ndarray
    bad: np.ndarray
    bad_samples: np.ndarray


EntryCorruption = Callable[[np.ndarray, float, np.random.Generator, Shape], SpoiledEntries]
"""Takes a clean table, the share to corrupt, a random generator and the shape of images."""


def extreme(X: np.ndarray, share: float, rng: np.random.Generator, shape: Shape) -> SpoiledEntries:
    """Set scattered entries to zero or to the largest value, with equal probability.

    Entries that already had this value are not bad.
    """
    return _replace(
        X, random_mask(X.shape, share, rng), np.nanmax(X) * rng.integers(2, size=X.shape)
    )


def large(X: np.ndarray, share: float, rng: np.random.Generator, shape: Shape) -> SpoiledEntries:
    """Set scattered entries to one to five times the largest value."""
    values = np.nanmax(X) * rng.uniform(1.0, LARGEST_FACTOR, size=X.shape)
    return _replace(X, random_mask(X.shape, share, rng), values)


def covered(X: np.ndarray, share: float, rng: np.random.Generator, shape: Shape) -> SpoiledEntries:
    """Set a block of a share of the samples to the largest value, at a random place.

    The block has half the height and half the width of an image; if samples are not images, it is a
    quarter of the features, side by side. Entries that already had this value are not bad.
    """
    if shape is None:
        shape, sides = (1, X.shape[1]), (1, max(1, X.shape[1] // 4))
    else:
        sides = (max(1, shape[0] // 2), max(1, shape[1] // 2))
    bad_samples = random_mask(len(X), share, rng)
    places = np.zeros((len(X), *shape), dtype=bool)
    for sample in np.flatnonzero(bad_samples):
        places[sample][random_block(shape, *sides, rng)] = True
    spoiled = _replace(X, places.reshape(X.shape), np.full(X.shape, np.nanmax(X)))
    return spoiled._replace(bad_samples=bad_samples)


def missing(X: np.ndarray, share: float, rng: np.random.Generator, shape: Shape) -> SpoiledEntries:
    """Corrupt entries as ``large`` does, and remove a tenth of all entries."""
    spoiled = large(X, share, rng, shape)
    removed = random_mask(X.shape, MISSING, rng)
    return spoiled._replace(X=np.where(removed, np.nan, spoiled.X), bad=spoiled.bad & ~removed)


def random_block(
    shape: tuple[int, int], height: int, width: int, rng: np.random.Generator
) -> tuple[slice, slice]:
    """Return the rows and columns of a block at a random place of an image."""
    top = int(rng.integers(shape[0] - height + 1))
    left = int(rng.integers(shape[1] - width + 1))
    return slice(top, top + height), slice(left, left + width)


def random_mask(shape: int | tuple[int, ...], share: float, rng: np.random.Generator) -> np.ndarray:
    """Return a mask that is true at a share of its places, chosen at random."""
    mask = np.zeros(shape, dtype=bool)
    mask.flat[rng.permutation(mask.size)[: round(share * mask.size)]] = True
    return mask


def _replace(X: np.ndarray, places: np.ndarray, values: np.ndarray) -> SpoiledEntries:
    """Put values (n_samples, n_features) at the places of a mask; no sample is marked as bad."""
    places = places & ~np.isnan(X)
    spoiled = np.where(places, values, X)
    return SpoiledEntries(spoiled, places & (spoiled != X), np.zeros(len(X), dtype=bool))
