"""Dictionary of solvers by name: update rules of a factor, given the terms from a pass."""

from robustnmf.solvers._base import Quadratic, Ratio, Solver, Terms, Update
from robustnmf.solvers._penalty import Penalty
from robustnmf.solvers.least_squares import (
    CHUNK_NUMBERS,
    by_coordinates,
    nonnegative_least_squares,
    refine,
)
from robustnmf.solvers.updates import ExtrapolatedMultiplicative, Hals, Multiplicative

SOLVERS: dict[str, type[Solver]] = {
    "mu": Multiplicative,
    "mu-extrapolated": ExtrapolatedMultiplicative,
    "hals": Hals,
}
