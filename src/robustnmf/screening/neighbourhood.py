"""How far a sample is from others: its distance to the fifth nearest, and an isolation forest."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from robustnmf.arrays import Array, Block, as_dense, on_device_of, to_numpy, weighted_quantile
from robustnmf.arrays.forest import USUAL, IsolationForest
from robustnmf.engine import Engine, InMemory, RowSample, draw_rows
from robustnmf.loop.passes import BlockState

REFERENCES, REFERENCE_NUMBERS = 500, 1_000_000
"""Most rows that distances are measured to, and most entries of these rows."""

NEIGHBOUR = 5
"""The isolation of a sample is its distance to so many-th nearest reference row."""

LARGE = 0.95
"""Quantile of the isolation of usual samples that is the limit."""

COHESIVE = 0.3
"""Isolation of a sample over its distance to usual samples, up to which others are close to it."""

FAR = 2.0
"""Factor of the limit from which on a detector calls a sample of typical score isolated."""

SCORE_UNIT = 20.0
"""Factor that makes scores of the forest comparable with logarithms of distances."""

SAME = 1e-12
"""Squared distance over the squared norm of a row up to which another row is its copy."""

ROUNDING = 1e-9
"""Relative difference of two isolations that rounding may explain."""

TINY = float(np.finfo(float).tiny)


class Measured(NamedTuple):
    """Of every row (rows,): its isolation, how unusual it is, whether others are close to it."""

    isolation: np.ndarray
    scores: np.ndarray
    is_cohesive: np.ndarray

    @property
    def is_usual(self) -> np.ndarray:
        """Which rows the forest calls usual."""
        return self.scores <= USUAL

    def is_isolated(self, limit: float) -> np.ndarray:
        """Which rows are beyond a limit and not usual."""
        return (self.isolation > limit) & ~self.is_usual


@dataclass(frozen=True)
class Neighbourhood:
    """Reference rows that the distances of samples are measured to.

    Parameters
    ----------
    references : ndarray (references, features)
        In the units of the blocks that are compared.
    weight : ndarray (references,)
        How many times each of them counts.
    limit : float
        Isolation that few usual samples exceed.
    """

    references: np.ndarray
    weight: np.ndarray
    limit: float = np.inf

    @classmethod
    def of(cls, rows: RowSample, block: Block) -> tuple[Neighbourhood, Measured]:
        """Take rows as references, and measure them; ``block`` holds the same rows."""
        near = cls(as_dense(rows.whole_rows()).astype(np.float64) / block.scale, rows.weight)
        measured = near.measure(block)
        usual = measured.is_usual
        if not usual.any():
            return near, measured
        limit = weighted_quantile(measured.isolation[usual], rows.weight[usual], LARGE)
        return replace(near, limit=max(limit, TINY) * (1.0 + ROUNDING)), measured

    @cached_property
    def forest(self) -> IsolationForest:
        """The forest that tells which rows are usual."""
        return IsolationForest.grow(self.references, self.weight)

    @cached_property
    def _unusual(self) -> np.ndarray:
        """Which of the references (references,) are not usual."""
        return self.forest.scores(self.references) > USUAL

    def measure(self, block: Block) -> Measured:
        """Measure the rows of a block.

        Copies of a row are not counted: a stuck sensor repeats a row, but has no neighbours. The
        samples of a group are closer to each other than to usual samples.
        """
        references = on_device_of(block.sq_norms, self.references)
        squares = np.array(to_numpy(block.sq_distances(references)))
        squares[squares <= SAME * to_numpy(block.sq_norms)[:, None]] = np.inf
        at = max(min(NEIGHBOUR, squares.shape[1] - 1) - 1, 0)
        isolation = np.partition(squares, at)[:, at] ** 0.5
        squares[:, self._unusual] = np.inf
        distance = np.partition(squares, at)[:, at] ** 0.5
        rows = as_dense(block.user_rows(np.arange(len(block)))) / block.scale
        return Measured(isolation, self.forest.scores(rows), isolation < COHESIVE * distance)

    def outlyingness(self, engine: Engine) -> Array:
        """Compute how far from others every sample (samples,) is; positive if it is isolated.

        The logarithm of the isolation over that of isolated samples, and how much more unusual than
        usual samples the forest calls a sample.
        """

        def visit(block: Block, _: None) -> tuple[BlockState, None]:
            measured = self.measure(block)
            ratios = measured.isolation / (FAR * self.limit)
            found = np.log(np.clip(ratios, TINY, 1.0 / TINY))
            found += SCORE_UNIT * (measured.scores - USUAL)
            return BlockState(on_device_of(block.sq_norms, found)[None, :, None]), None

        states, _ = engine.map_blocks(visit)
        return engine.collect(states, "codes")[0, ..., 0]

    def permuted(self, scale: float) -> np.ndarray:
        """Return the references in other units with every feature permuted: artificial outliers."""
        rng = np.random.default_rng(0)
        columns = [rng.permutation(column) for column in self.references.T]
        rows = np.column_stack(columns) * scale
        return rows[rows.any(axis=1)]


def find_neighbourhood(engine: Engine, fill: float) -> Neighbourhood:
    """Draw reference rows from an engine."""
    rows = first_rows(draw_rows(engine, REFERENCES).distinct()[0])
    return Neighbourhood.of(rows, block_of_all(rows, engine.scale, fill))[0]


def first_rows(rows: RowSample) -> RowSample:
    """Return the rows of a sample that are references: the first ones."""
    most = max(min(REFERENCES, REFERENCE_NUMBERS // rows.rows.shape[1]), 1)
    return rows.take(np.arange(min(len(rows), most)))


def block_of_all(rows: RowSample, scale: float, fill: float) -> Block:
    """Return all rows as one block of float64."""
    return InMemory(
        rows.rows.astype(np.float64), scale=scale, fill=fill, block_rows=len(rows)
    ).blocks[0]
