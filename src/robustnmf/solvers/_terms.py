"""What the update of one factor needs to know, with rows of the factor independent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from robustnmf.arrays import Array, active_components, identity_like, namespace


@dataclass(frozen=True)
class Quadratic:
    """Minimise ``f gram f^T / 2 - linear f^T + lasso sum f`` for every row f of a factor.

    The first ``fixed`` columns of the factor must stay as they are. ``present`` (members, k)
    says on which columns the loss depends, where a penalty in ``gram`` hides it.
    """

    linear: Array
    gram: Array
    lasso: Array | float = 0.0
    fixed: int = 0
    present: Array | None = None

    def parts(self, factor: Array) -> tuple[Array, Array]:
        """Negative and positive part of the gradient at factor."""
        free = isinstance(self.lasso, float) and self.lasso == 0.0
        return self.linear, factor @ self.gram if free else factor @ self.gram + self.lasso

    def majorant(self, factor: Array) -> Quadratic:
        """A quadratic problem that lies above this one and touches it at factor: itself."""
        return self

    def rows(self, chosen: slice) -> Quadratic:
        """The terms of some rows of the factor alone."""
        return replace(self, linear=_rows(self.linear, chosen))

    def scaled(self, by: Array) -> Quadratic:
        """The same problem, its loss multiplied by a number for each member."""
        return replace(self, linear=by * self.linear, gram=by * self.gram)

    def penalised(self, lasso: Array | float, ridge: Array) -> Quadratic:
        """With a penalty; ``ridge`` (members, k) is a number for each column of the factor."""
        identity = identity_like(self.gram)
        gram = self.gram + ridge[:, :, None] * identity
        present = active_components(self.gram) if self.present is None else self.present
        return replace(self, gram=gram, lasso=self.lasso + lasso, present=present)


@dataclass(frozen=True)
class Ratio:
    """Only the two parts of the gradient at the present factor are known.

    ``gram`` (members, k, k) bounds the second derivative, where there is a bound and a solver
    that asks for it: for the squared error, with every entry counted in full. The first
    ``fixed`` columns of the factor must stay as they are; ``present`` as for quadratic terms.
    """

    negative: Array
    positive: Array
    gram: Array | None = None
    lasso: Array | float = 0.0
    ridge: Array | float = 0.0
    fixed: int = 0
    present: Array | None = None

    def parts(self, factor: Array) -> tuple[Array, Array]:
        """Negative and positive part of the gradient at factor."""
        return self.negative, self.positive + self.lasso + self.ridge * factor

    def majorant(self, factor: Array) -> Quadratic:
        """A quadratic problem that lies above this one and touches it at factor.

        A row of which nothing is known may be anything, and becomes zero.
        """
        assert self.gram is not None
        xp = namespace(factor)
        known = xp.any((self.negative > 0) | (self.positive > 0), axis=-1, keepdims=True)
        linear = self.negative - self.positive + factor @ self.gram
        linear = xp.where(known, linear, 0 * linear)
        above = Quadratic(linear, self.gram, self.lasso, self.fixed, self.present)
        return above if isinstance(self.ridge, float) else above.penalised(0.0, self.ridge[:, 0, :])

    def rows(self, chosen: slice) -> Ratio:
        """The terms of some rows of the factor alone."""
        parts = (_rows(part, chosen) for part in (self.negative, self.positive))
        return replace(self, **dict(zip(("negative", "positive"), parts, strict=True)))

    def scaled(self, by: Array) -> Ratio:
        """The same problem, its loss multiplied by a number for each member."""
        gram = None if self.gram is None else by * self.gram
        return replace(self, negative=by * self.negative, positive=by * self.positive, gram=gram)

    def penalised(self, lasso: Array | float, ridge: Array) -> Ratio:
        """With a penalty; ``ridge`` (members, k) is a number for each column of the factor."""
        return replace(self, lasso=self.lasso + lasso, ridge=self.ridge + ridge[:, None, :])


def _rows(part: Array, chosen: slice) -> Array:
    """Some rows of a part; one row may stand for all."""
    return part if part.shape[1] == 1 else part[:, chosen, :]


Terms = Quadratic | Ratio
Update = Callable[[Array, Terms], Array]
