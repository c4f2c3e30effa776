"""Copies of records with some fields replaced."""

from __future__ import annotations

from typing import Any, TypeVar

Record = TypeVar("Record")


def replaced(record: Record, **fields: Any) -> Record:
    """Return a copy of a dataclass with some fields replaced.

    Only for dataclasses without checks and cached values. ``dataclasses.replace`` calls the
    constructor, which would take about as long as the arithmetic of a step on a small table.
    """
    copy = object.__new__(type(record))
    vars(copy).update(vars(record))
    vars(copy).update(fields)
    return copy
