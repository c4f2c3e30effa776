"""X in memory (dense, with missing values or sparse): blocks of consecutive rows, on threads."""

from __future__ import annotations

import math
from typing import Any

import scipy.sparse

from robustnmf.arrays import (
    Array,
    Block,
    DenseBlock,
    MaskedBlock,
    SparseBlock,
    floored,
    from_gpu,
    has_holes,
    is_foreign,
    namespace,
    on_device_of,
    row_slice,
    to_numpy,
)
from robustnmf.engine._base import Engine, Visit, evenly, merged_all, power_of_two_near
from robustnmf.engine._scan import block_of
from robustnmf.engine.threads import Threads

BLOCK_BYTES = 8 * 2**20
ENOUGH_BLOCKS = 8
WORTH_A_BLOCK = 1e7
SWEEPS_COST = 4  # cost of one component, in entries of a row that a product reads


class InMemory(Engine):
    """Blocks of an array and their states.

    Parameters
    ----------
    X : array (samples, features) or CSR array; with missing entries (NaN), blocks contain a copy
    scale : float, optional; as in :class:`Engine`
    block_rows : int, optional
        Rows of a block. By default they fill ``BLOCK_BYTES``, so that the block is still in
        the cache for the second product of a pass, or there are fewer so that every thread gets
        enough blocks.
    columns : int; columns of the factors that a pass multiplies X with, over all members
    rank : int; columns of one member
    copies : int; number of arrays of the size of a block that a pass needs
    degree : float; exponent of the entries in the size of a row, with which energies are compared
    sample_weight : array (samples,), float64, optional; one by default
    fill : float; value of missing entries, in units of scale
    bring_home : bool; whether results are returned as NumPy arrays if X is on a device
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
        degree: float = 2.0,
        sample_weight: Array | None = None,
        fill: float = 1.0,
        bring_home: bool = False,
    ):
        super().__init__()
        self.bring_home = bring_home
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
        self.on_one_device = is_foreign(X) and self.complete
        self.sample_weight = sample_weight
        self.blocks = self._blocks_of(X, step, fill)
        if scale is None and self._lower_scale(degree):
            self.blocks = self._blocks_of(X, step, fill)

    def _blocks_of(self, X: Any, step: int, fill: float) -> list[Any]:
        """Return the blocks of X in units of scale, with ``step`` rows each."""
        blocks: list[Block] = []
        for at in range(0, X.shape[0], step):
            stop = min(at + step, X.shape[0])
            row_weight = None if self.sample_weight is None else self.sample_weight[at:stop]
            if scipy.sparse.issparse(X):
                blocks.append(SparseBlock(row_slice(X, at, stop), self.scale, row_weight))
            else:
                rows = X[at:stop, :]
                blocks.append(block_of(rows, self.scale, row_weight, self.complete, fill))
        if not any(bool(b.xp.any(b.row_weight > 0)) for b in blocks):
            for block in blocks:  # X is zero: all rows are equal, and all have weight
                block.row_weight = block.nominal_row_weight
        return blocks

    def filled(self) -> InMemory:
        """Return itself, or an engine with missing values imputed, for starts that need whole rows.

        Imputed values are the best estimate with one component: the mean of the feature, times the
        ratio of the known entries of the row to the means of their features.
        """
        if self.complete:
            return self
        xp = namespace(self.like)

        def sums(block: Block, _: None) -> tuple[None, Array]:
            assert isinstance(block, MaskedBlock)
            row_weight = xp.astype(block.full_row_weight, self.like.dtype)[:, None]
            known = row_weight * block.observed(None, block.rows)
            return None, xp.stack([xp.sum(known * block.rows, axis=0), xp.sum(known, axis=0)])

        totals_and_counts = self.sums(sums)
        totals, counts = totals_and_counts[0, :], totals_and_counts[1, :]
        means = xp.where(counts > 0, totals / floored(counts), 0 * totals)

        def guess(block: Block, _: None) -> tuple[Array, None]:
            assert isinstance(block, MaskedBlock)
            known = block.observed(block.rows, block.rows)
            expected = block.observed(None, block.rows) @ means
            excess = xp.sum(known, axis=1) / xp.where(expected > 0, expected, 1 + 0 * expected)
            return xp.where(block.known, block.rows, excess[:, None] * means), None

        rows = xp.concat(self.map_blocks(guess)[0])
        return InMemory(
            rows, scale=self.scale, sample_weight=self.sample_weight,
            block_rows=len(self.blocks[0]),  # codes of a start are computed by block
        )  # fmt: skip

    def fill_samples(self) -> None:
        if not self.complete and self.blocks[0].filled is None:
            parts = self.split(self.filled().like)
            for block, rows in zip(self.blocks, parts, strict=True):
                block.filled = DenseBlock(rows, self.scale)

    def samples(self, index: Array) -> Array:
        step = len(self.blocks[0])  # all blocks but the last have this number of rows
        places = (divmod(int(index[i]), step) for i in range(index.shape[0]))
        rows = [self.blocks[b].take(on_device_of(self.like, [at])) for b, at in places]
        return namespace(self.like).concat(rows)

    def member_slices(self, members: int, rank: int, cost: float) -> list[slice]:
        """Divide members among threads if the threads are then busier than with blocks.

        Python runs one thread at a time, so that calls of more threads wait longer for each other,
        while each of them has less work. Their sum is smallest for the root of the work.
        """
        if self.threads.count == 1 or len(self.blocks) > ENOUGH_BLOCKS:
            return evenly(members, 1)
        work = cost * members * rank * (self.like.size + SWEEPS_COST * rank * self.shape[0])
        threads = min(self.threads.count, max(1, round((work / WORTH_A_BLOCK) ** 0.5)))

        def share(parts: int) -> float:  # of the work that the busiest thread does
            return -(-parts // threads) / parts

        busier = share(members) < share(len(self.blocks))
        return evenly(members, min(threads, members) if busier else 1)

    @property
    def threads_of_a_block(self) -> Threads | None:
        return self.threads if len(self.blocks) == 1 else None

    def result(self, array: Array) -> Array:
        if not self.bring_home:
            return array
        return to_numpy(array) if getattr(array, "is_cuda", False) is False else from_gpu(array)

    def _map(
        self, visit: Visit, pairs: list[tuple[Any, Any]], *, data: bool, on_device: bool
    ) -> tuple[list[Any], Any]:
        if not data:  # too little work for threads
            return merged_all(visit(*pair) for pair in pairs)
        return merged_all(self._visits(lambda pair: visit(*pair), pairs, len(self.blocks)))


def _rows_of_a_block(rows: int, row_bytes: int, row_work: int, columns: int) -> int:
    """Return the rows of a block: few enough for the cache, many enough to be worth a call.

    The value of a block has as many rows as there are columns, so blocks have more rows than that.
    """
    worth = max(int(WORTH_A_BLOCK // (row_work * columns)), 4 * columns)
    count = max(-(-rows * row_bytes // BLOCK_BYTES), min(ENOUGH_BLOCKS, rows // worth), 1)
    return max(1, -(-rows // count))


def power_of_two_near_largest(X: Array) -> float:
    """Return the units in which the largest entry is in [1/2, 1); one if X is zero."""
    xp = namespace(X)
    if X.shape[0] == 0:
        return 1.0
    largest = float(xp.max(X))
    if math.isnan(largest):
        largest = float(xp.max(xp.where(xp.isnan(X), xp.zeros_like(X), X)))
    return power_of_two_near(largest, xp.finfo(X.dtype).bits)
