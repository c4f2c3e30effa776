"""Base class of engines: blocks of rows, their states, and sums over them.

An engine has one main method, ``map_blocks``: call a function on every block and its state, keep
the new state, merge the values. Engines differ in where blocks are stored and processed.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import copy as shallow_copy
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from robustnmf.arrays import (
    Array,
    Block,
    EnergyHistogram,
    LogHistogram,
    by_rows,
    energy_counts,
    eps,
    excess_counts,
    floored,
    namespace,
    node_counts,
    noise,
    sample_count,
)
from robustnmf.engine.threads import Threads

Visit = Callable[[Block, Any], tuple[Any, Any]]
"""``(block, state) -> (new state, value to merge)``."""

WORTH_A_THREAD = 1e6

RANGE_BITS = {64: 800, 32: 100}
"""Range of binary exponents of powers of entries, by the number of bits of the floats, so that
sums do not overflow."""

SMALLEST_SIZE = 1e-235
"""Median size of samples below which sizes are not distinguished from zero."""

OUT_OF_RANGE = (
    "the factorisation left the range of its floating-point type. Give X as float64, or scale "
    "its features to comparable sizes."
)


@dataclass(frozen=True)
class BlockState:
    """Arrays that belong to the rows of a block between passes; members are the first axis.

    ``energies`` (members, rows) are the losses plus the penalty of the codes; ``losses`` are
    stored separately if there is a penalty. ``row_weights`` are the mean weights of the entries of
    each row, if entries have weights. ``before`` are the codes before their last step, if
    codes are extrapolated.
    """

    OF_CODES: ClassVar[tuple[str, ...]] = ("codes", "before", "mixing")
    """Fields with k numbers for every sample and member, which are the large ones."""

    codes: Array
    before: Array | None = None
    mixing: Array | None = None
    energies: Array | None = None
    losses: Array | None = None
    row_weights: Array | None = None

    def keep(self, members: Array) -> BlockState:
        """Return the state of the members with these indices."""
        take = namespace(self.codes).take

        def kept(name: str, a: Array) -> Array:
            if a.ndim == 2:
                return take(a, members, axis=0)
            return by_rows(take(by_rows(a), members, axis=1))

        return self._each(kept)

    def restored(self, members: Array, before: BlockState) -> BlockState:
        """Return the state with the members in a mask taken from an earlier state."""
        where = namespace(self.codes).where

        def chosen(name: str, a: Array) -> Array:
            old = getattr(before, name)
            if a.ndim == 2:
                return where(members[:, None], old, a)
            return by_rows(where(members[None, :, None], by_rows(old), by_rows(a)))

        return self._each(chosen)

    def rows(self, at: slice) -> BlockState:
        """Return the state of a slice of rows."""
        return self._each(lambda name, a: a[:, at, ...])

    @classmethod
    def joined(cls, parts: Sequence[BlockState]) -> BlockState:
        """Concatenate the states of consecutive rows."""
        concat = namespace(parts[0].codes).concat
        return parts[0]._each(lambda name, _: concat([getattr(p, name) for p in parts], axis=1))

    def _each(self, function: Callable[[str, Array], Array]) -> BlockState:
        arrays = {name: value for name, value in vars(self).items() if value is not None}
        return replace(self, **{name: function(name, a) for name, a in arrays.items()})


class Engine(ABC):
    """Blocks of X and their states.

    Attributes
    ----------
    like : array of the library, device and dtype in which X is read
    shape : (samples, features)
    scale : float
        Units in which X is read: a power of two near its largest entry, or less if typical entries
        are far smaller.
    complete : bool; whether every entry is known
    blocks : list of blocks of consecutive rows
    sample_weight : array (samples,) or None; sample weights as given
    """

    like: Array
    shape: tuple[int, int]
    scale: float
    complete: bool
    blocks: list[Any]
    sample_weight: Array | None

    on_one_device = False
    """Whether X is one block on a device, so that passes need not synchronise with the host."""

    def __init__(self) -> None:
        self.threads = Threads()
        self._typical: dict[float, float] = {}

    def map_blocks(
        self,
        visit: Visit,
        block_states: Sequence[Any] | None = None,
        *,
        data: bool = True,
        on_device: bool = False,
    ) -> tuple[list[Any], Any]:
        """Call a function on every block; return new states, and the merged values.

        Parameters
        ----------
        visit : callable ``(block, state) -> (new state, value to merge)``
        block_states : sequence, optional; state of every block, None for each by default
        data : bool, default=True
            Whether the function reads rows; if not, blocks contain only sizes and weights of rows.
        on_device : bool, default=False
            Whether the function accepts blocks of any library. If so, chunks on GPUs are not
            copied; otherwise they are copied to the host.
        """
        states = [None] * len(self.blocks) if block_states is None else block_states
        pairs = list(zip(self.blocks, states, strict=True))
        return self._map(visit, pairs, data=data, on_device=on_device)

    @abstractmethod
    def _map(
        self, visit: Visit, pairs: list[tuple[Any, Any]], *, data: bool, on_device: bool
    ) -> tuple[list[Any], Any]:
        """Call a function as in ``map_blocks``, for pairs of a block and its state."""

    def sums(
        self, visit: Visit, block_states: Sequence[Any] | None = None, *, data: bool = True
    ) -> Any:
        """Return the merged values of a function of every block; states stay unchanged."""
        return self.map_blocks(visit, block_states, data=data)[1]

    @abstractmethod
    def filled(self) -> Engine:
        """Return itself, or an engine with missing values imputed, for starts that need these."""

    @abstractmethod
    def fill_samples(self) -> None:
        """Impute missing values once, so that samples can be mixed."""

    @abstractmethod
    def samples(self, index: Array) -> Array:
        """Return chosen samples (chosen, features) in units of scale."""

    def split(self, table: Array, axis: int = 0) -> list[Array]:
        """Split a table along the axis of rows into one table per block."""
        before = (slice(None),) * axis
        edges = itertools.accumulate((len(block) for block in self.blocks), initial=0)
        return [table[(*before, slice(*pair), ...)] for pair in itertools.pairwise(edges)]

    def whole(self, parts: Sequence[Array], axis: int = 0) -> Array:
        """Concatenate the tables of all blocks along the axis of rows."""
        return parts[0] if len(parts) == 1 else namespace(parts[0]).concat(list(parts), axis=axis)

    def begin(
        self, codes: Sequence[Array], mixing: Sequence[Array] | None = None
    ) -> list[BlockState]:
        """Return the first state of each block, with its codes (members, rows, k)."""
        shares = [None] * len(codes) if mixing is None else mixing
        pairs = list(zip(codes, shares, strict=True))
        return self.map_blocks(_begin, pairs, data=False)[0]

    def keep(self, block_states: list[BlockState], members: Array) -> list[BlockState]:
        """Return block states with only the members at these indices."""
        return self.map_blocks(
            lambda block, local: (local.keep(members), None), block_states, data=False
        )[0]

    def restored(
        self, block_states: list[BlockState], members: Array, before: list[BlockState]
    ) -> list[BlockState]:
        """Return block states in which the members in a mask are taken from earlier states."""
        pairs = list(zip(block_states, before, strict=True))
        return self.map_blocks(
            lambda block, pair: (pair[0].restored(members, pair[1]), None), pairs, data=False
        )[0]

    def collect(self, block_states: list[BlockState], name: str) -> Array:
        """Concatenate one field of the block states for all samples (members, samples, ...)."""
        return self.whole([getattr(local, name) for local in block_states], axis=1)

    can_checkpoint = True
    """Whether the state of a fit can be collected on the host and written to a file."""

    def use_codes_store(self, columns: int, folder: Path | None = None) -> None:  # noqa: B027
        """Store codes of ``columns`` columns outside of the block states, if they can be large."""

    def forget_start(self) -> None:  # noqa: B027
        """Delete information about rows that only starts need."""

    def close(self) -> None:  # noqa: B027
        """Release resources of a fit; most engines have none."""

    def result(self, array: Array) -> Array:
        """Copy an array of all members to the place where results of a fit are returned."""
        return array

    @cached_property
    def row_weight(self) -> Array:
        """Weight of every sample (samples,) in sums over rows."""
        return self.whole([block.row_weight for block in self.blocks])

    @cached_property
    def full_row_weight(self) -> Array:
        """Weight of every sample (samples,) if all of its entries were known."""
        return self.whole([block.full_row_weight for block in self.blocks])

    def row_sizes(self, degree: float) -> Array:
        """Compute the sizes of all samples (samples,), with which energies are compared."""
        return self.whole([block.row_sizes(degree) for block in self.blocks])

    def mean(self) -> float:
        """Mean entry of samples with positive weight, in units of scale."""
        return self._mean_size(1.0) / self.shape[1]

    def _mean_size(self, degree: float) -> float:
        def total(block: Block, _: None) -> tuple[None, np.ndarray]:
            sums = (
                block.xp.sum(block.row_weight * block.row_sizes(degree)),
                block.xp.sum(block.row_weight),
            )
            return None, np.asarray([float(value) for value in sums])

        size, count = self.sums(total, data=False)
        return float(size / count)

    def histograms(
        self,
        block_states: Sequence[Any],
        degree: float,
        energies: Callable[[Any], Array],
        *,
        unit: float | None = None,
        earlier: np.ndarray | float = 0.0,
    ) -> list[EnergyHistogram]:
        """Compute the histogram of the energies (members, rows) of block states for each member.

        ``unit`` is the size of a typical sample by default; ``earlier`` counts are added.
        """
        unit = self.typical_size(degree) if unit is None else unit

        def count(block: Block, local: Any) -> tuple[None, np.ndarray]:
            sizes, weight = block.row_sizes(degree), block.row_weight
            return None, energy_counts(energies(local), sizes, weight, unit)

        counts = earlier + self.sums(count, block_states, data=False)
        if not (counts.sum(axis=-1) > 0).all():  # NaN is not counted
            raise FloatingPointError(OUT_OF_RANGE)
        samples = sample_count(float(counts[0, 0].sum()), self._largest_row_weight)

        def excess(member: int, log: float, log_share: float) -> LogHistogram:
            """Compute the histogram of the larger excess of each sample over two limits."""

            def count(block: Block, local: Any) -> tuple[None, np.ndarray]:
                of_member = energies(local)[member, ...]
                sizes, weight = block.row_sizes(degree), block.row_weight
                return None, excess_counts(of_member, sizes, weight, unit, log, log_share)

            return LogHistogram(self.sums(count, block_states, data=False))

        return [
            EnergyHistogram(LogHistogram(of_energies), LogHistogram(of_shares), partial(excess, j),
                            unit, self.shape[1], samples)
            for j, (of_energies, of_shares) in enumerate(zip(*counts, strict=True))
        ]  # fmt: skip

    @cached_property
    def _largest_row_weight(self) -> float:
        """Largest weight of a row; cached, because automatic parameters need it after each pass."""
        return float(namespace(self.row_weight).max(self.row_weight))

    @cached_property
    def sample_count(self) -> float:
        """Number of samples that the rows represent."""
        weights, xp = self.full_row_weight, namespace(self.full_row_weight)
        return sample_count(float(xp.sum(weights)), float(xp.max(weights)))

    def typical_size(self, degree: float = 2.0) -> float:
        """Median size of samples with positive weight: the squared norm for the squared error."""
        if degree not in self._typical:
            # In units of the mean, so that rounding to nodes does not depend on the units of X.
            self._typical[degree] = self._median_size(degree, self._mean_size(degree) or 1.0)
        return self._typical[degree]

    def _median_size(self, degree: float, unit: float) -> float:
        """Return the median size of samples with positive weight, from a histogram in a unit."""

        def counts(block: Block, _: None) -> tuple[None, np.ndarray]:
            return None, node_counts(
                block.xp.log(floored(block.row_sizes(degree) / unit)), block.row_weight
            )

        histogram = LogHistogram(self.sums(counts, data=False))
        median = unit * float(np.exp(histogram.median()))
        # A few huge samples can make the mean so large that all others are below the histogram.
        is_clipped = histogram.has_clipped_median() and median > SMALLEST_SIZE
        return self._median_size(degree, median) if is_clipped else median

    def _lower_scale(self, degree: float) -> bool:
        """Lower the scale if typical entries are below ``eps`` in its units; return whether it was.

        Divergences divide by at least ``eps**2``, and one huge entry would move all others below
        this limit. The largest entry to the power ``degree`` remains in the range of floats.
        Squared errors (degree 2) need no division, so the scale is not changed.
        """
        if degree == 2 or self.mean() == 0:
            return False
        bits = namespace(self.like).finfo(self.like.dtype).bits
        typical = self.typical_size(1.0) / self.shape[1]
        least = 2.0 ** -(RANGE_BITS[bits] / max(2.0, degree))
        factor = max(min(typical / eps(self.like), 0.75), least)
        if typical < noise(self.like) * factor:
            raise ValueError(
                f"the largest value of X is about {self.scale:.0e}, and the mean of a typical "
                f"sample is {typical * self.scale:.0e}; this loss cannot represent both in "
                f"float{bits}. Set the largest values to NaN or remove their samples"
                f"{'' if bits == 64 else ', or give X as float64'}."
            )
        if factor == 0.75:
            return False
        self.scale = power_of_two_near(self.scale * factor, bits)
        self._typical.clear()
        return True

    def map_columns(self, function: Callable[[slice], Array], count: int, cost: float) -> Array:
        """Apply a function to ``count`` independent columns; return the results (..., columns).

        Uses threads if the total cost in operations is large enough.
        """
        pieces = max(1, min(self.threads.count, count, int(cost / WORTH_A_THREAD)))
        if pieces == 1:
            return function(slice(0, count))
        parts = list(self._visits(function, evenly(count, pieces), pieces))
        return namespace(parts[0]).concat(parts, axis=-1)

    @abstractmethod
    def member_slices(self, members: int, rank: int, cost: float) -> list[slice]:
        """Divide members among threads.

        ``cost`` is the work for an entry, relative to a pass for the squared error.
        """

    @property
    def threads_of_a_block(self) -> Threads | None:
        """Threads for the rows of the only block, if there is one."""
        return None

    def single_threaded(self) -> Engine:
        """Return an engine of the same data that uses a single thread."""
        copy = shallow_copy(self)
        copy.threads = Threads()
        return copy

    def thread_pool(self) -> AbstractContextManager[None]:
        """Open a thread pool for the duration; libraries other than NumPy have their own."""
        return self.threads.open() if isinstance(self.like, np.ndarray) else nullcontext()

    def _visits(self, function: Callable, items: Iterable, count: int) -> Iterable:
        return self.threads.each(function, items) if count > 1 else map(function, items)


def _begin(block: Block, pair: tuple[Array, Array | None]) -> tuple[BlockState, None]:
    """Copy codes so that the members of a sample are adjacent in memory, as in products with X."""
    codes, mixing = pair
    xp = namespace(codes)
    members, n, k = codes.shape
    flat = xp.reshape(by_rows(codes), (n, members * k))
    return BlockState(by_rows(xp.reshape(flat, (n, members, k))), mixing=mixing), None


def power_of_two_near(largest: float, bits: int) -> float:
    """Return the units in which the largest entry is in [1/2, 1); one if X is zero."""
    limit = 1000 if bits == 64 else 120
    exponent = max(-limit, min(limit, math.frexp(largest)[1]))
    return 2.0**exponent if largest > 0 else 1.0


def merged_all(results: Iterable[tuple[Any, Any]]) -> tuple[list[Any], Any]:
    """Return all states, and the values merged in the order of the rows."""
    kept, total = [], None
    for local, part in results:
        kept.append(local)
        # In the order of the rows, so that sums do not depend on the number of threads.
        total = part if total is None else merged(total, part)
    return kept, total


def merged(total: Any, part: Any) -> Any:
    """Merge two values by their ``merge`` method, or else by addition; None adds nothing."""
    if part is None:
        return total
    return total.merge(part) if hasattr(total, "merge") else total + part


def mapped(tree: Any, wanted: Callable[[Any], bool], function: Callable[[Any], Any]) -> Any:
    """Return a tree of containers and dataclasses with a function applied to chosen leaves."""
    if wanted(tree):
        return function(tree)
    if isinstance(tree, dict):
        return {name: mapped(value, wanted, function) for name, value in tree.items()}
    if type(tree) in (tuple, list):
        return type(tree)(mapped(value, wanted, function) for value in tree)
    if is_dataclass(tree) and not isinstance(tree, type):
        converted = {f.name: mapped(getattr(tree, f.name), wanted, function) for f in fields(tree)}
        return replace(tree, **converted)
    return tree


def evenly(count: int, parts: int) -> list[slice]:
    """Return consecutive slices of nearly equal length."""
    edges = [count * part // parts for part in range(parts + 1)]
    return [slice(*pair) for pair in itertools.pairwise(edges)]
