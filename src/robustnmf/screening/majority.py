"""The majority of the samples: a robust fit at a moderate rank, and cutoffs from its energies."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from robustnmf.arrays import to_numpy, weighted_median
from robustnmf.engine import InMemory
from robustnmf.fit import fit
from robustnmf.inits import INITS
from robustnmf.problem import Problem
from robustnmf.state import WARMUP_PASSES, Fitted, Start, State
from robustnmf.weightings import EnergyHistogram, Trimmed

PASSES = 100
"""Most passes of the fit."""

FEATURES_A_PART, SAMPLES_A_PART = 2, 20
"""Features and samples for every part of the fit of the majority. With more parts it would describe
any sample, or its accepted samples far better than samples that it was not fitted to."""

FEW_PARTS, FEW_SAMPLES_A_PART = 3, 10
"""So many parts need fewer samples each: a fit with fewer parts than the good samples need may
describe bad ones better."""

EXACT, DESCRIBED = 1e-3, 1e-2
"""Typical energy over size below which the majority may be described by more parts than it needs,
and the same with half of them from which on it is: a group would have to be described as exactly
to be found. Half of the parts are enough then."""

COMPARED = 300
"""Number of rows on which half of the parts are tried."""

MAJORITY = 0.5
"""Share of the samples that the cutoffs cover at least."""

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
        """Energies beyond which samples are rejected.

        Those of the fit, unless its last passes have raised more than half of the energies beyond
        them: a fit of few samples may alternate between two groups.
        """
        cutoffs, energies = self.fitted.weighting, self.fitted.penalised_energies
        assert isinstance(cutoffs, Trimmed)
        is_within = energies <= cutoffs.for_row_sizes(self.sizes).cutoff
        if self.weight[is_within].sum() >= MAJORITY * self.weight.sum():
            return cutoffs
        histogram = EnergyHistogram.of(
            energies, self.sizes, self.weight, unit=self.unit, features=0
        )
        cutoffs = Trimmed().resolve_auto(histogram)
        return cutoffs.raise_cutoffs_to_cover(energies, self.sizes, self.weight, MAJORITY)

    @cached_property
    def accepted(self) -> np.ndarray:
        """Which rows are within the cutoffs."""
        return self.fitted.penalised_energies <= self.cutoffs.for_row_sizes(self.sizes).cutoff

    @cached_property
    def energies(self) -> np.ndarray:
        """Energies of the accepted rows."""
        return self.fitted.penalised_energies[self.accepted]

    @cached_property
    def typical_share(self) -> float:
        """Median energy of the accepted rows over their sizes."""
        rows = self.accepted
        return weighted_median(self.energies / self.sizes[rows], self.weight[rows])


def fit_majority(engine: InMemory, problem: Problem, rank: int) -> Majority:
    """Fit the majority until its cutoffs are known, with a rank that the data can support."""
    degree = problem.loss.degree
    samples = engine.sample_count
    by_samples = max(
        int(samples / SAMPLES_A_PART), min(FEW_PARTS, int(samples / FEW_SAMPLES_A_PART))
    )
    rank = max(1, min(rank, engine.shape[1] // FEATURES_A_PART, by_samples))
    codes, basis = INITS["robust"](engine.filled(), rank, 0)
    start = Start([rows[None, ...] for rows in codes], basis[None, ...])

    def is_known(iteration: int, state: State) -> bool:
        return iteration >= WARMUP_PASSES + AFTER_WARMUP

    (fitted,) = fit(
        engine, problem, [Trimmed()], start, max_iter=PASSES, tol=0.0, callback=is_known
    )
    unit = engine.typical_size(degree)
    sizes, weight = to_numpy(engine.row_sizes(degree)), to_numpy(engine.row_weight)
    majority = Majority(fitted, sizes, weight, unit)
    if rank > 1 and majority.typical_share < EXACT and not majority.accepted.all():
        index = np.flatnonzero(majority.accepted)[:COMPARED]
        compared = to_numpy(engine.filled().samples(index))
        if _share_beyond(compared, rank // 2) < DESCRIBED:
            return fit_majority(engine, problem, rank // 2)
    return majority


def _share_beyond(rows: np.ndarray, rank: int) -> float:
    """Compute the mean share of rows, scaled to norm one, outside the best subspace of a rank."""
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    squares = np.linalg.eigvalsh(unit @ unit.T if len(unit) < unit.shape[1] else unit.T @ unit)
    return float(squares[: max(len(squares) - rank, 0)].sum() / len(unit))
