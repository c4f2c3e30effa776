"""Plan the scenarios of the benchmark, and run those that are not finished."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed, parallel_config

from robustnmf.corruptions import CORRUPTIONS
from robustnmf.datasets._base import DataDir
from robustnmf.experiments.contamination.generated import GENERATED, SYNTHETIC
from robustnmf.experiments.contamination.judge import Score
from robustnmf.experiments.contamination.methods import GROUPS, score_groups
from robustnmf.experiments.contamination.scenario import EMBEDDED, IRIS, Scenario, ranks_of
from robustnmf.experiments.contamination.store import ScenarioStore
from robustnmf.experiments.reproduce import is_available as is_dataset_available
from robustnmf.experiments.trial import IDLE_SECONDS, machine_of

DATASETS = (
    "digits", "wdbc", "orl", SYNTHETIC, "gtfd", "yale", "page_blocks", "thyroid", IRIS,
    *(name for name in GENERATED if name != SYNTHETIC),
)  # fmt: skip
SHARES = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4)
SEEDS = tuple(range(10))
TUNED_DATASETS = (
    "digits", "wdbc", "orl", "two_clusters", "three_clusters", "few_clusters", IRIS,
)  # fmt: skip
TUNED_SEEDS = tuple(range(5))
"""Tables and seeds that the rules of the library were derived from; all others are held out."""

MINORITY = ("small_cluster", "noise", 0.15)
"""Dataset, corruption and share of one more scenario: a cluster that is as small as the noise."""

QUICK = {
    "datasets": ("digits", "wdbc", SYNTHETIC, "three_clusters", IRIS),
    "corruptions": ("noise", "occluded", "foreign", "repeated"),
    "shares": (0.0, 0.1, 0.3), "seeds": (0, 5), "groups": ("methods", "two_step", "detectors"),
}  # fmt: skip

Progress = Callable[[str, int, int], None]
"""Called with a description of the last scenario, the number of finished ones, and the total."""

ScoreGroups = Callable[[Any, tuple[str, ...], str | None], dict[str, list[Score]]]
"""Scores all methods of groups on the data of a scenario; called with the data and a device."""


@dataclass(frozen=True)
class Plan:
    """The scenarios of a run, and the groups of methods that are scored in them."""

    scenarios: tuple[Scenario, ...]
    groups: tuple[str, ...]
    missing: tuple[str, ...] = ()
    quick: bool = False

    def groups_of(self, scenario: Scenario) -> tuple[str, ...]:
        """Return the groups of a scenario; detectors only run at the default rank of a table."""
        return tuple(g for g in self.groups if g != "detectors" or not scenario.rank)


def plan(
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
    """Plan a run; by default of all datasets whose data are on this machine."""
    settings: dict[str, Any] = QUICK if quick else {}
    names = tuple(dict.fromkeys(datasets)) or settings.get("datasets", DATASETS)
    methods = tuple(dict.fromkeys(groups)) or settings.get("groups", tuple(GROUPS))
    for requests, valid in ((names, DATASETS), (corruptions, CORRUPTIONS), (methods, GROUPS)):
        check_names(requests, valid)
    available, missing = find_tables(names, data_dir, required=bool(datasets))
    kinds = tuple(dict.fromkeys(corruptions)) or settings.get("corruptions", tuple(CORRUPTIONS))
    draws = settings.get("seeds", SEEDS) if seeds is None else tuple(range(seeds))
    levels = tuple(dict.fromkeys(shares)) or settings.get("shares", SHARES)
    for share in levels:
        if not 0 <= share < 1:
            raise ValueError(f"a share of bad samples is {share!r}, but 0 <= share < 1 is needed.")
    ranks = {name: ranks_of(name, data_dir) for name in available}
    # Seeds are the outer loop, so that an interrupted run has results of all datasets.
    scenarios = tuple(
        scenario
        for seed in draws
        for name in available
        for scenario in _scenarios(name, seed, kinds, levels, ranks[name])
    )
    methods = tuple(group for group in methods if grids or group != "grids")
    return Plan(scenarios, methods, missing, quick)


def open_store(path: str | Path) -> ScenarioStore:
    """Open the store of the scores of this benchmark."""
    return ScenarioStore(path)


def check_names(names: Iterable[str], valid: Collection[str]) -> None:
    """Refuse names that are not valid."""
    for name in names:
        if name not in valid:
            raise ValueError(f"{name!r} is not one of {', '.join(valid)}.")


def find_tables(
    names: Iterable[str], data_dir: DataDir, *, required: bool
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Split tables into available and missing tables; refuse missing tables that are required."""
    names = tuple(names)
    available = tuple(name for name in names if is_available(name, data_dir))
    missing = tuple(name for name in names if name not in available)
    if required and missing:
        raise ValueError(
            f"the data of {missing[0]} are not on this machine. Run robustnmf datasets to see "
            "where to get them."
        )
    return available, missing


def is_available(dataset: str, data_dir: DataDir = None) -> bool:
    """Return whether a table needs no file or its file is on this machine."""
    return dataset in EMBEDDED or is_dataset_available(dataset, data_dir)


def _scenarios(
    dataset: str,
    seed: int,
    kinds: tuple[str, ...],
    shares: tuple[float, ...],
    ranks: tuple[int, ...],
) -> Iterator[Scenario]:
    """Yield the clean table at every rank, then every corruption at the default rank."""
    for share in shares:
        if not share:
            for rank in ranks:
                yield Scenario(dataset, kinds[0], share, seed, rank)
            continue
        for kind in kinds:
            yield Scenario(dataset, kind, share, seed)
    if dataset == MINORITY[0] and MINORITY[1] in kinds:
        yield Scenario(*MINORITY, seed)


def run(
    run_plan: Plan,
    store: ScenarioStore,
    *,
    jobs: int = 1,
    data_dir: DataDir = None,
    device: str | None = None,
    progress: Progress = lambda what, done, total: None,
    score: ScoreGroups = score_groups,
) -> None:
    """Score the unfinished scenarios of a plan; write each to the store when it is finished."""
    finished = store.finished_keys()
    missing_groups = {
        scenario: tuple(
            group
            for group in run_plan.groups_of(scenario)
            if store.key_of(scenario, group) not in finished
        )
        for scenario in run_plan.scenarios
    }
    unfinished = [scenario for scenario, groups in missing_groups.items() if groups]
    total, machine = len(run_plan.scenarios), machine_of(device)
    done = total - len(unfinished)
    progress("", done, total)
    with parallel_config(
        "loky", n_jobs=jobs, inner_max_num_threads=1, idle_worker_timeout=IDLE_SECONDS
    ):
        results = Parallel(return_as="generator_unordered", pre_dispatch="4*n_jobs")(
            delayed(_score_scenario)(scenario, missing_groups[scenario], data_dir, device, score)
            for scenario in unfinished
        )
        for scenario, scores in results:
            store.add(scenario, scores, machine)
            done += 1
            progress(f"{scenario.dataset}, {scenario.corruption}", done, total)


def _score_scenario(
    scenario: Scenario,
    groups: tuple[str, ...],
    data_dir: DataDir,
    device: str | None,
    score: ScoreGroups,
) -> tuple[Scenario, dict[str, list[Score]]]:
    return scenario, score(scenario.data(data_dir), groups, device)
