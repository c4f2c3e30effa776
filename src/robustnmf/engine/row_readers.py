"""Readers of stored rows: files, memory maps, Zarr and HDF5, functions that yield blocks.

A reader has a shape and a dtype, and reads its blocks one after the other, as often as needed.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any
from weakref import finalize

import numpy as np

from robustnmf.archive import read_full
from robustnmf.arrays import row_slice
from robustnmf.engine._scan import as_floats


class RowReader(ABC):
    """Rows that are read block by block."""

    shape: tuple[int, int]
    dtype: np.dtype
    chunk_rows: int = 1
    """Rows that are stored together."""
    may_change: bool = False
    """Whether the rows of a later pass may be others than those of the first."""

    @abstractmethod
    def read(self, step: int) -> Iterator[Callable[[], np.ndarray]]:
        """For every block of so many rows, a function that reads it; called in order."""

    def take(self, places: Iterable[int]) -> np.ndarray:
        """A few chosen rows."""
        wanted = list(places)
        rows_by_place: dict[int, np.ndarray] = {}
        at = 0
        for read in self.read(self.chunk_rows):
            rows = read()
            rows_by_place |= {p: rows[p - at] for p in wanted if at <= p < at + len(rows)}
            at += len(rows)
        return np.stack([rows_by_place[p] for p in wanted])


class SlicedReader(RowReader):
    """Anything two-dimensional that hands out rows when it is sliced."""

    def __init__(self, array: Any):
        self.array = array
        self.shape = int(array.shape[0]), int(array.shape[1])
        self.dtype = np.dtype(array.dtype)
        chunks = getattr(array, "chunks", None)
        self.chunk_rows = int(chunks[0]) if chunks else 1

    def read(self, step: int) -> Iterator[Callable[[], np.ndarray]]:
        for at in range(0, self.shape[0], step):
            yield partial(self._rows, at, min(at + step, self.shape[0]))

    def take(self, places: Iterable[int]) -> np.ndarray:
        return np.concatenate([self._rows(p, p + 1) for p in places])

    def _rows(self, start: int, stop: int) -> np.ndarray:
        return as_floats(self.array[start:stop, :])


class SparseReader(SlicedReader):
    """Rows of a CSR array, as dense ones."""

    def _rows(self, start: int, stop: int) -> np.ndarray:
        return as_floats(row_slice(self.array, start, stop).toarray())


class FileReader(SlicedReader):
    """Rows one after the other in a file, read past any memory map: pages of a map stay mapped."""

    def __init__(self, path: str | os.PathLike, offset: int, dtype: np.dtype, shape: tuple):
        self.path, self.offset = Path(path), offset
        self.dtype, self.shape = np.dtype(dtype), shape
        # Opened once: the system reads ahead where reads are consecutive.
        self._file = self.path.open("rb", buffering=0)
        finalize(self, self._file.close)
        self._lock = Lock()

    def _rows(self, start: int, stop: int) -> np.ndarray:
        rows = np.empty((stop - start, self.shape[1]), self.dtype)
        with self._lock:
            self._file.seek(self.offset + start * self.shape[1] * self.dtype.itemsize)
            if not read_full(self._file, rows.reshape(-1).view(np.uint8).data):
                raise OSError(
                    f"{self.path} ends before row {stop}; it is shorter than its header says."
                )
        return as_floats(rows)


class FunctionReader(RowReader):
    """Blocks that a function yields, every time it is called."""

    may_change = True

    def __init__(self, blocks: Callable[[], Iterable[Any]]):
        self.blocks = blocks
        rows, features, dtypes = 0, None, set()
        for block in blocks():
            block = as_floats(block)
            if not len(block):
                continue
            if features not in (None, block.shape[1]):
                raise ValueError(
                    f"X yields a block with {block.shape[1]} features after blocks with "
                    f"{features}; all need the same."
                )
            rows, features = rows + len(block), block.shape[1]
            dtypes.add(block.dtype)
        if features is None:
            raise ValueError("X yields no blocks; at least one sample is needed.")
        self.shape, self.dtype = (rows, features), np.result_type(*dtypes)

    def read(self, step: int) -> Iterator[Callable[[], np.ndarray]]:
        blocks = iter(self.blocks())
        seen = 0
        while True:
            # Fetched here, in order; the function itself does the work.
            block = next(blocks, None)
            if block is None:
                break
            # A copy: the function may use one buffer for all blocks.
            rows = np.array(as_floats(block), dtype=self.dtype)
            if not len(rows):
                continue
            seen += len(rows)
            yield partial(_given, rows)
        if seen != self.shape[0]:
            raise ValueError(
                f"X has yielded {self.shape[0]} samples at first and {seen} now. The function "
                "must yield the same blocks every time."
            )


def _given(rows: np.ndarray) -> np.ndarray:
    return rows


def npy_reader(path: Path) -> RowReader:
    """Return the reader of a .npy file, if it holds a table of numbers."""
    if not path.exists():
        raise FileNotFoundError(f"X is the path {path}, where there is no file.")
    if path.is_dir():
        raise ValueError(
            f"X is the path {path}, a folder. Paths are for .npy files; for a Zarr array pass "
            f"zarr.open({str(path)!r})."
        )
    with path.open("rb") as file:
        try:
            version = np.lib.format.read_magic(file)
            read = np.lib.format.read_array_header_1_0
            if version != (1, 0):
                read = np.lib.format.read_array_header_2_0
            shape, fortran, dtype = read(file)
        except ValueError as error:
            raise ValueError(
                f"X is the path {path}, which is no .npy file ({error}). Save X with numpy.save, "
                "or pass an array, for example h5py.File(path)['x']."
            ) from error
        offset = file.tell()
    if dtype.hasobject:
        raise ValueError(f"{path} holds Python objects, which are never read. Save X as numbers.")
    if len(shape) != 2:
        raise ValueError(
            f"{path} holds an array of shape {shape}; samples and features are needed."
        )
    if fortran:
        return SlicedReader(np.load(path, mmap_mode="r", allow_pickle=False))
    return FileReader(path, offset, dtype, shape)


def memory_map_reader(X: np.memmap) -> RowReader:
    """The file behind a memory map, where its rows lie one after the other."""
    whole = not isinstance(X.base, np.memmap) and X.flags.c_contiguous
    # What was written to a copy on write is in no file, and a file may be gone.
    name = X.filename
    if whole and X.mode != "c" and name is not None and os.path.isfile(name):
        return FileReader(name, X.offset, X.dtype, X.shape)
    return SlicedReader(X)
