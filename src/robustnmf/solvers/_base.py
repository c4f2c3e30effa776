"""Base class of all solvers, and the terms of the update of one factor that they take."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

from robustnmf.arrays import Array, active_components, at_least, identity_like, namespace


@dataclass(frozen=True)
class Quadratic:
    """Minimise ``f gram f^T / 2 - linear f^T + lasso sum f`` for every row f of a factor.

    The first ``fixed`` columns of the factor stay unchanged. ``present`` (members, k)
    are the columns that the loss depends on, where ``gram`` includes a penalty.
    """

    linear: Array
    gram: Array
    lasso: Array | float = 0.0
    fixed: int = 0
    present: Array | None = None

    def parts(self, factor: Array) -> tuple[Array, Array]:
        """Return the negative and the positive part of the gradient at a factor."""
        no_lasso = isinstance(self.lasso, float) and self.lasso == 0.0
        return self.linear, factor @ self.gram if no_lasso else factor @ self.gram + self.lasso

    def majorant(self, factor: Array) -> Quadratic:
        """Return a quadratic problem that lies above this one and touches it at factor: itself."""
        return self

    def rows(self, chosen: slice) -> Quadratic:
        """Return the terms of a slice of the rows of the factor."""
        if chosen.start == 0 and chosen.stop == self.linear.shape[1]:
            return self
        return replace(self, linear=_rows(self.linear, chosen))

    def scaled(self, by: Array) -> Quadratic:
        """Multiply the loss by a factor for each member (members, 1, 1)."""
        return replace(self, linear=by * self.linear, gram=by * self.gram)

    def penalised(self, lasso: Array | float, ridge: Array) -> Quadratic:
        """Add a penalty; ``ridge`` (members, k) has a number for each column of the factor."""
        identity = identity_like(self.gram)
        gram = self.gram + ridge[:, :, None] * identity
        present = active_components(self.gram) if self.present is None else self.present
        return replace(self, gram=gram, lasso=self.lasso + lasso, present=present)


@dataclass(frozen=True)
class Ratio:
    """The two parts of the gradient at the current factor, where no more is known of the loss.

    ``gram`` (members, k, k) bounds the second derivative, where there is a bound and a solver
    that needs it: for the squared error, with weights of one for all entries. The first
    ``fixed`` columns of the factor stay unchanged; ``present`` as for quadratic terms.
    """

    negative: Array
    positive: Array
    gram: Array | None = None
    lasso: Array | float = 0.0
    ridge: Array | float = 0.0
    fixed: int = 0
    present: Array | None = None

    def parts(self, factor: Array) -> tuple[Array, Array]:
        """Return the negative and the positive part of the gradient at a factor."""
        return self.negative, self.positive + self.lasso + self.ridge * factor

    def majorant(self, factor: Array) -> Quadratic:
        """Return a quadratic problem that lies above this one and touches it at factor.

        A row without any known entry may be anything, and becomes zero.
        """
        assert self.gram is not None
        xp = namespace(factor)
        known = xp.any((self.negative > 0) | (self.positive > 0), axis=-1, keepdims=True)
        linear = self.negative - self.positive + factor @ self.gram
        linear = xp.where(known, linear, 0 * linear)
        majorant = Quadratic(linear, self.gram, self.lasso, self.fixed, self.present)
        if isinstance(self.ridge, float):
            return majorant
        return majorant.penalised(0.0, self.ridge[:, 0, :])

    def rows(self, chosen: slice) -> Ratio:
        """Return the terms of a slice of the rows of the factor."""
        parts = (_rows(part, chosen) for part in (self.negative, self.positive))
        return replace(self, **dict(zip(("negative", "positive"), parts, strict=True)))

    def scaled(self, by: Array) -> Ratio:
        """Multiply the loss by a factor for each member (members, 1, 1)."""
        gram = None if self.gram is None else by * self.gram
        return replace(self, negative=by * self.negative, positive=by * self.positive, gram=gram)

    def penalised(self, lasso: Array | float, ridge: Array) -> Ratio:
        """Add a penalty; ``ridge`` (members, k) has a number for each column of the factor."""
        return replace(self, lasso=self.lasso + lasso, ridge=self.ridge + ridge[:, None, :])


def _rows(part: Array, chosen: slice) -> Array:
    """Return a slice of the rows of a part; a single row stands for all rows."""
    return part if part.shape[1] == 1 else part[:, chosen, :]


Terms = Quadratic | Ratio
Update = Callable[[Array, Terms], Array]


class Solver(ABC):
    """Update rule of a factor, given the terms that a pass has computed.

    Class attributes
    ----------------
    multiplies : whether its step is the multiplicative one.
    keeps_zeros : whether an entry that is zero stays zero forever.
    sweeps : number of coordinate sweeps that its step consists of, zero for other steps.
    quadratic : whether it needs a quadratic loss, or a quadratic majorant of the loss.
    extrapolates : whether the loop extrapolates the basis in the direction of its last step, and
        undoes that where it raises the objective.
    extrapolates_codes : whether codes are extrapolated as well, before they are updated. Of no use
        where a step takes codes to a minimum, wherever it starts.
    """

    multiplies: ClassVar[bool] = False
    keeps_zeros: ClassVar[bool] = False
    sweeps: ClassVar[int] = 0
    quadratic: ClassVar[bool] = False
    extrapolates: ClassVar[bool] = False
    extrapolates_codes: ClassVar[bool] = False

    @abstractmethod
    def step(self, factor: Array, terms: Terms, exponent: float) -> Array:
        """Return the updated factor (members, rows, k), its rows independent of each other.

        Never raises the loss.
        """

    def extrapolate(self, factor: Array, before: Array, momentum: Array) -> Array:
        """Extrapolate a factor by ``momentum`` (members, 1, 1) of its last step; nonnegative."""
        return at_least(factor + momentum * (factor - before), 0.0)
