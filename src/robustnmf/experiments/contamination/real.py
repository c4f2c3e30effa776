"""The benchmark of bad samples on real tables: every suitable table of R, spoiled in several ways.

RobustNMF is compared with plain NMF and with plain NMF after an outlier detector.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.metrics import roc_auc_score

from robustnmf.datasets._base import DataDir
from robustnmf.estimators import RobustNMFDetector
from robustnmf.experiments.contamination.benchmark import Plan
from robustnmf.experiments.contamination.cells import Row, failures, number_cell
from robustnmf.experiments.contamination.detection import FACTOR, FOREST, OUR_DETECTOR
from robustnmf.experiments.contamination.judge import Judge, Score, plain_basis
from robustnmf.experiments.contamination.methods import OURS
from robustnmf.experiments.contamination.real_grids import (
    Kind,
    Values,
    behind,
    charts_of,
    error_grid,
    title_of,
    values_of,
)
from robustnmf.experiments.contamination.real_tables import load_table, names_of, rank_of
from robustnmf.experiments.contamination.scenario import Data, Scenario
from robustnmf.experiments.contamination.store import ScenarioStore
from robustnmf.experiments.contamination.two_step import (
    FACTOR_FIRST,
    FOREST_FIRST,
    attempt,
    detect,
)
from robustnmf.experiments.outcome import Cell, Grid, Outcome
from robustnmf.metrics import squared_errors

SEED = 3
FLOOR = 1e-4
"""Share of the mean squared norm that is added to errors, as ratios of tiny errors mean nothing."""

PLAIN, GIVEN_FIRST = "plain NMF", f"{FOREST} given the share of bad samples, plain NMF"
DETECTORS = {FOREST_FIRST: FOREST, FACTOR_FIRST: FACTOR}
METHODS = (OURS, PLAIN, *DETECTORS, GIVEN_FIRST)
RANKED_BY = {OURS: OUR_DETECTOR, **DETECTORS}
"""Detectors whose order of the samples is scored, by the method that they are a part of."""

AUROC_GOAL, GOAL_SHARE = 0.985, 0.15
"""Least mean AUROC of our detector, and the share of bad samples that it is for."""

GROUP = "methods"

Spoiler = Callable[[np.ndarray, np.ndarray, np.random.Generator], np.ndarray]
"""Returns bad samples for the rows (n_bad,) of a table (n_samples, n_features)."""


def clean(X: np.ndarray, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the samples as they are."""
    return X[rows]


def noise(X: np.ndarray, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return uniform noise up to the maximum of the table; 1.5 times that if it is rare."""
    factor = 1.5 if len(rows) < 0.2 * len(X) else 1.0
    return rng.random((len(rows), X.shape[1])) * X.max() * factor


def shuffled(X: np.ndarray, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Permute the features of every sample, and double it."""
    return 2 * np.array([rng.permutation(row) for row in X[rows]])


def swapped(X: np.ndarray, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Join halves of two random samples in the wrong order, times 1.5."""
    half = X.shape[1] // 2
    first, second = (X[rng.integers(0, len(X), len(rows))] for _ in range(2))
    return 1.5 * np.hstack([first[:, half:], second[:, :half]])


def scaled(X: np.ndarray, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Multiply every sample by a random factor between 5 and 20."""
    return X[rows] * rng.uniform(5, 20, (len(rows), 1))


def saturated(X: np.ndarray, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Set a random half of the entries to the maximum of the table."""
    return np.where(rng.random((len(rows), X.shape[1])) < 0.5, X.max(), X[rows])


SPOILERS: dict[str, Spoiler] = {
    "clean": clean, "noise": noise, "shuffled": shuffled, "swapped": swapped, "scaled": scaled,
    "saturated": saturated,
}  # fmt: skip

ORDER = tuple(SPOILERS)

MAIN: tuple[Kind, ...] = (
    ("clean", 0.0), ("noise", 0.15), ("shuffled", 0.15), ("swapped", 0.15), ("noise", 0.35),
)  # fmt: skip
KINDS = (
    *MAIN, ("scaled", 0.15), ("saturated", 0.15), *((name, 0.05) for name in list(SPOILERS)[1:]),
    *((name, 0.4) for name in list(SPOILERS)[2:]),
)  # fmt: skip
"""Corruptions in the order in which they use the random numbers of a table: add new ones last."""


@dataclass(frozen=True)
class RealScenario(Scenario):
    """A real table, the way to spoil it, the share of bad samples, and the seed."""

    def data(self, data_dir: DataDir = None) -> Data:
        """Hold back a quarter of the samples, and spoil a share of the others."""
        X = load_table(self.dataset, data_dir)
        rng = np.random.default_rng(self.seed)
        order = rng.permutation(len(X))
        held_back, X = X[order[: len(X) // 4]], X[order[len(X) // 4 :]]
        for kind, share in KINDS[: KINDS.index((self.corruption, self.share)) + 1]:
            rows = rng.permutation(len(X))[: int(share * len(X))]
            bad_samples = SPOILERS[kind](X, rows, rng)
        dirty, bad = X.copy(), np.zeros(len(X), dtype=bool)
        dirty[rows], bad[rows] = bad_samples, True
        return Data(dirty, bad, held_back, rank_of(X))


def plan(half: str = "even", *, quick: bool = False, data_dir: DataDir = None) -> Plan:
    """Plan a run on the tables at even or at odd positions; every eighth of them if quick."""
    names = names_of(half, quick=quick, data_dir=data_dir)
    scenarios = tuple(RealScenario(name, *kind, SEED) for name in names for kind in KINDS)
    return Plan(scenarios, (GROUP,), quick=quick)


def open_store(path: str | Path) -> ScenarioStore:
    """Open the store of the scores of this benchmark."""
    return ScenarioStore(path, ("contamination/real.py", "contamination/real_tables.py"))


class RealJudge(Judge):
    """Scores bases on a real table; a small part of the squared norms is added to all errors."""

    floor_share = FLOOR

    def score(
        self,
        method: str,
        basis: np.ndarray,
        dropped: np.ndarray,
        outlyingness: np.ndarray | None = None,
    ) -> Score:
        """Score a basis (rank, n_features) and the mask (n_samples,) of samples left out.

        ``outlyingness`` (n_samples,) is that of the detector behind the method, if there is one.
        """
        errors = squared_errors(self.data.held_back, basis)
        best, reference = (
            np.sort(e)[: math.ceil(0.9 * len(e))].mean() + self._floor
            for e in (errors, self._reference_errors)
        )
        bad = self.data.bad
        is_ranked = outlyingness is not None and bad.any()
        return Score(
            method, self.relative_error(errors), self.geometric_error(errors), self.lost(dropped),
            auroc=float(roc_auc_score(bad, outlyingness)) if is_ranked else np.nan,
            found=float(dropped[bad].mean()) if bad.any() else np.nan,
            best_described_error=float(best / reference),
        )  # fmt: skip


def _score(judge: RealJudge, method: str) -> Score:
    data = judge.data
    if method == OURS:
        detector = RobustNMFDetector(data.rank, random_state=0).fit(data.dirty)
        model = detector.estimator_  # the one that RobustNMF would have fitted
        outlyingness = -detector.score_samples(data.dirty)
        return judge.score(method, model.components_, model.outliers_, outlyingness)
    dropped = left_out(judge, method)
    basis = plain_basis(data.dirty[~dropped], data.rank)
    detector_name = DETECTORS.get(method)
    ranked = detect(judge, detector_name).outlyingness if detector_name else None
    return judge.score(method, basis, dropped, ranked)


def left_out(judge: Judge, method: str) -> np.ndarray:
    """Return the mask (n_samples,) that a baseline leaves out; none if too few would be left."""
    bad = judge.data.bad
    dropped = np.zeros_like(bad)
    if method == GIVEN_FIRST:
        order = np.argsort(-detect(judge, FOREST).outlyingness, kind="stable")
        dropped[order[: bad.sum()]] = True
    elif method in DETECTORS:
        flagged = detect(judge, DETECTORS[method]).flagged
        assert flagged is not None
        dropped = flagged
    return dropped if np.sum(~dropped) > max(judge.data.rank + 1, 10) else np.zeros_like(bad)


def score_groups(
    data: Data, groups: tuple[str, ...], device: str | None = None
) -> dict[str, list[Score]]:
    """Score all methods on the data of a scenario."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the tables show how many samples are left out
        judge = RealJudge(data)
        return {GROUP: [attempt(name, partial(_score, judge, name)) for name in METHODS]}


def outcomes(rows: Sequence[Row]) -> list[Outcome]:
    """Build all tables of the benchmark, and the charts of errors against shares."""
    errors, best, found, lost = (
        values_of(rows, name, ORDER, METHODS)
        for name in ("relative_error", "best_described_error", "found", "lost")
    )
    means = (("mean of the main five", MAIN), ("mean of all", tuple(errors)))
    count = len({scenario.dataset for scenario, _ in rows})
    caption = (
        f"Squared error of held-out good samples of {count} tables over that of plain NMF of the "
        "good samples: geometric mean / 97th percentile over tables."
    )
    return [
        Outcome("errors", "Error on good samples", caption, [error_grid("errors", errors, means)],
                notes=[*failures(rows), *behind(errors, OURS, tuple(DETECTORS))]),
        Outcome("best_described", "Error on the best-described samples",
                f"The 90% of the held-out samples that each method describes best. {caption}",
                [error_grid("errors on the best-described 90%", best, means)]),
        Outcome("left_out", "Samples left out",
                "Share of bad / of good samples that are left out, mean over tables.",
                [_left_out_grid(found, lost)]),
        _auroc_outcome(values_of(rows, "auroc", ORDER, tuple(RANKED_BY))),
        Outcome("shares", "Error against the share of bad samples", "Geometric mean over tables.",
                charts=charts_of(errors, ORDER[1:])),
    ]  # fmt: skip


def _left_out_grid(found: Values, lost: Values) -> Grid:
    def percent(shares: list[float]) -> str:
        return f"{np.mean(shares):.1%}" if shares else "-"

    table = [
        [Cell(title_of(kind)), *(Cell(f"{percent(found[kind][method])} / {percent(shares)}")
                               for method, shares in by_method.items())]
        for kind, by_method in lost.items()
    ]  # fmt: skip
    return Grid("bad / good samples left out", ("scenario", *METHODS), table)


def _auroc_outcome(areas: Values) -> Outcome:
    numbers = {
        title_of(kind): np.array([np.mean(area) for area in by_method.values()])
        for kind, by_method in areas.items() if all(by_method.values())
    }  # fmt: skip
    goals = [title_of(kind) for kind in areas if kind[1] == GOAL_SHARE]
    notes = []
    if numbers and all(title in numbers for title in goals):
        ours, *others = numbers["mean of 15%"] = np.mean([numbers[g] for g in goals], axis=0)
        verdict = "met" if ours >= max(AUROC_GOAL, *others) else "missed"
        notes = [
            f"Goal: a mean AUROC of {AUROC_GOAL} or more with 15% of bad samples, and no other "
            f"detector ahead: {verdict}."
        ]
    table = [
        [Cell(title), *(number_cell(float(number), ".4f") for number in row)]
        for title, row in numbers.items()
    ]
    return Outcome(
        "auroc", "Finding the bad samples",
        "Area under the ROC curve of the order of the samples by each detector, mean over tables.",
        [Grid("AUROC", ("scenario", *RANKED_BY.values()), table)], notes=notes,
    )  # fmt: skip
