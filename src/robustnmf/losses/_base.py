"""What a loss must say about itself to be factorised under."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from sklearn.base import BaseEstimator

from robustnmf.arrays import Array


class Loss(BaseEstimator, ABC):
    """Loss between an entry x of X and its approximation y.

    Class attributes
    ----------------
    degree : ``entries(c x, c y)`` is ``c**degree entries(x, y)``.
    quadratic : whether the loss is the squared error, so that Gram matrices of the
        factors say all there is to know of the approximation.
    """

    degree: ClassVar[float]
    quadratic: ClassVar[bool] = False
    _parameter_constraints: ClassVar[dict[str, list]] = {}

    @abstractmethod
    def entries(self, data: Array, approximation: Array) -> Array:
        """Loss of every entry."""

    @abstractmethod
    def split(self, data: Array, approximation: Array) -> tuple[Array, Array]:
        """Negative and positive part of the gradient with respect to y, up to a factor.

        Their ratio, after multiplying with the other factor, is the multiplicative
        update.
        """
