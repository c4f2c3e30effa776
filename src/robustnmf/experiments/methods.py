"""The paper's six methods, with the grids it searches and the defaults that need no labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from robustnmf.weightings import L21, Entropy, Fuzzy, Huber, Uniform, Weighting

ParameterValue = float | str | None
"""Value of a hyperparameter: a number, "auto", or None for a method that has none."""


@dataclass(frozen=True)
class Method:
    """A method as experiments run it.

    Parameters
    ----------
    name : str
    weighting : callable
        Makes the weighting from the value of its hyperparameter, if it has one.
    parameter : str, optional
        Name of the hyperparameter.
    grid : tuple of float
        Values that the paper chooses from, by the labels.
    default : float or "auto", optional
        Value that needs no labels; "auto" follows from the energies.
    structure : str
    """

    name: str
    weighting: Callable[..., Weighting]
    parameter: str | None = None
    grid: tuple[float, ...] = ()
    default: ParameterValue = None
    structure: str = "free"

    @property
    def values(self) -> tuple[ParameterValue, ...]:
        """Return every value that is run: the grid, and the default if it is not on it."""
        if self.parameter is None:
            return (None,)
        extra = () if self.default in self.grid else (self.default,)
        return (*self.grid, *extra)

    def make(self, value: ParameterValue) -> Weighting:
        """Make the weighting with this value."""
        return self.weighting() if self.parameter is None else self.weighting(value)


POWERS_OF_TEN = tuple(10.0**i for i in range(-4, 5))
HALVES = tuple(1.5 + 0.5 * i for i in range(20))

METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method("EucNMF", Uniform),
        Method("ConvexNMF", Uniform, structure="convex"),
        Method("NMFL2", L21),
        Method("HuberRNMF", Huber, "cutoff", POWERS_OF_TEN, "auto"),
        Method("FWRNMF", Fuzzy, "p", HALVES, "auto"),
        Method("EWRNMF", Entropy, "gamma", POWERS_OF_TEN, "auto"),
    )
}
PROPOSED = ("FWRNMF", "EWRNMF")
