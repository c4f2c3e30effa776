"""Read delimited texts: CSV, TSV, also compressed; their encoding and separator are detected."""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import lzma
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from robustnmf.tables._frame import (
    DECIMALS,
    detect_decimal,
    distinct_texts,
    find_id_column,
    is_id_name,
    is_missing,
    is_number,
    needs_blocks,
    rows_of_block,
    table_from_frames,
    to_number,
)
from robustnmf.tables._table import Doubt, ReadOptions, Table, make_unique

if TYPE_CHECKING:
    import pandas

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars", " ": "spaces"}
DETECTED = ",;\t|"
"""Separators that are detected first; spaces if none of them splits lines."""

MARGIN = 0.25
"""So much larger is the share of equally long lines plus that of numbers for spaces."""

MIN_AXIS_LENGTH = 5
"""So many numbers that increase, or decrease, name features (wavelengths, times)."""

YEARS = (1900, 2101)
"""Fewer such numbers name features after a text (``country,2010,2011``) if all are years."""

FIRST_LINES, FIRST_CHARACTERS = 100, 10**6
"""Lines and characters from which the separator and the decimal mark are detected."""

SEPARATOR_LINE = re.compile(r"\"?sep=(.)\"?[\r\n]*", re.IGNORECASE)
OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
"""Functions that open compressed files, by suffix."""

SIGNATURES = {
    b"PK\x03\x04": "it is a spreadsheet or another ZIP archive; save the sheet as CSV (UTF-8)",
    b"\xd0\xcf\x11\xe0": "it is a spreadsheet; save the sheet as CSV (UTF-8)",
    b"\x1f\x8b": "it is compressed by gzip; let its name end with .gz",
    b"%PDF": "it is a PDF",
}
"""Kinds of files that are not texts, by their first bytes."""

UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
UTF32 = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
NO_TEXT = re.compile(rb"[\x00-\x08\x0e-\x19\x1c-\x1f]")
CHUNK = 2**20


def read_text(file: Path, options: ReadOptions, *, default: str) -> Table:
    """Read a delimited text; ``default`` is its separator if no other splits it better."""
    import pandas

    with _open(file, "rb") as content:
        encoding = detect_encoding(iter(partial(content.read, CHUNK), b""))
        size = max(content.tell(), file.stat().st_size)  # uncompressed
    is_large = needs_blocks(size) and not options.transpose
    lines = _read_first_lines(file, encoding)
    n_skipped, separator = _find_separator(lines, options.separator, default)
    numbered = [(n_skipped + n, row) for n, row in split(lines[n_skipped:], separator)]
    rows = [row for _, row in numbered]
    if not rows:
        is_empty = not any(line.strip() for line in lines[n_skipped:])
        reason = "is empty; a table is needed" if is_empty else "has a field that is too long"
        raise ValueError(f"{file} {reason}.")
    decimal, is_doubtful = options.decimal or "", False
    if not decimal:
        decimal, is_doubtful = detect_decimal(chain.from_iterable(rows), separator)
    guess = decimal
    if is_doubtful and options.fitted_decimal:
        decimal = options.fitted_decimal
    header = options.header
    notes: list[str] = []
    if header is not False and n_skipped:
        names = _commented_names(lines[n_skipped - 1], rows[0], separator, decimal)
        if names:
            numbered.insert(0, (n_skipped, names))
            rows, n_skipped, header = [names, *rows], n_skipped - 1, True
            notes = ["the last line that begins with # names the columns (else: --no-header)"]
    first = rows[0]
    if header is None and len(first) > 2 and [*map(str.strip, first)].count("") == len(first) - 1:
        raise ValueError(
            f"{file}: its first line holds only {max(first, key=len)!r}. Delete the lines before "
            "the names of the columns, or begin them with # (--no-header if it is a sample)."
        )
    csv_options: dict[str, Any] = {
        "sep": r"\s+" if separator == " " else separator, "low_memory": False,
        "decimal": decimal, "skipinitialspace": separator != "\t",
    }  # fmt: skip
    open_table = partial(_open_table, file, encoding, n_skipped)

    def read_rows(**more: Any) -> pandas.DataFrame:
        with open_table() as text:
            return pandas.read_csv(text, **csv_options | more)

    try:
        named = _names_columns(first, decimal) if header is None else header
        if named:
            rest = first[1:] if not is_id_name(first[0]) else []
            if not _has_text(first, decimal) or (rest and not _has_text(rest, decimal)):
                notes.append(Doubt(
                    "the first line holds numbers, which name the features (else: --no-header)"
                ))  # fmt: skip
            names = _column_names(first, rows[1:], file)
            for line, row in numbered[1:]:  # of which pandas would read a longer one as it is
                if any(map(str.strip, row[len(names) :])):
                    raise ValueError(
                        f"{file} is not a table that can be read (expected {len(names)} fields in "
                        f"line {line}, saw {len(row)})."
                    )
            unique, _ = make_unique(names)  # as pandas needs them
            csv_options |= {"header": 0, "names": list(unique), "index_col": False}
        else:
            note = "the first line is data, as it holds numbers (else: --header)"
            notes.append(Doubt(note) if header is None and _has_text(first, decimal) else note)
            csv_options |= {"header": None}
        step = rows_of_block(len(first))
        part = {"nrows": step} if is_large else {}
        frame = read_rows(**part)
        if is_doubtful:  # later lines may have numbers that only one decimal mark fits
            later, is_doubtful = detect_decimal(distinct_texts(frame), separator)
            if not is_doubtful and later != decimal:
                decimal = csv_options["decimal"] = later
                frame = read_rows(**part)
        frame.columns = names if named else [str(name) for name in frame.columns]
        is_last_named = named and names[-1] == first[-1]
        width, short_lines = frame.shape[1], []
        if not is_last_named and frame.iloc[:, -1].isna().all():
            width -= 1  # lines end with a separator
        if is_large or frame.iloc[:, width - 1].isna().any():
            short_lines = _find_short_lines(file, encoding, n_skipped, separator, width, named)
        n_numbers = sum(is_number(row[0], decimal) or is_missing(row[0]) for row in rows)
        if not named and _has_text(first[:1], decimal) and n_numbers <= len(rows) / 2:
            frame.columns = ["", *map(str, range(frame.shape[1] - 1))]
        text_format = {
            "separator": separator, "decimal": decimal, "encoding": encoding.removesuffix("-sig"),
        }  # fmt: skip
        notes += _format_notes(text_format, default)
        cells = chain.from_iterable(rows)
        if decimal != guess and any(to_number(c, ".") != to_number(c, ",") for c in cells):
            notes.append(Doubt(
                f"numbers can be read in two ways; their decimal mark is a {DECIMALS[decimal]}, as "
                "in the fit (else: --decimal)"
            ))  # fmt: skip
        id_column = find_id_column(frame, options, decimal)
        frames: Iterable[pandas.DataFrame] = [_without_comments(frame)]
        if is_large:
            frames = _read_blocks(open_table, csv_options, step, list(frame.columns), id_column)
        elif id_column is not None:  # names are read as they are written, not as numbers
            texts = read_rows(usecols=[id_column], dtype=str, keep_default_na=False)
            frame.isetitem(id_column, texts.iloc[:, 0].to_numpy(dtype=object))
            frame = _without_comments(frame)
            frames = [_without_empty_rows(frame, id_column)]
            n_empty = len(frame) - len(frames[0])
            notes += [f"{n_empty} empty rows were left out"] if n_empty else []
        table = table_from_frames(frames, id_column, notes, decimal, options, is_large=is_large)
    except pandas.errors.ParserError as error:
        # pandas counts lines from the first one that it reads.
        reason = re.sub(r"(?<=in line )\d+", lambda n: str(int(n[0]) + n_skipped), str(error))
        reason = " ".join(reason.split())
        raise ValueError(f"{file} is not a table that can be read ({reason}).") from error
    return replace(table, text_format=text_format, short_lines=short_lines)


def _read_blocks(
    open_table: Callable[[], IO[str]],
    csv_options: dict[str, Any],
    step: int,
    names: list[str],
    id_column: int | None,
) -> Iterator[pandas.DataFrame]:
    """Yield blocks of rows without those that are empty; names of samples are as written."""
    import pandas

    as_text = {} if id_column is None else {"converters": {id_column: str}}
    with open_table() as text:
        for block in pandas.read_csv(text, chunksize=step, **csv_options | as_text):
            block.columns = names
            block = _without_comments(block)
            yield block if id_column is None else _without_empty_rows(block, id_column)


def _without_empty_rows(frame: pandas.DataFrame, id_column: int) -> pandas.DataFrame:
    """Return the rows with a name or a value; spreadsheets write others.

    Where samples have no names they are numbered by their rows, and none is left out.
    """
    names = frame.iloc[:, id_column]
    unnamed = frame[names.isna() | (names == "")]
    is_empty = (unnamed.isna() | (unnamed == "")).all(axis=1)
    return frame.drop(unnamed.index[is_empty]) if is_empty.any() else frame


def _find_separator(lines: list[str], separator: str | None, default: str) -> tuple[int, str]:
    """Return how many lines precede the table, and the separator of its fields.

    Lines that precede it are comments, and ``sep=;`` as spreadsheets write it.
    """
    is_first = (line.strip() and not line.startswith("#") for line in lines)
    n_skipped = next((i for i, found in enumerate(is_first) if found), 0)
    separator_line = SEPARATOR_LINE.fullmatch(lines[n_skipped]) if lines else None
    if separator_line:
        n_skipped, separator = n_skipped + 1, separator or separator_line[1]
    return n_skipped, separator or detect_separator(lines[n_skipped:], default)


def _open(file: Path, mode: str, **options: Any) -> Any:
    """Open a file, also one that is compressed."""
    return OPENERS.get(file.suffix.lower(), open)(file, mode, **options)


def _open_table(file: Path, encoding: str, n_skipped: int) -> IO[str]:
    """Open a text after the lines that precede its table.

    pandas would take a quote in one of these lines for the beginning of a text of several lines.
    """
    text: IO[str] = _open(file, "rt", encoding=encoding, newline="")
    for _ in range(n_skipped):
        text.readline()
    return text


def _read_first_lines(file: Path, encoding: str) -> list[str]:
    """Return at most ``FIRST_LINES`` lines; fewer, but two, if they are long."""
    with _open(file, "rt", encoding=encoding) as text:
        lines = text.readlines(FIRST_CHARACTERS)[:FIRST_LINES]
        return lines if len(lines) > 1 else [*lines, *islice(text, 1)]


def _find_short_lines(
    file: Path, encoding: str, n_skipped: int, separator: str, width: int, named: bool
) -> list[int]:
    """Return the numbers of the lines with fewer than ``width`` fields, without empty lines."""
    with _open(file, "rt", encoding=encoding, newline="") as text:
        rows = split(islice(text, n_skipped, None), separator)
        short = ((n, row) for n, row in islice(rows, int(named), None) if len(row) < width)
        return [n_skipped + n for n, row in short if not _is_comment(row)]


def _is_comment(row: list[str]) -> bool:
    """Whether a line begins with # and has no other field."""
    return row[0].startswith("#") and not any(row[1:])


def _without_comments(frame: pandas.DataFrame) -> pandas.DataFrame:
    """Return the rows that are no comments."""
    texts = frame.iloc[:, 0].astype(str).str.startswith("#")
    return frame[~(texts & frame.iloc[:, 1:].isna().all(axis=1))] if texts.any() else frame


def _has_text(fields: list[str], decimal: str) -> bool:
    """Whether a field is neither a number nor a missing value."""
    return not all(is_number(cell, decimal) or is_missing(cell) for cell in fields)


def _names_columns(fields: list[str], decimal: str) -> bool:
    """Whether a line names columns: texts, numbers from zero on, or a long axis of numbers.

    Numbers also do after a name of an id column, which can be empty.
    """
    rest = fields if is_number(fields[0], decimal) else fields[1:]
    if not rest or _has_text(rest, decimal):
        return True
    if len(fields) > 1 and is_id_name(fields[0]):
        return True
    numbers = [number for cell in rest if (number := to_number(cell, decimal)) is not None]
    if numbers == [float(i) for i in range(len(rest))]:
        return True
    years = len(rest) < len(fields) and all(n in range(*YEARS) for n in numbers)
    is_long = len(numbers) == len(rest) >= (2 if years else MIN_AXIS_LENGTH)
    steps = [other - one for one, other in pairwise(numbers)]
    return is_long and (min(steps) > 0 or max(steps) < 0)


def _commented_names(line: str, row: list[str], separator: str, decimal: str) -> list[str]:
    """Return the fields of a comment that name the columns of the first ``row``, or none.

    They are as many, and the row is a sample: numbers, which can be followed by texts (taxa).
    """
    names = next((names for _, names in split([line.lstrip("# ")], separator)), [])
    fits = line.startswith("#") and len(names) == len(row) > 1 and _names_columns(names, decimal)
    has_number, has_more = (any(is_number(c, decimal) for c in cells[1:]) for cells in (names, row))
    is_mixed = _has_text(row[1:], decimal) and has_more and not has_number
    return names if fits and (is_mixed or not _names_columns(row, decimal)) else []


def _column_names(first: list[str], rows: list[list[str]], file: Path) -> list[str]:
    """Name the columns by the first line, given the next ``rows``, most of which have equal width.

    One field more than the first line has is either the name of a sample, as R writes it, or
    follows a separator at the end.
    """
    names = [name.strip() or ("" if i == 0 else f"column {i + 1}") for i, name in enumerate(first)]
    ((width, _),) = Counter(map(len, rows)).most_common(1) or [(0, 0)]
    if width == len(first) + 1:
        ends = [row[-1] for row in rows if len(row) == width]
        is_named = ends.count("") <= len(ends) / 2
        names = ["", *names] if is_named else [*names, f"column {width}"]
    elif width > len(first) + 1:
        raise ValueError(
            f"{file}: its lines have {width} fields, its first line {len(first)}. Delete the lines "
            "before the names of the columns, or begin them with #."
        )
    return names


def _format_notes(text_format: dict[str, str], default: str) -> list[str]:
    """Say in words what is unusual about a text, with the options that change it."""
    separator, decimal = text_format["separator"], text_format["decimal"]
    notes = []
    if text_format["encoding"] != "utf-8":
        notes.append(f"the text is not UTF-8; it is read as {text_format['encoding']}")
    if separator != default:
        name = SEPARATORS.get(separator, repr(separator))
        notes.append(f"fields are separated by {name} (else: --sep)")
    if decimal != ".":
        notes.append(f"the decimal mark is a {DECIMALS[decimal]} (else: --decimal)")
    return notes


def detect_encoding(chunks: Iterable[bytes]) -> str:
    """Detect the encoding of a text: UTF-16 or 32 by its mark, UTF-8, or Windows-1252."""
    decoders = {name: codecs.getincrementaldecoder(name)() for name in ("utf-8-sig", "cp1252")}
    for i, chunk in enumerate(chain(chunks, [b""])):
        if i == 0 and chunk.startswith(UTF32):
            return "utf-32"
        if i == 0 and chunk.startswith(UTF16):
            return "utf-16"
        if NO_TEXT.search(chunk):
            names = (SIGNATURES[key] for key in SIGNATURES if i == 0 and chunk.startswith(key))
            raise UnicodeError(next(names, "it holds bytes that are not text; save it as UTF-8"))
        for name in list(decoders):
            try:
                decoders[name].decode(chunk, final=not chunk)  # a text can end within a character
            except UnicodeDecodeError:
                del decoders[name]
        if not decoders:
            break
    return next(iter(decoders), "latin-1")


def detect_separator(lines: Sequence[str], default: str) -> str:
    """Detect the separator of the fields of these lines; the default unless another is better.

    A separator splits most lines into equally many fields, two or more; of several such the one
    that leaves most numbers. Spaces are the separator if no other one does this and they leave
    numbers, or if they leave many more numbers: others can be decimal commas.
    """
    best, highest = default, 0.0
    for separator in (default, *(other for other in DETECTED if other != default)):
        width, of_width, numbers = _split_shares(lines, separator)
        if width > 1 and of_width + numbers > highest + 1e-9:
            best, highest = separator, of_width + numbers
    width, of_width, numbers = _split_shares(lines, " ")
    if width > 1 and min(of_width, numbers) > 0.5 and of_width + numbers > highest + MARGIN:
        return " "
    return best


def _split_shares(lines: Sequence[str], separator: str) -> tuple[int, float, float]:
    """Return the usual number of fields, the share of lines with so many, and that of numbers."""
    rows = [row for _, row in split(lines, separator)]
    if not rows:
        return 0, 0.0, 0.0
    width, count = Counter(map(len, rows)).most_common(1)[0]
    cells = [cell for row in rows for cell in row]
    n_numbers = sum(is_missing(c) or any(is_number(c, mark) for mark in DECIMALS) for c in cells)
    return width, count / len(rows), n_numbers / len(cells)


def split(lines: Iterable[str], separator: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the fields of each row that is not blank, and the number of its last line.

    Fields may be quoted. Several spaces separate as one does.
    """
    if separator == " ":
        lines = (" ".join(line.split()) for line in lines)
    rows = csv.reader(lines, delimiter=separator, skipinitialspace=True)
    try:
        for row in rows:
            if len(row) > 1 or (row and row[0].strip()):
                yield rows.line_num, row
    except csv.Error:  # a field that is too long, a line that ends within quotes
        return
