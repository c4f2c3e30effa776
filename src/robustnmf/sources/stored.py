"""X that is read block by block: .npy files, Zarr and HDF5 arrays, functions that yield blocks.

:func:`reader_of` returns the reader of the rows; all readers share one source.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import Any, Self
from weakref import finalize

import numpy as np

from robustnmf.engine import Engine, RowReader, SlicedReader, Stored, as_floats
from robustnmf.files.archive import read_full, read_npy_header
from robustnmf.loop.compatibility import ModelSpec
from robustnmf.sources._base import PassNeeds, Source, check_number_dtype, check_shape

WORTH_STORING = 2**30
"""Memory maps of at least this many bytes are read block by block."""

CHUNKED = ("zarr", "h5py")
"""Libraries of chunked arrays."""


class StoredSource(Source):
    """Rows that a reader reads block by block in every pass."""

    in_memory = False

    def __init__(self, X: Any, name: str):
        super().__init__(X, name)
        if isinstance(X, Iterator):
            raise TypeError(
                "X is a generator, which can be read only once, but every pass reads X again. "
                "Pass the function that creates it, for example lambda: blocks(path)."
            )
        library = _library(X)
        if library == "h5py" and not X:
            raise ValueError(
                "X is a dataset of an HDF5 file that is closed. Keep the file open while X is read."
            )
        if library in CHUNKED and not hasattr(X, "shape"):
            names = ", ".join(repr(str(key)) for key in islice(X, 5)) or "nothing"
            raise TypeError(
                f"X is a group of arrays, a {type(X).__name__} of {library} that holds {names}. "
                "Pass one of its arrays, for example X['name']."
            )
        if library in CHUNKED:
            check_shape(X.shape, name)

    @classmethod
    def claims(cls, X: Any) -> bool:
        if isinstance(X, np.memmap):
            return X.nbytes >= WORTH_STORING and X.ndim == 2
        if isinstance(X, (RowReader, Iterator, str, os.PathLike)) or _library(X) in CHUNKED:
            return True
        return callable(X) and not hasattr(X, "__array__")

    @cached_property
    def reader(self) -> RowReader:
        """The reader of the rows."""
        return reader_of(self.X)

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        """Samples and features."""
        return self.reader.shape

    @property
    def file(self) -> Any:
        if isinstance(self.X, (str, os.PathLike)):
            return self.X
        return getattr(getattr(self.X, "file", self.X), "filename", None)  # HDF5 or memory map

    def checked(
        self, spec: ModelSpec, *, model: Any = None, dtype: Any = None, learning: bool = False
    ) -> Self:
        check_shape(self.shape, self.name)
        check_number_dtype(self.reader.dtype, self.name)
        self.spec, self.read_dtype = spec, dtype
        self.dtype = dtype or self.reader.dtype
        if model is not None:
            self.check_features(model)
        return self

    def _engine(self, needs: PassNeeds, options: dict[str, Any]) -> Engine:
        return Stored(self.reader, copies=needs.copies, **self._scanning(needs, options))

    def dense_rows(self) -> np.ndarray:
        if isinstance(self.X, np.memmap):
            return np.asarray(self.X, dtype=self.dtype)
        return super().dense_rows()


def reader_of(X: Any) -> RowReader:
    """Return the reader of the rows of X."""
    if isinstance(X, RowReader):
        return X
    if isinstance(X, np.memmap):
        return _memory_map_reader(X)
    if isinstance(X, (str, os.PathLike)):
        return npy_reader(Path(X).expanduser())
    return SlicedReader(X) if _library(X) in CHUNKED else FunctionReader(X)


class FileReader(SlicedReader):
    """Consecutive rows in a file, read without a memory map, whose pages would stay in memory.

    The file is open and unbuffered (the system reads ahead if reads are consecutive), and closed
    with the reader. The first row is at ``offset`` bytes.
    """

    def __init__(self, file: Any, offset: int, dtype: Any, shape: tuple[int, int]):
        self.file, self.offset = file, offset
        self.dtype, self.shape = np.dtype(dtype), shape
        finalize(self, file.close)
        self._lock = Lock()

    def _rows(self, at: slice | np.ndarray) -> np.ndarray:
        if not isinstance(at, slice):
            return np.concatenate([self._rows(slice(i, i + 1)) for i in at.tolist()])
        rows = np.empty((at.stop - at.start, self.shape[1]), self.dtype)
        with self._lock:
            self.file.seek(self.offset + at.start * self.shape[1] * self.dtype.itemsize)
            if not read_full(self.file, rows.reshape(-1).view(np.uint8).data):
                raise OSError(
                    f"{self.file.name} ends before row {at.stop}; it is shorter than stated in its "
                    "header."
                )
        return as_floats(rows)


class FunctionReader(RowReader):
    """Blocks from a function that yields them every time it is called."""

    may_change = True

    def __init__(self, blocks: Callable[[], Iterable[Any]]):
        self.function = blocks
        rows, features, dtypes = 0, None, set()
        for block in blocks():
            block = as_floats(block)
            if not len(block):
                continue
            if features not in (None, block.shape[1]):
                raise ValueError(
                    f"X yields a block with {block.shape[1]} features after blocks with "
                    f"{features}; all blocks need the same number."
                )
            rows, features = rows + len(block), block.shape[1]
            dtypes.add(block.dtype)
        if features is None:
            raise ValueError("X yields no blocks; at least one sample is needed.")
        self.shape, self.dtype = (rows, features), np.result_type(*dtypes)

    def read(self, step: int) -> Iterator[Callable[[], np.ndarray]]:
        seen = 0
        for block in self.function():  # called here, in order: the function itself does the work
            # A copy, because the function may use one buffer for all blocks.
            rows = np.array(as_floats(block), dtype=self.dtype)
            if len(rows):
                seen += len(rows)
                yield partial(np.asarray, rows)
        if seen != self.shape[0]:
            raise ValueError(
                f"X first yielded {self.shape[0]} samples, and now {seen}. The function must "
                "yield the same blocks every time."
            )

    def take(self, places: Iterable[int]) -> np.ndarray:
        wanted, at = list(places), 0
        rows_by_place: dict[int, np.ndarray] = {}
        for read in self.read(1):
            rows = read()
            rows_by_place |= {p: rows[p - at] for p in wanted if at <= p < at + len(rows)}
            at += len(rows)
        return np.stack([rows_by_place[p] for p in wanted])


def npy_reader(path: Path) -> RowReader:
    """Return the reader of a .npy file that contains a table of numbers."""
    if not path.exists():
        raise FileNotFoundError(f"X is the path {path}, but there is no such file.")
    if path.is_dir():
        raise ValueError(
            f"X is the path {path}, a folder. Only paths of .npy files are supported; for a Zarr "
            f"array pass zarr.open({str(path)!r})."
        )
    with path.open("rb") as file:
        try:
            shape, fortran, dtype = read_npy_header(file)
        except ValueError as error:
            raise ValueError(
                f"X is the path {path}, which is not a .npy file ({error}). Save X with "
                "numpy.save, or pass an array, for example h5py.File(path)['x']."
            ) from error
        offset = file.tell()
    if dtype.hasobject:
        raise ValueError(f"{path} holds Python objects, which are not read. Save X as numbers.")
    if len(shape) != 2:
        raise ValueError(
            f"{path} holds an array of shape {shape}; a 2D array (samples, features) is needed."
        )
    if fortran:
        return SlicedReader(np.load(path, mmap_mode="r", allow_pickle=False))
    return FileReader(path.open("rb", buffering=0), offset, dtype, shape)


def _memory_map_reader(X: np.memmap) -> RowReader:
    """Return the reader of the file of a memory map, if its rows are consecutive in the file."""
    whole = not isinstance(X.base, np.memmap) and X.flags.c_contiguous
    # Changes to a copy-on-write map are in no file, and the file may have been deleted.
    name = X.filename
    if whole and X.mode != "c" and name is not None and os.path.isfile(name):
        return FileReader(Path(name).open("rb", buffering=0), X.offset, X.dtype, X.shape)
    return SlicedReader(X)


def _library(X: Any) -> str:
    return type(X).__module__.partition(".")[0]
