"""How far a sample is from others.

There are three measures: the distance to the fifth nearest sample, the score of an isolation
forest, and the Mahalanobis distance from usual samples.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from robustnmf.arrays import (
    Array,
    Block,
    DenseBlock,
    MaskedBlock,
    arange_like,
    as_dense,
    on_device_of,
    to_device_of,
    to_numpy,
    weighted_quantile,
)
from robustnmf.arrays.forest import USUAL, IsolationForest
from robustnmf.engine import Engine, InMemory, RowSample, draw_rows
from robustnmf.loop.passes import BlockState
from robustnmf.loop.state import Start

REFERENCES, REFERENCE_NUMBERS = 500, 1_000_000
"""Maximum numbers of rows to which distances are measured, and of entries of rows that are
measured together."""

NEIGHBOUR = 5
"""The isolation of a sample is its distance to the fifth nearest reference row."""

LARGE = 0.95
"""The limit of the isolation is this quantile for usual samples."""

COHESIVE = 0.3
"""A sample is in a close group if its isolation is below this share of its distance to usual
samples."""

SMALLEST = 15
"""Minimum number of rows of a close group in the detector's core, and that all candidates of a
decision keep."""

FAR = 1.7
"""The detector multiplies limits by this factor."""

RIDGE = 0.02
"""Ridge of the covariance of the core, as a share of the mean variance of a feature."""

IDLE = 0.1
"""Weight of copies of one row that are most of the samples, as a share of the others: with once,
the detector marks them in a third of the tables, and with 0.3, twice as many good samples."""

SCORE_UNIT = 20.0
"""Factor that makes scores of the forest comparable with logarithms of distances."""

SAME = 1e-12
"""Two rows are copies if their squared distance is below this share of the squared norm."""

ROUNDING = 1e-9
"""Relative rounding error of an isolation."""

TINY = float(np.finfo(float).tiny)


class Measured(NamedTuple):
    """Isolation of each row (rows,), its score in the forest, and if it is in a close group."""

    isolation: np.ndarray
    scores: np.ndarray
    is_cohesive: np.ndarray

    @property
    def is_usual(self) -> np.ndarray:
        """Which rows the forest accepts as usual."""
        return self.scores <= USUAL

    def is_isolated(self, limit: float) -> np.ndarray:
        """Which rows are beyond a limit and not usual."""
        return (self.isolation > limit) & ~self.is_usual


@dataclass(frozen=True)
class Neighbourhood:
    """Reference rows to which the distances of samples are measured.

    Parameters
    ----------
    references : ndarray (references, features)
        In the units of the blocks that are compared.
    weight : ndarray (references,)
        Sample weight of each reference row.
    limit : float
        Isolation that only 5% of the usual samples exceed.
    core : ndarray (references,) or None
        Rows whose mean and covariance define the Mahalanobis distance; None for all rows.
    """

    references: np.ndarray
    weight: np.ndarray
    limit: float = np.inf
    core: np.ndarray | None = None

    @classmethod
    def of(cls, rows: RowSample, block: Block) -> tuple[Neighbourhood, Measured]:
        """Take rows as references, and measure them; ``block`` holds the same rows."""
        near = cls(as_dense(rows.whole_rows()).astype(np.float64) / block.scale, rows.weight)
        measured = near._measure(block, near._scores_of_references)
        usual = measured.is_usual
        if not usual.any():
            return near, measured
        limit = weighted_quantile(measured.isolation[usual], rows.weight[usual], LARGE)
        limited = replace(near, limit=max(limit, TINY) * (1.0 + ROUNDING))
        vars(limited).update(forest=near.forest, _scores_of_references=measured.scores)
        return limited, measured

    @cached_property
    def forest(self) -> IsolationForest:
        """The forest that decides which rows are usual."""
        return IsolationForest.grow(self.references, self.weight)

    @cached_property
    def _scores_of_references(self) -> np.ndarray:
        """Scores of the references (references,) in the forest."""
        return self.forest.scores(self.references)

    def with_core(self, fits: np.ndarray) -> Neighbourhood:
        """Return the same references with a core of rows that fit (references,).

        Rows of the core are usual, or a close group of at least ``SMALLEST``.
        """
        if not fits.any():
            return self
        engine = InMemory(self.references, scale=1.0, block_rows=len(fits))
        measured = self.measure(engine.blocks[0])
        level = weighted_quantile(measured.scores[fits], self.weight[fits], 0.5)
        usual = measured.scores <= max(USUAL, level)
        group = fits & measured.is_cohesive & ~usual
        if self.weight[group].sum() >= SMALLEST:
            usual |= group
        return replace(self, core=fits & usual)

    @cached_property
    def _ellipsoid(self) -> _Ellipsoid:
        core = np.ones(len(self.weight), dtype=bool) if self.core is None else self.core
        return _Ellipsoid.of(self.references[core], self.weight[core], np.flatnonzero(core))

    def measure(self, block: Block) -> Measured:
        """Measure the rows of a block.

        Samples of a close group are much closer to each other than to usual samples.
        """
        parts = [self._measure(part, self._scores(part)) for part in self._parts(block)]
        return Measured(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))

    def _measure(self, block: Block, scores: np.ndarray) -> Measured:
        squares = _without_copies(self._sq_distances(block), block)
        isolation = _to_neighbour(squares)
        squares[:, self._scores_of_references > USUAL] = np.inf
        is_cohesive = isolation < COHESIVE * _to_neighbour(squares)
        return Measured(isolation, scores, is_cohesive)

    def _parts(self, block: Block) -> Iterator[Block]:
        """Yield the rows of a block in parts that need little memory."""
        step = max(1, REFERENCE_NUMBERS // max(self.references.shape))
        for at in range(0, len(block), step):
            yield block.part(arange_like(min(at + step, len(block)), block.sq_norms, at))

    def _sq_distances(self, block: Block) -> np.ndarray:
        """Compute the squared distances (rows, references) of the rows of a block."""
        references = on_device_of(block.sq_norms, self.references)
        return np.array(to_numpy(block.sq_distances(references)))

    def _scores(self, block: Block) -> np.ndarray:
        """Compute the scores of the rows of a block in the forest."""
        return self.forest.scores(as_dense(block.user_rows(np.arange(len(block)))) / block.scale)

    def outlyingness(self, engine: Engine, share: float, start: Start | None = None) -> Array:
        """Compute how far from others every sample (samples,) is; positive if it is far.

        This is the log of the squared Mahalanobis distance over its limit, plus ``share`` times the
        log of the isolation over its limit and the score of the forest above that of usual rows.
        Missing entries are replaced by the approximation of a ``start``.
        """
        ellipsoid = self._ellipsoid

        def measured(block: Block) -> np.ndarray:
            squares = self._sq_distances(block)
            found = _log(ellipsoid.sq_distances(squares)) - np.log(FAR**2 * ellipsoid.limit)
            if share > 0:
                isolation = _to_neighbour(_without_copies(squares, block))
                # If almost all references are copies of a row, its isolation is unknown.
                is_known = np.isfinite(isolation) & np.isfinite(self.limit)
                isolated = _log(np.where(is_known, isolation, 1.0) / (FAR * self.limit))
                isolated = np.where(is_known, isolated, 0.0)
                found += share * (isolated + SCORE_UNIT * (self._scores(block) - USUAL))
            return found

        def visit(block: Block, codes: Array | None) -> tuple[BlockState, None]:
            whole = block
            if start is not None and isinstance(block, MaskedBlock):
                approximation = block.approximation(codes, to_device_of(codes, start.basis))
                whole = DenseBlock(
                    block.xp.where(block.known, block.values(), approximation[0, ...])
                )
            found = np.concatenate([measured(part) for part in self._parts(whole)])
            return BlockState(on_device_of(block.sq_norms, found)[None, :, None]), None

        states, _ = engine.map_blocks(visit, None if start is None else start.codes)
        return engine.collect(states, "codes")[0, ..., 0]

    def permuted(self, scale: float) -> np.ndarray:
        """Return the references in other units with every feature permuted: artificial outliers."""
        rng = np.random.default_rng(0)
        columns = [rng.permutation(column) for column in self.references.T]
        rows = np.column_stack(columns) * scale
        return rows[rows.any(axis=1)]


class _Ellipsoid(NamedTuple):
    """Mahalanobis distances with a ridge from the mean and covariance of some references.

    They are computed from inner products of rows, so there can be many features. ``limit`` is the
    95th percentile of the squared leave-one-out distances of the references.
    """

    places: np.ndarray
    weight: np.ndarray
    sizes: np.ndarray
    inverse: np.ndarray
    ridge: float
    limit: float = 1.0

    @classmethod
    def of(cls, rows: np.ndarray, weight: np.ndarray, places: np.ndarray) -> _Ellipsoid:
        """Learn from rows (rows, features), at these places among the references."""
        weight = weight / weight.sum()
        centred = rows - weight @ rows
        scaled = weight[:, None] ** 0.5 * centred
        gram, features = scaled @ scaled.T, rows.shape[1]
        least = SAME * float(weight @ np.sum(rows**2, axis=1))
        ridge = max(RIDGE * float(np.trace(gram)) / features, least, TINY)
        inverse = np.linalg.inv(gram + ridge * np.eye(len(gram)))
        leverage = 1.0 - ridge * np.diag(inverse)  # squared distances, times weights
        own = leverage / (1.0 - leverage) / weight
        limit = max(weighted_quantile(own, weight, LARGE), TINY) * (1.0 + ROUNDING)
        return cls(places, weight, np.sum(centred**2, axis=1), inverse, ridge, limit)

    def sq_distances(self, squares: np.ndarray) -> np.ndarray:
        """Compute squared distances (rows,) from those to all references (rows, references)."""
        squares = squares[:, self.places]
        to_mean = np.maximum(squares @ self.weight - self.weight @ self.sizes, 0.0)
        near = SAME * to_mean <= self.ridge  # for other rows, rounding dominates
        inner = 0.5 * self.weight**0.5 * (to_mean[near, None] + self.sizes - squares[near])
        explained = np.zeros_like(to_mean)
        explained[near] = np.sum((inner @ self.inverse) * inner, axis=1)
        return (to_mean - explained) / self.ridge


def _without_copies(squares: np.ndarray, block: Block) -> np.ndarray:
    """Set the distances of copies to infinity, in place.

    A row that a stuck sensor repeats is still isolated.
    """
    squares[squares <= SAME * to_numpy(block.sq_norms)[:, None]] = np.inf
    return squares


def _to_neighbour(squares: np.ndarray) -> np.ndarray:
    """Compute the distances (rows,) to the neighbour from squared distances (rows, references)."""
    at = max(min(NEIGHBOUR, squares.shape[1] - 1) - 1, 0)
    return np.partition(squares, at)[:, at] ** 0.5


def _log(ratios: np.ndarray) -> np.ndarray:
    """Compute finite logarithms."""
    return np.log(np.clip(ratios, TINY, 1.0 / TINY))


def find_neighbourhood(engine: Engine, fill: float) -> Neighbourhood | None:
    """Draw reference rows from an engine; None if few samples differ, or none is usual.

    The rows of a stuck sensor count once, and those of a machine that is idle most of the time as a
    tenth of the others.
    """
    drawn, _ = draw_rows(engine, REFERENCES, distinct=True).distinct()
    if len(drawn) <= NEIGHBOUR:
        return None
    rows, is_most = drawn.without_repeats(), drawn.is_most()
    if rows is not drawn:
        idle = IDLE * float(rows.weight[~is_most].sum())
        rows = replace(rows, weight=np.where(is_most, idle, rows.weight))
    rows = first_rows(rows)
    near = Neighbourhood.of(rows, block_of_all(rows, engine.scale, fill))[0]
    return near if np.isfinite(near.limit) else None


def first_rows(rows: RowSample) -> RowSample:
    """Return the first rows of a sample, which are the references."""
    most = max(min(REFERENCES, REFERENCE_NUMBERS // rows.rows.shape[1]), 1)
    return rows.take(np.arange(min(len(rows), most)))


def block_of_all(rows: RowSample, scale: float, fill: float) -> Block:
    """Return all rows as one block of float64."""
    return InMemory(
        rows.rows.astype(np.float64), scale=scale, fill=fill, block_rows=len(rows)
    ).blocks[0]
