"""Data frames as tables: which columns are numbers, and which one names the samples."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from robustnmf.tables._numbers import (
    MIN_NUMBER_SHARE,
    NumberColumn,
    column_numbers,
    count_by_name,
    holds_objects,
    number_columns,
)
from robustnmf.tables._table import NumberedNames, Table, join_first
from robustnmf.text_format import DECIMALS, is_number, to_number

if TYPE_CHECKING:
    import pandas

ID_NAMES = {"", "id", "ids", "index", "name", "names", "sample", "samples", "sample_id", "barcode"}
"""Headers of a first column that holds names of samples, also where they are numbers."""

MIN_COUNTED = 3
"""Consecutive integers at the beginning of rows that look like numbers of samples."""


def find_id_column(frame: pandas.DataFrame, id_column: str | None, decimal: str) -> int | None:
    """Return the position of the column that names the samples, or None.

    That is ``id_column``, or else the first column, if its header or its texts look like names.
    """
    columns = list(frame.columns)
    if id_column is not None:
        return find_column(frame, id_column)
    if not columns:
        return None
    first = frame.iloc[:, 0]
    if columns[0].strip().lower() in ID_NAMES:
        return 0
    if not len(first) or not holds_objects(first):
        return None
    n_numbers = sum(is_number(str(value), decimal) for value in first)
    is_names = n_numbers <= MIN_NUMBER_SHARE * len(first) and first.is_unique
    return 0 if is_names else None


def find_column(frame: pandas.DataFrame, name: str) -> int:
    """Return the position of a column; refuse a name that no column has."""
    columns = list(frame.columns)
    if name not in columns:
        listed = join_first(map(repr, columns), 20)
        raise ValueError(f"there is no column {name!r}; the columns are {listed}.")
    return columns.index(name)


def table_from_frame(
    frame: pandas.DataFrame,
    id_column: int | None,
    ids: list[str] | None,
    notes: list[str],
    decimal: str,
    *,
    fixed: bool,
    color_by: str | None = None,
) -> Table:
    """Return the columns of numbers as a table; say in its notes what was taken for data.

    Samples are named by ``ids``, which the column at ``id_column`` holds if that is given, or
    numbered. Unless the decimal mark is ``fixed``, columns whose numbers have the other one are
    read by it.
    """
    return convert_frame(frame, id_column, ids, notes, decimal, fixed=fixed, color_by=color_by)[0]


def convert_frame(
    frame: pandas.DataFrame,
    id_column: int | None,
    ids: list[str] | None,
    notes: list[str],
    decimal: str,
    *,
    fixed: bool,
    color_by: str | None,
) -> tuple[Table, list[NumberColumn]]:
    """Return a data frame as :func:`table_from_frame` does, and the columns behind its features."""
    notes = list(notes)
    color_column = None
    if color_by is not None:
        color_column = find_column(frame, color_by)
        notes.append(f"samples are coloured by the column {color_by!r}, which is no feature")
    if id_column is not None:
        name = frame.columns[id_column]
        notes.append(
            f"samples are named by the column {name!r}"
            if name
            else "samples are named by the first column, which has no name"
        )
    elif ids is None and color_column != 0 and _counts_rows(frame):
        notes.append(
            f"the column {frame.columns[0]!r} holds consecutive integers and is a feature; if it "
            "names the samples, use --id"
        )
    columns, left_out = number_columns(frame, (id_column, color_column), decimal, fixed=fixed)
    names = [column.name for column in columns]
    notes += _number_notes(columns, decimal)
    numbers = [column.numbers for column in columns]
    data = np.column_stack(numbers) if numbers else np.empty((len(frame), 0))
    notes.insert(0, f"{data.shape[0]} samples, {data.shape[1]} features")
    table = Table(
        data, NumberedNames(range(len(frame))) if ids is None else ids, names, notes,
        left_out=left_out, made_missing=count_by_name(names, (c.n_texts for c in columns)),
        colors=None if color_column is None else colors(frame.iloc[:, color_column], decimal),
    )  # fmt: skip
    return table, columns


def _number_notes(columns: list[NumberColumn], decimal: str) -> list[str]:
    """Say in words which columns have separators of thousands, or another decimal mark."""
    notes = []
    with_thousands = [column for column in columns if column.example is not None]
    if with_thousands:
        first, n_more = with_thousands[0], len(with_thousands) - 1
        more = f" and {n_more} more columns" if n_more else ""
        number = to_number(first.example or "", first.decimal)
        notes.append(
            f"numbers of {first.name!r}{more} have separators of thousands: {first.example!r} is "
            f"{number:.10g} (else: --decimal)"
        )
    others = [column.name for column in columns if column.decimal != decimal]
    if others:
        mark = DECIMALS["," if decimal == "." else "."]
        notes.append(
            f"the decimal mark of {join_first(map(repr, others))} is a {mark} (else: --decimal)"
        )
    return notes


def _counts_rows(frame: pandas.DataFrame) -> bool:
    """Whether the first of several columns holds integers, each larger by one than that before."""
    if frame.shape[1] < 2 or len(frame) < MIN_COUNTED or frame.dtypes.iloc[0].kind not in "iu":
        return False
    return bool((np.diff(frame.iloc[:, 0].to_numpy()) == 1).all())


def colors(column: pandas.Series, decimal: str) -> np.ndarray:
    """Return the column that samples are coloured by: floats (n,) if it holds numbers, or texts."""
    numbers, known, _ = column_numbers(column, decimal)
    if numbers is not None and known.any() and not np.isnan(numbers[known]).any():
        return numbers
    values = column.astype(object).where(column.notna(), "missing")
    return np.array([str(value) for value in values], dtype=object)
