"""The table that every reader returns, and names of its samples and features."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import overload

import numpy as np
import scipy.sparse

from robustnmf.tables._stored import StoredRows

MAX_NAMES = 10**8
"""Samples and features together that a table may have: each has a name."""


class NumberedNames(Sequence[str]):
    """Names of samples or features that have none: their numbers, made when they are needed."""

    def __init__(self, numbers: range):
        self.numbers = numbers

    def __len__(self) -> int:
        return len(self.numbers)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> NumberedNames: ...
    def __getitem__(self, index: int | slice) -> str | NumberedNames:
        if isinstance(index, slice):
            return NumberedNames(self.numbers[index])
        return str(self.numbers[index])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True)
class Table:
    """A table of numbers.

    Attributes
    ----------
    data : ndarray, sparse array or StoredRows (samples, features)
    ids : sequence of str
    features : sequence of str
        All different.
    notes : list of str
        What was taken for data, in words.
    left_out : list of str
        Columns that are no numbers.
    made_missing : dict of str to int
        How many texts of a column count as missing values.
    short_lines : list of int
        Numbers of the lines of a text with fewer fields than the table has columns; fields that
        are not there count as missing values.
    text_format : dict, optional
        Encoding, separator and decimal mark of a text.
    named : bool
        Whether the file says what features are called.
    repeated : frozenset of str
        Names that the file gives to several features; the later ones are numbered here.
    colors : ndarray (samples,) of texts or floats, optional
        The column that samples are coloured by in pictures; it is no feature.
    turned : bool
        Whether rows of the file are features here.
    positions : ndarray (features,), optional
        Positions of the features in the file, if not all of them were chosen.
    """

    data: np.ndarray | scipy.sparse.csr_array | StoredRows
    ids: Sequence[str]
    features: Sequence[str]
    notes: list[str] = field(default_factory=list)
    named: bool = True
    repeated: frozenset[str] = frozenset()
    left_out: list[str] = field(default_factory=list)
    made_missing: dict[str, int] = field(default_factory=dict)
    short_lines: list[int] = field(default_factory=list)
    text_format: dict[str, str] | None = None
    colors: np.ndarray | None = None
    turned: bool = False
    positions: np.ndarray | None = None

    @property
    def losses(self) -> list[str]:
        """What of the file is not in the data, in words."""
        texts = []
        if self.left_out:
            texts.append(f"left out, no numbers: {join_first(map(repr, self.left_out))}")
        if self.made_missing:
            cells = (f"{count} in {name!r}" for name, count in self.made_missing.items())
            total = sum(self.made_missing.values())
            texts.append(f"texts that count as missing values: {total} ({join_first(cells)})")
        if self.short_lines:
            count = len(self.short_lines)
            lines = "1 line has" if count == 1 else f"{count} lines have"
            texts.append(
                f"{lines} fewer fields than the table has columns (first: line "
                f"{self.short_lines[0]}); the other fields count as missing values"
            )
        return texts


@dataclass(frozen=True)
class ReadOptions:
    """The options of :func:`robustnmf.tables.read_table`; None where they are to be detected."""

    id_column: str | None = None
    dataset: str | None = None
    header: bool | None = None
    separator: str | None = None
    decimal: str | None = None
    layer: str | None = None
    color_by: str | None = None
    transpose: bool | None = None
    scratch: Path | None = None


def join_first(texts: Iterable[str], most: int = 5) -> str:
    """Join the first texts with commas; an ellipsis stands for the others."""
    first = list(islice(texts, most + 1))
    return ", ".join(first[:most]) + (", ..." if len(first) > most else "")


def make_unique(names: Sequence[str]) -> tuple[Sequence[str], frozenset[str]]:
    """Number repeated names, so that all differ; return the names, and those that were repeated."""
    if isinstance(names, NumberedNames):
        return names, frozenset()
    unique: list[str] = []
    counts: dict[str, int] = {}
    repeated = set()
    taken = set(names)
    for name in names:
        count = counts.get(name, 0)
        new_name = name
        if count:
            repeated.add(name)
            while (new_name := f"{name}.{count}") in taken:
                count += 1
            taken.add(new_name)
        counts[name] = count + 1
        unique.append(new_name)
    return unique, frozenset(repeated)


def numbered_table(data: np.ndarray | scipy.sparse.csr_array | StoredRows, note: str) -> Table:
    """Return a table of an array whose file names neither samples nor features."""
    if len(data.shape) != 2:
        raise ValueError(f"an array of shape {data.shape} is no table of samples and features.")
    samples, features = data.shape
    if samples + features > MAX_NAMES:
        raise ValueError(f"an array of shape {data.shape} is too large for a table of names.")
    ids, names = (NumberedNames(range(count)) for count in (samples, features))
    return Table(data, ids, names, [note, "samples and features are numbered"], named=False)


def turn(table: Table) -> Table:
    """Return the table with rows of the file as features and its columns as samples."""
    if isinstance(table.data, StoredRows):
        raise ValueError(
            "--transpose needs the table in memory, and this one is too large. Save it with "
            "samples in rows."
        )
    if table.colors is not None:
        raise ValueError("--color-by names a column, but with --transpose columns are samples.")
    data = table.data.T
    data = scipy.sparse.csr_array(data) if scipy.sparse.issparse(data) else data.copy()
    note = f"rows of the file are features: {data.shape[0]} samples, {data.shape[1]} features"
    return replace(
        table, data=data, ids=table.features, features=table.ids, turned=True,
        notes=[*table.notes, note],
    )  # fmt: skip


def as_text(value: bytes | str) -> str:
    """Return a text that a file holds as bytes or str."""
    return value.decode() if isinstance(value, bytes) else str(value)
