"""The benchmark of bad entries on real tables: every suitable table of R, spoiled in several ways.

``loss="truncated"`` is compared with two-step baselines and with published methods.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from robustnmf.corruptions import spoil_entries
from robustnmf.datasets._base import DataDir
from robustnmf.experiments.contamination.benchmark import Plan
from robustnmf.experiments.contamination.cells import Row, failures
from robustnmf.experiments.contamination.entries.judge import EntryJudge
from robustnmf.experiments.contamination.entries.methods import (
    CAUCHY,
    CEILING,
    CLIPPED_FIRST,
    ENTRY_METHODS,
    FENCES_FIRST,
    INNER_FIRST,
    OURS,
    PLAIN,
    SPARSE,
    peers,
    score_of_model,
    score_of_two_steps,
)
from robustnmf.experiments.contamination.entries.scenario import EntryData, EntryScenario
from robustnmf.experiments.contamination.judge import Score
from robustnmf.experiments.contamination.real import FLOOR, SEED
from robustnmf.experiments.contamination.real_grids import Kind, behind, error_grid, values_of
from robustnmf.experiments.contamination.real_tables import load_table, names_of, rank_of
from robustnmf.experiments.contamination.store import ScenarioStore
from robustnmf.experiments.outcome import Outcome

LARGEST = 1200
"""Maximum number of samples of a table, because the published methods are slow."""

KINDS: tuple[Kind, ...] = (
    ("clean", 0.0), ("large", 0.03), ("large", 0.1), ("extreme", 0.08), ("missing", 0.1),
    ("mixed", 0.1),
)  # fmt: skip
"""Ways to corrupt entries, and shares; "missing" also removes a tenth of all entries, and "mixed"
also replaces a tenth of the samples by noise."""

DEFAULT = "RobustNMF"
FIRST = (INNER_FIRST, FENCES_FIRST, CLIPPED_FIRST)
RIVALS = (*FIRST, SPARSE, CAUCHY)
METHODS = (OURS, PLAIN, DEFAULT, *RIVALS, CEILING)
GROUP = "methods"


@dataclass(frozen=True)
class RealEntryScenario(EntryScenario):
    """A real table, the way to spoil its entries, the share of bad ones, and the seed."""

    def data(self, data_dir: DataDir = None) -> EntryData:  # type: ignore[override]
        """Hold back a quarter of the samples, and spoil entries of the others."""
        X = load_table(self.dataset, data_dir)
        X = X[np.random.default_rng(self.seed).permutation(len(X))[:LARGEST]]
        held_back, X = X[: len(X) // 4], X[len(X) // 4 :]
        spoiled = spoil_entries(X, self.share, self.corruption, None, self.seed)
        return EntryData(
            spoiled.X, X, spoiled.bad, spoiled.bad_samples, held_back, self.rank or rank_of(X)
        )


class RealEntryJudge(EntryJudge):
    """Scores bases on a real table; a small part of the squared norms is added to all errors."""

    floor_share = FLOOR


def plan(half: str = "even", *, quick: bool = False, data_dir: DataDir = None) -> Plan:
    """Plan a run on the tables at even or at odd positions; every eighth of them if quick."""
    names = names_of(half, quick=quick, data_dir=data_dir)
    scenarios = tuple(RealEntryScenario(name, *kind, SEED) for name in names for kind in KINDS)
    return Plan(scenarios, (GROUP,), quick=quick)


def open_store(path: str | Path) -> ScenarioStore:
    """Open the store of the scores of this benchmark."""
    return ScenarioStore(path, ("contamination/entries/real.py",))


def score_groups(
    data: EntryData, groups: tuple[str, ...], device: str | None = None
) -> dict[str, list[Score]]:
    """Score all methods on the data of a scenario."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # convergence shows in the tables
        judge = RealEntryJudge(data)
        models = {name: ENTRY_METHODS[name](data.rank) for name in (OURS, PLAIN, DEFAULT)}
        scores = [score_of_model(judge, name, model) for name, model in models.items()]
        scores += [score_of_two_steps(judge, name) for name in (*FIRST, CEILING)]
        return {GROUP: [*scores, *peers(judge)]}


def outcomes(rows: Sequence[Row]) -> list[Outcome]:
    """Build the tables of the benchmark."""
    order = list(dict(KINDS))
    errors, seconds = (
        values_of(rows, name, order, METHODS) for name in ("relative_error", "seconds")
    )
    count = len({scenario.dataset for scenario, _ in rows})
    means = [("mean of all", tuple(errors))]
    return [
        Outcome("errors", "Error on good samples",
                f"Squared error of held-out samples of {count} tables over that of plain NMF of "
                "the table before it was spoiled: geometric mean / 97th percentile over tables.",
                [error_grid("errors", errors, means)],
                notes=[*failures(rows), *behind(errors, OURS, RIVALS)]),
        Outcome("seconds", "Seconds", "Time of a fit on one core, with its first step: geometric "
                "mean / 97th percentile over tables.", [error_grid("seconds", seconds, [])]),
    ]  # fmt: skip
