"""Codes between passes while X is read from a file: in a few large arrays, or in a file.

A stored array is replaced by a :class:`Handle`. Its slot is free again when the last reference to
the handle is gone, as the memory of an array would be: starts and the loop drop their states in the
same way for all engines, and a state that may be restored keeps its codes. A file is read and
written without a memory map, whose pages would count as memory.
"""

from __future__ import annotations

import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Any
from weakref import finalize

import numpy as np

from robustnmf.archive import read_full, whole_file
from robustnmf.engine._blockwise import mapped
from robustnmf.passes import BlockState


class Handle:
    """Place of a stored array: its block and slot."""

    def __init__(self, block: int, slot: int, array: np.ndarray):
        self.block, self.slot = block, slot
        self.array: np.ndarray | None = None
        self.shape, self.dtype = array.shape, array.dtype


class CodesStore(ABC):
    """Slots with room for an array of every block: codes of one pass, and of the one before.

    Parameters
    ----------
    rows : sequence of int
        Rows of every block.
    row_bytes : int
        Bytes of a row at most; arrays with larger rows are not stored.
    """

    def __init__(self, rows: Sequence[int], row_bytes: int):
        self.rows, self.row_bytes = list(rows), row_bytes
        self.starts = np.concatenate([[0], np.cumsum(rows)]).astype(int).tolist()
        self.taken: list[set[int]] = [set() for _ in rows]
        self._lock = Lock()

    def get(self, value: Any) -> tuple[Any, Known]:
        """Return the state of a block with its codes in memory, and the handles they had."""
        known: Known = {}

        def got(handle: Handle) -> np.ndarray:
            array = self._read(handle)
            known[id(array)] = array, handle
            return array

        return mapped(value, _is_handle, got), known

    def store(self, block: int, value: Any, known: Known) -> Any:
        """Return the state of a block with handles for its codes; unchanged codes keep theirs.

        Of a :class:`BlockState` these are the fields ``OF_CODES``. Starts keep tables of rows,
        which are codes or as large.
        """
        if isinstance(value, BlockState):
            codes = {name: getattr(value, name) for name in value.OF_CODES}
            arrays = {name: array for name, array in codes.items() if array is not None}
            return replace(
                value, **{name: self._put(block, a, known) for name, a in arrays.items()}
            )
        is_table = isinstance(value, np.ndarray) and value.ndim >= 2
        return self._put(block, value, known) if is_table else value

    def _put(self, block: int, array: np.ndarray, known: Known) -> Handle | np.ndarray:
        """Write codes (..., rows, k) to a free slot, and return its handle."""
        if id(array) in known:
            return known[id(array)][1]
        if array.nbytes > self.row_bytes * self.rows[block]:
            return array
        with self._lock:
            taken = self.taken[block]
            handle = Handle(block, _first_free(taken), array)
            taken.add(handle.slot)
            finalize(handle, taken.discard, handle.slot).atexit = False
            # The rows of an array one after the other, whatever comes before them.
            self._write(handle, np.moveaxis(array, -2, 0))
        return handle

    @abstractmethod
    def _write(self, handle: Handle, table: np.ndarray) -> None:
        """Write rows (rows, ...) to the slot of a handle."""

    @abstractmethod
    def _read(self, handle: Handle) -> np.ndarray:
        """Return the array of a handle."""

    @abstractmethod
    def whole(self, handles: Sequence[Handle]) -> np.ndarray:
        """Codes (members, rows, k) of all blocks."""

    def tidy(self) -> None:  # noqa: B027
        """Free slots that no handle uses."""

    def close(self) -> None:  # noqa: B027
        """Free all slots."""


class MemoryCodesStore(CodesStore):
    """Planes in memory: a few large arrays, in place of many small ones that leave gaps."""

    def __init__(self, rows: Sequence[int], row_bytes: int):
        super().__init__(rows, row_bytes)
        self.slots: dict[int, np.ndarray] = {}

    def _write(self, handle: Handle, table: np.ndarray) -> None:
        if handle.slot not in self.slots:
            self.slots[handle.slot] = np.empty(self.starts[-1] * self.row_bytes, np.uint8)
        at = self.starts[handle.block] * self.row_bytes
        place = self.slots[handle.slot][at : at + table.nbytes]
        rows = place.view(table.dtype).reshape(table.shape)
        rows[...] = table
        handle.array = np.moveaxis(rows, 0, -2)

    def _read(self, handle: Handle) -> np.ndarray:
        assert handle.array is not None
        return handle.array

    def tidy(self) -> None:
        for unused in self.slots.keys() - set().union(*self.taken):
            del self.slots[unused]

    def whole(self, handles: Sequence[Handle]) -> np.ndarray:
        members, _, k = handles[0].shape
        dtype = handles[0].dtype
        slots = {handle.slot for handle in handles}
        narrow = members * k * dtype.itemsize < self.row_bytes
        if narrow or len(slots) > 1 or not slots <= self.slots.keys():
            return np.concatenate([self._read(handle) for handle in handles], axis=1)
        # The plane itself: what is put there later goes to another one.
        slot = self.slots.pop(slots.pop())
        return slot.view(dtype).reshape(-1, members, k).transpose(1, 0, 2)


class FileCodesStore(CodesStore):
    """Planes one after the other in a file without a name."""

    def __init__(self, folder: Path, rows: Sequence[int], row_bytes: int):
        super().__init__(rows, row_bytes)
        self.folder = folder
        self._file: Any = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115
        finalize(self, self._file.close)

    def _write(self, handle: Handle, table: np.ndarray) -> None:
        self._file.seek(self._place(handle))
        left = np.ascontiguousarray(table).data.cast("B")
        while left:
            left = left[self._file.write(left) :]

    def _read(self, handle: Handle) -> np.ndarray:
        rest = [n for axis, n in enumerate(handle.shape) if axis != len(handle.shape) - 2]
        table = np.empty((self.rows[handle.block], *rest), handle.dtype)
        with self._lock:
            self._file.seek(self._place(handle))
            if not read_full(self._file, table.data):
                raise OSError("the file for codes is shorter than what was written to it.")
        return np.moveaxis(table, 0, -2)

    def _place(self, handle: Handle) -> int:
        return (handle.slot * self.starts[-1] + self.starts[handle.block]) * self.row_bytes

    def whole(self, handles: Sequence[Handle]) -> np.ndarray:
        """Mapped from another file without a name."""
        members, _, k = handles[0].shape
        with tempfile.TemporaryFile(dir=self.folder) as file:
            for handle in handles:
                file.write(np.ascontiguousarray(np.moveaxis(self._read(handle), -2, 0)).data)
            file.flush()
            shape = (self.starts[-1], members, k)
            table = np.memmap(file, handles[0].dtype, "r+", shape=shape)
        return table.transpose(1, 0, 2)

    def close(self) -> None:
        self._file.close()


Known = dict[int, tuple[np.ndarray, Handle]]
"""Arrays by their identity, and their handles."""


def _first_free(taken: set[int]) -> int:
    return next(slot for slot in range(len(taken) + 1) if slot not in taken)


def _is_handle(x: Any) -> bool:
    return isinstance(x, Handle)


AT_ONCE = 2**21
"""Numbers of a table that are looked at together."""


def in_parts(table: np.ndarray) -> Iterator[np.ndarray]:
    """Some rows (..., rows, k) after the other, where all of them might not fit into memory."""
    step = max(1, AT_ONCE // max(1, table[..., 0, :].size))
    for at in range(0, table.shape[-2], step):
        yield table[..., at : at + step, :]


def written(path: Path, table: np.ndarray, factor: float) -> np.ndarray:
    """A table, multiplied, as a .npy file that is written beside its target, renamed and mapped."""
    with whole_file(path) as file:
        kind = {"descr": np.lib.format.dtype_to_descr(table.dtype), "fortran_order": False}
        np.lib.format.write_array_header_2_0(file, kind | {"shape": table.shape})
        for part in in_parts(table):
            file.write(np.ascontiguousarray(part * table.dtype.type(factor)).data)
    return np.load(path, mmap_mode="r", allow_pickle=False)
