"""X as a Dask array: blocks are visited where they are, and what stays with them stays there.

Chunks of CuPy or PyTorch are computed with on their GPUs, pass by pass; what a start or the last
word on the codes needs of them is brought to the host of their worker.

Every sweep is one graph for whatever scheduler is active: a task for each block, and a tree that
merges what they bring home. Only the visit (with the basis) goes out and only the merged sums
come back. What a lost worker held, the scheduler computes again from what it was computed from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial, reduce
from typing import Any
from uuid import uuid4

import dask
import dask.array as da
import numpy as np
from dask.delayed import Delayed, delayed

from robustnmf.arrays import Array, is_foreign, near, to_numpy
from robustnmf.engine._base import Visit, mapped, merged
from robustnmf.engine._look import (
    Elsewhere,
    KnownRows,
    Look,
    as_floats,
    looked_at,
    refuse_nothing,
)

FAN_IN = 8
"""Parts that one task of the tree merges."""


class Clustered(Elsewhere):
    """Blocks of a Dask array, one for every chunk of rows.

    Parameters
    ----------
    X : dask.array.Array (samples, features)
        Chunked over rows alone.
    check, degree, dtype, scale, sample_weight, fill
        As for stored X.
    """

    def __init__(
        self,
        X: da.Array,
        *,
        check: Callable[[Look], None] = lambda look: None,
        degree: float = 2.0,
        dtype: Any = None,
        scale: float | None = None,
        sample_weight: np.ndarray | None = None,
        fill: float = 1.0,
    ):
        super().__init__()
        self._read_as((int(X.shape[0]), int(X.shape[1])), X.dtype, dtype)
        self.fill = fill
        self.rows: tuple[int, ...] = tuple(int(n) for n in X.chunks[0])
        self.chunks = list(X.to_delayed().ravel())
        self.sample_weight = sample_weight
        masses = [None] * len(self.rows) if sample_weight is None else self.split(sample_weight)

        def look(rows: Any, mass: Any) -> tuple[KnownRows, Look]:
            return looked_at(rows, mass, [degree])

        found: Look
        known, found = self._run(look, masses)
        check(found)
        self._read_in(found, scale)
        in_units, heard = self.scale, found.heard

        def scaled(_: None, rows: KnownRows) -> tuple[KnownRows, None]:
            return (rows if heard else rows.counting_all()).scaled(in_units), None

        self.blocks: list[Any] = self._run(scaled, known, data=False)[0]

    def split(self, table: Array, axis: int = 0) -> list[Array]:
        places = np.cumsum(self.rows)[:-1]
        return np.split(np.asarray(table), places, axis=axis)

    def sweep(
        self, visit: Visit, locals_: Sequence[Any] | None = None, *, data: bool = True
    ) -> tuple[list[Any], Any]:
        scale, complete, fill = self.scale, self.complete, self.fill

        def visited(rows: Any, pair: tuple[KnownRows, Any]) -> tuple[Any, Any]:
            known, local = pair if rows is None else _moved_arrays(pair, partial(near, rows))
            block = known if rows is None else known.block(rows, scale, complete, fill)
            return visit(block, local)

        locals_ = locals_ or [None] * len(self.blocks)
        pairs = list(zip(self.blocks, locals_, strict=True))
        anywhere = getattr(visit, "anywhere", False) and complete
        return self._run(visited, pairs, data=data, anywhere=anywhere)

    def _run(
        self,
        function: Callable,
        states: Sequence[Any],
        *,
        data: bool = True,
        anywhere: bool = False,
    ) -> tuple[list[Any], Any]:
        """A function of every chunk and its state: what stays, and the rest merged."""
        name, dtype = f"robustnmf-{uuid4().hex}", self.dtype

        def task(chunk: Any, state: Any) -> tuple[Any, Any]:
            if anywhere and _computes(chunk, dtype):
                kept, part = function(chunk, state)
                return kept, _moved_arrays(part, to_numpy)
            if chunk is None:
                return function(None, _moved_arrays(state, to_numpy))
            rows = as_floats(to_numpy(chunk)).astype(dtype, copy=False)
            return function(rows, state)

        # One node of the graph for all blocks, so that the basis travels once to a worker.
        shared = delayed(task, name=f"{name}-visit", pure=False, traverse=False)
        chunks = self.chunks if data else [None] * len(self.chunks)
        kept, parts = [], []
        for i, (chunk, state) in enumerate(zip(chunks, states, strict=True)):
            both = shared(chunk, state, dask_key_name=f"{name}-{i}")
            kept.append(delayed(_first)(both, dask_key_name=f"{name}-kept-{i}"))
            parts.append(delayed(_second)(both, dask_key_name=f"{name}-part-{i}"))
        *stay, total = dask.persist(*kept, _tree(parts, name), optimize_graph=False)
        return list(stay), total.compute()

    def samples(self, index: Array) -> Array:
        raise NotImplementedError

    def collect(self, locals_: list[Any], name: str) -> Array:
        """One field of the local states (members, samples, ...), as a Dask array."""
        parts = [delayed(_field)(local, name) for local in locals_]
        shape, dtype = delayed(lambda array: (array.shape, array.dtype))(parts[0]).compute()
        return self._joined(parts, dtype, shape[:1], shape[2:])

    @cached_property
    def mass(self) -> Array:
        """How many times every sample counts (samples,)."""
        return self._joined([delayed(getattr)(block, "mass") for block in self.blocks], float)

    @cached_property
    def sizes(self) -> Array:
        """How many samples every sample stands for."""
        parts = [delayed(getattr)(block, "entry_mass") for block in self.blocks]
        return self._joined(parts, float)

    def row_sizes(self, degree: float) -> Array:
        """What the energies of all samples compare with."""
        return self._joined([block.sizes(degree) for block in self.blocks], float)

    def _joined(
        self, parts: list[Delayed], dtype: Any, before: tuple = (), after: tuple = ()
    ) -> da.Array:
        """An array whose rows the blocks hold."""
        pairs = zip(parts, self.rows, strict=True)
        arrays = [da.from_delayed(p, (*before, rows, *after), dtype) for p, rows in pairs]
        return da.concatenate(arrays, axis=len(before))


def check_chunks(X: da.Array, name: str) -> da.Array:
    """X, if it is a table of numbers whose chunks hold whole samples."""
    if X.ndim != 2:
        raise ValueError(f"{name} expects 2D data, but X is a Dask array of shape {X.shape}.")
    if X.dtype.kind not in "fiub":
        raise ValueError(f"X holds {X.dtype}, but {name} needs real numbers.")
    if np.isnan(X.shape).any():
        raise ValueError(
            f"the chunks of X have unknown sizes ({X.shape}). Call X.compute_chunk_sizes() first."
        )
    if X.numblocks[1] > 1:
        raise ValueError(
            f"the features of X are in {X.numblocks[1]} chunks, but every block needs whole "
            "samples. Use X.rechunk({1: -1}), which keeps the chunks over samples where they fit."
        )
    refuse_nothing(X.shape, name)
    some = [i for i, rows in enumerate(X.chunks[0]) if rows]
    return X if len(some) == X.numblocks[0] else da.concatenate([X.blocks[i] for i in some])


def _tree(parts: list[Delayed], name: str) -> Delayed:
    """What the parts merge to; neighbours first, in the order of the rows."""
    level = 0
    while len(parts) > 1:
        groups = [parts[i : i + FAN_IN] for i in range(0, len(parts), FAN_IN)]
        parts = [
            delayed(_merged)(group, dask_key_name=f"{name}-merged-{level}-{i}")
            for i, group in enumerate(groups)
        ]
        level += 1
    return parts[0]


def _computes(chunk: Any, dtype: np.dtype) -> bool:
    """Whether a chunk is of a library that computes where its arrays are, and fit for that."""
    return is_foreign(chunk) and str(chunk.dtype).rpartition(".")[2] == dtype.name


def _moved_arrays(tree: Any, move: Callable[[Array], Array]) -> Any:
    """What a block has or brings home, with all its arrays moved."""
    return mapped(tree, lambda x: isinstance(x, np.ndarray) or is_foreign(x), move)


def _merged(parts: list[Any]) -> Any:
    return reduce(merged, parts)


def _field(local: Any, name: str) -> np.ndarray:
    return to_numpy(getattr(local, name))


def _first(pair: tuple[Any, Any]) -> Any:
    return pair[0]


def _second(pair: tuple[Any, Any]) -> Any:
    return pair[1]
