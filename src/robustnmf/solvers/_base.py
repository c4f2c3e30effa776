"""Base class of all solvers, and the terms from which they update one factor."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

from robustnmf.arrays import Array, active_components, at_least, identity_like, namespace


@dataclass(frozen=True)
class Quadratic:
    """Minimise ``f gram f^T / 2 - linear f^T + lasso sum f`` for every row f of a factor.

    The first ``fixed`` columns of the factor stay unchanged. If ``gram`` includes a penalty,
    ``present`` (members, k) marks the columns on which the loss depends.
    """

    linear: Array
    gram: Array
    lasso: Array | float = 0.0
    fixed: int = 0
    present: Array | None = None

    def parts(self, factor: Array) -> tuple[Array, Array]:
        """Return the negative and the positive part of the gradient at a factor."""
        return self.linear, factor @ self.gram + self.lasso

    def majorant(self, factor: Array) -> Quadratic:
        """Return a quadratic function above this one that equals it at factor: this one itself."""
        return self

    def rows(self, chosen: slice) -> Quadratic:
        """Return the terms of a slice of the rows of the factor."""
        return replace(self, linear=_rows(self.linear, chosen))

    def scaled(self, by: Array) -> Quadratic:
        """Multiply the loss by one factor per member (members, 1, 1)."""
        return replace(self, linear=by * self.linear, gram=by * self.gram)

    def penalised(self, lasso: Array | float, ridge: Array) -> Quadratic:
        """Add a penalty; ``ridge`` (members, k) has one number per column of the factor."""
        identity = identity_like(self.gram)
        gram = self.gram + ridge[:, :, None] * identity
        present = active_components(self.gram) if self.present is None else self.present
        return replace(self, gram=gram, lasso=self.lasso + lasso, present=present)


@dataclass(frozen=True)
class Ratio:
    """The two parts of the gradient at the current factor, for losses that are not quadratic.

    ``gram`` (members, k, k) is an upper bound of the second derivative, if there is one and the
    solver needs it: for the squared error, with weights of one for all entries. The first
    ``fixed`` columns of the factor stay unchanged; ``present`` is as in ``Quadratic``.
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
        """Return a quadratic function above this one that equals it at factor.

        A row without known entries is arbitrary, and is set to zero.
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
        negative, positive = _rows(self.negative, chosen), _rows(self.positive, chosen)
        return replace(self, negative=negative, positive=positive)

    def scaled(self, by: Array) -> Ratio:
        """Multiply the loss by one factor per member (members, 1, 1)."""
        gram = None if self.gram is None else by * self.gram
        return replace(self, negative=by * self.negative, positive=by * self.positive, gram=gram)

    def penalised(self, lasso: Array | float, ridge: Array) -> Ratio:
        """Add a penalty; ``ridge`` (members, k) has one number per column of the factor."""
        return replace(self, lasso=self.lasso + lasso, ridge=self.ridge + ridge[:, None, :])


def _rows(part: Array, chosen: slice) -> Array:
    """Return a slice of the rows of an array; a single row is the same for all rows."""
    return part if part.shape[1] == 1 else part[:, chosen, :]


Terms = Quadratic | Ratio
Update = Callable[[Array, Terms], Array]


class Solver(ABC):
    """Update rule of a factor, given the terms from a pass.

    Class attributes
    ----------------
    multiplies : whether its step is a multiplicative update.
    keeps_zeros : whether an entry that is zero always remains zero.
    quadratic : whether it needs a quadratic loss, or a quadratic majorant of the loss.
    extrapolates : whether the loop extrapolates the basis in the direction of its last step, and
        undoes the extrapolation if it raises the objective.
    extrapolates_codes : whether codes are also extrapolated before they are updated. This is
        useless if a step minimises over the codes exactly from any starting point.
    """

    multiplies: ClassVar[bool] = False
    keeps_zeros: ClassVar[bool] = False
    quadratic: ClassVar[bool] = False
    extrapolates: ClassVar[bool] = False
    extrapolates_codes: ClassVar[bool] = False

    @abstractmethod
    def step(self, factor: Array, terms: Terms, exponent: float) -> Array:
        """Return the updated factor (members, rows, k); its rows are independent of each other.

        The step never raises the loss.
        """

    def extrapolate(self, factor: Array, before: Array, momentum: Array) -> Array:
        """Extrapolate a factor by ``momentum`` (members, 1, 1) of its last step; nonnegative."""
        return at_least(factor + momentum * (factor - before), 0.0)
