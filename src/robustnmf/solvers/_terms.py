"""What the update of one factor needs to know, with rows of the factor independent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from robustnmf.arrays import Array


@dataclass(frozen=True)
class Quadratic:
    """Minimise ``f gram f^T / 2 - linear f^T`` for every row f of a factor."""

    linear: Array
    gram: Array

    def parts(self, factor: Array) -> tuple[Array, Array]:
        """Negative and positive part of the gradient at factor."""
        return self.linear, factor @ self.gram


@dataclass(frozen=True)
class Ratio:
    """Only the two parts of the gradient at the present factor are known."""

    negative: Array
    positive: Array

    def parts(self, factor: Array) -> tuple[Array, Array]:
        """Negative and positive part of the gradient at factor."""
        return self.negative, self.positive


Terms = Quadratic | Ratio
Update = Callable[[Array, Terms], Array]
