"""Scans of X: checks of the data, and sizes of rows that need not be read again."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from robustnmf.arrays import (
    Array,
    Block,
    DenseBlock,
    MaskedBlock,
    Namespace,
    fill_masked,
    has_holes,
    host_dtype,
    namespace,
    to_numpy,
)
from robustnmf.engine._base import Engine, power_of_two_near


@dataclass(frozen=True)
class KnownRows:
    """Sizes and weights of the rows of a block, used in its place if its rows are not read."""

    by_degree: dict[float, Array]
    row_weight: Array
    full_row_weight: Array
    nominal_row_weight: Array

    def __len__(self) -> int:
        return int(self.row_weight.shape[0])

    @property
    def xp(self) -> Namespace:
        """Array namespace of the rows."""
        return namespace(self.row_weight)

    @property
    def sq_norms(self) -> Array:
        """Squared norm of each row."""
        return self.by_degree[2.0]

    def row_sizes(self, degree: float) -> Array:
        """Return the sums of powers of the entries of whole rows (rows,)."""
        return self.by_degree[degree]

    def rows(self, at: slice) -> KnownRows:
        """Return the sizes and weights of a slice of the rows."""
        by_degree = {d: sizes[at] for d, sizes in self.by_degree.items()}
        return KnownRows(
            by_degree, self.row_weight[at], self.full_row_weight[at], self.nominal_row_weight[at]
        )

    def in_units(self, scale: float, *, any_weight: bool) -> KnownRows:
        """Return sizes in units of a scale; if all rows of X are zero, they all have weight."""
        by_degree = {d: sizes * scale**-d for d, sizes in self.by_degree.items()}
        known = replace(self, by_degree=by_degree)
        if any_weight:
            return known
        nominal = self.nominal_row_weight
        return replace(known, row_weight=nominal, full_row_weight=nominal)

    def block(self, rows: Array, scale: float, complete: bool, fill: float) -> Block:
        """Build the block of these rows with the known sizes and weights."""
        block = block_of(rows, scale, None, complete, fill)
        block._sizes = dict(self.by_degree)
        block.row_weight = self.row_weight
        return block


class OutOfCoreEngine(Engine):
    """Base class of engines whose rows are not in memory; stores the results of a scan.

    ``stored`` is the data type of X in storage, and ``dtype`` the one in which it is read, by
    default the same. ``check`` is called with the summary of the scan of all rows, and raises an
    error if X cannot be used. The other parameters are those of an engine in memory.
    """

    def __init__(
        self,
        shape: tuple[int, int],
        stored: np.dtype,
        *,
        check: Callable[[DataSummary], None] = lambda summary: None,
        degree: float = 2.0,
        dtype: Any = None,
        scale: float | None = None,
        sample_weight: np.ndarray | None = None,
        fill: float = 1.0,
    ):
        super().__init__()
        self.shape, self.degree, self.fill = shape, degree, fill
        self.dtype = np.dtype(dtype or float_dtype(stored))
        self.like = np.empty((0, shape[1]), dtype=self.dtype)
        self.sample_weight = sample_weight
        self._check, self._given_scale = check, scale

    def _use_scan(self, known: list[Any], summary: DataSummary) -> None:
        """Check the summary of a scan, and store sizes and weights of blocks in units of scale."""
        self._check(summary)
        self.complete = not summary.has_missing
        near = power_of_two_near(summary.largest, 8 * self.dtype.itemsize)
        self.scale = near if self._given_scale is None else self._given_scale
        self.blocks = self._in_units(known, summary.any_weight)
        if self._given_scale is None and self._lower_scale(self.degree):
            self.blocks = self._in_units(known, summary.any_weight)

    @abstractmethod
    def _in_units(self, known: list[Any], any_weight: bool) -> list[Any]:
        """Return sizes and weights of the rows of every block in units of scale."""

    def filled(self) -> Engine:
        """Return itself; missing values of X that is not in memory are not imputed."""
        if not self.complete:
            raise ValueError(
                "X is not in memory and has missing values; starts from its SVD and orthogonal "
                "structures need complete rows. Use init='random', or fill in the missing values."
            )
        return self

    def fill_samples(self) -> None:
        self.filled()

    def member_slices(self, members: int, rank: int, cost: float) -> list[slice]:
        """Return one slice of all members, so that rows are read once for all of them."""
        return [slice(0, members)]


class Occurrences(NamedTuple):
    """Number of occurrences of something in a table, and position and value of the first one."""

    times: int
    row: int
    column: int
    value: float


@dataclass(frozen=True)
class DataSummary:
    """Summary of a scan of some rows; summaries of several blocks of rows can be merged.

    ``least`` and ``largest`` are known entries; ``known`` is whether there are any. ``zero`` is
    None unless zeros were counted. ``empty`` are the samples without known values, and
    ``known_features`` (features,) is None if all features have known values. ``any_weight`` is
    whether any row has positive weight, and ``single`` whether any entry is float32.
    """

    least: float
    largest: float
    rows: int
    known: bool = True
    has_missing: bool = False
    has_inf: bool = False
    is_sparse: bool = False
    negative: Occurrences | None = None
    zero: Occurrences | None = None
    any_weight: bool = True
    single: bool = False
    empty: Occurrences | None = None
    known_features: np.ndarray | None = None

    def merge(self, later: DataSummary) -> DataSummary:
        """Return the summary of these rows and the rows after them."""
        known_features = None
        if self.known_features is not None and later.known_features is not None:
            known_features = self.known_features | later.known_features
        return DataSummary(
            min(self.least, later.least),
            max(self.largest, later.largest),
            self.rows + later.rows,
            known=self.known or later.known,
            has_missing=self.has_missing or later.has_missing,
            has_inf=self.has_inf or later.has_inf,
            is_sparse=self.is_sparse or later.is_sparse,
            negative=_merged_occurrences(self.negative, later.negative, self.rows),
            zero=_merged_occurrences(self.zero, later.zero, self.rows),
            any_weight=self.any_weight or later.any_weight,
            single=self.single or later.single,
            empty=_merged_occurrences(self.empty, later.empty, self.rows),
            known_features=known_features,
        )


def _merged_occurrences(
    one: Occurrences | None, later: Occurrences | None, rows: int
) -> Occurrences | None:
    """Merge occurrences in two consecutive tables; ``rows`` is the length of the first one."""
    if one is None or later is None:
        return one if later is None else later._replace(row=later.row + rows)
    return one._replace(times=one.times + later.times)


def scan_rows(
    rows: Array, row_weight: Array | None, degrees: Iterable[float]
) -> tuple[KnownRows, DataSummary]:
    """Return sizes, weights and a summary of rows, in the units in which they are given."""
    summary = scan(rows)
    block = block_of(rows, 1.0, row_weight, not summary.has_missing, 1.0)
    sizes = {d: block.row_sizes(d) for d in {1.0, 2.0, *degrees}}
    counts = (block.row_weight, block.full_row_weight, block.nominal_row_weight)
    known = KnownRows(sizes, *map(_once, counts))
    return known, replace(summary, any_weight=bool(block.xp.any(block.row_weight > 0)))


def _once(counts: Array) -> Array:
    """Return weights of rows; if all are one, as a broadcast view of a single number."""
    if isinstance(counts, np.ndarray) and (counts == 1.0).all():
        return np.broadcast_to(np.ones(1), counts.shape)
    return counts


def scan(rows: Array, *, zeros: bool = False) -> DataSummary:
    """Summarise dense rows (rows, features); with ``zeros``, zeros are counted."""
    xp = namespace(rows)
    has_missing = has_holes(rows)
    values = xp.where(xp.isnan(rows), xp.zeros_like(rows), rows) if has_missing else rows
    filled = xp.where(xp.isnan(rows), xp.full_like(rows, xp.inf), rows) if has_missing else rows
    empty = known_features = None
    if has_missing:
        known = ~xp.isnan(rows)
        is_empty = ~xp.any(known, axis=1)
        empty = _occurrences(values[:, :1], is_empty[:, None]) if xp.any(is_empty) else None
        known_features = to_numpy(xp.any(known, axis=0))
    has_rows = rows.shape[0] > 0
    least = float(xp.min(filled)) if has_rows else float("inf")
    largest = float(xp.max(values)) if has_rows else 0.0
    return DataSummary(
        least,
        largest,
        int(rows.shape[0]),
        known=least < float("inf"),
        has_missing=has_missing,
        has_inf=largest == float("inf"),
        negative=_occurrences(values, values < 0) if least < 0 else None,
        zero=_occurrences(values, filled == 0) if zeros and least == 0 else None,
        single=host_dtype(rows) == np.float32,
        empty=empty,
        known_features=known_features,
    )


def scan_sparse(table: scipy.sparse.csr_array) -> DataSummary:
    """Summarise a sparse table by its stored entries."""
    values = table.data
    is_whole = table.nnz == table.shape[0] * table.shape[1]
    least = float(values.min() if is_whole else values.min(initial=0.0))
    largest = float(values.max(initial=0.0))
    negative = None
    if least < 0:
        places = np.flatnonzero(values < 0)
        row = int(np.searchsorted(table.indptr, places[0], side="right")) - 1
        negative = Occurrences(
            len(places), row, int(table.indices[places[0]]), float(values[places[0]])
        )
    return DataSummary(
        least,
        largest,
        table.shape[0],
        has_inf=largest == float("inf"),
        is_sparse=not is_whole or least == 0,  # if all entries are stored, zeros are among them
        negative=negative,
        single=values.dtype == np.float32,
    )


def _occurrences(values: Array, mask: Array) -> Occurrences:
    """Count the entries of a mask (rows, features), and find the first one."""
    xp = namespace(values)
    flat = xp.astype(xp.reshape(mask, (-1,)), xp.int8)
    row, column = divmod(int(xp.argmax(flat)), int(values.shape[1]))
    count = int(xp.sum(flat, dtype=xp.int64))
    return Occurrences(count, row, column, float(values[row, column]))


def block_of(
    rows: Array, scale: float, row_weight: Array | None, complete: bool, fill: float
) -> Block:
    """Return the block of dense rows, with or without missing values."""
    if complete:
        return DenseBlock(rows, scale, row_weight)
    xp = namespace(rows)
    known = ~xp.isnan(rows)
    filled = xp.where(known, rows, xp.full_like(rows, fill * scale))
    return MaskedBlock(filled, known, scale, row_weight)


def float_dtype(stored: np.dtype) -> np.dtype:
    """Return the dtype for computations, in native byte order.

    float32 and float64 are kept, in either byte order; all others become float64.
    """
    native = stored.newbyteorder("=")
    return native if native in (np.float32, np.float64) else np.dtype(np.float64)


def as_floats(rows: Any) -> np.ndarray:
    """Return rows of floats: other numbers become float64, masked values NaN."""
    if scipy.sparse.issparse(rows):
        raise TypeError("a block of X is sparse; blocks must be dense. Yield block.toarray().")
    rows = np.asarray(fill_masked(rows))
    if rows.ndim != 2:
        raise ValueError(f"a block of X has the shape {rows.shape}; it must be 2D.")
    if rows.dtype.kind not in "fiub":
        raise ValueError(f"a block of X holds {rows.dtype}, but real numbers are needed.")
    return rows.astype(float_dtype(rows.dtype), copy=False)


def is_usable(rows: np.ndarray, complete: bool) -> bool:
    """Whether float rows are finite and nonnegative; NaN is allowed unless they are complete."""
    values = rows if complete else np.nan_to_num(rows, nan=0.0, posinf=np.inf, neginf=-np.inf)
    # If there are NaN, both are NaN.
    return bool(values.min(initial=0.0) >= 0 and values.max(initial=0.0) < np.inf)
