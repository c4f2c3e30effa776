"""The majority of the samples: a robust fit at a moderate rank, and cutoffs from its energies."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from robustnmf.arrays import to_numpy
from robustnmf.engine import InMemory
from robustnmf.inits import INITS
from robustnmf.loop.fit import fit
from robustnmf.loop.problem import Problem
from robustnmf.loop.state import WARMUP_PASSES, Fitted, Start, State
from robustnmf.weightings import Trimmed

PASSES = 100
"""Maximum number of passes of the fit."""

FEATURES_PER_COMPONENT, SAMPLES_PER_COMPONENT = 2, 10
"""Minimum numbers of features and samples per component of the fit of the majority. With more
components, it would describe any sample, or overfit the accepted samples."""

MAJORITY = 0.5
"""Minimum share of the samples below the cutoffs: with few samples, the last passes of the fit can
increase most energies beyond the cutoffs."""

AFTER_WARMUP = 5
"""Passes of the fit of the majority after the warm-up."""


@dataclass(frozen=True)
class Majority:
    """Fit of the majority, with sizes and weights (rows,) of all rows and a typical size."""

    fitted: Fitted
    sizes: np.ndarray
    weight: np.ndarray
    unit: float

    @cached_property
    def cutoffs(self) -> Trimmed:
        """Energies beyond which samples are rejected."""
        cutoffs, energies = self.fitted.weighting, self.fitted.penalised_energies
        assert isinstance(cutoffs, Trimmed)
        return cutoffs.raise_cutoffs_to_cover(energies, self.sizes, self.weight, MAJORITY)

    @cached_property
    def accepted(self) -> np.ndarray:
        """Which rows are within the cutoffs."""
        return self.fitted.penalised_energies <= self.cutoffs.for_row_sizes(self.sizes).cutoff


def fit_majority(engine: InMemory, problem: Problem, rank: int) -> Majority:
    """Fit the majority until its cutoffs are known, with a rank that the data can support."""
    degree = problem.loss.degree
    by_samples = int(engine.sample_count / SAMPLES_PER_COMPONENT)
    rank = max(1, min(rank, engine.shape[1] // FEATURES_PER_COMPONENT, by_samples))
    codes, basis = INITS["robust"](engine.filled(), rank, 0)
    start = Start([rows[None, ...] for rows in codes], basis[None, ...])

    def is_known(iteration: int, state: State) -> bool:
        return iteration >= WARMUP_PASSES + AFTER_WARMUP

    (fitted,) = fit(
        engine, problem, [Trimmed()], start, max_iter=PASSES, tol=0.0, callback=is_known
    )
    unit = engine.typical_size(degree)
    sizes, weight = to_numpy(engine.row_sizes(degree)), to_numpy(engine.row_weight)
    return Majority(fitted, sizes, weight, unit)
