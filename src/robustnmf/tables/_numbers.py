"""Columns of data frames as numbers: which ones hold them, and by which decimal mark."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from robustnmf.text_format import detect_decimal, has_thousands, is_missing, to_number

if TYPE_CHECKING:
    import pandas

MIN_NUMBER_SHARE = 0.5
"""Share of a column that must be numbers for its texts to be missing values."""


class NumberColumn(NamedTuple):
    """A column of a data frame that holds numbers (n,), by its position.

    ``n_texts`` of its cells are none and count as missing values; ``example`` is a number with
    separators of thousands, if there is one.
    """

    position: int
    name: str
    decimal: str
    numbers: np.ndarray
    n_texts: int
    example: str | None


def number_columns(
    frame: pandas.DataFrame, skipped: Collection[int | None], decimal: str, *, fixed: bool
) -> tuple[list[NumberColumn], list[str]]:
    """Return the columns that hold numbers, and the names of the others; some are skipped.

    Unless the decimal mark is ``fixed``, columns whose numbers have the other one are read by it.
    """
    columns: list[NumberColumn] = []
    left_out: list[str] = []
    for i in range(frame.shape[1]):
        if i in skipped:
            continue
        column, name = frame.iloc[:, i], str(frame.columns[i])
        own_decimal = decimal
        if not fixed and holds_objects(column):
            detected, is_doubtful = detect_decimal(distinct_texts(frame.iloc[:, [i]]), "")
            own_decimal = decimal if is_doubtful else detected
        numbers, known, example = column_numbers(column, own_decimal)
        if numbers is None or (
            known.any() and (~np.isnan(numbers[known])).mean() < MIN_NUMBER_SHARE
        ):
            left_out.append(name)
            continue
        if not known.any() and name.startswith("column "):
            continue  # an empty column after a comma at the end of lines
        n_texts = int((np.isnan(numbers) & known).sum())
        columns.append(NumberColumn(i, name, own_decimal, numbers, n_texts, example))
    return columns, left_out


def count_by_name(names: Iterable[str], counts: Iterable[int]) -> dict[str, int]:
    """Return the sums of counts by name, without those that are zero."""
    sums: dict[str, int] = {}
    for name, count in zip(names, counts, strict=True):
        if count:
            sums[name] = sums.get(name, 0) + count
    return sums


def distinct_texts(frame: pandas.DataFrame) -> Iterator[str]:
    """Yield the different texts of every column that is not all numbers."""
    for i in range(frame.shape[1]):
        column = frame.iloc[:, i]
        if holds_objects(column):
            with suppress(TypeError):  # lists cannot be compared
                yield from (value for value in column.dropna().unique() if isinstance(value, str))


def holds_objects(column: pandas.Series) -> bool:
    """Whether a column holds texts, or anything else but numbers and dates."""
    return column.dtype == object or str(column.dtype) in ("string", "str", "category")


def column_numbers(
    column: pandas.Series, decimal: str
) -> tuple[np.ndarray | None, np.ndarray, str | None]:
    """Convert a column (n,) to numbers (n,), NaN for texts that are none.

    Returns
    -------
    numbers : ndarray (n,), or None for columns of dates or lists
    known : ndarray (n,)
        Which cells hold something.
    example : str, or None
        A number with separators of thousands, if there is one.
    """
    import pandas

    known = column.notna().to_numpy(dtype=bool)
    if pandas.api.types.is_numeric_dtype(column):
        return column.to_numpy(dtype=np.float64, na_value=np.nan), known, None
    if not holds_objects(column):
        return None, known, None  # dates
    values = column.astype(object)
    try:
        distinct = values[known].unique()
    except TypeError:  # lists
        return None, known, None
    texts = [value for value in distinct if isinstance(value, str)]
    as_number = {text: to_number(text, decimal) for text in texts}
    missing = {text for text in texts if is_missing(text)}
    if missing:
        known = known & ~values.isin(missing).to_numpy(dtype=bool)
    converted = values.map(lambda value: as_number[value] if isinstance(value, str) else value)
    numbers = pandas.to_numeric(converted, errors="coerce")
    example = next((text for text in texts if has_thousands(text, decimal)), None)
    return numbers.to_numpy(dtype=np.float64, na_value=np.nan), known, example
