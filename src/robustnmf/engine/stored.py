"""X that is read block by block from storage; the next block is read during computations.

A reader has a shape and a dtype, and reads its blocks in order, as often as needed.
Codes can also be stored in a file between passes.
"""

from __future__ import annotations

import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from pathlib import Path
from threading import Lock
from typing import Any
from weakref import finalize

import numpy as np

from robustnmf.arrays import Array
from robustnmf.engine._base import BlockState, Visit, mapped, merged_all
from robustnmf.engine._scan import (
    DataSummary,
    KnownRows,
    OutOfCoreEngine,
    as_floats,
    is_usable,
    scan_rows,
)
from robustnmf.engine.threads import ahead
from robustnmf.files.archive import read_full, whole_file

BLOCK_BYTES = 8 * 2**20
MOST_BYTES = 64 * 2**20
AHEAD = 2
"""Number of blocks that are read in advance."""

AT_ONCE = 2**21
"""Numbers of a table of codes that are processed together."""


class RowReader(ABC):
    """Rows that are read block by block."""

    shape: tuple[int, int]
    dtype: np.dtype
    chunk_rows: int = 1
    """Number of rows that are stored together."""
    may_change: bool = False
    """Whether later passes can return other rows than the first pass."""

    @abstractmethod
    def read(self, step: int) -> Iterator[Callable[[], np.ndarray]]:
        """Yield, for every block of ``step`` rows, a function that reads it; called in order."""

    @abstractmethod
    def take(self, places: Iterable[int]) -> np.ndarray:
        """Return chosen rows, in any order."""

    def blocks(self) -> Iterator[np.ndarray]:
        """Yield all rows in blocks of a moderate size."""
        for read in self.read(max(1, BLOCK_BYTES // (8 * self.shape[1]))):
            yield read()


class SlicedReader(RowReader):
    """Reader of any two-dimensional object that returns rows when it is sliced."""

    def __init__(self, array: Any):
        self.array = array
        self.shape = int(array.shape[0]), int(array.shape[1])
        self.dtype = np.dtype(array.dtype)
        chunks = getattr(array, "chunks", None)
        self.chunk_rows = int(chunks[0]) if chunks else 1

    def read(self, step: int) -> Iterator[Callable[[], np.ndarray]]:
        for at in range(0, self.shape[0], step):
            yield partial(self._rows, slice(at, min(at + step, self.shape[0])))

    def take(self, places: Iterable[int]) -> np.ndarray:
        ascending, order = np.unique(list(places), return_inverse=True)  # as HDF5 needs them
        return self._rows(ascending)[order]

    def _rows(self, at: slice | np.ndarray) -> np.ndarray:
        return as_floats(self.array[at, :])


class SparseReader(SlicedReader):
    """Rows of a CSR array in memory; a few rows at a time are converted to dense."""

    def _rows(self, at: slice | np.ndarray) -> np.ndarray:
        return as_floats(self.array[at, :].toarray())


class Stored(OutOfCoreEngine):
    """Blocks of a reader; only sizes and weights of rows and a few blocks are in memory.

    By default, as many rows as fill ``BLOCK_BYTES`` are a block, in whole chunks; ``copies`` is the
    number of arrays of the size of a block that a pass needs.
    """

    def __init__(
        self, reader: RowReader, *, block_rows: int | None = None, copies: int = 1, **options: Any
    ):
        super().__init__(reader.shape, reader.dtype, **options)
        self.reader = reader
        self.codes_store: CodesStore | None = None
        self._check_rows = False
        self._mean: float | None = None
        bytes_a_row = copies * self.shape[1] * self.dtype.itemsize
        chunks = max(1, round(BLOCK_BYTES // bytes_a_row / reader.chunk_rows))
        most = max(1, MOST_BYTES // bytes_a_row)  # chunks can have many rows
        self.step = block_rows or min(chunks * reader.chunk_rows, most)
        with self.thread_pool(), closing(self._numbered()) as items:
            self._use_scan(*merged_all(self.threads.each(self._scan_block, items)))
        self._check_rows = reader.may_change

    def _scan_block(self, item: tuple[int, np.ndarray]) -> tuple[KnownRows, DataSummary]:
        """Scan a block, given with the index of its first row."""
        at, rows = item
        weight = None if self.sample_weight is None else self.sample_weight[at : at + len(rows)]
        return scan_rows(rows, weight, [self.degree])

    def _in_units(self, known: list[KnownRows], any_weight: bool) -> list[KnownRows]:
        return [rows.in_units(self.scale, any_weight=any_weight) for rows in known]

    def _map(
        self, visit: Visit, pairs: list[tuple[Any, Any]], *, data: bool, on_device: bool
    ) -> tuple[list[Any], Any]:
        def visited(number: int, block: Any, local: Any) -> tuple[Any, Any]:
            if self.codes_store is None:
                return visit(block, local)
            return self.codes_store.visited(number, visit, block, local)

        if not data:
            return merged_all(visited(i, *pair) for i, pair in enumerate(pairs))

        def loaded(item: tuple[int, tuple[np.ndarray, tuple[KnownRows, Any]]]) -> tuple[Any, Any]:
            number, (rows, (known, local)) = item
            block = known.block(rows, self.scale, self.complete, self.fill)
            return visited(number, block, local)

        with closing(self._read()) as rows:
            items = enumerate(_beside(rows, pairs))
            return merged_all(self._visits(loaded, items, len(self.blocks)))

    def use_codes_store(self, columns: int, folder: Path | None = None) -> None:
        """Store codes, with ``columns`` columns for all members, in a file in a folder, if any."""
        if folder is not None:
            rows = [len(block) for block in self.blocks]
            self.codes_store = CodesStore(folder, rows, columns * self.dtype.itemsize)

    def close(self) -> None:
        if self.codes_store is not None:
            self.codes_store.close()

    def mean(self) -> float:
        """Mean entry of samples with positive weight, in units of scale; cached by starts."""
        return super().mean() if self._mean is None else self._mean

    def forget_start(self) -> None:
        """Delete information about rows that only starts need, except the mean entry."""
        self._mean = self.mean()
        kept = {2.0, self.degree}
        self.blocks = [
            replace(known, by_degree={d: s for d, s in known.by_degree.items() if d in kept})
            for known in self.blocks
        ]

    def collect(self, block_states: list[Any], name: str) -> Array:
        parts = [getattr(local, name) for local in block_states]
        if self.codes_store is not None and all(isinstance(part, Handle) for part in parts):
            return self.codes_store.whole(parts)
        return self.whole(parts, axis=1)

    def whole(self, parts: Sequence[Any], axis: int = 0) -> Array:
        if self.codes_store is not None:
            parts = [self.codes_store.loaded(part) for part in parts]
        return super().whole(parts, axis)

    def _read(self) -> Generator[np.ndarray, None, None]:
        """Yield the rows of all blocks; each is read while the blocks before are processed."""
        reader = ThreadPoolExecutor(1, "read")
        try:
            yield from ahead(reader, self._rows, self.reader.read(self.step), AHEAD)
        finally:
            reader.shutdown(cancel_futures=True)

    def _numbered(self) -> Generator[tuple[int, np.ndarray], None, None]:
        """Yield the rows of all blocks, with the index of the first row."""
        at = 0
        for rows in self._read():
            yield at, rows
            at += len(rows)

    def _rows(self, read: Callable[[], np.ndarray]) -> np.ndarray:
        """Return the rows of a block; after the first pass, blocks of a function are rechecked."""
        rows = read().astype(self.dtype, copy=False)
        if self._check_rows and not is_usable(rows, self.complete):
            raise ValueError(
                "X yielded NaN, infinite or negative values that were not there in the first pass. "
                "The function must yield the same blocks every time."
            )
        return rows

    def samples(self, index: Array) -> Array:
        return self._rows(partial(self.reader.take, [int(i) for i in index])) / self.scale


def _beside(rows: Iterable[np.ndarray], pairs: Iterable[tuple]) -> Iterator[tuple[Any, Any]]:
    """Yield the rows and the state of every block; raise an error if the rows have changed."""
    for given, pair in zip_longest(rows, pairs):
        now = 0 if given is None else len(given)
        before = 0 if pair is None else len(pair[0])
        if now != before:
            raise ValueError(
                f"X first yielded {before} samples in a block, and now {now}. "
                "The function must yield the same blocks every time."
            )
        yield given, pair


class Handle:
    """Reference to an array of codes in a :class:`CodesStore`: its block, and its slot there."""

    def __init__(self, block: int, slot: int, array: np.ndarray):
        self.block, self.slot = block, slot
        self.shape, self.dtype = array.shape, array.dtype


class CodesStore:
    """Codes between passes, in an unnamed file.

    The file has slots with space for one array of every block: codes of one pass, and of the pass
    before. The states of blocks contain handles instead of codes. Slots are reference-counted: a
    slot is free if its handle is garbage-collected, like the memory of an array. So starts and
    the loop drop their states in the same way for all engines, and a state that can be restored
    keeps its codes. The file is not memory-mapped, because its pages would count as memory.

    ``rows`` are the numbers of rows of all blocks. Arrays with more than ``row_bytes`` bytes in a
    row are not stored.
    """

    def __init__(self, folder: Path, rows: Sequence[int], row_bytes: int):
        self.folder, self.rows, self.row_bytes = folder, list(rows), row_bytes
        self.starts = np.concatenate([[0], np.cumsum(rows)]).astype(int).tolist()
        self.taken: list[set[int]] = [set() for _ in rows]
        self._lock = Lock()
        self._file: Any = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115
        finalize(self, self._file.close)

    def visited(self, number: int, visit: Visit, block: Any, local: Any) -> tuple[Any, Any]:
        """Visit a block with its codes in memory; return its new state with handles, and the value.

        Codes that the visit returns unchanged keep their handles.
        """
        loaded = self.loaded(local)
        kept, part = visit(block, loaded)
        before = zip(_codes(loaded).values(), _codes(local).values(), strict=True)
        pairs = [(array, handle) for array, handle in before if isinstance(handle, Handle)]
        new = {name: self._put(number, a, pairs) for name, a in _codes(kept).items()}
        if isinstance(kept, BlockState):
            return replace(kept, **new), part
        return new.get("table", kept), part

    def loaded(self, value: Any) -> Any:
        """Return the state of a block with its codes in memory."""
        return mapped(value, lambda x: isinstance(x, Handle), self._read)

    def whole(self, handles: Sequence[Handle]) -> np.ndarray:
        """Return codes (members, rows, k) of all blocks, mapped from another unnamed file."""
        members, _, k = handles[0].shape
        with tempfile.TemporaryFile(dir=self.folder) as file:
            for handle in handles:
                file.write(np.ascontiguousarray(np.moveaxis(self._read(handle), -2, 0)).data)
            file.flush()
            shape = (self.starts[-1], members, k)
            table = np.memmap(file, handles[0].dtype, "r+", shape=shape)
        return table.transpose(1, 0, 2)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _put(
        self, block: int, array: np.ndarray, before: list[tuple[np.ndarray, Handle]]
    ) -> Handle | np.ndarray:
        """Return the handle of codes (..., rows, k); new codes are written to a free slot.

        ``before`` are the codes that were read, with their handles.
        """
        for loaded, handle in before:
            if array is loaded:
                return handle
        if array.nbytes > self.row_bytes * self.rows[block]:
            return array
        with self._lock:
            taken = self.taken[block]
            slot = next(slot for slot in range(len(taken) + 1) if slot not in taken)
            handle = Handle(block, slot, array)
            taken.add(slot)
            finalize(handle, taken.discard, slot).atexit = False
            self._file.seek(self._place(handle))
            # Rows are the first axis in the file, so that each row is contiguous.
            left = np.ascontiguousarray(np.moveaxis(array, -2, 0)).data.cast("B")
            while left:
                left = left[self._file.write(left) :]
        return handle

    def _read(self, handle: Handle) -> np.ndarray:
        """Return the array of a handle."""
        *before, rows, k = handle.shape
        table = np.empty((rows, *before, k), handle.dtype)
        with self._lock:
            self._file.seek(self._place(handle))
            if not read_full(self._file, table.data):
                raise OSError("the file of codes is shorter than the data written to it.")
        return np.moveaxis(table, 0, -2)

    def _place(self, handle: Handle) -> int:
        return (handle.slot * self.starts[-1] + self.starts[handle.block]) * self.row_bytes


def _codes(state: Any) -> dict[str, Any]:
    """Return the codes in the state of a block, arrays or handles, by name.

    For a :class:`BlockState` these are the fields ``OF_CODES``. Starts store tables of rows, which
    are codes or have the same size.
    """
    if isinstance(state, BlockState):
        codes = {name: getattr(state, name) for name in state.OF_CODES}
        return {name: array for name, array in codes.items() if array is not None}
    is_table = isinstance(state, (np.ndarray, Handle)) and len(state.shape) >= 2
    return {"table": state} if is_table else {}


def in_parts(table: np.ndarray) -> Iterator[np.ndarray]:
    """Yield slices of the rows (..., rows, k) of a table that might not fit into memory."""
    step = max(1, AT_ONCE // max(1, table[..., 0, :].size))
    for at in range(0, table.shape[-2], step):
        yield table[..., at : at + step, :]


def written(path: Path, table: np.ndarray, factor: float) -> np.ndarray:
    """Write a scaled table to a .npy file next to its target, rename it, and map it."""
    with whole_file(path) as file:
        kind = {"descr": np.lib.format.dtype_to_descr(table.dtype), "fortran_order": False}
        np.lib.format.write_array_header_2_0(file, kind | {"shape": table.shape})
        for part in in_parts(table):
            file.write(np.ascontiguousarray(part * table.dtype.type(factor)).data)
    return np.load(path, mmap_mode="r", allow_pickle=False)
