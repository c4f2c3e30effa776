"""Base class of all kinds of X, and the checks that all kinds have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse
from sklearn.utils.validation import validate_data

from robustnmf.arrays import Array, to_numpy
from robustnmf.engine import DataSummary, Engine, InMemory, Occurrences, SparseReader, Stored
from robustnmf.exceptions import warn
from robustnmf.loop.compatibility import ModelSpec, needs_dense_rows, unsupported_reason
from robustnmf.loop.problem import Problem
from robustnmf.weightings import Weighting

ARRAYS_OF_A_PASS = 4
"""Arrays of the size of a block that a pass needs for each member if it forms approximations."""

MOST, MOST_SINGLE = 1e150, 1e32
"""Bounds of the largest value of X in float64 and float32; the lower ones are their reciprocals.

Squares remain in the range of float64. In float32, sums over many samples do not overflow, and
small entries keep digits.
"""

KINDS = {"sparse": "sparse X", "missing": "X with missing values", "dense": "X"}


class Source(ABC):
    """A table X of one kind.

    An estimator uses a source for everything that depends on the kind of X: ``checked`` reads or
    scans X and raises errors for invalid data, ``engine`` holds X for a fit, ``run`` computes a
    method of a fitted estimator, and ``like`` returns arrays in the library of X.
    """

    in_memory: ClassVar[bool] = True
    """Whether the rows are in memory, on the host or on a device."""

    on_device: ClassVar[bool] = False
    """Whether a library other than NumPy computes, on the device of its arrays."""

    codes_are_lazy: ClassVar[bool] = False
    """Whether codes remain on the workers of the rows, as a lazy array."""

    shape: tuple[int, int]
    """Samples and features; known from the beginning if rows are not in memory, else if checked."""
    dtype: Any
    """Data type of the values as given; known after ``checked``."""
    spec: ModelSpec
    """Model that X was checked for; needed again if an engine scans X itself."""
    read_dtype: Any
    """Precision in which an engine reads X that is not in memory; None means that of X."""

    def __init__(self, X: Any, name: str):
        self.X = X  # as given by the user
        self.name = name  # of the estimator, for messages

    @classmethod
    @abstractmethod
    def claims(cls, X: Any) -> bool:
        """Return whether X is of this kind."""

    @abstractmethod
    def checked(
        self, spec: ModelSpec, *, model: Any = None, dtype: Any = None, learning: bool = False
    ) -> Self:
        """Return the source with its values read or scanned; raise an error if they are invalid.

        ``model`` is a fitted estimator whose features X must have, ``dtype`` the precision of
        its fit. ``learning`` is whether X is fitted.
        """

    def engine(
        self,
        problem: Problem,
        weighting: Weighting,
        rank: int,
        members: int = 1,
        *,
        scale: float | None = None,
        sample_weight: Any = None,
    ) -> Engine:
        """Return the engine that holds checked X for the passes of a problem."""
        needs = PassNeeds.of(problem, weighting, rank, members)
        return self._engine(needs, {"scale": scale, "sample_weight": sample_weight})

    @abstractmethod
    def _engine(self, needs: PassNeeds, options: dict[str, Any]) -> Engine:
        """Return the engine for passes with these needs; options are its scale and weights."""

    @property
    def header(self) -> Any:
        """A table with the features of X, from which scikit-learn reads their number and names."""
        return np.empty((0, self.shape[1]))

    @property
    def file(self) -> Any:
        """Path of the file that X is read from, if any."""
        return None

    def run(
        self, model: Any, method: str, compute: Callable[[Self], Array], width: tuple[int, ...]
    ) -> Array:
        """Return the result of a method of a fitted estimator for X, (samples, *width).

        ``compute`` computes that method for a source.
        """
        return compute(self)

    def check_features(self, model: Any) -> None:
        """Raise an error if the features of X do not match a fitted estimator."""
        validate_data(model, self.header, skip_check_array=True, reset=False)

    def floats(self, model: Any = None) -> Any:
        """Return X as a table of floats of any sign; X that is not in memory is unchanged.

        ``model`` is a fitted estimator whose features X must have.
        """
        if model is not None:
            self.check_features(model)
        return self.X

    def dense_rows(self) -> np.ndarray:
        """Return the checked rows as a dense NumPy array."""
        raise TypeError(
            f"explain needs samples in memory, but X is {self.X!r}. Read the samples of interest."
        )

    def like(self, array: Array) -> Array:
        """Return an array in the library that computes with X."""
        return to_numpy(array)

    def _scanning(self, needs: PassNeeds, options: dict[str, Any]) -> dict[str, Any]:
        """Return the options of an engine that scans X itself and checks the result."""
        check = partial(check_summary, self.name, self.spec, scale=options["scale"])
        dtype, degree, fill = self.read_dtype, needs.degree, needs.fill
        return {**options, "check": check, "dtype": dtype, "degree": degree, "fill": fill}


@dataclass(frozen=True)
class PassNeeds:
    """Requirements of the passes of a problem on an engine."""

    degree: float  # exponent of the entries in the size of a sample; energies are compared with it
    fill: float  # value of missing entries, in units of scale
    copies: int  # number of arrays of the size of a block that a pass needs
    dense_rows: bool  # whether all zeros of a sparse table must be visited
    rank: int
    members: int

    @classmethod
    def of(cls, problem: Problem, weighting: Weighting, rank: int, members: int) -> PassNeeds:
        """Return the needs of the passes for ``members`` members with ``rank`` components each."""
        per_entry, loss = weighting.per_entry, problem.loss
        is_quadratic = problem.pass_type(per_entry, True).quadratic
        return cls(
            loss.degree, problem.fill_value(per_entry),
            1 if is_quadratic else ARRAYS_OF_A_PASS * members, needs_dense_rows(loss, weighting),
            rank, members,
        )  # fmt: skip

    def hold(self, table: Any, **options: Any) -> Engine:
        """Return the engine of a checked table in memory.

        If all zeros of a sparse table must be visited, a few rows at a time are converted to dense.
        """
        options |= {"copies": self.copies, "fill": self.fill, "degree": self.degree}
        if self.dense_rows and scipy.sparse.issparse(table):
            return Stored(SparseReader(table), **options)
        return InMemory(table, columns=self.members * self.rank, rank=self.rank, **options)


def in_memory_engine(
    table: Any, problem: Problem, weighting: Weighting, rank: int, members: int = 1, **options: Any
) -> Engine:
    """Return the engine of a checked table in memory for the passes of a problem."""
    return PassNeeds.of(problem, weighting, rank, members).hold(table, **options)


def check_summary(
    name: str, spec: ModelSpec, summary: DataSummary, *, scale: float | None = None
) -> None:
    """Raise an error if a model cannot use X, or if X leaves the range of its floats.

    Samples without known values, and in fits such features, raise a warning. ``name`` is that of
    the estimator, for messages, and ``scale`` the units of a fitted estimator.
    """
    data = "sparse" if summary.is_sparse else "missing" if summary.has_missing else "dense"
    reason = unsupported_reason(*spec, data)
    if reason is not None:
        raise ValueError(f"{name} cannot read {KINDS[data]}: {reason}")
    if not summary.known and scale is None:  # a fit: there is nothing to learn from
        raise ValueError(f"Input X contains only NaN; {name} needs known values.")
    if summary.has_inf:
        raise ValueError(f"Input X contains infinity; {name} needs finite values.")
    if summary.negative is not None:
        raise ValueError(
            f"Negative values in data passed to {name}: X holds "
            f"{_first(summary.negative, 'negative value')} = {summary.negative.value:.6g}; NMF "
            "needs X >= 0. Clip small negative noise at zero, or shift every feature by its "
            "minimum."
        )
    if summary.largest > 0:
        _check_range(summary.largest, name, summary.single, spec.loss.degree, scale)
    if not spec.loss.takes_zeros and summary.least == 0:
        zeros = "zeros" if summary.zero is None else _first(summary.zero, "zero")
        raise ValueError(
            f"{spec.loss!r} needs X > 0, but X holds {zeros}, where its loss is infinite. Add a "
            "small constant to X, or use loss='kullback-leibler'."
        )
    if summary.empty is not None:
        outcome = "have no weight, and codes of zero"
        _warn_of_empty("sample", summary.empty.times, summary.empty.row, outcome)
    if scale is None and summary.known_features is not None and not summary.known_features.all():
        (unknown,) = np.nonzero(~summary.known_features)
        outcome = "are zero in components and imputed values"
        _warn_of_empty("feature", len(unknown), unknown[0], outcome)


def _warn_of_empty(what: str, count: int, first: int, outcome: str) -> None:
    """Warn of samples or features without known values."""
    warn(
        f"X has {count} {what}{'s' * (count > 1)} without known values, first {what} {first}: they "
        f"{outcome}. Leave them out.",
        UserWarning,
    )


def check_shape(shape: tuple[int, ...], name: str) -> None:
    """Raise an error for arrays that are not tables, and tables without samples or features."""
    if len(shape) != 2:
        raise ValueError(
            f"Expected 2D array, got {len(shape)}D array instead (shape={tuple(shape)}). Reshape "
            "your data: samples in rows, features in columns."
        )
    if not all(shape):
        raise ValueError(
            f"Found array with {shape[0]} sample(s) and {shape[1]} feature(s) "
            f"(shape={tuple(shape)}) while a minimum of 1 is required by {name}."
        )


def check_number_dtype(dtype: np.dtype, name: str) -> None:
    """Raise an error for values that are not real numbers."""
    if dtype.kind not in "fiub":
        raise ValueError(f"X holds {dtype}, but {name} needs real numbers.")


def _first(values: Occurrences, what: str) -> str:
    """Return the number of occurrences, in words, and the position of the first one."""
    plural = "" if values.times == 1 else "s"
    return f"{values.times} {what}{plural}, first at [{values.row}, {values.column}]"


def _check_range(
    largest: float, name: str, single: bool, degree: float, scale: float | None
) -> None:
    """Raise an error for values outside the range of the dtype of the computation.

    ``degree`` is the degree of the loss, which also raises the values to a power, and ``scale`` the
    units of a fitted estimator.
    """
    power = max(2.0, abs(degree))
    most_double = MOST ** (2 / power)
    most = min(MOST_SINGLE, most_double) if single else most_double
    if not 1 / most <= largest <= most:
        inside = single and 1 / most_double <= largest <= most_double
        raises = "squares it" if power == 2 else f"raises it to the power {degree:g}"
        how = "adds products with it in float32" if single else raises
        raise ValueError(
            f"the largest value of X is {largest:.3g}; {name} {how}, so it must lie between "
            f"{1 / most:g} and {most:g}. Divide X by {largest:.1g} first"
            f"{', or give it as float64' if inside else ''}."
        )
    most = MOST_SINGLE if single else MOST
    if scale is not None and not scale / most <= largest <= scale * most:
        raise ValueError(
            f"the largest value of X is {largest:.3g}, but this {name} was fitted on values of "
            f"about {scale:.1g}; X must lie between {1 / most:g} and {most:g} times these. Convert "
            "X to the units of the fit, or fit another estimator on it."
        )
