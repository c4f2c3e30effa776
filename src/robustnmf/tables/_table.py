"""The table that every reader returns; its names, chosen features, scales, and rows in a file."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse

from robustnmf.engine import RowReader

MAX_NAMES = 10**8
"""Samples and features together that a table may have: each has a name."""

MAX_ROWS = 100_000
"""Samples by which the scale of features is found, drawn at random where there are more."""

SHARE_OF_MEMORY = 0.25
"""Share of the RAM above which a table stays in its file: a fit can copy it."""

MEMORY_IF_UNKNOWN = 2**34


class StoredRows(RowReader):
    """A table (samples, features) that stays in its file; a fit reads it block by block.

    Features are those at the positions ``columns`` (features,), all by default, and they are
    divided by ``scale`` (features,) as they are read.
    """

    def __init__(
        self, reader: RowReader, scale: np.ndarray | None = None, columns: np.ndarray | None = None
    ):
        self.reader, self.scale, self.columns = reader, scale, columns
        self.chunk_rows = reader.chunk_rows
        self.shape = reader.shape if columns is None else (reader.shape[0], len(columns))
        is_whole = scale is None and columns is None
        self.dtype = reader.dtype if is_whole else np.dtype(np.float64)

    def read(self, step: int) -> Iterator[Callable[[], np.ndarray]]:
        return (partial(self._features, read) for read in self.reader.read(step))

    def take(self, places: Iterable[int]) -> np.ndarray:
        return self._features(partial(self.reader.take, places))

    def choose(self, columns: Sequence[int] | np.ndarray) -> StoredRows:
        """Return the same rows with some of the features, in this order."""
        positions = np.asarray(columns, dtype=np.intp)
        scale = None if self.scale is None else self.scale[positions]
        if self.columns is not None:
            positions = self.columns[positions]
        return StoredRows(self.reader, scale, positions)

    def _features(self, read: Callable[[], np.ndarray]) -> np.ndarray:
        """Return the chosen features of rows that are read, divided by the scale."""
        rows = read() if self.columns is None else read()[:, self.columns]
        return rows if self.scale is None else rows / self.scale


Data: TypeAlias = np.ndarray | scipy.sparse.csr_array | StoredRows


def exceeds_memory(nbytes: int) -> bool:
    """Whether a table of so many bytes stays in its file."""
    return nbytes > SHARE_OF_MEMORY * memory_of_machine()


def memory_of_machine() -> int:
    """Return the memory of this machine in bytes."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # Windows
        return MEMORY_IF_UNKNOWN


class NumberedNames(Sequence[str]):
    """Names of samples or features that have none: their numbers, made when they are needed."""

    def __init__(self, numbers: range):
        self.numbers = numbers

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, index: Any) -> Any:
        numbers = self.numbers[index]
        return NumberedNames(numbers) if isinstance(numbers, range) else str(numbers)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)


class Words(NamedTuple):
    """What a sample, a feature and a component are called in messages and reports."""

    sample: str
    feature: str
    component: str


PLAIN, OF_CELLS = Words("sample", "feature", "component"), Words("cell", "gene", "program")


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
        How the file was read, in words.
    left_out : list of str
        Columns that do not hold numbers.
    made_missing : dict of str to int
        How many texts of a column were read as missing values.
    short_lines : list of int
        Numbers of the lines of a text with fewer fields than the table has columns; fields that
        are not there are missing values.
    text_format : dict, optional
        Encoding, separator and decimal mark of a text.
    named : bool
        Whether the file says what features are called.
    repeated : frozenset of str
        Names that the file gives to several features; the later ones are numbered here.
    colors : ndarray (samples,) of texts or floats, optional
        The column that samples are coloured by in pictures; it is excluded from the features.
    turned : bool
        Whether rows of the file are features here.
    positions : ndarray (features,), optional
        Positions of the features in the file, if not all of them were chosen.
    of_cells : bool
        Whether samples are cells and features are genes: AnnData, Cell Ranger.
    place : str, optional
        Path of the values in an AnnData file: X, a layer or ``.raw``.
    groupings : list of str
        Columns of obs that hold categories.
    """

    data: Data
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
    of_cells: bool = False
    place: str | None = None
    groupings: list[str] = field(default_factory=list)

    @property
    def words(self) -> Words:
        """What samples, features and components of this table are called."""
        return OF_CELLS if self.of_cells else PLAIN

    @property
    def losses(self) -> list[str]:
        """What of the file is not in the data, in words."""
        texts = []
        if self.left_out:
            texts.append(f"skipped non-numeric columns: {join_first(map(repr, self.left_out))}")
        if self.made_missing:
            cells = (f"{count} in {name!r}" for name, count in self.made_missing.items())
            total = sum(self.made_missing.values())
            texts.append(f"texts that were read as missing values: {total} ({join_first(cells)})")
        if self.short_lines:
            count = len(self.short_lines)
            lines = "1 line has" if count == 1 else f"{count} lines have"
            texts.append(
                f"{lines} fewer fields than the table has columns (first: line "
                f"{self.short_lines[0]}); the other fields were read as missing values"
            )
        return texts


class Doubt(str):
    """A note about numbers that would be others if they were read in another way."""


@dataclass(frozen=True)
class ReadOptions:
    """Options of :func:`robustnmf.tables.read_table`; options that are None are detected.

    Attributes
    ----------
    id_column : str, optional
        Column that holds the names of samples; by default the first one, if it holds texts that
        are all different, or is called so.
    dataset : str, optional
        Which array of an NPZ or HDF5 file.
    header : bool, optional
        Whether the first line of a text names the columns; by default it does unless it holds
        numbers.
    separator : str, optional
        Character between the fields of a text.
    decimal : {".", ","}, optional
        Decimal mark of numbers in a text. Numbers can have separators of thousands.
    layer : str, optional
        Layer of an AnnData file to read instead of X.
    raw : bool
        Whether to read ``.raw`` of an AnnData file, with its own variables, instead of X.
    mask_var : str, optional
        Boolean column of ``var`` of an AnnData file; only variables for which it is true are read.
    color_by : str, optional
        Column that samples are coloured by in pictures; it is excluded from the features.
    transpose : bool, optional
        Whether rows of the file are features; by default not, except for Matrix Market files of
        genes x cells that have files of names beside them.
    fitted_decimal : {".", ","}, optional
        Decimal mark of the table of a fit; numbers of a text that can be read in two ways have it.
    needed : collection of str
        Columns that are features even if most of their cells are texts, the missing values.
    scratch : path, optional
        Folder for a temporary file, which texts and Parquet files that are too large for memory are
        converted to; by default, the temporary folder of the system.
    """

    id_column: str | None = None
    dataset: str | None = None
    header: bool | None = None
    separator: str | None = None
    decimal: str | None = None
    layer: str | None = None
    raw: bool = False
    mask_var: str | None = None
    color_by: str | None = None
    transpose: bool | None = None
    fitted_decimal: str | None = None
    needed: Collection[str] = ()
    scratch: str | Path | None = None

    def __post_init__(self) -> None:
        if self.separator is not None and (len(self.separator) != 1 or self.separator in '"\r\n'):
            raise ValueError(f"separator is {self.separator!r}, but one character is needed.")
        if self.decimal not in (None, ".", ","):
            raise ValueError(f"decimal is {self.decimal!r}, but '.' or ',' is needed.")
        if self.raw and self.layer is not None:
            raise ValueError(f"--layer is {self.layer[:40]!r} and --raw is given; choose one.")

    @property
    def anndata_options(self) -> list[str]:
        """Options that are given and that only AnnData files have."""
        given = {"--layer": self.layer, "--raw": self.raw, "--mask-var": self.mask_var}
        return [name for name, value in given.items() if value]


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


def numbered_table(data: Data, note: str) -> Table:
    """Return a table of an array whose file names neither samples nor features."""
    if len(data.shape) != 2:
        raise ValueError(f"an array of shape {data.shape} is not a table of samples and features.")
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
        notes=[*table.notes, note], of_cells=False, positions=None, groupings=[],
    )  # fmt: skip


def choose_columns(table: Table, columns: Sequence[str]) -> Table:
    """Return the table with the features of these names or patterns alone, in their own order."""
    positions = {name: i for i, name in enumerate(table.features)}
    chosen = np.zeros(len(table.features), dtype=bool)
    for column in columns:
        if column in positions:
            chosen[positions[column]] = True
            continue
        wildcards = {"*": ".*", "?": "."}
        pattern = re.compile("".join(wildcards.get(c, re.escape(c)) for c in column), re.DOTALL)
        matches = [i for name, i in positions.items() if pattern.fullmatch(name)]
        if not matches:
            left_out = [name for name in table.left_out if pattern.fullmatch(name)]
            raise ValueError(
                f"--columns names {column[:40]!r}, which holds no numbers."
                if left_out
                else f"--columns names {column[:40]!r}, but the features are "
                f"{join_first((repr(name[:40]) for name in table.features), 20)}."
            )
        chosen[matches] = True
    return choose_features(table, np.flatnonzero(chosen), "--columns")


def choose_features(table: Table, indices: np.ndarray, option: str) -> Table:
    """Return the table with the features at these indices alone, which an option has chosen."""
    features = [table.features[int(i)] for i in indices]
    note = f"{len(features)} of {len(table.features)} features, by {option}"
    left_out, made_missing = table.left_out, table.made_missing
    if not table.turned:  # their names are those of features
        left_out = []
        made_missing = {n: count for n, count in made_missing.items() if n in set(features)}
    data = table.data
    chosen_data = data.choose(indices) if isinstance(data, StoredRows) else data[:, indices]
    return replace(
        table, data=chosen_data, features=features, notes=[*table.notes, note],
        left_out=left_out, made_missing=made_missing,
        positions=indices if table.positions is None else table.positions[indices],
    )  # fmt: skip


def scale_features(
    table: Table, kind: str, seed: int, *, keep: bool = False
) -> tuple[Table, np.ndarray]:
    """Return the table with features divided by their scales, and the scales (features,).

    Arrays of floats are divided in place unless they are to be kept: the table that is given must
    not be used any more.
    """
    scale = feature_scales(draw_rows(table.data, MAX_ROWS, seed), kind)
    data = table.data
    if keep and not isinstance(data, StoredRows):
        data = data.copy()
    return replace(table, data=divide(data, scale)), scale


def draw_rows(data: Data, most: int, seed: int) -> np.ndarray | scipy.sparse.csr_array:
    """Return all rows, or so many of them that are drawn at random, in memory."""
    count = data.shape[0]
    if count <= most and not isinstance(data, StoredRows):
        return data
    return take_rows(data, np.sort(np.random.default_rng(seed).permutation(count)[:most]))


def take_rows(data: Data, indices: np.ndarray) -> np.ndarray | scipy.sparse.csr_array:
    """Return some rows of a table, in memory."""
    return data.take(indices) if isinstance(data, StoredRows) else data[indices]


def count_missing(data: Data) -> np.ndarray:
    """Count the missing values of every sample (samples,)."""
    if isinstance(data, StoredRows):
        return np.concatenate([count_missing(rows) for rows in data.blocks()])
    if isinstance(data, np.ndarray):
        return np.isnan(data).sum(axis=1)
    samples = np.repeat(np.arange(data.shape[0]), np.diff(data.indptr))
    return np.bincount(samples[np.isnan(data.data)], minlength=data.shape[0])


def feature_scales(data: np.ndarray | scipy.sparse.csr_array, kind: str) -> np.ndarray:
    """Return the scale of every feature (features,): positive, one where a feature is constant.

    scikit-learn's scalers are not used: they take scales below 2e-15 for those of constants,
    whatever the units of a feature.
    """
    scales = np.ones(data.shape[1])
    columns = data if isinstance(data, np.ndarray) else scipy.sparse.csc_array(data)
    for j in range(data.shape[1]):
        if isinstance(columns, np.ndarray):
            values = np.asarray(columns[:, j], dtype=np.float64)
        else:
            stored = columns.data[columns.indptr[j] : columns.indptr[j + 1]]
            values = np.concatenate([stored, np.zeros(data.shape[0] - len(stored))])
        values = values[~np.isnan(values)]
        with np.errstate(all="ignore"):  # of infinite values
            scale = float(KINDS[kind](values)) if len(values) else 0.0
        if 0 < scale < np.inf:
            scales[j] = scale
    return scales


def divide(data: Data, scale: np.ndarray) -> Data:
    """Divide the features of a table by their scales; arrays of floats are changed in place."""
    if isinstance(data, StoredRows):
        return StoredRows(data.reader, scale, data.columns)
    if isinstance(data, np.ndarray):
        is_wide = data.dtype.kind == "f" and data.itemsize >= 4  # half precision would overflow
        is_in_place = is_wide and data.flags.writeable
        return np.divide(data, scale, out=data if is_in_place else None)
    if data.dtype.kind != "f":
        data = data.astype(np.float64)
    data.data /= scale[data.indices].astype(data.dtype)
    return data


def _interquartile_range(values: np.ndarray) -> float:
    """Return the interquartile range; of features that are mostly constant the typical value."""
    low, high = np.quantile(values, [0.25, 0.75])
    if high > low:
        return high - low
    positive = values[values > 0]
    return np.median(positive) if len(positive) else 0.0


KINDS: dict[str, Callable[[np.ndarray], float]] = {
    "max": lambda values: np.abs(values).max(),
    "std": np.std,
    "robust": _interquartile_range,
}
"""Functions of the known values of a feature, by the name of the scale."""
