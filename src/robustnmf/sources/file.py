"""Paths of .npy files, and memory maps that are worth reading past the map."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from robustnmf.engine import RowReader, memory_map_reader, npy_reader
from robustnmf.sources._stored import StoredSource

WORTH_STORING = 2**30
"""Bytes of a memory map from which on it is read block by block."""


class FileSource(StoredSource):
    """A .npy file, by its path or by a memory map."""

    @classmethod
    def claims(cls, X: Any) -> bool:
        if isinstance(X, np.memmap):
            return X.nbytes >= WORTH_STORING and X.ndim == 2
        return isinstance(X, (str, os.PathLike))

    @cached_property
    def reader(self) -> RowReader:
        if isinstance(self.X, np.memmap):
            return memory_map_reader(self.X)
        return npy_reader(Path(self.X).expanduser())

    @property
    def file(self) -> Any:
        return self.X.filename if isinstance(self.X, np.memmap) else self.X

    def dense_rows(self) -> np.ndarray:
        if isinstance(self.X, np.memmap):
            return np.asarray(self.X, dtype=self.dtype)
        return super().dense_rows()
