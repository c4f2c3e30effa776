"""Random samples of the rows of X on the host; they depend on the content of X, not its order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
import scipy.sparse

from robustnmf.arrays import (
    WORTH_A_DEVICE,
    Array,
    Block,
    kernels_for,
    namespace,
    on_device_of,
    to_numpy,
)
from robustnmf.engine._base import Engine
from robustnmf.engine.memory import InMemory

STRETCH = 1e4
"""Factor of the random projections whose fractional parts are the keys of rows."""

DIGITS = 7
"""Digits of keys that do not depend on rounding in products."""

MARGIN = 1.5
"""Ratio of the number of candidates to the number of rows drawn."""

EQUAL = 1e-6
"""Relative difference up to which two rows with the same key are equal."""

REPEATED = 3.0
"""Rows with more than this many times the usual weight are treated as repeated."""

EXCEPTION = 0.05
"""Repeated rows are the exception if at most this share of the distinct rows is repeated."""

MOST = 0.5
"""Copies of one row that are more than this share of all samples are not outliers."""


@dataclass(frozen=True)
class RowSample:
    """Rows on the host, in the user's units, with their weights and keys.

    Parameters
    ----------
    rows : ndarray (rows, features) with NaN for missing values, or CSR array
    weight : ndarray (rows,); number of samples of X that a row represents
    key : ndarray (rows,); pseudo-random numbers in [0, 1) that depend only on the content of a row
    total : float; weight of all rows from which the sample was drawn
    limit : int; maximum number of rows, of which those with the smallest keys are kept
    merges : bool; whether equal rows become one row with their total weight
    """

    rows: Any
    weight: np.ndarray
    key: np.ndarray
    total: float
    limit: int
    merges: bool = False

    def __len__(self) -> int:
        return len(self.key)

    def merge(self, other: RowSample) -> RowSample:
        """Merge the samples of two blocks of rows of X."""
        return self.joined(other).limited()

    def limited(self) -> RowSample:
        """Merge equal rows, if ``merges``, and keep the rows with the smallest keys."""
        sample = self
        if self.merges:
            first, _, weights = self._repeats()
            order = np.argsort(first)
            sample = replace(self.take(first[order]), weight=weights[order])
        if len(sample) <= self.limit:
            return sample
        last = np.partition(sample.key, self.limit - 1)[self.limit - 1]
        return sample.take(np.flatnonzero(sample.key <= last)[: self.limit])

    def joined(self, other: RowSample) -> RowSample:
        """Return the rows of both samples, even beyond the limit."""
        stack = scipy.sparse.vstack if scipy.sparse.issparse(self.rows) else np.concatenate
        return replace(
            self,
            rows=stack([self.rows, other.rows]),
            weight=np.concatenate([self.weight, other.weight]),
            key=np.concatenate([self.key, other.key]),
            total=self.total + other.total,
        )

    def take(self, chosen: np.ndarray) -> RowSample:
        """Return the chosen rows (indices or a mask)."""
        return replace(
            self, rows=self.rows[chosen], weight=self.weight[chosen], key=self.key[chosen]
        )

    def representative(self) -> RowSample:
        """Return the same rows with weights that sum to the weight of all rows of X."""
        drawn = float(self.weight.sum())
        return replace(self, weight=self.weight * (self.total / drawn if drawn > 0 else 1.0))

    def distinct(self) -> tuple[RowSample, np.ndarray]:
        """Return every row once, with its total weight, and the index (rows,) of each row there.

        Rows are in the order of their keys.
        """
        first, place, weights = self._repeats()
        return replace(self.take(first), weight=weights), place

    def is_most(self) -> np.ndarray:
        """Return which rows (rows,) are copies of one row that makes up more than half of X."""
        _, place, weights = self._repeats()
        return (weights > MOST * weights.sum())[place]

    def without_idle(self) -> tuple[RowSample, np.ndarray]:
        """Return the sample, without repeats if ``is_most`` of any row, and this mask (rows,)."""
        is_most = self.is_most()
        return (self.without_repeats() if is_most.any() else self), is_most

    def without_repeats(self) -> RowSample:
        """Reduce the weight of repeated rows to that of others, if repeated rows are the exception.

        The rows of a stuck sensor or of an idle machine then count once. In a table of few distinct
        rows, weights are unchanged.
        """
        _, place, weights = self._repeats()
        usual = float(np.median(weights))
        often = weights > REPEATED * usual
        if not often.any() or often.mean() > EXCEPTION:
            return self
        by = np.where(often, usual / weights, 1.0)
        return replace(self, weight=self.weight * by[place])

    def _repeats(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the first one of equal rows, the index of every row among these, total weights.

        Among thousands of rows, a few different ones have the same key, so rows with equal keys are
        compared.
        """
        label, rows = self.key.copy(), np.arange(len(self))
        while True:
            _, first, place = np.unique(label, return_index=True, return_inverse=True)
            later = rows[first[place] != rows]
            differs = later[_differ(self.rows[later], self.rows[first[place[later]]])]
            if not len(differs):
                return first, place, np.bincount(place, self.weight)
            label[differs] += 1.0  # keys are below one

    def engine(self, scale: float, fill: float = 1.0, like: Array | None = None) -> InMemory:
        """Build an engine of these rows that reads them in units of a scale.

        If X (``like``) is on a GPU, large samples are copied to it; results are on the host.
        """
        equal = bool((self.weight == 1.0).all())
        weight = None if equal else self.weight
        is_small = len(self) * self.rows.shape[1] < WORTH_A_DEVICE
        if like is None or is_small or not kernels_for(like).is_accelerated:
            return InMemory(self.rows, scale=scale, fill=fill, sample_weight=weight)
        if weight is not None:
            weight = on_device_of(like, weight, namespace(like).float64)
        rows = on_device_of(like, self.rows, like.dtype)
        return InMemory(
            rows, scale=scale, fill=fill, sample_weight=weight, block_rows=len(self),
            bring_home=True,
        )  # fmt: skip

    def whole_rows(self) -> Any:
        """Return the rows with missing values imputed."""
        return self.rows if scipy.sparse.issparse(self.rows) else self.engine(1.0).filled().like

    def divided(self, by: np.ndarray) -> RowSample:
        """Return the sample with each row divided by its own number (rows,)."""
        by = np.where(by > 0, by, 1.0)
        if scipy.sparse.issparse(self.rows):
            rows = (scipy.sparse.diags_array(1.0 / by) @ self.rows).tocsr()
            return replace(self, rows=rows.astype(self.rows.dtype))
        return replace(self, rows=(self.rows / by[:, None]).astype(self.rows.dtype))


def split_place(key: np.ndarray, turn: int) -> np.ndarray:
    """Return pseudo-random positions (rows,) in [0, 1) from keys, different for every turn."""
    place = key * 997.0 ** (turn + 1)
    return place - np.floor(place)


def _differ(rows: Any, others: Any) -> np.ndarray:
    """Compare rows one by one, up to rounding; return a mask (rows,) of rows that differ."""
    if scipy.sparse.issparse(rows):
        gaps, sizes = (abs(m).max(axis=1).toarray().ravel() for m in (rows - others, rows))
        return gaps > EQUAL * sizes
    sizes = np.nanmax(np.abs(rows), axis=1, initial=0.0)[:, None]
    return ~np.isclose(rows, others, rtol=0.0, atol=EQUAL * sizes, equal_nan=True).all(axis=1)


Chooser = Callable[[Any], Array]
"""Function that returns a mask of the rows (rows,) of a block."""


def draw_rows(
    engine: Engine, limit: int, choose: Chooser | None = None, *, distinct: bool = False
) -> RowSample:
    """Draw at most ``limit`` rows of positive weight, in one read of X.

    The rows with the smallest keys are drawn. Keys are the fractional parts of a random
    projection, so that they do not depend on the order, repetition or blocks of rows. If equal rows
    count once (``distinct``) and X has more rows, X is read again if many of them are equal.
    """
    xp = namespace(engine.like)
    n, features = engine.shape
    mean = engine.mean()
    stretch = STRETCH / ((mean if mean > 0 else 1.0) * features**0.5)
    normal = stretch * np.random.default_rng(0).standard_normal((features, 1))
    direction = on_device_of(engine.like, normal, xp.float64)
    merges = distinct and n > limit

    def draw(share: float) -> RowSample:
        def visit(block: Block, _: None) -> tuple[None, RowSample]:
            place = to_numpy(block.wide_project(direction))[:, 0]
            key = np.round(place - np.floor(place), DIGITS)
            weight = to_numpy(block.full_row_weight)
            candidate = weight > 0
            if choose is not None:
                candidate = candidate & to_numpy(choose(block))
            index = np.flatnonzero(candidate & (key <= share))
            keys = np.unique(key[index]) if merges else key[index]
            if len(keys) > limit:
                last = np.partition(keys, limit - 1)[limit - 1]
                index = index[key[index] <= last]
            # A row can have many copies: they are read and merged in parts.
            stop = len(index) if merges else min(len(index), limit)
            parts = [index[at : min(at + limit, stop)] for at in range(0, max(stop, 1), limit)]
            samples = (
                RowSample(block.user_rows(part), weight[part], key[part], 0.0, limit, merges)
                for part in parts
            )
            total = float(weight[candidate].sum())
            return None, replace(reduce(RowSample.merge, samples), total=total)

        return engine.sums(visit).limited()

    share = 1.0 if choose is not None else min(1.0, MARGIN * limit / n)
    sample = draw(share)
    return draw(1.0) if merges and share < 1.0 and len(sample) < limit else sample
