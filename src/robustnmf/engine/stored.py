"""X that is read block by block from where it is stored, the next while the last is computed."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from robustnmf.arrays import Array, Block, Visit
from robustnmf.engine._blockwise import merged_all
from robustnmf.engine._scan import DataSummary, KnownRows, OutOfCoreEngine, is_usable, scan_rows
from robustnmf.engine.codes_store import CodesStore, FileCodesStore, Handle, MemoryCodesStore
from robustnmf.engine.row_readers import RowReader, SparseReader

BLOCK_BYTES = 8 * 2**20
MOST_BYTES = 64 * 2**20
AHEAD = 2
"""Blocks that are read before they are needed."""


class Stored(OutOfCoreEngine):
    """Blocks of a source; in memory are what is known of rows, and the few that are visited.

    Parameters
    ----------
    reader : RowReader
    check : callable, optional
        Called with the summary of the scan of all rows; refuses X by an error.
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
        reader: RowReader,
        *,
        check: Callable[[DataSummary], None] = lambda scan_block: None,
        degree: float = 2.0,
        dtype: Any = None,
        scale: float | None = None,
        block_rows: int | None = None,
        sample_weight: np.ndarray | None = None,
        copies: int = 1,
        fill: float = 1.0,
    ):
        super().__init__()
        self.reader, self.fill = reader, fill
        self.codes_store: CodesStore | None = None
        self._degree = degree
        self._check_rows = False
        self._mean: float | None = None
        self._read_as(reader.shape, reader.dtype, dtype)
        self.sample_weight = sample_weight
        bytes_a_row = copies * self.shape[1] * self.dtype.itemsize
        self.step = block_rows or _whole_chunks(BLOCK_BYTES // bytes_a_row, reader.chunk_rows)
        if not block_rows and self.step * bytes_a_row > MOST_BYTES:  # chunks of many rows
            self.step = max(1, MOST_BYTES // bytes_a_row)

        def scan_block(item: tuple[int, np.ndarray]) -> tuple[KnownRows, DataSummary]:
            at, rows = item
            row_weight = None if sample_weight is None else sample_weight[at : at + len(rows)]
            return scan_rows(rows, row_weight, [degree])

        with self.thread_pool(), closing(self._numbered()) as items:
            blocks_known, summary = merged_all(self.threads.each(scan_block, items))
        check(summary)
        self._read_in(summary, scale)
        self._check_rows = reader.may_change
        if not summary.any_weight:
            blocks_known = [known.counting_all() for known in blocks_known]
        self.blocks: list[KnownRows] = [known.scaled(self.scale) for known in blocks_known]
        if scale is None and self._lower_scale(degree):
            self.blocks = [known.scaled(self.scale) for known in blocks_known]

    def map_blocks(
        self,
        visit: Visit,
        block_states: Sequence[Any] | None = None,
        *,
        data: bool = True,
        on_device: bool = False,
    ) -> tuple[list[Any], Any]:
        with_stored_codes = self._with_stored_codes(visit)
        numbers = range(len(self.blocks))
        pairs = zip(numbers, self.blocks, block_states or [None] * len(self.blocks), strict=True)
        if not data:
            return merged_all(with_stored_codes(*item) for item in pairs)

        def loaded(item: tuple[np.ndarray, tuple[int, KnownRows, Any]]) -> tuple[Any, Any]:
            rows, (i, known, local) = item
            return with_stored_codes(
                i, known.block(rows, self.scale, self.complete, self.fill), local
            )

        with closing(self._read()) as rows:
            items = _beside(rows, pairs)
            return merged_all(self._visits(loaded, items, len(self.blocks)))

    def _with_stored_codes(self, visit: Visit) -> Callable[[int, Any, Any], tuple[Any, Any]]:
        """Return the visit of a block by its number, with codes from and to the store."""
        codes_store = self.codes_store
        if codes_store is None:
            return lambda i, block, local: visit(block, local)

        def visited(i: int, block: Block, local: Any) -> tuple[Any, Any]:
            local, known = codes_store.get(local)
            kept, part = visit(block, local)
            return codes_store.store(i, kept, known), part

        return visited

    def use_codes_store(self, columns: int, folder: Path | None = None) -> None:
        """Keep codes, of so many columns for all members, in a store from now on.

        It is a file where a folder is given.
        """
        rows, row_bytes = [len(block) for block in self.blocks], columns * self.dtype.itemsize
        if folder is None:
            self.codes_store = MemoryCodesStore(rows, row_bytes)
        else:
            self.codes_store = FileCodesStore(folder, rows, row_bytes)

    def close(self) -> None:
        if self.codes_store is not None:
            self.codes_store.close()

    def mean(self) -> float:
        """Mean entry of the samples that count, in units of scale; known once starts are made."""
        return super().mean() if self._mean is None else self._mean

    def forget_start(self) -> None:
        """Forget what only starts ask of rows without reading them, but for the mean entry."""
        self._mean = self.mean()
        kept = {2.0, self._degree}
        self.blocks = [
            replace(known, by_degree={d: s for d, s in known.by_degree.items() if d in kept})
            for known in self.blocks
        ]

    def collect(self, block_states: list[Any], name: str) -> Array:
        handles = [getattr(local, name) for local in block_states]
        if self.codes_store is not None:
            self.codes_store.tidy()  # the pass is over; what is collected needs the room
        if self.codes_store is not None and all(isinstance(handle, Handle) for handle in handles):
            return self.codes_store.whole(handles)
        return self.whole(handles, axis=1)

    def whole(self, parts: Sequence[Any], axis: int = 0) -> Array:
        codes_store = self.codes_store
        if codes_store is None:
            return super().whole(parts, axis)
        arrays = [codes_store.get(part)[0] for part in parts]
        if len(parts) == 1 and isinstance(parts[0], Handle):
            return arrays[0].copy()  # its place may be used again
        return super().whole(arrays, axis)

    def _read(self) -> Generator[np.ndarray, None, None]:
        """The rows of all blocks, each read while those before it are computed."""
        reader = ThreadPoolExecutor(1, "read")
        try:
            pending: deque[Future] = deque()
            for read in self.reader.read(self.step):
                pending.append(reader.submit(self._rows, read))
                if len(pending) > AHEAD:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            reader.shutdown(cancel_futures=True)

    def _numbered(self) -> Generator[tuple[int, np.ndarray], None, None]:
        """The rows of all blocks, with the number of the first."""
        at = 0
        for rows in self._read():
            yield at, rows
            at += len(rows)

    def _rows(self, read: Callable[[], np.ndarray]) -> np.ndarray:
        """The rows of a block; after the first pass, those of a function are checked again."""
        rows = read().astype(self.dtype, copy=False)
        if self._check_rows and not is_usable(rows, self.complete):
            raise ValueError(
                "X has yielded NaN, infinite or negative values that were not there at first. "
                "The function must yield the same blocks every time."
            )
        return rows

    def samples(self, index: Array) -> Array:
        return self._rows(partial(self.reader.take, [int(i) for i in index])) / self.scale


class DenseRows(Stored):
    """Blocks of a sparse table in memory, of which a few are dense at a time.

    Parameters
    ----------
    table : CSR array (samples, features)
    **options
        As for stored X.
    """

    def __init__(self, table: scipy.sparse.csr_array, **options: Any):
        super().__init__(SparseReader(table), **options)

    def use_codes_store(self, columns: int, folder: Path | None = None) -> None:
        """Keep codes in a file, if a folder is given; otherwise they stay with their blocks."""
        if folder is not None:
            super().use_codes_store(columns, folder)


def _beside(rows: Iterable[np.ndarray], pairs: Iterable[tuple]) -> Iterator[tuple[Any, Any]]:
    """The rows of every block, and what is known of it; they must be those of the first time."""
    for given, pair in zip_longest(rows, pairs):
        now, before = 0 if given is None else len(given), 0 if pair is None else len(pair[1])
        if now != before:
            raise ValueError(
                f"X has yielded {before} samples in a block at first and {now} now. "
                "The function must yield the same blocks every time."
            )
        yield given, pair


def _whole_chunks(rows: int, chunk_rows: int) -> int:
    """As many rows as asked for, or so, in whole chunks."""
    return chunk_rows * max(1, round(rows / chunk_rows))
