"""Data frames as tables: which columns are numbers, by which decimal mark, and Parquet files.

Frames that are too large for memory are converted once to a temporary file, block by block.
"""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack, suppress
from functools import cache
from itertools import chain
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from robustnmf.sources import FileReader
from robustnmf.tables._table import (
    Doubt,
    NumberedNames,
    ReadOptions,
    StoredRows,
    Table,
    exceeds_memory,
    join_first,
)

if TYPE_CHECKING:
    import pandas
    import pyarrow
    from pyarrow.parquet import ParquetFile

DECIMALS = {".": "point", ",": "comma"}
MISSING = {"", "na", "nan", "n/a", "null", "none"}
"""Texts that stand for a missing value."""

GROUPS = " \u00a0\u2009\u202f'\u2019"
"""Separators of thousands, besides the point or comma that is not the decimal mark."""

MINUS = "\u2212"
"""The minus sign of typeset texts."""

MIN_NUMBER_SHARE = 0.5
"""Share of a column that must be numbers for its texts to be missing values."""

ID_NAMES = {"", "id", "ids", "index", "name", "names", "sample", "samples", "sampleid", "barcode"}
"""Headers of a first column that holds names of samples, even if these are numbers.

They are compared without capitals, spaces and ``_-.``
"""

ENDS_IN_ID = re.compile(r"(?i:.*[\W_]id)|.*[a-z]I[Dd]")
"""Headers of a first column that names samples if it holds different whole numbers."""

MIN_COUNTED = 3
"""Consecutive integers at the beginning of rows that look like numbers of samples."""

COPIES = 2
"""How often memory holds a table while pandas reads it, at least."""

BLOCK_CELLS, MIN_ROWS = 2**22, 100
"""Cells of a block, and its fewest rows."""


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


def needs_blocks(nbytes: int) -> bool:
    """Whether a table of so many bytes is too large for pandas to read it at once."""
    return exceeds_memory(COPIES * nbytes)


def rows_of_block(n_columns: int) -> int:
    """Return how many rows of so many columns are read at a time."""
    return max(MIN_ROWS, BLOCK_CELLS // max(n_columns, 1))


def table_from_frames(
    frames: Iterable[pandas.DataFrame],
    id_column: int | None,
    notes: list[str],
    decimal: str,
    options: ReadOptions,
    *,
    is_large: bool,
    is_indexed: bool = False,
) -> Table:
    """Return the columns of numbers as a table; its notes describe what was used as data.

    There is one frame, or blocks of rows if the table ``is_large``. The first one decides which
    columns hold numbers, and by which decimal mark. Unless that is an option, columns whose numbers
    have the other one are read by it. Samples are named by the column at ``id_column``, or by the
    index if the table ``is_indexed``; else they are numbered.
    """
    remaining = iter(frames)
    first = next(remaining)
    color_column = None if options.color_by is None else find_column(first, options.color_by)
    is_fixed = options.decimal is not None
    columns, left_out = _number_columns(
        first, (id_column, color_column), decimal, fixed=is_fixed, needed=options.needed
    )
    is_named = is_indexed or id_column is not None
    notes = notes + _column_notes(first, id_column, color_column, is_named=is_named)
    notes += _number_notes(columns, decimal)
    n_texts = np.array([column.n_texts for column in columns], dtype=np.int64)
    ids = _sample_names(first, id_column) if is_named else []
    color_blocks = [] if color_column is None else [first.iloc[:, color_column]]
    rows = np.column_stack([np.empty((len(first), 0)), *(column.numbers for column in columns)])
    data: np.ndarray | StoredRows = rows
    if is_large and columns:
        # The file has no name: it is gone with the process, however that ends.
        with ExitStack() as stack:
            file = stack.enter_context(tempfile.TemporaryFile(dir=options.scratch, buffering=0))
            rows.tofile(file)
            n_rows = len(rows)
            for block in remaining:
                rows, n_new = _convert(block, columns)
                rows.tofile(file)
                n_rows, n_texts = n_rows + len(rows), n_texts + n_new
                if is_named:
                    ids += _sample_names(block, id_column)
                if color_column is not None:
                    color_blocks.append(block.iloc[:, color_column])
            stack.pop_all()  # the reader closes the file
        data = StoredRows(FileReader(file, 0, np.float64, (n_rows, len(columns))))
        notes.append(
            "the table is large: it is converted to a temporary file, and read from there block by "
            f"block; the first {len(first)} rows decided which columns hold numbers"
        )
    n_samples, n_features = data.shape
    names = [column.name for column in columns]
    made_missing: Counter[str] = Counter()
    for name, count in zip(names, n_texts.tolist(), strict=True):
        made_missing[name] += count
    return Table(
        data, ids if is_named else NumberedNames(range(n_samples)), names,
        [f"{n_samples} samples, {n_features} features", *notes], left_out=left_out,
        made_missing=+made_missing,  # without zeros
        colors=_colors(color_blocks, decimal) if color_blocks else None,
    )  # fmt: skip


def _sample_names(frame: pandas.DataFrame, id_column: int | None) -> list[str]:
    """Return the names of samples that a column holds (missing ones are empty), or the index."""
    if id_column is not None:
        names = frame.iloc[:, id_column]
        return [str(value) for value in names.astype(object).where(names.notna(), "")]
    return ["/".join(map(str, i)) if isinstance(i, tuple) else str(i) for i in frame.index]


def _column_notes(
    frame: pandas.DataFrame, id_column: int | None, color_column: int | None, *, is_named: bool
) -> list[str]:
    """Say in words which columns name and colour the samples."""
    notes = []
    if color_column is not None:
        color = frame.columns[color_column]
        notes.append(f"samples are coloured by {color!r}, which is excluded from the features")
    if id_column is not None:
        name = frame.columns[id_column]
        notes.append(
            f"samples are named by the column {name!r}"
            if name
            else "samples are named by the first column, which has no name"
        )
    elif not is_named and color_column != 0 and _counts_rows(frame):
        notes.append(
            f"the column {frame.columns[0]!r} holds consecutive integers and is used as a feature; "
            "if it names the samples, use --id"
        )
    return notes


def _number_notes(columns: list[NumberColumn], decimal: str) -> list[str]:
    """Say in words which columns have separators of thousands, or another decimal mark."""
    notes: list[str] = []
    with_thousands = [column for column in columns if column.example is not None]
    if with_thousands:
        first, n_more = with_thousands[0], len(with_thousands) - 1
        more = f" and {n_more} more columns" if n_more else ""
        number = to_number(first.example or "", first.decimal)
        notes.append(Doubt(
            f"numbers of {first.name!r}{more} have separators of thousands: {first.example!r} is "
            f"{number:.10g} (else: --decimal)"
        ))  # fmt: skip
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


def find_id_column(frame: pandas.DataFrame, options: ReadOptions, decimal: str) -> int | None:
    """Return the position of the column that names the samples, or None.

    That is ``id_column``, or else the first column, if its header or its texts look like names.
    """
    if options.id_column is not None:
        return find_column(frame, options.id_column)
    if not frame.shape[1] or frame.columns[0] in options.needed:
        return None
    first = frame.iloc[:, 0]
    if is_id_name(frame.columns[0]):
        return 0
    if ENDS_IN_ID.fullmatch(frame.columns[0].strip()) and first.dtype.kind in "iu":
        return 0 if first.is_unique or options.transpose else None
    if not len(first) or not _holds_objects(first):
        return None
    n_numbers = sum(is_number(str(value), decimal) for value in first)
    # Features can have equal names, which are numbered.
    may_name = first.is_unique or options.transpose
    return 0 if n_numbers <= MIN_NUMBER_SHARE * len(first) and may_name else None


def is_id_name(header: str) -> bool:
    """Whether a header says that its column holds names of samples."""
    name = re.sub(r"[\s_.-]", "", header).lower()
    return name in ID_NAMES and bool(name or not header.strip())


def find_column(frame: pandas.DataFrame, name: str) -> int:
    """Return the position of a column; refuse a name that no column has."""
    columns = list(frame.columns)
    if name not in columns:
        listed = join_first(map(repr, columns), 20)
        raise ValueError(f"there is no column {name!r}; the columns are {listed}.")
    return columns.index(name)


def _colors(blocks: list[pandas.Series], decimal: str) -> np.ndarray:
    """Return the column that samples are coloured by: floats (n,) if it holds numbers, or texts."""
    import pandas

    column = pandas.concat(blocks, ignore_index=True)
    numbers, known, _ = _column_numbers(column, decimal)
    if numbers is not None and known.any() and not np.isnan(numbers[known]).any():
        return numbers
    values = column.astype(object).where(column.notna(), "missing")
    return np.array([str(value) for value in values], dtype=object)


def _number_columns(
    frame: pandas.DataFrame,
    skipped: Collection[int | None],
    decimal: str,
    *,
    fixed: bool,
    needed: Collection[str],
) -> tuple[list[NumberColumn], list[str]]:
    """Return the columns that hold numbers, and the names of the others; some are skipped.

    Unless the decimal mark is ``fixed``, columns whose numbers have the other one are read by it.
    Columns that are ``needed`` hold numbers, even if most cells are texts.
    """
    columns: list[NumberColumn] = []
    left_out: list[str] = []
    for i in range(frame.shape[1]):
        if i in skipped:
            continue
        column, name = frame.iloc[:, i], str(frame.columns[i])
        own_decimal = decimal
        if not fixed and _holds_objects(column):
            detected, is_doubtful = detect_decimal(distinct_texts(frame.iloc[:, [i]]), "")
            own_decimal = decimal if is_doubtful else detected
        numbers, known, example = _column_numbers(column, own_decimal)
        if numbers is None or (
            name not in needed
            and known.any()
            and (~np.isnan(numbers[known])).mean() < MIN_NUMBER_SHARE
        ):
            left_out.append(name)
            continue
        if not known.any() and name in (f"column {i}", f"column {i + 1}"):
            continue  # an empty column without a name, as after a comma at the end of lines
        n_texts = int((np.isnan(numbers) & known).sum())
        columns.append(NumberColumn(i, name, own_decimal, numbers, n_texts, example))
    return columns, left_out


def _convert(block: pandas.DataFrame, columns: list[NumberColumn]) -> tuple[np.ndarray, np.ndarray]:
    """Return columns as numbers (rows, features), and how many texts of each are missing values."""
    rows = np.full((len(block), len(columns)), np.nan)
    n_texts = np.zeros(len(columns), dtype=np.int64)
    for j, column in enumerate(columns):
        numbers, known, _ = _column_numbers(block.iloc[:, column.position], column.decimal)
        if numbers is not None:
            rows[:, j] = numbers
        n_texts[j] = (np.isnan(rows[:, j]) & known).sum()
    return rows, n_texts


def _column_numbers(
    column: pandas.Series, decimal: str
) -> tuple[np.ndarray | None, np.ndarray, str | None]:
    """Convert a column (n,) to numbers (n,), NaN for texts; None for columns of dates or lists.

    Also return which cells hold something (n,), and a number with separators of thousands, if any.
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
    known = known & ~values.isin([text for text in texts if is_missing(text)]).to_numpy(dtype=bool)
    converted = values.map(lambda value: as_number[value] if isinstance(value, str) else value)
    numbers = pandas.to_numeric(converted, errors="coerce")
    example = next((text for text in texts if has_thousands(text, decimal)), None)
    return numbers.to_numpy(dtype=np.float64, na_value=np.nan), known, example


def distinct_texts(frame: pandas.DataFrame) -> Iterator[str]:
    """Yield the different texts of every column that is not all numbers."""
    for i in range(frame.shape[1]):
        column = frame.iloc[:, i]
        if _holds_objects(column):
            with suppress(TypeError):  # lists cannot be compared
                yield from (value for value in column.dropna().unique() if isinstance(value, str))


def _holds_objects(column: pandas.Series) -> bool:
    """Whether a column holds texts, or anything else but numbers and dates."""
    return column.dtype == object or str(column.dtype) in ("string", "str", "category")


def read_parquet(file: Path, options: ReadOptions) -> Table:
    """Read a Parquet file; samples are named by its index, or by a column if it has none.

    One that is too large for memory is converted to a temporary file.
    """
    import pandas

    try:
        import pyarrow.parquet
    except ImportError as error:
        raise ModuleNotFoundError("Parquet files need pyarrow", name="pyarrow") from error
    try:
        opened = pyarrow.parquet.ParquetFile(file, pre_buffer=False)
    except pyarrow.ArrowInvalid as error:
        raise ValueError(f"{file} is not a Parquet file that can be read ({error}).") from error
    with opened as source:  # a buffer would keep the whole file
        n_rows, n_columns = source.metadata.num_rows, source.metadata.num_columns
        is_large = needs_blocks(8 * n_rows * n_columns) and not options.transpose
        frames = _read_parquet_blocks(source) if is_large else iter([_to_pandas(source.read())])
        frame = next(frames)
        decimal = options.decimal or detect_decimal(distinct_texts(frame), ",")[0]
        index = frame.index
        is_plain = isinstance(index, pandas.RangeIndex) and index.name is None and index.start == 0
        is_indexed = not is_plain and options.id_column in (None, index.name)
        id_column = None if is_indexed else find_id_column(frame, options, decimal)
        return table_from_frames(
            chain([frame], frames), id_column,
            ["samples are named by the index"] if is_indexed else [], decimal, options,
            is_large=is_large, is_indexed=is_indexed,
        )  # fmt: skip


def _read_parquet_blocks(source: ParquetFile) -> Iterator[pandas.DataFrame]:
    """Yield blocks of rows."""
    import pandas
    import pyarrow

    step = rows_of_block(source.metadata.num_columns)
    stored = (source.schema_arrow.pandas_metadata or {}).get("index_columns", [])
    index = pandas.RangeIndex(0)
    if stored and isinstance(stored[0], dict):  # a range, which begins again in every block
        index = pandas.RangeIndex(*(stored[0][key] for key in ("start", "stop", "step")))
    n_rows = 0
    for batch in source.iter_batches(batch_size=step):
        frame = _to_pandas(batch)
        if len(index) == source.metadata.num_rows:
            frame.index = index[n_rows : n_rows + len(frame)]
        n_rows += len(frame)
        yield frame
    batch = None  # so that its memory is released, too
    pyarrow.default_memory_pool().release_unused()


def _to_pandas(rows: pyarrow.Table | pyarrow.RecordBatch) -> pandas.DataFrame:
    """Return rows as a data frame whose columns have texts as names."""
    frame = rows.to_pandas()
    frame.columns = [str(name) for name in frame.columns]
    return frame


def detect_decimal(cells: Iterable[str], separator: str) -> tuple[str, bool]:
    """Detect the decimal mark of numbers written as texts; return it, and whether it is doubtful.

    ``1.5`` has a decimal point and ``2,5`` a decimal comma, as groups of thousands have three
    digits; ``1,234`` may be either. Then a comma is taken for a decimal mark where semicolons
    separate the fields, which they do because commas could not.
    """
    votes: Counter[str] = Counter()
    doubtful: Counter[str] = Counter()
    for cell in cells:
        marks = [mark for mark in DECIMALS if mark in cell]
        if not marks:
            continue
        fits = [mark for mark in DECIMALS if to_number(cell, mark) is not None]
        if len(fits) == 1:
            votes[fits[0]] += 1
        elif fits:
            doubtful.update(marks)
    if votes["."] != votes[","]:
        return votes.most_common(1)[0][0], False
    comma = separator == ";" and doubtful[","] > doubtful["."]
    return "," if comma else ".", True


@cache
def _number_pattern(decimal: str) -> re.Pattern[str]:
    """Return the pattern of numbers; its group ``group`` is the separator of thousands.

    Numbers with an exponent have none: ``1,688E+04`` is 16880.
    """
    mark, other = re.escape(decimal), "," if decimal == "." else "."
    group = f"[{other}{GROUPS}]"
    thousands = rf"[1-9]\d{{0,2}}(?P<group>{group})\d{{3}}(?:(?P=group)\d{{3}})*"
    return re.compile(
        rf"[+-]?(?:(?:{thousands}|\d+)(?:{mark}\d*)?|{mark}\d+)(?(group)|(?:[eE][+-]?\d+)?)",
        re.ASCII,
    )


def to_number(text: str, decimal: str = ".") -> float | None:
    """Parse a number, also with separators of thousands; return None for other texts."""
    text = text.strip().replace(MINUS, "-")
    if text.lstrip("+-").lower() in ("inf", "infinity") and text[:2] not in ("++", "--"):
        return -inf if text.startswith("-") else inf
    match = _number_pattern(decimal).fullmatch(text)
    if match is None:
        return None
    if match["group"]:
        text = text.replace(match["group"], "")
    return float(text.replace(decimal, "."))


def has_thousands(text: str, decimal: str) -> bool:
    """Whether a text is a number with separators of thousands."""
    match = _number_pattern(decimal).fullmatch(text.strip().replace(MINUS, "-"))
    return match is not None and match["group"] is not None


def is_number(text: str, decimal: str = ".") -> bool:
    """Whether a text is a number."""
    return to_number(text, decimal) is not None


def is_missing(text: object) -> bool:
    """Whether a cell stands for a missing value."""
    return isinstance(text, str) and text.strip().lower() in MISSING
