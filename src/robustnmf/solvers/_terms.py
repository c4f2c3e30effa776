"""What the update of one factor needs to know, with rows of the factor independent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from robustnmf.arrays import Array, namespace


@dataclass(frozen=True)
class Quadratic:
    """Minimise ``f gram f^T / 2 - linear f^T + lasso sum f`` for every row f of a factor."""

    linear: Array
    gram: Array
    lasso: Array | float = 0.0

    def parts(self, factor: Array) -> tuple[Array, Array]:
        """Negative and positive part of the gradient at factor."""
        return self.linear, factor @ self.gram + self.lasso

    def scaled(self, by: Array) -> Quadratic:
        """The same problem, its loss multiplied by a number for each member."""
        return replace(self, linear=by * self.linear, gram=by * self.gram)

    def penalised(self, lasso: Array | float, ridge: Array) -> Quadratic:
        """With a penalty; ``ridge`` (members, k) is a number for each column of the factor."""
        identity = namespace(self.gram).eye(self.gram.shape[-1], dtype=self.gram.dtype)
        gram = self.gram + ridge[:, :, None] * identity
        return replace(self, gram=gram, lasso=self.lasso + lasso)


@dataclass(frozen=True)
class Ratio:
    """Only the two parts of the gradient at the present factor are known."""

    negative: Array
    positive: Array
    lasso: Array | float = 0.0
    ridge: Array | float = 0.0

    def parts(self, factor: Array) -> tuple[Array, Array]:
        """Negative and positive part of the gradient at factor."""
        return self.negative, self.positive + self.lasso + self.ridge * factor

    def scaled(self, by: Array) -> Ratio:
        """The same problem, its loss multiplied by a number for each member."""
        return replace(self, negative=by * self.negative, positive=by * self.positive)

    def penalised(self, lasso: Array | float, ridge: Array) -> Ratio:
        """With a penalty; ``ridge`` (members, k) is a number for each column of the factor."""
        return replace(self, lasso=self.lasso + lasso, ridge=self.ridge + ridge[:, None, :])


Terms = Quadratic | Ratio
Update = Callable[[Array, Terms], Array]
