"""Ways to corrupt samples and entries, by name; a new one is a function and a line in a dict."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import cache

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.utils import check_random_state

from robustnmf.corruptions.entries import (
    EntryCorruption,
    Shape,
    SpoiledEntries,
    covered,
    extreme,
    large,
    missing,
    random_block,
    random_mask,
)

__all__ = [
    "CORRUPTIONS", "ENTRY_CORRUPTIONS", "Corruption", "EntryCorruption", "SpoiledEntries",
    "gaussian", "spoil", "spoil_entries",
]  # fmt: skip

Corruption = Callable[[np.ndarray, np.random.Generator, Shape], np.ndarray]
"""Takes clean rows, a random generator and the shape of images; returns the corrupted rows."""

DIGITS_SHAPE = (8, 8)

NOISE_SAMPLES = 0.1
"""Share of the samples that ``mixed`` replaces by noise."""


def noise(rows: np.ndarray, rng: np.random.Generator, shape: Shape) -> np.ndarray:
    """Replace every sample by uniform noise up to the largest entry."""
    return np.nanmax(rows) * rng.random(rows.shape)


def shuffled(rows: np.ndarray, rng: np.random.Generator, shape: Shape) -> np.ndarray:
    """Permute the features of every sample, each in its own random order."""
    return rng.permuted(rows, axis=1)


def occluded(rows: np.ndarray, rng: np.random.Generator, shape: Shape) -> np.ndarray:
    """Set a block of half the height and width to the largest value, at a random place.

    If samples are not images, half of the features, side by side, are set.
    """
    shape = (1, rows.shape[1]) if shape is None else shape
    images = rows.copy().reshape(len(rows), *shape)
    height, width = (max(1, side // 2) for side in shape)
    for image in images:
        image[random_block(shape, height, width, rng)] = np.nanmax(rows)
    return images.reshape(rows.shape)


def scaled(rows: np.ndarray, rng: np.random.Generator, shape: Shape) -> np.ndarray:
    """Multiply each sample by a random factor between two and ten, as if in other units."""
    return rng.uniform(2.0, 10.0, size=(len(rows), 1)) * rows


def foreign(rows: np.ndarray, rng: np.random.Generator, shape: Shape) -> np.ndarray:
    """Replace samples by handwritten digits, resized to the shape and range of the data.

    Images of 8 x 8 pixels are likely to be the same digits; they are replaced by rows of the breast
    cancer table.
    """
    donors = _breast_cancer() if shape == DIGITS_SHAPE else _digits()
    samples = donors[rng.choice(len(donors), size=len(rows))]
    if shape is not None and shape != DIGITS_SHAPE:
        resampling = np.kron(
            *(_averaging_matrix(old, new) for old, new in zip(DIGITS_SHAPE, shape, strict=True))
        )
    else:
        resampling = _averaging_matrix(samples.shape[1], rows.shape[1])
    return np.nanmax(rows) * np.clip(samples @ resampling, 0.0, 1.0)


def repeated(rows: np.ndarray, rng: np.random.Generator, shape: Shape) -> np.ndarray:
    """Replace all samples by the same sample of uniform noise, like a sensor that is stuck."""
    return np.tile(np.nanmax(rows) * rng.random((1, rows.shape[1])), (len(rows), 1))


def mixed(X: np.ndarray, share: float, rng: np.random.Generator, shape: Shape) -> SpoiledEntries:
    """Replace a tenth of the samples by noise, and corrupt a share of the entries as ``large``.

    All entries of the replaced samples are bad.
    """
    spoiled = large(X, share, rng, shape)
    samples = random_mask(len(X), NOISE_SAMPLES, rng)
    if samples.any():
        spoiled.X[samples] = noise(X[samples], rng, shape)
    return SpoiledEntries(spoiled.X, spoiled.bad | samples[:, None], samples)


CORRUPTIONS: dict[str, Corruption] = {
    "noise": noise,
    "shuffled": shuffled,
    "occluded": occluded,
    "scaled": scaled,
    "foreign": foreign,
    "repeated": repeated,
}
ENTRY_CORRUPTIONS: dict[str, EntryCorruption] = {
    "extreme": extreme,
    "large": large,
    "covered": covered,
    "mixed": mixed,
    "missing": missing,
}


def spoil(
    X: np.ndarray, share: float, kinds: Sequence[str], shape: Shape, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Replace a share of the samples by corrupted samples, split evenly among the kinds.

    Parameters
    ----------
    X : ndarray (n_samples, n_features)
    share : float from 0 to 1
        Share of the samples that are corrupted.
    kinds : sequence of names
        Any of the keys of ``CORRUPTIONS``: "noise", "shuffled", "occluded", "scaled", "foreign",
        "repeated".
    shape : tuple (height, width) or None
        Shape of images, whose pixels are occluded in blocks.
    seed : int

    Returns
    -------
    corrupted : ndarray (n_samples, n_features)
    mask : ndarray of bool (n_samples,)
        Which samples are corrupted.

    Examples
    --------
    >>> import numpy as np
    >>> from robustnmf.corruptions import spoil
    >>> corrupted, mask = spoil(np.ones((10, 4)), 0.2, ["noise"], None, 0)
    >>> int(mask.sum())
    2
    """
    X = _checked(X, share, kinds, CORRUPTIONS)
    rng = np.random.default_rng(seed)
    bad_rows = rng.permutation(len(X))[: round(share * len(X))]
    spoiled, bad = X.copy(), np.zeros(len(X), dtype=bool)
    bad[bad_rows] = True
    for kind, rows in zip(kinds, np.array_split(bad_rows, max(1, len(kinds))), strict=False):
        if len(rows):
            spoiled[rows] = CORRUPTIONS[kind](X[rows], rng, shape)
    return spoiled, bad


def _checked(
    X: np.ndarray, share: float, kinds: Sequence[str], known: Collection[str]
) -> np.ndarray:
    """Return a table of floats; raise an error for a share or kinds that are not possible."""
    if share and (not len(kinds) or any(kind not in known for kind in kinds)):
        raise ValueError(
            f"kinds is {kinds!r}, but a list of names is needed, for example "
            f"{[next(iter(known))]!r}. Choose from {', '.join(known)}."
        )
    if not 0 <= share <= 1:
        raise ValueError(f"share is {share!r}, but a number from 0 to 1 is needed.")
    X = np.asarray(X)
    return X if X.dtype.kind == "f" else X.astype(np.float64)  # integers of images would overflow


def spoil_entries(
    X: np.ndarray, share: float, kind: str, shape: Shape, seed: int
) -> SpoiledEntries:
    """Corrupt a share of the entries of a table; for "covered", a block of a share of the samples.

    Share 0 returns the table unchanged.
    """
    X = _checked(X, share, [kind], ENTRY_CORRUPTIONS)
    if not share:
        return SpoiledEntries(X.copy(), np.zeros(X.shape, dtype=bool), np.zeros(len(X), dtype=bool))
    return ENTRY_CORRUPTIONS[kind](X, share, np.random.default_rng(seed), shape)


def gaussian(
    X: np.ndarray, c: float, random_state: int | np.random.RandomState | None = None
) -> np.ndarray:
    r"""Add Gaussian noise with a variance proportional to each value, and clip at zero.

    .. math:: X_{ij} \leftarrow \max(0,\; X_{ij} + c\, \epsilon_{ij}), \qquad
        \epsilon_{ij} \sim N(0, X_{ij})

    where :math:`X_{ij}` is the variance, as in the paper. The paper does not mention clipping, but
    nonnegative methods need it.

    Parameters
    ----------
    X : array (samples, features), nonnegative
    c : float
        Noise level.
    random_state : int, RandomState or None

    Returns
    -------
    noisy : array (samples, features)

    Examples
    --------
    >>> import numpy as np
    >>> from robustnmf.corruptions import gaussian
    >>> gaussian(np.array([[0.0, 1.0], [4.0, 100.0]]), 0.05, random_state=0).round(2)
    array([[  0.  ,   1.02],
           [  4.1 , 101.12]])
    """
    X = np.asarray(X, dtype=float)
    if not (X >= 0).all():
        raise ValueError("X holds negative values or NaN, but a variance must be nonnegative.")
    noise = check_random_state(random_state).standard_normal(X.shape)
    return np.maximum(X + c * np.sqrt(X) * noise, 0.0)


def _averaging_matrix(old: int, new: int) -> np.ndarray:
    """Return the matrix (old, new) that averages the cells of the old grid in each new cell."""
    edges = np.linspace(0.0, old, new + 1)
    begin, end = edges[:-1], edges[1:]
    cells = np.arange(old)[:, None]
    overlap = np.minimum(end, cells + 1) - np.maximum(begin, cells)
    return np.maximum(overlap, 0.0) / (end - begin)


@cache
def _digits() -> np.ndarray:
    digits = load_digits().data
    return digits / digits.max()


@cache
def _breast_cancer() -> np.ndarray:
    table = load_breast_cancer().data
    return table / table.max(axis=0)
