"""Ways to spoil samples, by name; a new one is a file beside these and a line in the dict."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from robustnmf.corruptions._base import Corruption, Shape
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

__all__ = ["CORRUPTIONS", "Corruption", "gaussian", "spoil"]


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
