"""What a comparison of ranks hides: entries of dense X, samples and features of sparse X."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np


def hide_entries(table: np.ndarray, n_folds: int, hidden: float, rng: Any) -> Iterator[np.ndarray]:
    """Yield which entries (samples, features) each fold hides."""
    first, copies = distinct_rows(table)
    known = np.flatnonzero(~np.isnan(table[first]))
    each = max(1, round(hidden * len(known)))
    if n_folds * each > len(known):
        raise ValueError(
            f"X has {len(known)} known entries, too few to hide other ones in {n_folds} folds."
        )
    order = rng.permutation(known)
    for fold in range(n_folds):
        out = np.zeros((len(first), table.shape[1]), dtype=bool)
        out.flat[order[fold * each : (fold + 1) * each]] = True
        yield out[copies]


def distinct_rows(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices of distinct rows, and which of them every row (samples,) is equal to.

    Equal rows have the same entries hidden: otherwise one would tell what is hidden in the other,
    and the more components, the better (as in a bootstrap of X).
    """
    rows = np.ascontiguousarray(table)
    keys = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
    _, first, copies = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first)  # in the order of X
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return first[order], place[copies.ravel()]


def held_counts(shape: tuple[int, ...], hidden: float) -> list[int]:
    """How many samples and features to hold out, for this share of the entries to be hidden."""
    return [max(1, round(n * hidden**0.5)) for n in shape]


def hold_out(
    rng: np.random.RandomState, shape: tuple[int, ...], hidden: float
) -> tuple[np.ndarray, np.ndarray]:
    """Samples and features to hold out, at random: True where held out."""
    masks = []
    for n, held in zip(shape, held_counts(shape, hidden), strict=True):
        mask = np.zeros(n, dtype=bool)
        mask[rng.permutation(n)[:held]] = True
        masks.append(mask)
    return masks[0], masks[1]
