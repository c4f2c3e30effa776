"""X that is read block by block from where it is stored, the next while the last is computed."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from typing import Any

import numpy as np

from robustnmf.arrays import Array
from robustnmf.engine._base import Visit, merged, merged_all
from robustnmf.engine._look import Elsewhere, KnownRows, Look, looked_at
from robustnmf.engine.sources import Source

BLOCK_BYTES = 8 * 2**20
MOST_BYTES = 64 * 2**20
AHEAD = 2
"""Blocks that are read before they are needed."""


class Stored(Elsewhere):
    """Blocks of a source; in memory are what is known of rows, and the few that are visited.

    Parameters
    ----------
    source : Source
    check : callable, optional
        Told what the first look at all rows has found, before anything else is done.
    degree : float, default=2.0
        Power of the entries that energies compare with.
    dtype : numpy dtype, optional
        In which X is read; its own by default.
    scale, block_rows, sample_weight, fill
        As for an engine in memory.
    copies : int, default=1
        How many arrays of the size of a block a pass holds for it.
    """

    def __init__(
        self,
        source: Source,
        *,
        check: Callable[[Look], None] = lambda look: None,
        degree: float = 2.0,
        dtype: Any = None,
        scale: float | None = None,
        block_rows: int | None = None,
        sample_weight: np.ndarray | None = None,
        copies: int = 1,
        fill: float = 1.0,
    ):
        super().__init__()
        self.source, self.fill = source, fill
        self._read_as(source.shape, source.dtype, dtype)
        self.sample_weight = sample_weight
        bytes_a_row = copies * self.shape[1] * self.dtype.itemsize
        self.step = block_rows or _whole_chunks(BLOCK_BYTES // bytes_a_row, source.chunk_rows)
        if not block_rows and self.step * bytes_a_row > MOST_BYTES:  # chunks of many rows
            self.step = max(1, MOST_BYTES // bytes_a_row)
        looks, found = [], None
        at = 0
        for rows in self._read():
            mass = None if sample_weight is None else sample_weight[at : at + len(rows)]
            known, look = looked_at(rows, mass, [degree])
            looks.append(known)
            found = look if found is None else merged(found, look)
            at += len(rows)
        assert found is not None
        check(found)
        self._read_in(found, scale)
        if not found.heard:
            looks = [known.counting_all() for known in looks]
        self.blocks: list[KnownRows] = [known.scaled(self.scale) for known in looks]

    def sweep(
        self, visit: Visit, locals_: Sequence[Any] | None = None, *, data: bool = True
    ) -> tuple[list[Any], Any]:
        pairs = zip(self.blocks, locals_ or [None] * len(self.blocks), strict=True)
        if not data:
            return merged_all(visit(*pair) for pair in pairs)

        def loaded(item: tuple[np.ndarray, tuple[KnownRows, Any]]) -> tuple[Any, Any]:
            rows, (known, local) = item
            if len(rows) != len(known):
                raise ValueError(
                    f"X has yielded {len(known)} samples in a block at first and {len(rows)} now. "
                    "The function must yield the same blocks every time."
                )
            return visit(known.block(rows, self.scale, self.complete, self.fill), local)

        with closing(self._read()) as rows:
            items = zip(rows, pairs, strict=True)
            return merged_all(self._visits(loaded, items, len(self.blocks)))

    def _read(self) -> Generator[np.ndarray, None, None]:
        """The rows of all blocks, each read while those before it are computed."""
        reader = ThreadPoolExecutor(1, "read")
        try:
            pending: deque[Future] = deque()
            for read in self.source.read(self.step):
                pending.append(reader.submit(read))
                if len(pending) > AHEAD:
                    yield self._rows(pending.popleft())
            while pending:
                yield self._rows(pending.popleft())
        finally:
            reader.shutdown(cancel_futures=True)

    def _rows(self, read: Future) -> np.ndarray:
        return read.result().astype(self.dtype, copy=False)

    def samples(self, index: Array) -> Array:
        rows = self.source.take(int(i) for i in index)
        return rows.astype(self.dtype, copy=False) / self.scale


def _whole_chunks(rows: int, chunk_rows: int) -> int:
    """As many rows as asked for, or so, in whole chunks."""
    return chunk_rows * max(1, round(rows / chunk_rows))
