"""Base class of all solvers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from robustnmf.arrays import Array, kernels_for
from robustnmf.solvers._terms import Terms


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
        return kernels_for(factor).extrapolate(factor, before, momentum)
