"""Data frames: which columns are numbers, and which one names the samples."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from robustnmf.tables._table import NumberedNames, ReadOptions, Table, join_first
from robustnmf.text_format import (
    DECIMALS,
    detect_decimal,
    has_thousands,
    is_missing,
    is_number,
    to_number,
)

if TYPE_CHECKING:
    import pandas

ID_NAMES = {"", "id", "ids", "index", "name", "names", "sample", "samples", "sample_id", "barcode"}
"""Headers of a first column that holds names of samples, also where they are numbers."""

MIN_NUMBER_SHARE = 0.5
"""Share of a column that must be numbers for its texts to be missing values."""

MIN_COUNTED = 3
"""Consecutive integers at the beginning of rows that look like numbers of samples."""


def read_parquet(file: Path, options: ReadOptions) -> Table:
    """Read a Parquet file; samples are named by its index, or by a column if it has none."""
    import pandas

    try:
        frame = pandas.read_parquet(file)
    except ImportError as error:
        raise ModuleNotFoundError("Parquet files need pyarrow", name="pyarrow") from error
    frame.columns = [str(name) for name in frame.columns]
    decimal = options.decimal or detect_decimal(distinct_texts(frame), ",")[0]
    fixed = options.decimal is not None
    index = frame.index
    if isinstance(index, pandas.RangeIndex) and index.name is None and index.start == 0:
        id_column = find_id_column(frame, options.id_column, decimal)
        return table_from_frame(
            frame, id_column, None, [], decimal, fixed=fixed, color_by=options.color_by
        )
    ids = ["/".join(map(str, i)) if isinstance(i, tuple) else str(i) for i in index]
    notes = ["samples are named by the index"]
    return table_from_frame(
        frame, None, ids, notes, decimal, fixed=fixed, color_by=options.color_by
    )


def find_id_column(frame: pandas.DataFrame, id_column: str | None, decimal: str) -> int | None:
    """Return the position of the column that names the samples, or None.

    That is ``id_column``, or else the first column, if its header or its texts look like names.
    """
    columns = list(frame.columns)
    if id_column is not None:
        return _find_column(frame, id_column)
    if not columns:
        return None
    first = frame.iloc[:, 0]
    if columns[0].strip().lower() in ID_NAMES:
        return 0
    if not _holds_objects(first):
        return None
    n_numbers = sum(is_number(str(value), decimal) for value in first)
    is_names = n_numbers <= MIN_NUMBER_SHARE * len(first) and first.is_unique
    return 0 if is_names else None


def _find_column(frame: pandas.DataFrame, name: str) -> int:
    """Return the position of a column; refuse a name that no column has."""
    columns = list(frame.columns)
    if name not in columns:
        listed = join_first(map(repr, columns), 20)
        raise ValueError(f"there is no column {name!r}; the columns are {listed}.")
    return columns.index(name)


def distinct_texts(frame: pandas.DataFrame) -> Iterator[str]:
    """Yield the different texts of every column that is not all numbers."""
    for i in range(frame.shape[1]):
        column = frame.iloc[:, i]
        if _holds_objects(column):
            with suppress(TypeError):  # lists cannot be compared
                yield from (value for value in column.dropna().unique() if isinstance(value, str))


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

    Samples are named by ``ids``, or else by the column at ``id_column``, or numbered. Unless the
    decimal mark is ``fixed``, columns whose numbers have the other one are read by it.
    """
    notes = list(notes)
    color_column = None
    if color_by is not None:
        color_column = _find_column(frame, color_by)
        notes.append(f"samples are coloured by the column {color_by!r}, which is no feature")
    if id_column is not None:
        ids = [str(value) for value in frame.iloc[:, id_column]] if ids is None else ids
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
    columns: list[np.ndarray] = []
    names: list[str] = []
    left_out: list[str] = []
    with_thousands: list[tuple[str, str, float | None]] = []
    with_other_decimal: list[str] = []
    made_missing: dict[str, int] = {}
    for i in range(frame.shape[1]):
        if i in (id_column, color_column):
            continue
        column, name = frame.iloc[:, i], str(frame.columns[i])
        own_decimal = decimal
        if not fixed and _holds_objects(column):
            detected, is_doubtful = detect_decimal(distinct_texts(frame.iloc[:, [i]]), "")
            own_decimal = decimal if is_doubtful else detected
        numbers, known, example = _column_numbers(column, own_decimal)
        if numbers is None or (
            known.any() and (~np.isnan(numbers[known])).mean() < MIN_NUMBER_SHARE
        ):
            left_out.append(name)
            continue
        if not known.any() and name.startswith("column "):
            continue  # an empty column after a comma at the end of lines
        n_texts = int((np.isnan(numbers) & known).sum())
        if n_texts:
            made_missing[name] = made_missing.get(name, 0) + n_texts
        if example is not None:
            with_thousands.append((name, example, to_number(example, own_decimal)))
        if own_decimal != decimal:
            with_other_decimal.append(name)
        columns.append(numbers)
        names.append(name)
    if with_thousands:
        name, example, number = with_thousands[0]
        n_more = len(with_thousands) - 1
        more = f" and {n_more} more columns" if n_more else ""
        notes.append(
            f"numbers of {name!r}{more} have separators of thousands: {example!r} is "
            f"{number:.10g} (else: --decimal)"
        )
    if with_other_decimal:
        mark = DECIMALS["," if decimal == "." else "."]
        listed = join_first(map(repr, with_other_decimal))
        notes.append(f"the decimal mark of {listed} is a {mark} (else: --decimal)")
    data = np.column_stack(columns) if columns else np.empty((len(frame), 0))
    notes.insert(0, f"{data.shape[0]} samples, {data.shape[1]} features")
    return Table(
        data, NumberedNames(range(len(frame))) if ids is None else ids, names, notes,
        left_out=left_out, made_missing=made_missing,
        colors=None if color_column is None else _colors(frame.iloc[:, color_column], decimal),
    )  # fmt: skip


def _counts_rows(frame: pandas.DataFrame) -> bool:
    """Whether the first of several columns holds integers, each larger by one than that before."""
    if frame.shape[1] < 2 or len(frame) < MIN_COUNTED or frame.dtypes.iloc[0].kind not in "iu":
        return False
    return bool((np.diff(frame.iloc[:, 0].to_numpy()) == 1).all())


def _colors(column: pandas.Series, decimal: str) -> np.ndarray:
    """Return the column that samples are coloured by: floats (n,) if it holds numbers, or texts."""
    numbers, known, _ = _column_numbers(column, decimal)
    if numbers is not None and known.any() and not np.isnan(numbers[known]).any():
        return numbers
    values = column.astype(object).where(column.notna(), "missing")
    return np.array([str(value) for value in values], dtype=object)


def _holds_objects(column: pandas.Series) -> bool:
    """Whether a column holds texts, or anything else but numbers and dates."""
    return column.dtype == object or str(column.dtype) in ("string", "str", "category")


def _column_numbers(
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
    if not _holds_objects(column):
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
