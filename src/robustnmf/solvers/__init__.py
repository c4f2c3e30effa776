"""Solvers by name: update rules of a factor, given the terms that a pass has computed."""

from robustnmf.solvers._base import Solver
from robustnmf.solvers._penalty import Penalty
from robustnmf.solvers._terms import Quadratic, Ratio, Terms, Update
from robustnmf.solvers.hals import Hals
from robustnmf.solvers.least_squares import (
    CHUNK_NUMBERS,
    by_coordinates,
    nonnegative_least_squares,
    refine,
)
from robustnmf.solvers.multiplicative import ExtrapolatedMultiplicative, Multiplicative

SOLVERS: dict[str, type[Solver]] = {
    "mu": Multiplicative,
    "mu-extrapolated": ExtrapolatedMultiplicative,
    "hals": Hals,
}

__all__ = [
    "CHUNK_NUMBERS",
    "SOLVERS",
    "ExtrapolatedMultiplicative",
    "Hals",
    "Multiplicative",
    "Penalty",
    "Quadratic",
    "Ratio",
    "Solver",
    "Terms",
    "Update",
    "by_coordinates",
    "nonnegative_least_squares",
    "refine",
]
