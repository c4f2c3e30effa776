"""Solvers by name: how a factor moves once a pass has told what it needs."""

from robustnmf.solvers._penalty import Penalty
from robustnmf.solvers._terms import Quadratic, Ratio, Terms, Update
from robustnmf.solvers.least_squares import (
    CHUNK_NUMBERS,
    by_coordinates,
    nonnegative_least_squares,
    refine,
)
from robustnmf.solvers.multiplicative import Multiplicative

SOLVERS: dict[str, type[Multiplicative]] = {
    "mu": Multiplicative,
}

__all__ = [
    "CHUNK_NUMBERS",
    "SOLVERS",
    "Multiplicative",
    "Penalty",
    "Quadratic",
    "Ratio",
    "Terms",
    "Update",
    "by_coordinates",
    "nonnegative_least_squares",
    "refine",
]
