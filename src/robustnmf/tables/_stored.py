"""Tables that are too large for memory and stay in their file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

SHARE_OF_MEMORY = 0.25
"""Share of the memory of this machine from which on a table stays in its file: a fit may copy it,
and the codes need room."""

MEMORY_IF_UNKNOWN = 2**34
BLOCK_BYTES = 8 * 2**20


class StoredRows:
    """A table (samples, features) in a file; a fit reads it block by block.

    Parameters
    ----------
    array : memory map, or dataset of an open HDF5 file
    source : object
        The same as an estimator takes it: a path, or the dataset; None for blocks of rows.
    scale : ndarray (features,), optional
        What features are divided by as they are read.
    columns : ndarray (features,), optional
        Positions of the features in the array; all of it by default.
    """

    def __init__(
        self,
        array: Any,
        source: Any,
        scale: np.ndarray | None = None,
        columns: np.ndarray | None = None,
    ):
        self.array = array
        self.scale = scale
        self.columns = columns
        is_whole = source is not None and scale is None and columns is None
        self.source = source if is_whole else self.blocks
        shape = tuple(int(n) for n in array.shape)
        self.shape: tuple[int, ...] = shape if columns is None else (shape[0], len(columns))
        self.dtype = np.dtype(array.dtype)

    def take(self, indices: np.ndarray) -> np.ndarray:
        """Read some rows (len(indices), features), in any order."""
        places, order = np.unique(indices, return_inverse=True)
        # HDF5 takes increasing indices alone.
        return self._features(np.asarray(self.array[places])[order])

    def divided(self, scale: np.ndarray) -> StoredRows:
        """Return the same rows with features divided by the scale (features,)."""
        return StoredRows(self.array, None, scale, self.columns)

    def choose(self, columns: Sequence[int] | np.ndarray) -> StoredRows:
        """Return the same rows with some of the features, in this order."""
        positions = np.asarray(columns, dtype=np.intp)
        scale = None if self.scale is None else self.scale[positions]
        if self.columns is not None:
            positions = self.columns[positions]
        return StoredRows(self.array, None, scale, positions)

    def blocks(self) -> Iterator[np.ndarray]:
        """Yield all rows in blocks: the chosen features, divided by the scale."""
        step = max(1, BLOCK_BYTES // (8 * self.array.shape[1]))
        for start in range(0, self.shape[0], step):
            rows = np.asarray(self.array[start : start + step], dtype=np.float64)
            yield self._features(rows)

    def _features(self, rows: np.ndarray) -> np.ndarray:
        """Return the chosen features of rows of the array, divided by the scale."""
        rows = rows if self.columns is None else rows[:, self.columns]
        return rows if self.scale is None else rows / self.scale


def exceeds_memory(nbytes: int) -> bool:
    """Whether a table of so many bytes stays in its file."""
    return nbytes > SHARE_OF_MEMORY * memory_of_machine()


def memory_of_machine() -> int:
    """Return the memory of this machine in bytes."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # Windows
        return MEMORY_IF_UNKNOWN
