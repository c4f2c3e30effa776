"""What every kind of X answers: is it mine, what does a scan find, which engine holds it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse
from sklearn.utils.validation import validate_data

from robustnmf.arrays import Array, to_numpy
from robustnmf.compatibility import ModelSpec, needs_dense_rows
from robustnmf.engine import DenseRows, Engine, InMemory
from robustnmf.problem import Problem
from robustnmf.sources._checks import check_summary
from robustnmf.weightings import Weighting

ARRAYS_OF_A_PASS = 4
"""Arrays of the size of a block that a pass holds for each member if it forms approximations."""


class Source(ABC):
    """A table X of one kind.

    An estimator asks a source for everything that depends on the kind of X: ``checked`` reads or
    scans it and refuses what cannot be used, ``engine`` holds it for a fit, ``run`` computes a
    method of a fitted estimator on it, ``give_back`` returns results in its library.

    Parameters
    ----------
    X : object
        As the user gives it.
    name : str
        Of the estimator, for messages.

    Attributes
    ----------
    shape : (samples, features)
        Known from the beginning where rows are not in memory, else after ``checked``.
    dtype : dtype
        Of the values as given, after ``checked``.
    """

    in_memory: ClassVar[bool] = True
    """Whether the rows are in memory, on this machine or on a device."""

    on_device: ClassVar[bool] = False
    """Whether another library than NumPy computes, where its arrays are."""

    codes_are_lazy: ClassVar[bool] = False
    """Whether codes stay where the rows are, as a lazy array."""

    shape: tuple[int, int]
    dtype: Any
    spec: ModelSpec
    """Parts that X was checked for; where an engine scans X itself, they are needed again."""
    read_dtype: Any
    """Precision in which an engine reads X that is not in memory; its own if None."""

    def __init__(self, X: Any, name: str):
        self.X = X
        self.name = name

    @classmethod
    @abstractmethod
    def claims(cls, X: Any) -> bool:
        """Return whether X is of this kind."""

    @abstractmethod
    def checked(
        self, spec: ModelSpec, *, model: Any = None, dtype: Any = None, learning: bool = False
    ) -> Self:
        """Return the source with its values read or scanned, if the parts of a model can use them.

        ``model`` is a fitted estimator whose features X must have, ``dtype`` the precision of
        its fit. ``learning`` warns of features without any value.
        """

    @abstractmethod
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

    @property
    def header(self) -> Any:
        """A table with the features of X, from which scikit-learn reads their number and names."""
        return np.empty((0, self.shape[1]))

    @property
    def file(self) -> Any:
        """Path of the file that X is read from, if any."""
        return None

    @property
    def library(self) -> str:
        """Library of the arrays, and the device they are on."""
        return "numpy"

    def run(
        self, model: Any, method: str, compute: Callable[[Self], Array], width: tuple[int, ...]
    ) -> Array:
        """Return what a method of a fitted estimator gives for X, (samples, *width).

        ``compute`` is that method for a source.
        """
        return compute(self)

    def check_features(self, model: Any) -> None:
        """Refuse X whose features are not those of a fitted estimator."""
        validate_data(model, self.header, skip_check_array=True, reset=False)

    def floats(self, model: Any = None) -> Any:
        """Return X as a table of floats of any sign; what is not in memory stays as it is.

        ``model`` is a fitted estimator whose features X must have.
        """
        if model is not None:
            self.check_features(model)
        return self.X

    def dense_rows(self) -> np.ndarray:
        """Return the checked rows as a dense array of NumPy."""
        raise TypeError(
            f"explain needs samples in memory, but X is {self.X!r}. Read the samples of interest."
        )

    def like(self, array: Array) -> Array:
        """Return an array of a fitted estimator in the library in which X is computed with."""
        return to_numpy(array)

    def give_back(self, array: np.ndarray) -> Array:
        """Return a result of NumPy in the library of X."""
        return array

    def _scanning(
        self, problem: Problem, weighting: Weighting, scale: float | None
    ) -> dict[str, Any]:
        """Return the options of an engine that scans X itself, and reads it in these units."""
        return {
            "check": partial(check_summary, self.name, self.spec, scale=scale),
            "scale": scale,
            "dtype": self.read_dtype,
            "degree": problem.loss.degree,
            "fill": problem.fill_value(weighting.per_entry),
        }


def in_memory_engine(
    table: Any, problem: Problem, weighting: Weighting, rank: int, members: int = 1, **options: Any
) -> Engine:
    """Return the engine of a checked table in memory for the passes of a problem.

    Where all zeros of a sparse table have to be visited, a few of its rows are dense at a time.
    """
    fill = problem.fill_value(weighting.per_entry)
    copies = copies_of(problem, weighting, members)
    options |= {"copies": copies, "fill": fill, "degree": problem.loss.degree}
    if scipy.sparse.issparse(table) and needs_dense_rows(problem.loss, weighting):
        return DenseRows(table, **options)
    return InMemory(table, columns=members * rank, rank=rank, **options)


def copies_of(problem: Problem, weighting: Weighting, members: int) -> int:
    """Return how many arrays of the size of a block a pass holds."""
    is_quadratic = problem.pass_type(weighting.per_entry, True).quadratic
    return 1 if is_quadratic else ARRAYS_OF_A_PASS * members
