"""X as a Dask array: chunks and their states remain on their workers.

Passes process chunks of CuPy or PyTorch on their GPUs; for starts and final codes such chunks
are copied to the host of their worker.

Every call of ``map_blocks`` submits one graph to the active scheduler: a task for each chunk, and a
tree that merges their values. The function (with the basis) is sent to workers, and the merged sums
are returned. The scheduler recomputes chunks and states of a lost worker.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial, reduce
from operator import call, itemgetter
from typing import Any
from uuid import uuid4

import dask
import dask.array as da
import numpy as np
import scipy.sparse
from dask.delayed import Delayed, delayed
from dask.highlevelgraph import HighLevelGraph

from robustnmf.arrays import Array, is_foreign, to_device_of, to_numpy
from robustnmf.engine._base import BlockState, Visit, evenly, mapped, merged, merged_all
from robustnmf.engine._scan import DataSummary, KnownRows, OutOfCoreEngine, as_floats, scan_rows
from robustnmf.engine.memory import BLOCK_BYTES

FAN_IN = 8
"""Number of values that one task of the tree merges."""


class DaskEngine(OutOfCoreEngine):
    """Blocks of a Dask array that is chunked over rows only, one for every chunk."""

    can_checkpoint = False

    def __init__(self, X: da.Array, **options: Any):
        super().__init__((int(X.shape[0]), int(X.shape[1])), X.dtype, **options)
        self.rows: tuple[int, ...] = tuple(int(n) for n in X.chunks[0])
        self.chunks = _chunks(X)
        weights: list[Any] = [None] * len(self.rows)
        if self.sample_weight is not None:
            weights = self.split(self.sample_weight)
        degree = self.degree

        def scan_chunk(rows: Any, row_weight: Any) -> tuple[KnownRows, DataSummary]:
            return scan_rows(rows, row_weight, [degree])

        self._use_scan(*self._run(scan_chunk, weights))

    def _in_units(self, known: list[Any], any_weight: bool) -> list[Any]:
        scale = self.scale

        def in_units(_: None, rows: KnownRows) -> tuple[KnownRows, None]:
            return rows.in_units(scale, any_weight=any_weight), None

        return self._run(in_units, known, data=False)[0]

    def split(self, table: Array, axis: int = 0) -> list[Array]:
        places = np.cumsum(self.rows)[:-1]
        return np.split(np.asarray(table), places, axis=axis)

    def _map(
        self, visit: Visit, pairs: list[tuple[Any, Any]], *, data: bool, on_device: bool
    ) -> tuple[list[Any], Any]:
        on_device = on_device and self.complete
        return self._run(
            self._of_rows(visit, tiled=on_device), pairs, data=data, on_device=on_device
        )

    def sums(
        self, visit: Visit, block_states: Sequence[Any] | None = None, *, data: bool = True
    ) -> Any:
        pairs = list(zip(self.blocks, block_states or [None] * len(self.blocks), strict=True))
        return self._run(self._of_rows(visit), pairs, data=data, keep=False)[1]

    def _of_rows(self, visit: Visit, *, tiled: bool = False) -> Callable:
        """Return the function for a chunk, given its rows or None, and their sizes and state."""
        scale, complete, fill = self.scale, self.complete, self.fill

        def visited(rows: Any, pair: Sequence[Any]) -> tuple[Any, Any]:
            if rows is None:
                return visit(*pair)
            known, local = _moved_arrays(pair, partial(to_device_of, rows))
            tiles = _tiles(rows) if tiled else [slice(None)]
            if len(tiles) == 1:
                return visit(known.block(rows, scale, complete, fill), local)
            kept, part = merged_all(
                visit(known.rows(at).block(rows[at, :], scale, complete, fill), local.rows(at))
                for at in tiles
            )
            return BlockState.joined(kept), part

        return visited

    def _run(
        self,
        function: Callable,
        states: Sequence[Any],
        *,
        data: bool = True,
        on_device: bool = False,
        keep: bool = True,
    ) -> tuple[list[Any], Any]:
        """Call a function on every chunk and its state; return new states and the merged value.

        The graph is built directly, because submitting it to the scheduler is the main cost of a
        pass besides its arithmetic, and this cost grows with the number of tasks.
        """
        name, dtype = f"robustnmf-{uuid4().hex}", self.dtype

        def task(chunk: Any, state: Any) -> tuple[Any, Any]:
            if on_device and _computes(chunk, dtype):
                kept, part = function(chunk, state)
                return kept, _moved_arrays(part, to_numpy)
            if chunk is None:
                return function(None, _moved_arrays(state, to_numpy))
            refuse_sparse_chunks(chunk)
            rows = as_floats(to_numpy(chunk)).astype(dtype, copy=False)
            return function(rows, state)

        graph = Layer(name)
        # One node of the graph for all blocks, so that the basis is sent to each worker only once.
        shared = graph.given(task)
        chunks = self.chunks if data else [None] * len(self.chunks)
        both = [
            graph.task(call, shared, graph.taken(chunk), graph.taken(state))
            for chunk, state in zip(chunks, states, strict=True)
        ]
        total = graph.tree(both)
        if not keep:
            return [], graph.delayed([total])[0].compute(optimize_graph=False)
        kept = [graph.task(itemgetter(0), pair) for pair in both]
        *states, merged_value = dask.persist(*graph.delayed([*kept, total]), optimize_graph=False)
        return list(states), merged_value.compute(optimize_graph=False)

    def samples(self, index: Array) -> Array:
        raise NotImplementedError

    def collect(self, block_states: list[Any], name: str) -> Array:
        """Return one field of the block states (members, samples, ...) as a Dask array."""
        field = delayed(lambda local: to_numpy(getattr(local, name)))
        parts = [field(local) for local in block_states]
        shape, dtype = delayed(lambda array: (array.shape, array.dtype))(parts[0]).compute()
        return self._joined(parts, dtype, shape[:1], shape[2:])

    def whole(self, parts: Sequence[Delayed], axis: int = 0) -> Array:
        """Return the numbers of every sample (samples,) as a Dask array."""
        return self._joined(parts, float)

    def _joined(
        self, parts: Sequence[Delayed], dtype: Any, before: tuple = (), after: tuple = ()
    ) -> da.Array:
        """Return a Dask array whose rows are stored in the blocks."""
        pairs = zip(parts, self.rows, strict=True)
        arrays = [da.from_delayed(p, (*before, rows, *after), dtype) for p, rows in pairs]
        return da.concatenate(arrays, axis=len(before))


def refuse_sparse_chunks(chunk: Any, name: str = "robustnmf") -> None:
    """Raise an error if a chunk, or the ``_meta`` of a Dask array, is sparse."""
    kind = type(chunk)
    if scipy.sparse.issparse(chunk) or kind.__module__.partition(".")[0] == "sparse":
        convert = "todense" if kind.__module__.startswith("sparse") else "toarray"
        raise TypeError(
            f"X is a Dask array whose chunks are sparse ({kind.__name__}); {name} "
            f"needs dense chunks. Use X.map_blocks(lambda chunk: chunk.{convert}(), "
            "meta=numpy.empty((0, 0))), or pass a sparse matrix in memory."
        )


def _chunks(X: da.Array) -> list[Delayed]:
    """Return the chunks; for a persisted array, the existing futures of the scheduler."""
    graph = X.__dask_graph__()
    nodes = [(node.key, graph.get(node.key), node) for node in X.to_delayed().ravel()]
    return [Delayed(key, {key: held}) if is_future(held) else node for key, held, node in nodes]


def _tiles(rows: Array) -> list[slice]:
    """Return slices of a chunk in host memory that are small enough for the cache."""
    if not isinstance(rows, np.ndarray):
        return [slice(None)]
    return evenly(len(rows), min(-(-rows.nbytes // BLOCK_BYTES), len(rows)))


def _computes(chunk: Any, dtype: np.dtype) -> bool:
    """Whether a chunk has the dtype and is of a library that computes on its own device."""
    return is_foreign(chunk) and str(chunk.dtype).rpartition(".")[2] == dtype.name


def _moved_arrays(tree: Any, move: Callable[[Array], Array]) -> Any:
    """Return a state or value with all its arrays converted."""
    return mapped(tree, lambda x: isinstance(x, np.ndarray) or is_foreign(x), move)


class Layer:
    """Tasks that are submitted to the scheduler together, and their dependencies."""

    def __init__(self, name: str):
        self.name = name
        self.tasks: dict[Any, Any] = {}
        self.before: dict[Any, Delayed] = {}

    def _added(self, value: Any) -> str:
        key = f"{self.name}-{len(self.tasks)}"
        self.tasks[key] = value
        return key

    def given(self, value: Any) -> str:
        """Add a node with this value, which Dask does not traverse; return its key."""
        return self._added((partial(_itself, value),))

    def task(self, function: Callable, *keys: Any) -> str:
        """Add a node that calls a function of other nodes; return its key."""
        return self._added((function, *keys))

    def taken(self, value: Any) -> Any:
        """Replace nodes of earlier layers by their keys, also in tuples; add nodes for others."""
        if isinstance(value, Delayed):
            node = value.dask[value.key]
            if is_future(node):
                return node  # the scheduler has this node already
            self.before[value.key] = value
            return value.key
        if isinstance(value, tuple):
            return [self.taken(part) for part in value]
        return None if value is None else self.given(value)

    def tree(self, pairs: list[str]) -> str:
        """Add nodes that merge the second items of pairs, neighbours first, in order of rows."""
        keys = [self.task(_merged_seconds, group) for group in _groups(pairs)]
        while len(keys) > 1:
            keys = [self.task(_merged, group) for group in _groups(keys)]
        return keys[0]

    def delayed(self, keys: Sequence[str]) -> list[Delayed]:
        """Return the nodes with these keys as Dask objects."""
        whole: dict[Any, Any] = {}
        for graph in {id(node.dask): node.dask for node in self.before.values()}.values():
            whole |= graph
        whole |= self.tasks
        layer = HighLevelGraph({self.name: whole}, {self.name: set()})
        return [Delayed(key, layer, layer=self.name) for key in keys]


def is_future(value: Any) -> bool:
    """Return whether a value is a future of the scheduler."""
    distributed = sys.modules.get("distributed")
    return distributed is not None and isinstance(value, distributed.Future)


def _groups(keys: list[str]) -> list[list[str]]:
    return [keys[i : i + FAN_IN] for i in range(0, len(keys), FAN_IN)]


def _itself(value: Any) -> Any:
    return value


def _merged(parts: list[Any]) -> Any:
    return reduce(merged, parts)


def _merged_seconds(pairs: list[tuple[Any, Any]]) -> Any:
    return reduce(merged, (part for _, part in pairs))
