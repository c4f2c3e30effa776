"""Read delimited texts: CSV, TSV, also compressed."""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from robustnmf.tables._blocks import needs_blocks, rows_of_block, table_from_blocks
from robustnmf.tables._frame import find_id_column, table_from_frame
from robustnmf.tables._numbers import distinct_texts
from robustnmf.tables._table import ReadOptions, Table, make_unique
from robustnmf.text_format import (
    CHUNK,
    DECIMALS,
    SEPARATORS,
    detect_decimal,
    detect_encoding,
    detect_separator,
    is_missing,
    is_number,
    split,
    to_number,
)

if TYPE_CHECKING:
    import pandas

MIN_AXIS_LENGTH = 5
"""So many numbers, each larger than the one before, name features (wavelengths, times)."""

FIRST_LINES, FIRST_CHARACTERS = 100, 10**6
"""How much of a text its separator and decimal mark are detected from."""

SEPARATOR_LINE = re.compile(r"\"?sep=(.)\"?[\r\n]*", re.IGNORECASE)
OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
"""Functions that open compressed files, by suffix."""


def read_text(file: Path, options: ReadOptions, *, default: str) -> Table:
    """Read a delimited text; ``default`` is its separator where no other splits it better."""
    import pandas

    sizes: list[int] = []
    encoding = detect_encoding(_read_chunks(file, sizes))
    is_large = needs_blocks(max(sum(sizes), file.stat().st_size)) and not options.transpose
    lines = _read_first_lines(file, encoding)
    n_skipped, separator = _find_separator(lines, options.separator, default)
    cells = chain.from_iterable(split(lines[n_skipped:], separator))
    decimal, is_doubtful = (
        (options.decimal, False) if options.decimal else detect_decimal(cells, separator)
    )
    csv_options: dict[str, Any] = {
        "sep": r"\s+" if separator == " " else separator, "skiprows": n_skipped,
        "low_memory": False, "encoding": encoding, "decimal": decimal,
    }  # fmt: skip
    try:
        first, second = (_read_fields(file, csv_options, line) for line in (0, 1))
        named = _names_columns(first, decimal) if options.header is None else options.header
        notes = [] if named and _has_text(first, decimal) else [_header_note(named)]
        if named:
            names = _column_names(first, len(second), second[-1] if second else "", file)
            unique, _ = make_unique(names)  # as pandas needs them
            csv_options |= {"header": 0, "names": list(unique), "index_col": False}
        else:
            csv_options |= {"header": None}
        step = rows_of_block(len(first))
        part = {"nrows": step} if is_large else {}
        frame = pandas.read_csv(file, **csv_options | part)
        if is_doubtful:  # later lines may have numbers that only one decimal mark fits
            later, is_doubtful = detect_decimal(distinct_texts(frame), separator)
            if not is_doubtful and later != decimal:
                decimal = csv_options["decimal"] = later
                frame = pandas.read_csv(file, **csv_options | part)
        frame.columns = names if named else [str(name) for name in frame.columns]
        is_last_named = named and names[-1] == first[-1]
        width, short_lines = frame.shape[1], []
        if not is_last_named and frame.iloc[:, -1].isna().all():
            width -= 1  # lines end with a separator
        if is_large or frame.iloc[:, width - 1].isna().any():
            short_lines = _find_short_lines(file, encoding, n_skipped, separator, width, named)
        if not named and not is_number(first[0], decimal) and not is_missing(first[0]):
            frame.columns = ["", *map(str, range(frame.shape[1] - 1))]
        id_column = find_id_column(frame, options.id_column, decimal)
        fixed = options.decimal is not None
        text_format = {
            "separator": separator, "decimal": decimal, "encoding": encoding.removesuffix("-sig"),
        }  # fmt: skip
        notes += _format_notes(text_format, default)
        if is_large:
            blocks = _read_blocks(file, csv_options, step, list(frame.columns), id_column)
            ids_of = None if id_column is None else partial(_names_in, column=id_column)
            table = table_from_blocks(
                blocks, id_column, ids_of, notes, decimal, fixed=fixed, color_by=options.color_by,
                folder=options.scratch,
            )  # fmt: skip
            return replace(table, text_format=text_format, short_lines=short_lines)
        ids = None
        if id_column is not None:  # as they are written, not as numbers
            as_texts = {"usecols": [id_column], "dtype": str, "keep_default_na": False}
            ids = list(pandas.read_csv(file, **csv_options | as_texts).iloc[:, 0])
    except pandas.errors.EmptyDataError as error:
        raise ValueError(f"{file} is empty; a table is needed.") from error
    except pandas.errors.ParserError as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"{file} is no table that can be read ({reason}).") from error
    if ids is not None:
        is_empty = _find_empty(frame, ids)
        if is_empty.any():
            frame = frame[~is_empty].reset_index(drop=True)
            ids = [ids[i] for i in np.flatnonzero(~is_empty)]
            notes.append(f"{int(is_empty.sum())} empty rows were left out")
    table = table_from_frame(
        frame, id_column, ids, notes, decimal, fixed=fixed, color_by=options.color_by
    )
    return replace(table, text_format=text_format, short_lines=short_lines)


def _read_blocks(
    file: Path, csv_options: dict[str, Any], step: int, names: list[str], id_column: int | None
) -> Iterator[pandas.DataFrame]:
    """Yield blocks of rows without those that are empty; names of samples are as written."""
    import pandas

    as_text = {} if id_column is None else {"converters": {id_column: str}}
    with pandas.read_csv(file, chunksize=step, **csv_options | as_text) as blocks:
        for block in blocks:
            block.columns = names
            if id_column is not None:
                block = block[~_find_empty(block, _names_in(block, id_column))]
            yield block


def _find_empty(frame: pandas.DataFrame, ids: list[str]) -> np.ndarray:
    """Return which rows (n,) have neither a name nor a value, as spreadsheets write them.

    Where samples have no names they are numbered by their rows, and none is left out.
    """
    nameless = np.array([not name for name in ids], dtype=bool)
    if nameless.any():
        values = frame[nameless]
        nameless[nameless] = (values.isna() | (values == "")).all(axis=1).to_numpy()
    return nameless


def _names_in(frame: pandas.DataFrame, column: int) -> list[str]:
    """Return the names of samples that a column holds; missing ones are empty."""
    return list(frame.iloc[:, column].fillna(""))


def _find_separator(lines: list[str], separator: str | None, default: str) -> tuple[int, str]:
    """Return how many lines precede the table, and the separator of its fields.

    Lines that precede it are comments, and ``sep=;`` as spreadsheets write it.
    """
    n_skipped = next((i for i, line in enumerate(lines) if not line.startswith("#")), 0)
    separator_line = SEPARATOR_LINE.fullmatch(lines[n_skipped]) if lines else None
    if separator_line:
        n_skipped, separator = n_skipped + 1, separator or separator_line[1]
    return n_skipped, separator or detect_separator(lines[n_skipped:], default)


def _read_chunks(file: Path, sizes: list[int]) -> Iterator[bytes]:
    """Yield the bytes of a text, uncompressed; add the sizes of the pieces to a list."""
    with OPENERS.get(file.suffix.lower(), open)(file, "rb") as content:
        while chunk := content.read(CHUNK):
            sizes.append(len(chunk))
            yield chunk


def _read_first_lines(file: Path, encoding: str) -> list[str]:
    """Return at most ``FIRST_LINES`` lines; fewer if they are long."""
    lines: list[str] = []
    size = 0
    with OPENERS.get(file.suffix.lower(), open)(file, "rt", encoding=encoding) as text:
        for line in islice(text, FIRST_LINES):
            lines.append(line)
            size += len(line)
            if size > FIRST_CHARACTERS:
                break
    return lines


def _find_short_lines(
    file: Path, encoding: str, n_skipped: int, separator: str, width: int, named: bool
) -> list[int]:
    """Return the numbers of the lines with fewer than ``width`` fields, without empty lines."""
    n_read = n_skipped

    def count(lines: Iterator[str]) -> Iterator[str]:
        nonlocal n_read
        for line in lines:
            n_read += 1
            yield line

    with OPENERS.get(file.suffix.lower(), open)(file, "rt", encoding=encoding, newline="") as text:
        rows = split(count(islice(text, n_skipped, None)), separator)
        filled = ((n_read, len(row)) for row in rows if len(row) > 1 or (row and row[0].strip()))
        return [line for line, n_fields in islice(filled, int(named), None) if n_fields < width]


def _read_fields(file: Path, csv_options: dict[str, Any], line: int) -> list[str]:
    """Return the fields of the first (0) or second (1) line as texts; [] if there is no second."""
    import pandas

    one_line = {"header": None, "nrows": 1, "dtype": str, "keep_default_na": False}
    one_line["skiprows"] = csv_options["skiprows"] + line
    try:
        frame = pandas.read_csv(file, **csv_options | one_line)
    except pandas.errors.EmptyDataError:
        if line == 0:
            raise
        return []
    return [str(value) for value in frame.iloc[0]] if len(frame) else []


def _has_text(fields: list[str], decimal: str) -> bool:
    """Whether a field is neither a number nor a missing value."""
    return not all(is_number(cell, decimal) or is_missing(cell) for cell in fields)


def _names_columns(fields: list[str], decimal: str) -> bool:
    """Whether a line names columns: texts, numbers from zero on, or a long axis of numbers."""
    rest = fields if is_number(fields[0], decimal) else fields[1:]
    if not rest or _has_text(rest, decimal):
        return True
    numbers = [number for cell in rest if (number := to_number(cell, decimal)) is not None]
    if numbers == [float(i) for i in range(len(rest))]:
        return True
    is_long = len(numbers) == len(rest) >= MIN_AXIS_LENGTH
    return is_long and all(one < other for one, other in pairwise(numbers))


def _column_names(first: list[str], width: int, last: str, file: Path) -> list[str]:
    """Name the columns by the first line.

    The second line has ``width`` fields and ends with ``last``. One field more than the first line
    has is either the name of a sample, as R writes it, or follows a separator at the end.
    """
    names = [name or ("" if i == 0 else f"column {i + 1}") for i, name in enumerate(first)]
    if width == len(first) + 1:
        names = [*names, f"column {width}"] if not last else ["", *names]
    elif width > len(first) + 1:
        raise ValueError(
            f"{file}: its lines have {width} fields, its first line {len(first)}. Delete the lines "
            "before the names of the columns, or begin them with #."
        )
    return names


def _header_note(named: bool) -> str:
    """Say in words whether the first line names the columns, with the option that changes it."""
    if named:
        return "the first line, numbers that increase, names the features (else: --no-header)"
    return "the first line is data, as it holds numbers (else: --header)"


def _format_notes(text_format: dict[str, str], default: str) -> list[str]:
    """Say in words what is unusual about a text, with the options that change it."""
    separator, decimal = text_format["separator"], text_format["decimal"]
    notes = []
    if text_format["encoding"] != "utf-8":
        notes.append(f"the text is no UTF-8; it is read as {text_format['encoding']}")
    if separator != default:
        name = SEPARATORS.get(separator, repr(separator))
        notes.append(f"fields are separated by {name} (else: --sep)")
    if decimal != ".":
        notes.append(f"the decimal mark is a {DECIMALS[decimal]} (else: --decimal)")
    return notes
