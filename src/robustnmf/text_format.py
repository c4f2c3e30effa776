"""Detect how a text holds a table: encoding, separator of fields, decimal mark of numbers."""

from __future__ import annotations

import codecs
import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from math import inf

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars", " ": "spaces"}
DETECTED = ",;\t|"
"""Separators that are detected first; spaces where none of them splits lines."""

DECIMALS = {".": "point", ",": "comma"}
MISSING = {"", "na", "nan", "n/a", "null", "none"}
"""Texts that stand for a missing value."""

GROUPS = " \u00a0\u2009\u202f'\u2019"
"""Separators of thousands, besides the point or comma that is not the decimal mark."""

MINUS = "\u2212"
"""The minus sign of typeset texts."""

SIGNATURES = {
    b"PK\x03\x04": "it is a spreadsheet or another ZIP archive; save the sheet as CSV (UTF-8)",
    b"\xd0\xcf\x11\xe0": "it is a spreadsheet; save the sheet as CSV (UTF-8)",
    b"\x1f\x8b": "it is compressed by gzip; let its name end with .gz",
    b"%PDF": "it is a PDF",
}
"""What files are that are no texts, by their first bytes."""

UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
NO_TEXT = re.compile(rb"[\x00-\x08\x0e-\x19\x1c-\x1f]")
CHUNK = 2**20


def detect_encoding(chunks: Iterable[bytes]) -> str:
    """Detect the encoding of a text: UTF-16 by its mark, UTF-8, or else Windows-1252 or Latin-1."""
    decoders = {name: codecs.getincrementaldecoder(name)() for name in ("utf-8-sig", "cp1252")}
    for i, chunk in enumerate(chunks):
        if i == 0 and chunk.startswith(UTF16):
            return "utf-16"
        if NO_TEXT.search(chunk):
            names = (SIGNATURES[key] for key in SIGNATURES if i == 0 and chunk.startswith(key))
            raise UnicodeError(next(names, "it holds bytes that are no text; save it as UTF-8"))
        for name in list(decoders):
            try:
                decoders[name].decode(chunk)
            except UnicodeDecodeError:
                del decoders[name]
        if not decoders:
            break
    try:
        if "utf-8-sig" in decoders:
            decoders["utf-8-sig"].decode(b"", final=True)
    except UnicodeDecodeError:  # the text ends within a character
        del decoders["utf-8-sig"]
    return next(iter(decoders), "latin-1")


def detect_separator(lines: Sequence[str], default: str) -> str:
    """Detect the separator of the fields of these lines; the default unless another is better.

    A separator splits most lines into equally many fields, two or more; of several such the one
    that leaves most numbers. Where none does, spaces are the separator if they leave numbers.
    """
    best, highest = default, 0.0
    for separator in (default, *(other for other in DETECTED if other != default)):
        width, of_width, numbers = _split_shares(lines, separator)
        if width > 1 and of_width + numbers > highest + 1e-9:
            best, highest = separator, of_width + numbers
    if highest:
        return best
    width, of_width, numbers = _split_shares(lines, " ")
    return " " if width > 1 and min(of_width, numbers) > 0.5 else best


def _split_shares(lines: Sequence[str], separator: str) -> tuple[int, float, float]:
    """Return the usual number of fields, the share of lines with so many, and that of numbers."""
    rows = [row for row in split(lines, separator) if row]
    if not rows:
        return 0, 0.0, 0.0
    width, count = Counter(map(len, rows)).most_common(1)[0]
    cells = [cell for row in rows for cell in row]
    return width, count / len(rows), sum(map(_is_number_or_missing, cells)) / len(cells)


def split(lines: Iterable[str], separator: str) -> Iterator[list[str]]:
    """Yield the fields of each line; fields may be quoted. Several spaces separate as one does."""
    if separator == " ":
        lines = (" ".join(line.split()) for line in lines)
    try:
        yield from csv.reader(lines, delimiter=separator)
    except csv.Error:  # a field that is too long, a line that ends within quotes
        return


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
    """Return the pattern of numbers; its group ``group`` is the separator of thousands."""
    mark, other = re.escape(decimal), "," if decimal == "." else "."
    group = f"[{other}{GROUPS}]"
    thousands = rf"[1-9]\d{{0,2}}(?P<group>{group})\d{{3}}(?:(?P=group)\d{{3}})*"
    return re.compile(
        rf"[+-]?(?:(?:{thousands}|\d+)(?:{mark}\d*)?|{mark}\d+)(?:[eE][+-]?\d+)?", re.ASCII
    )


def to_number(text: str, decimal: str = ".") -> float | None:
    """Parse a number, also with separators of thousands; return None if the text is none."""
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


def _is_number_or_missing(text: str) -> bool:
    """Whether a text is a number with either decimal mark, or a missing value."""
    return is_missing(text) or any(is_number(text, mark) for mark in DECIMALS)
