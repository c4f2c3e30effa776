"""Copies of records with some fields replaced."""

from __future__ import annotations

from typing import Any, TypeVar

Record = TypeVar("Record")


def replaced(record: Record, **fields: Any) -> Record:
    """Return a copy of a dataclass with other values of some fields.

    For dataclasses without checks and cached values. ``dataclasses.replace``, which calls the
    constructor, would take about as long as the arithmetic of a step over a small table.
    """
    copy = object.__new__(type(record))
    vars(copy).update(vars(record))
    vars(copy).update(fields)
    return copy
