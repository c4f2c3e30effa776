"""Graphs of tasks for the scheduler of Dask, written by hand."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

from dask.delayed import Delayed
from dask.highlevelgraph import HighLevelGraph

from robustnmf.engine._blockwise import merged

FAN_IN = 8
"""Parts that one task of the tree merges."""


class Layer:
    """Tasks that are submitted to the scheduler together, and what they depend on."""

    def __init__(self, name: str):
        self.name = name
        self.tasks: dict[Any, Any] = {}
        self.before: dict[Any, Delayed] = {}

    def _added(self, value: Any) -> str:
        key = f"{self.name}-{len(self.tasks)}"
        self.tasks[key] = value
        return key

    def given(self, value: Any) -> str:
        """A node that is this value."""
        return self._added((_itself, _Sealed(value)))

    def task(self, function: Callable, *keys: Any) -> str:
        """A node that is the function of others."""
        return self._added((function, *keys))

    def taken(self, value: Any) -> Any:
        """Nodes of earlier layers by their keys, also in tuples; other values become nodes."""
        if isinstance(value, Delayed):
            node = value.dask[value.key]
            if is_future(node):
                return node  # the scheduler has it
            self.before[value.key] = value
            return value.key
        if isinstance(value, tuple):
            return [self.taken(part) for part in value]
        return None if value is None else self.given(value)

    def tree(self, pairs: list[str]) -> str:
        """What the second parts of pairs merge to; neighbours first, in the order of the rows."""
        keys = [self.task(_merged_seconds, group) for group in _groups(pairs)]
        while len(keys) > 1:
            keys = [self.task(_merged, group) for group in _groups(keys)]
        return keys[0]

    def delayed(self, keys: Sequence[str]) -> list[Delayed]:
        """Nodes for Dask."""
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


class _Sealed:
    """A value that Dask does not look into."""

    def __init__(self, value: Any):
        self.value = value


def _itself(sealed: _Sealed) -> Any:
    return sealed.value


def _merged(parts: list[Any]) -> Any:
    return reduce(merged, parts)


def _merged_seconds(pairs: list[tuple[Any, Any]]) -> Any:
    return reduce(merged, (part for _, part in pairs))
