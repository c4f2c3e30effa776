"""X in memory, dense, with holes or sparse: consecutive row blocks, visited on threads."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from copy import copy as shallow_copy
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse

from robustnmf.arrays import (
    Array,
    DenseBlock,
    MaskedBlock,
    SparseBlock,
    floored,
    has_holes,
    namespace,
    on_device_of,
    row_slice,
    to_numpy,
)
from robustnmf.engine.threads import Threads
from robustnmf.passes import Local
from robustnmf.weightings import Profile

BLOCK_BYTES = 8 * 2**20
ENOUGH_BLOCKS = 8
WORTH_A_BLOCK = 1e7
SWEEPS_COST = 4  # of one component, in entries of a row that a product reads
WORTH_A_THREAD = 1e6
TYPICAL_SHARE = 0.01


class InMemory:
    """Blocks of an array and what stays with them.

    Parameters
    ----------
    X : array (samples, features) or CSR array
        NaN marks an entry that is not known; the blocks then hold a copy of X.
    scale : float, optional
        Units in which X is read; by default a power of two near its largest entry.
    block_rows : int, optional
        Rows of a block; by default as many as fill ``BLOCK_BYTES``, so that the second
        product of a pass finds the block still in cache, or fewer where threads would have
        too few blocks to share.
    columns : int, default=1
        Columns of the factors that a pass multiplies X with, over all members.
    rank : int, default=1
        Columns of one member.
    copies : int, default=1
        How many arrays of the size of a block a pass holds for it.
    sample_weight : array (samples,), float64, optional
        How many times every sample counts; once by default.
    fill : float, default=1.0
        What stands for an entry that is not known, in units of scale.
    """

    def __init__(
        self,
        X: Any,
        *,
        scale: float | None = None,
        block_rows: int | None = None,
        copies: int = 1,
        columns: int = 1,
        rank: int = 1,
        sample_weight: Array | None = None,
        fill: float = 1.0,
    ):
        sparse = scipy.sparse.issparse(X)
        self.like: Array = X.data if sparse else X
        self.shape: tuple[int, int] = X.shape
        self.scale = power_of_two_near_largest(self.like) if scale is None else scale
        n, m = X.shape
        numbers = -(-X.nnz // n) if sparse else m
        row_bytes = copies * max(1, numbers) * namespace(self.like).finfo(self.like.dtype).bits // 8
        step = block_rows or _rows_of_a_block(
            n, row_bytes, max(1, numbers) + SWEEPS_COST * rank, columns
        )
        self.complete = sparse or not has_holes(X)
        self.blocks: list[Any] = []
        for at in range(0, n, step):
            stop = min(at + step, n)
            mass = None if sample_weight is None else sample_weight[at:stop]
            self.blocks.append(_block(X, at, stop, self.scale, mass, self.complete, fill))
        if not any(bool(b.xp.any(b.mass > 0)) for b in self.blocks):
            for block in self.blocks:  # nothing but zeros: rows are all alike, and all count
                block.mass = block.counted
        self._typical: dict[float, float] = {}
        self.sample_weight = sample_weight
        self.threads = Threads()

    def filled(self) -> InMemory:
        """Itself, or an engine with a first guess in the holes, for starts that need whole rows.

        The guess is the best that one component gives: the mean of the feature, by how much
        the known entries of the row exceed the means of theirs.
        """
        if self.complete:
            return self
        xp = namespace(self.like)

        def sums(block: MaskedBlock, _: None) -> tuple[None, Array]:
            mass = xp.astype(block.entry_mass, self.like.dtype)[:, None]
            known = mass * block.observed(None, block.rows)
            return None, xp.stack([xp.sum(known * block.rows, axis=0), xp.sum(known, axis=0)])

        found = self.sweep(sums)[1]
        totals, counts = found[0, :], found[1, :]
        means = xp.where(counts > 0, totals / floored(counts), 0 * totals)

        def guess(block: MaskedBlock, _: None) -> tuple[Array, None]:
            known = block.observed(block.rows, block.rows)
            expected = block.observed(None, block.rows) @ means
            excess = xp.sum(known, axis=1) / xp.where(expected > 0, expected, 1 + 0 * expected)
            return xp.where(block.known, block.rows, excess[:, None] * means), None

        rows = xp.concat(self.sweep(guess)[0])
        return InMemory(rows, scale=self.scale, sample_weight=self.sample_weight)

    def fill_samples(self) -> None:
        """See to it that samples can be mixed, also where they have holes."""
        if not self.complete and self.blocks[0].filled is None:
            whole = self.filled()
            at = 0
            for block in self.blocks:
                block.filled = DenseBlock(whole.like[at : at + len(block), :], self.scale)
                at += len(block)

    def samples(self, index: Array) -> Array:
        """A few chosen samples (chosen, features) in units of scale."""
        xp = namespace(self.like)
        rows = []
        for i in range(index.shape[0]):
            at = int(index[i])
            for block in self.blocks:
                if at < len(block):
                    rows.append(block.take(on_device_of(self.like, [at])))
                    break
                at -= len(block)
        return xp.concat(rows)

    def begin(self, codes: Array, mixing: Array | None = None) -> list[Local]:
        """What stays with each block: its rows of the codes (members, samples, k).

        The members of a sample lie side by side, as products with X want and give them.
        """
        xp = namespace(codes)
        members, n, k = codes.shape
        flat = xp.reshape(xp.permute_dims(codes, (1, 0, 2)), (n, members * k))
        codes = xp.permute_dims(xp.reshape(flat, (n, members, k)), (1, 0, 2))
        locals_ = []
        at = 0
        for block in self.blocks:
            rows = slice(at, at + len(block))
            share = None if mixing is None else mixing[:, rows, :]
            locals_.append(Local(codes[:, rows, :], mixing=share))
            at += len(block)
        return locals_

    def sweep(
        self, visit: Callable[[Any, Any], tuple[Any, Any]], locals_: list[Any] | None = None
    ) -> tuple[list[Any], Any]:
        """Visit every block once; new local states, and what the visits found, merged."""
        kept, total = [], None
        pairs = zip(self.blocks, locals_ or [None] * len(self.blocks), strict=True)
        for local, part in self._visits(lambda pair: visit(*pair), pairs, len(self.blocks)):
            kept.append(local)
            # In the order of the rows: sums do not depend on the number of threads.
            total = part if total is None else merged(total, part)
        return kept, total

    def spread(self, function: Callable[[slice], Array], count: int, cost: float) -> Array:
        """What a function makes of ``count`` independent columns (..., columns).

        On threads where all of them together cost enough operations.
        """
        pieces = max(1, min(self.threads.count, count, int(cost / WORTH_A_THREAD)))
        parts = list(self._visits(function, _evenly(count, pieces), pieces))
        return parts[0] if pieces == 1 else namespace(parts[0]).concat(parts, axis=-1)

    def shares(self, members: int) -> list[slice]:
        """Members in as many parts as there are threads, where blocks are too few to share."""
        return _evenly(members, min(self.threads.count, members) if len(self.blocks) == 1 else 1)

    def alone(self) -> InMemory:
        """The same data for a thread that works by itself."""
        copy = shallow_copy(self)
        copy.threads = Threads()
        return copy

    def at_work(self) -> AbstractContextManager[None]:
        """Threads at hand meanwhile; arrays that are not NumPy's have their own."""
        return self.threads.open() if isinstance(self.like, np.ndarray) else nullcontext()

    def _visits(self, function: Callable, items: Iterable, count: int) -> Iterable:
        return self.threads.each(function, items) if count > 1 else map(function, items)

    def keep(self, locals_: list[Local], members: Array) -> list[Local]:
        """Local states of these members alone."""
        return [local.keep(members) for local in locals_]

    def restored(self, locals_: list[Local], members: Array, before: list[Local]) -> list[Local]:
        """Local states with some members (a mask) as they were before."""
        pairs = zip(locals_, before, strict=True)
        return [local.restored(members, old) for local, old in pairs]

    def collect(self, locals_: list[Local], name: str) -> Array:
        """One field of the local states for all samples (members, samples, ...)."""
        parts = [getattr(local, name) for local in locals_]
        return parts[0] if len(parts) == 1 else namespace(parts[0]).concat(parts, axis=1)

    @cached_property
    def mass(self) -> Array:
        """How many times every sample counts (samples,)."""
        return namespace(self.like).concat([block.mass for block in self.blocks])

    @cached_property
    def sizes(self) -> Array:
        """How many samples every sample stands for: how often it counts, were it all known."""
        return namespace(self.like).concat([block.entry_mass for block in self.blocks])

    def mean(self) -> float:
        """Mean entry of the samples that count, in units of scale."""

        def total(block: Any, _: None) -> tuple[None, float]:
            return None, float(block.xp.sum(block.mass * block.sizes(1.0)))

        count = float(namespace(self.like).sum(self.mass)) * self.shape[1]
        return self.sweep(total)[1] / count

    def profiles(self, locals_: list[Local], degree: float, members: list[int]) -> list[Profile]:
        """How the energies of some members are spread over the samples that count.

        The typical one is never below ``TYPICAL_SHARE`` of the median size of a sample (its
        squared norm, for the squared error): what is fitted to a tenth of its norm is fitted, and
        telling such samples apart would lock out those that are merely slow to converge.
        """
        unit = self._typical_size(degree)
        sizes, mass = _as_float64(self.row_sizes(degree)), _as_float64(self.mass)
        energies = self.collect(locals_, "energies")
        chosen = namespace(energies).take(energies, on_device_of(energies, members), axis=0)
        medians = _as_float64(_medians(chosen, self.mass))
        chosen = _as_float64(chosen)
        return [
            Profile(
                chosen[j], sizes, mass, unit=unit, features=self.shape[1],
                typical=max(float(medians[j]), TYPICAL_SHARE * unit),
            )
            for j in range(len(members))
        ]  # fmt: skip

    def row_sizes(self, degree: float) -> Array:
        """What the energies of all samples compare with."""
        return namespace(self.like).concat([block.sizes(degree) for block in self.blocks])

    @property
    def typical_size(self) -> float:
        """Median squared norm of the samples that count."""
        return self._typical_size(2.0)

    def _typical_size(self, degree: float) -> float:
        if degree not in self._typical:
            median = _medians(self.row_sizes(degree)[None, :], self.mass)[0]
            self._typical[degree] = float(floored(median))
        return self._typical[degree]


def _as_float64(array: Array) -> np.ndarray:
    return to_numpy(array).astype(np.float64, copy=False)


def _medians(values: Array, mass: Array) -> Array:
    """Lower median of every row of values, each value as often as it counts."""
    xp = namespace(values)
    order = xp.argsort(values, axis=1)
    ordered = xp.take_along_axis(values, order, axis=1)
    counts = xp.take_along_axis(xp.broadcast_to(mass, values.shape), order, axis=1)
    passed = xp.cumulative_sum(counts, axis=1)
    # Summing rounds: half must not be missed by the last digit.
    reached = passed >= (0.5 - 1e-12) * passed[:, -1:]
    first = xp.argmax(xp.astype(reached, xp.int64), axis=1, keepdims=True)
    return xp.take_along_axis(ordered, first, axis=1)[:, 0]


def _evenly(count: int, parts: int) -> list[slice]:
    """Consecutive slices of nearly equal length."""
    edges = [count * part // parts for part in range(parts + 1)]
    return [slice(*pair) for pair in itertools.pairwise(edges)]


def _rows_of_a_block(rows: int, row_bytes: int, row_work: int, columns: int) -> int:
    """How many rows make a block: not too many for the cache, not too few to be worth a visit.

    What a visit brings home has as many rows as there are columns, so blocks have more.
    """
    worth = max(int(WORTH_A_BLOCK // (row_work * columns)), 4 * columns)
    count = max(-(-rows * row_bytes // BLOCK_BYTES), min(ENOUGH_BLOCKS, rows // worth), 1)
    return max(1, -(-rows // count))


def merged(total: Any, part: Any) -> Any:
    """Statistics merge in their own way, numbers and arrays by addition."""
    return total.merge(part) if hasattr(total, "merge") else total + part


def _block(
    X: Any, at: int, stop: int, scale: float, mass: Array | None, complete: bool, fill: float
) -> DenseBlock:
    """The block of these rows of X, of the kind that X is."""
    if scipy.sparse.issparse(X):
        return SparseBlock(row_slice(X, at, stop), scale, mass)
    rows = X[at:stop, :]
    if complete:
        return DenseBlock(rows, scale, mass)
    xp = namespace(X)
    known = ~xp.isnan(rows)
    filled = xp.where(known, rows, xp.full_like(rows, fill * scale))
    return MaskedBlock(filled, known, scale, mass)


def power_of_two_near_largest(X: Array) -> float:
    """Units that bring the largest entry into [1/2, 1); one where X is zero."""
    xp = namespace(X)
    if X.shape[0] == 0:
        return 1.0
    largest = float(xp.max(X))
    if math.isnan(largest):
        largest = float(xp.max(xp.where(xp.isnan(X), xp.zeros_like(X), X)))
    limit = 1000 if namespace(X).finfo(X.dtype).bits == 64 else 120
    exponent = max(-limit, min(limit, math.frexp(largest)[1]))
    return 2.0**exponent if largest > 0 else 1.0
