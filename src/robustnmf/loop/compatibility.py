"""Supported combinations of losses, weightings, structures, solvers and kinds of data.

The reasons returned here are the error messages of estimators and the notes of the table in the
documentation.
"""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

from robustnmf.losses import LOSSES, Loss
from robustnmf.solvers import SOLVERS
from robustnmf.structures import STRUCTURES, Structure
from robustnmf.weightings import WEIGHTINGS, Weighting

AUTOMATIC = ("hals", "mu-extrapolated", "mu")
KINDS = ("dense", "sparse", "missing")


class ModelSpec(NamedTuple):
    """Loss, weighting and structure of a method."""

    loss: Loss
    weighting: Weighting
    structure: Structure


class Combination(NamedTuple):
    """One combination of a model and a kind of data; ``reason`` is None if it is supported."""

    loss: str
    weighting: str
    structure: str
    data: str
    reason: str | None

    @property
    def supported(self) -> bool:
        """Whether it can be fitted."""
        return self.reason is None


def combinations() -> list[Combination]:
    """List every loss with every weighting, structure and kind of data.

    Returns
    -------
    combinations : list of (loss, weighting, structure, data, reason)
        ``data`` is "dense", "sparse" or "missing" (dense with NaN); ``reason`` is None if
        the combination is supported, else the message of the error that an estimator raises.

    Examples
    --------
    >>> from robustnmf import combinations
    >>> table = combinations()
    >>> [cell.data for cell in table if cell[:3] == ("itakura-saito", "l21", "convex")
    ...  and cell.supported]
    ['dense', 'missing']
    """
    cells = []
    for loss, weighting, structure, data in product(LOSSES, WEIGHTINGS, STRUCTURES, KINDS):
        parts = LOSSES[loss](), WEIGHTINGS[weighting](), STRUCTURES[structure]()
        reason = unsupported_reason(*parts, data)
        cells.append(Combination(loss, weighting, structure, data, reason))
    return cells


def unsupported_solver_reason(loss: Loss, structure: Structure, solver: str) -> str | None:
    """Return why a solver cannot be used with a loss and a structure, or None if it can."""
    kind = SOLVERS[solver]
    if not kind.extrapolates:
        return None
    if kind.quadratic and not (loss.quadratic or loss.weighs_entries):
        return (
            f"solver={solver!r} needs a squared error, and {loss!r} is not one. Use solver='auto' "
            "or 'mu'."
        )
    if structure.mixes_samples:
        return (
            f"solver={solver!r} changes the basis freely, but with {structure!r} the basis is a "
            "mixture of samples. Use solver='auto' or 'mu'."
        )
    if structure.penalises_overlap:
        return (
            f"solver={solver!r} makes every sample converge too early: with {structure!r} a sample "
            "has several minima, and the first one would be final. Use solver='auto' or 'mu'."
        )
    return None


def fastest_solver(spec: ModelSpec) -> str:
    """Return the name of the solver that ``"auto"`` stands for.

    This is not HALS with weights of entries: if most weights are small, its majorant with one Gram
    matrix lies far above the loss.
    """
    loss, weighting, structure = spec
    names = [n for n in AUTOMATIC if not (weighting.per_entry and SOLVERS[n].quadratic)]
    return next(name for name in names if unsupported_solver_reason(loss, structure, name) is None)


def unsupported_reason(
    loss: Loss, weighting: Weighting, structure: Structure, data: str
) -> str | None:
    """Return why a model cannot be used with this kind of data, or None if it can."""
    if loss.weighs_entries and weighting.per_entry:
        return (
            f"{loss!r} and {weighting!r} both give every entry its own weight. Use {loss!r} "
            "with a weighting of samples, or loss='frobenius' with this weighting."
        )
    if data == "sparse":
        if weighting.per_entry:
            return (
                f"{weighting!r} gives every entry its own weight, including the zeros that sparse "
                "X does not store. Use a weighting of samples, or dense X if memory allows."
            )
        if loss.weighs_entries:
            return (
                f"{loss!r} gives every entry its own weight, including the zeros that sparse X "
                "does not store. Use loss='frobenius' or 'kullback-leibler', or dense X if memory "
                "allows."
            )
        if not loss.takes_zeros:
            return f"{loss!r} needs X > 0, but the entries that sparse X does not store are zero."
    return None


def needs_dense_rows(loss: Loss, weighting: Weighting) -> bool:
    """Return whether the zeros of sparse X must be visited one by one.

    This is not needed if the loss is quadratic, or linear in the approximation at x = 0.
    """
    is_linear = loss.quadratic or loss.slope_at_zero is not None
    return not is_linear or loss.weighs_entries or weighting.per_entry
