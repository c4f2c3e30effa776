"""Numbers that sum up a fit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from robustnmf.arrays import as_float64, namespace, to_numpy
from robustnmf.encoding import objective
from robustnmf.engine import Engine, in_parts
from robustnmf.losses import Loss
from robustnmf.problem import Problem
from robustnmf.state import Fitted


def reconstruction_error(energies: np.ndarray, loss: Loss, unit: float) -> float:
    """Norm of the residual; for other losses what scikit-learn calls by that name."""
    factor = 2.0 / loss.unit if loss.quadratic or loss.weighs_entries else 2.0
    return float(factor * namespace(energies).sum(energies)) ** 0.5 * unit**0.5


def overlap(codes: np.ndarray) -> float:
    """Mean cosine between different columns of the codes; zero where one has none."""
    parts = in_parts(codes) if isinstance(codes, np.ndarray) else [codes]
    gram = sum(to_numpy(as_float64(part).T @ as_float64(part)) for part in parts)
    norms = np.sqrt(np.diag(gram))
    cosines = gram / np.maximum(np.outer(norms, norms), np.finfo(np.float64).tiny)
    np.fill_diagonal(cosines, 0.0)
    return float(cosines.sum() / max(1, len(norms) * (len(norms) - 1)))


def comparable_objective(
    members: list[Fitted], engine: Engine, problem: Problem
) -> Callable[[Fitted], float]:
    """Return the objective to compare members by: under one weighting, if theirs differ."""
    if len({str(member.weighting.get_params()) for member in members}) == 1:
        return lambda member: member.shifted_objective
    sharpest = min(members, key=lambda member: member.shifted_objective).weighting
    if sharpest.per_entry:  # rows do not tell what their entries cost under another weighting
        return lambda member: objective(engine, problem, sharpest, member.basis)
    if sharpest.uses_row_sizes:
        sharpest = sharpest.for_row_sizes(engine.row_sizes(problem.loss.degree))

    def level(member: Fitted) -> float:
        objective_sums = sharpest.weigh(
            member.penalised_energies[None, :], engine.row_weight
        ).objective_sums
        return float(sharpest.shifted_value_of(objective_sums)[0, 0]) + member.basis_penalty_value

    return level
