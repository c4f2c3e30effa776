"""Arrays of Zarr and HDF5."""

from __future__ import annotations

from functools import cached_property
from itertools import islice
from typing import Any

from robustnmf.engine import RowReader, SlicedReader
from robustnmf.sources._stored import StoredSource

LIBRARIES = ("zarr", "h5py")


class ChunkedSource(StoredSource):
    """A two-dimensional array of Zarr, or a dataset of an HDF5 file."""

    def __init__(self, X: Any, name: str):
        super().__init__(X, name)
        library = _library(X)
        if library == "h5py" and not X:
            raise ValueError(
                "X is a dataset of an HDF5 file that is closed. Keep the file open while X is read."
            )
        if not hasattr(X, "shape"):
            names = ", ".join(repr(str(key)) for key in islice(X, 5)) or "nothing"
            raise TypeError(
                f"X is a group of arrays, a {type(X).__name__} of {library} that holds {names}. "
                "Pass one of its arrays, for example X['name']."
            )
        if len(X.shape) != 2:
            raise ValueError(
                f"Expected 2D array, got {len(X.shape)}D array instead (shape={tuple(X.shape)}). "
                "Samples in rows and features in columns are needed."
            )

    @classmethod
    def claims(cls, X: Any) -> bool:
        return _library(X) in LIBRARIES

    @cached_property
    def reader(self) -> RowReader:
        return SlicedReader(self.X)

    @property
    def file(self) -> Any:
        return getattr(getattr(self.X, "file", None), "filename", None)  # of HDF5


def _library(X: Any) -> str:
    return type(X).__module__.partition(".")[0]
