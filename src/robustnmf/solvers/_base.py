"""What a solver must say: how a factor moves, and what it can do with."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from robustnmf.arrays import Array, extrapolate
from robustnmf.solvers._terms import Terms


class Solver(ABC):
    """How a factor moves once a pass has told what it needs.

    Class attributes
    ----------------
    multiplies : whether its step is the multiplicative one.
    keeps_zeros : whether an entry that is zero stays zero for ever.
    quadratic : whether it needs a loss that is quadratic, or a majorant that is.
    extrapolates : whether the loop lets the basis run on in the direction of its last step, and
        takes it back where that raises the objective.
    extrapolates_codes : whether codes run on as well, before they move. Where a step takes them
        to a minimum, it does not matter from where it starts.
    """

    multiplies: ClassVar[bool] = False
    keeps_zeros: ClassVar[bool] = False
    quadratic: ClassVar[bool] = False
    extrapolates: ClassVar[bool] = False
    extrapolates_codes: ClassVar[bool] = False

    @abstractmethod
    def step(self, factor: Array, terms: Terms, exponent: float) -> Array:
        """New factor (members, rows, k), its rows independent; never raises the loss."""

    def extrapolate(self, factor: Array, before: Array, momentum: Array) -> Array:
        """The factor beyond where a step took it, by ``ahead`` of that step; never negative."""
        return extrapolate(factor, before, momentum)
