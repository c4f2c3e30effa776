"""The table that every reader returns, and names of its samples and features."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice

import numpy as np
import scipy.sparse

MAX_NAMES = 10**8
"""Samples and features together that a table may have: each has a name."""


@dataclass(frozen=True)
class Table:
    """A table of numbers.

    Attributes
    ----------
    data : ndarray or sparse array (samples, features)
    ids : list of str
    features : list of str
        All different.
    notes : list of str
        What was taken for data, in words.
    left_out : list of str
        Columns that are no numbers.
    made_missing : dict of str to int
        How many texts of a column count as missing values.
    text_format : dict, optional
        Encoding, separator and decimal mark of a text.
    named : bool
        Whether the file says what features are called.
    repeated : frozenset of str
        Names that the file gives to several features; the later ones are numbered here.
    """

    data: np.ndarray | scipy.sparse.csr_array
    ids: list[str]
    features: list[str]
    notes: list[str] = field(default_factory=list)
    named: bool = True
    repeated: frozenset[str] = frozenset()
    left_out: list[str] = field(default_factory=list)
    made_missing: dict[str, int] = field(default_factory=dict)
    text_format: dict[str, str] | None = None

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
        return texts


@dataclass(frozen=True)
class ReadOptions:
    """The options of :func:`robustnmf.tables.read_table`; None where they are to be detected."""

    id_column: str | None = None
    dataset: str | None = None
    header: bool | None = None
    separator: str | None = None
    decimal: str | None = None


def join_first(texts: Iterable[str], most: int = 5) -> str:
    """Join the first texts with commas; an ellipsis stands for the others."""
    first = list(islice(texts, most + 1))
    return ", ".join(first[:most]) + (", ..." if len(first) > most else "")


def make_unique(names: Iterable[str]) -> tuple[list[str], frozenset[str]]:
    """Number repeated names, so that all differ; return the names, and those that were repeated."""
    unique: list[str] = []
    counts: dict[str, int] = {}
    repeated = set()
    for name in names:
        count = counts.get(name, 0)
        counts[name] = count + 1
        if count:
            repeated.add(name)
        unique.append(f"{name}.{count}" if count else name)
    return unique, frozenset(repeated)


def numbered_table(data: np.ndarray | scipy.sparse.csr_array, note: str) -> Table:
    """Return a table of an array whose file names neither samples nor features."""
    if data.ndim != 2:
        raise ValueError(f"an array of shape {data.shape} is no table of samples and features.")
    samples, features = data.shape
    if samples + features > MAX_NAMES:
        raise ValueError(f"an array of shape {data.shape} is too large for a table of names.")
    ids, names = ([str(i) for i in range(count)] for count in (samples, features))
    return Table(data, ids, names, [note, "samples and features are numbered"], named=False)


def as_text(value: bytes | str) -> str:
    """Return a text that a file holds as bytes or str."""
    return value.decode() if isinstance(value, bytes) else str(value)
