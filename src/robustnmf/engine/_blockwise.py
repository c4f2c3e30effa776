"""Divide rows into slices, merge the values of blocks, and convert the arrays in their states."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass, replace
from typing import Any


def merged_all(results: Iterable[tuple[Any, Any]]) -> tuple[list[Any], Any]:
    """Return all states, and the values merged in the order of the rows."""
    kept, total = [], None
    for local, part in results:
        kept.append(local)
        # In the order of the rows: sums do not depend on the number of threads.
        total = part if total is None else merged(total, part)
    return kept, total


def merged(total: Any, part: Any) -> Any:
    """Merge two values: by their ``merge``, else by addition; None adds nothing."""
    if part is None:
        return total
    return total.merge(part) if hasattr(total, "merge") else total + part


def mapped(tree: Any, wanted: Callable[[Any], bool], function: Callable[[Any], Any]) -> Any:
    """Return a tree of containers and dataclasses with a function applied to chosen leaves."""
    if wanted(tree):
        return function(tree)
    if isinstance(tree, dict):
        return {name: mapped(value, wanted, function) for name, value in tree.items()}
    if type(tree) in (tuple, list):
        return type(tree)(mapped(value, wanted, function) for value in tree)
    if is_dataclass(tree) and not isinstance(tree, type):
        converted = {f.name: mapped(getattr(tree, f.name), wanted, function) for f in fields(tree)}
        return replace(tree, **converted)
    return tree


def evenly(count: int, parts: int) -> list[slice]:
    """Consecutive slices of nearly equal length."""
    edges = [count * part // parts for part in range(parts + 1)]
    return [slice(*pair) for pair in itertools.pairwise(edges)]
