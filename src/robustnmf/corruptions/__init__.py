"""Ways to spoil samples and entries, by name; a new one is a function and a line in a dict."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from robustnmf.corruptions._base import Corruption, EntryCorruption, Shape, SpoiledEntries
from robustnmf.corruptions.entries import covered, extreme, large, missing
from robustnmf.corruptions.foreign import foreign
from robustnmf.corruptions.gaussian import gaussian
from robustnmf.corruptions.noise import noise
from robustnmf.corruptions.occluded import occluded
from robustnmf.corruptions.repeated import repeated
from robustnmf.corruptions.scaled import scaled
from robustnmf.corruptions.shuffled import shuffled

CORRUPTIONS: dict[str, Corruption] = {
    "noise": noise,
    "shuffled": shuffled,
    "occluded": occluded,
    "scaled": scaled,
    "foreign": foreign,
    "repeated": repeated,
}

NOISE_SAMPLES = 0.1
"""Share of the samples that "mixed" replaces by noise."""


def mixed(X: np.ndarray, share: float, rng: np.random.Generator, shape: Shape) -> SpoiledEntries:
    """Replace a tenth of the samples by noise, and spoil a share of the other entries as "large".

    All entries of the replaced samples are bad.
    """
    spoiled = large(X, share, rng, shape)
    samples = np.zeros(len(X), dtype=bool)
    samples[rng.permutation(len(X))[: round(NOISE_SAMPLES * len(X))]] = True
    table = spoiled.X.copy()
    if samples.any():
        table[samples] = noise(X[samples], rng, shape)
    return SpoiledEntries(table, spoiled.bad | samples[:, None], samples)


ENTRY_CORRUPTIONS: dict[str, EntryCorruption] = {
    "extreme": extreme,
    "large": large,
    "covered": covered,
    "mixed": mixed,
    "missing": missing,
}

__all__ = [
    "CORRUPTIONS",
    "ENTRY_CORRUPTIONS",
    "Corruption",
    "EntryCorruption",
    "SpoiledEntries",
    "gaussian",
    "spoil",
    "spoil_entries",
]


def spoil(
    X: np.ndarray, share: float, kinds: Sequence[str], shape: Shape, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Replace a share of the samples by corrupted ones, split evenly among the kinds.

    Returns the new table (n_samples, n_features) and the mask (n_samples,) of corrupted samples.
    """
    rng = np.random.default_rng(seed)
    bad_rows = rng.permutation(len(X))[: round(share * len(X))]
    spoiled, bad = X.copy(), np.zeros(len(X), dtype=bool)
    bad[bad_rows] = True
    for kind, rows in zip(kinds, np.array_split(bad_rows, len(kinds)), strict=True):
        if not len(rows):
            continue
        spoiled[rows] = CORRUPTIONS[kind](X[rows], rng, shape)
    return spoiled, bad


def spoil_entries(
    X: np.ndarray, share: float, kind: str, shape: Shape, seed: int
) -> SpoiledEntries:
    """Spoil a share of the entries (of the samples, where blocks are covered) of a table.

    Share 0 leaves the table as it is, whatever the kind.
    """
    if not share:
        return SpoiledEntries(X.copy(), np.zeros(X.shape, dtype=bool), np.zeros(len(X), dtype=bool))
    return ENTRY_CORRUPTIONS[kind](X, share, np.random.default_rng(seed), shape)
