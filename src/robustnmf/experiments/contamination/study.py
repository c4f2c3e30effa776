"""A study of contamination: its plan, the run of unfinished scenarios, and the store of scores.

All studies share this code. What differs between them (scenarios, methods, tables) is in a `Study`.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed, parallel_config

from robustnmf.datasets._base import DataDir
from robustnmf.experiments.contamination.judge import Groups, Judge, Score
from robustnmf.experiments.contamination.scenario import EMBEDDED, Data, Draw, Scenario
from robustnmf.experiments.database import Database, code_version, digest_of
from robustnmf.experiments.outcome import Outcome
from robustnmf.experiments.reproduce import Progress, is_available
from robustnmf.experiments.trial import IDLE_SECONDS, machine_of

Row = tuple[Scenario, Score]


@dataclass(frozen=True)
class Plan:
    """The scenarios of a run, and the groups of methods that are scored in them."""

    scenarios: tuple[Scenario, ...]
    groups: tuple[str, ...]
    missing: tuple[str, ...] = ()

    def groups_of(self, scenario: Scenario) -> tuple[str, ...]:
        """Return the groups of a scenario; detectors only run at the default rank of a table."""
        return tuple(g for g in self.groups if g != "detectors" or not scenario.rank)


@dataclass(frozen=True)
class Scope:
    """Datasets, shares of bad samples or entries by corruption, seeds and groups of a run.

    ``corruptions`` are those of a run that names none; all by default.
    """

    datasets: tuple[str, ...]
    shares: Mapping[str, tuple[float, ...]]
    seeds: tuple[int, ...]
    groups: tuple[str, ...]
    corruptions: tuple[str, ...] = ()


Scenarios = Callable[[str, int, Mapping[str, tuple[float, ...]], DataDir], Iterable[Scenario]]
"""Returns the scenarios of a dataset and a seed, for shares by corruption."""


def plan_scope(
    scenarios: Scenarios,
    full: Scope,
    small: Scope,
    datasets: Sequence[str] = (),
    corruptions: Sequence[str] = (),
    seeds: int | None = None,
    *,
    quick: bool = False,
    grids: bool = True,
    groups: Sequence[str] = (),
    shares: Sequence[float] = (),
    data_dir: DataDir = None,
) -> Plan:
    """Plan a run of a full or a small scope; by default of all datasets on this machine."""
    scope = small if quick else full
    names = _chosen(datasets, scope.datasets, full.datasets)
    kinds = _chosen(corruptions, scope.corruptions or tuple(scope.shares), scope.shares)
    methods = _chosen(groups, scope.groups, full.groups)
    for share in shares:
        if not 0 <= share < 1:
            raise ValueError(f"a share of bad data is {share!r}, but 0 <= share < 1 is needed.")
    levels = {kind: tuple(dict.fromkeys(shares)) or scope.shares[kind] for kind in kinds}
    available = tuple(n for n in names if n in EMBEDDED or is_available(n, data_dir))
    missing = tuple(name for name in names if name not in available)
    if datasets and missing:
        raise ValueError(
            f"the data of {missing[0]} are not on this machine. Run robustnmf datasets to see "
            "where to get them."
        )
    # Seeds are the outer loop, so that an interrupted run has results of all datasets.
    planned = tuple(
        scenario
        for seed in (scope.seeds if seeds is None else range(seeds))
        for name in available
        for scenario in scenarios(name, seed, levels, data_dir)
    )
    return Plan(planned, tuple(g for g in methods if grids or g != "grids"), missing)


def _chosen(
    names: Iterable[str], default: tuple[str, ...], valid: Collection[str]
) -> tuple[str, ...]:
    """Return names without repetitions, or the default; refuse names that are not valid."""
    for name in names:
        if name not in valid:
            raise ValueError(f"{name!r} is not one of {', '.join(valid)}.")
    return tuple(dict.fromkeys(names)) or default


class ScenarioStore(Database):
    """Store of the scores of finished scenarios, one row for each group of methods.

    ``code`` are the files of this folder that scores depend on, besides their imports.
    """

    schema = """
    CREATE TABLE IF NOT EXISTS scenarios (
        key TEXT PRIMARY KEY, code TEXT NOT NULL, specification TEXT NOT NULL,
        scores TEXT NOT NULL, machine TEXT NOT NULL, created TEXT NOT NULL);
    """

    def __init__(self, path: str | Path, code: tuple[str, ...]):
        super().__init__(path)
        self.code = code_version(*(f"experiments/contamination/{name}" for name in code))

    def key_of(self, scenario: Scenario, group: str) -> str:
        """Return the digest of all that the scores of a group depend on."""
        return digest_of(_specification(scenario), group, self.code)

    def finished(self) -> dict[str, str]:
        """Return the scores of all finished groups with the current code as JSON, by key."""
        with self.open() as connection:
            return dict(
                connection.execute("SELECT key, scores FROM scenarios WHERE code = ?", (self.code,))
            )

    def rows(self, plan: Plan) -> list[Row]:
        """Return the finished scores of a plan, each with its scenario."""
        finished = self.finished()
        return [
            (scenario, _score_of(values))
            for scenario in plan.scenarios
            for group in plan.groups_of(scenario)
            for values in json.loads(finished.get(self.key_of(scenario, group), "[]"))
        ]

    def add(self, scenario: Scenario, scores: dict[str, list[Score]], machine: str) -> None:
        """Write the scores of all groups of a scenario in one transaction."""
        specification = _specification(scenario)
        rows = []
        for group, group_scores in scores.items():
            values = [
                [v if isinstance(v, str) or np.isfinite(v) else None for v in astuple(score)]
                for score in group_scores
            ]
            key, text = self.key_of(scenario, group), json.dumps(values)
            rows.append((key, self.code, specification, text, machine))
        self.write("scenarios", rows)

    def machines(self) -> list[str]:
        """Return the machines that computed scores with the current code."""
        with self.open() as connection:
            rows = connection.execute(
                "SELECT DISTINCT machine FROM scenarios WHERE code = ?", (self.code,)
            )
            return sorted(machine for (machine,) in rows)


def _score_of(values: list[Any]) -> Score:
    """Return a score of its values, with None for NaN."""
    numbers: list[Any] = [np.nan if value is None else value for value in values]
    return Score(*numbers)


def _specification(scenario: Scenario) -> str:
    return json.dumps(asdict(scenario), sort_keys=True)


@dataclass(frozen=True)
class Study:
    """A study: which scenarios, which methods, and which tables."""

    name: str  # of the folder of its results
    title: str  # of the page
    lead: str  # the first paragraph of the page
    plan: Callable[..., Plan]
    draw: Draw
    groups: Groups
    outcomes: Callable[[Sequence[Row]], list[Outcome]]  # tables and figures of a run
    code: tuple[str, ...]  # files of this folder that scores depend on, besides their imports
    floor: float = 0.0  # share of the mean squared norm of held-back samples, added to all errors

    def open_store(self, path: str | Path) -> ScenarioStore:
        """Open the store of the scores of this study."""
        return ScenarioStore(path, self.code)

    def score(
        self, data: Data, groups: Iterable[str], device: str | None = None
    ) -> dict[str, list[Score]]:
        """Score all methods of groups on the data of a scenario; return the scores by group."""
        with warnings.catch_warnings(action="ignore"):  # collapse and failures show in the tables
            judge = Judge(data, self.floor, device)
            return {group: list(self.groups[group](judge)) for group in groups}

    def run(
        self,
        plan: Plan,
        store: ScenarioStore,
        *,
        jobs: int = 1,
        data_dir: DataDir = None,
        device: str | None = None,
        progress: Progress = lambda what, done, total: None,
    ) -> None:
        """Score the unfinished scenarios of a plan; write each to the store when it is finished."""
        finished = store.finished()
        unfinished = {
            scenario: groups
            for scenario in plan.scenarios
            if (groups := [g for g in plan.groups_of(scenario)
                           if store.key_of(scenario, g) not in finished])
        }  # fmt: skip
        total, machine = len(plan.scenarios), machine_of(device)
        done = total - len(unfinished)
        progress("", done, total)
        with parallel_config(
            "loky", n_jobs=jobs, inner_max_num_threads=1, idle_worker_timeout=IDLE_SECONDS
        ):
            results = Parallel(return_as="generator_unordered", pre_dispatch="4*n_jobs")(
                delayed(self._score_scenario)(scenario, groups, data_dir, device)
                for scenario, groups in unfinished.items()
            )
            for scenario, scores in results:
                store.add(scenario, scores, machine)
                done += 1
                progress(f"{scenario.dataset}, {scenario.corruption}", done, total)

    def _score_scenario(
        self, scenario: Scenario, groups: Iterable[str], data_dir: DataDir, device: str | None
    ) -> tuple[Scenario, dict[str, list[Score]]]:
        return scenario, self.score(self.draw(scenario, data_dir), groups, device)
