"""The benchmark: every scenario, as far as it is not finished, on all cores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from joblib import Parallel, delayed, parallel_config

from robustnmf.corruptions import CORRUPTIONS
from robustnmf.experiments.contamination.methods import GROUPS, Score, scored
from robustnmf.experiments.contamination.scenario import SYNTHETIC, Scenario
from robustnmf.experiments.contamination.store import ScenarioStore, key_of
from robustnmf.experiments.reproduce import is_here
from robustnmf.experiments.trial import IDLE_SECONDS, machine_of

DATASETS = ("digits", "wdbc", "orl", SYNTHETIC, "gtfd", "yale", "page_blocks", "thyroid")
SHARES = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4)
SEEDS = tuple(range(10))
TUNED_DATASETS, TUNED_SEEDS = ("digits", "wdbc", "orl"), tuple(range(5))
"""What the rules were found on; all else is held out."""

QUICK = {
    "datasets": ("digits", "wdbc", SYNTHETIC), "shares": (0.0, 0.1, 0.3), "seeds": (0, 5),
    "groups": ("methods", "detectors"),
}  # fmt: skip

Progress = Callable[[str, int, int], None]
"""Told what has just been finished, and how many scenarios of how many are done."""


@dataclass(frozen=True)
class Plan:
    """The scenarios of a run, and the groups of methods that are judged by them."""

    scenarios: tuple[Scenario, ...]
    groups: tuple[str, ...]
    missing: tuple[str, ...] = ()
    quick: bool = False


def plan(
    datasets: Sequence[str] = (),
    corruptions: Sequence[str] = (),
    seeds: int | None = None,
    *,
    quick: bool = False,
    grids: bool = True,
    data_dir: Any = None,
) -> Plan:
    """What to run: all that data are here for, unless some of it is named."""
    settings = QUICK if quick else {}
    asked = tuple(dict.fromkeys(datasets)) or settings.get("datasets", DATASETS)
    for name, known in ((asked, DATASETS), (corruptions, CORRUPTIONS)):
        unknown = [n for n in name if n not in known]
        if unknown:
            raise ValueError(f"{unknown[0]!r} is none of {', '.join(known)}.")
    here = tuple(n for n in asked if n == SYNTHETIC or is_here(n, data_dir))
    missing = tuple(n for n in asked if n not in here)
    if datasets and missing:
        raise ValueError(
            f"there are no data of {missing[0]} here. robustnmf datasets says where to get them."
        )
    kinds = tuple(dict.fromkeys(corruptions)) or tuple(CORRUPTIONS)
    draws = settings.get("seeds", SEEDS) if seeds is None else tuple(range(seeds))
    shares = settings.get("shares", SHARES)
    # Seed by seed, so that a run that is cut short has seen all datasets.
    scenarios = tuple(
        Scenario(name, kind, share, seed)
        for seed, name, share in product(draws, here, shares)
        for kind in (kinds if share else kinds[:1])
    )
    groups = settings.get("groups", tuple(GROUPS))
    groups = tuple(group for group in groups if grids or group != "grids")
    return Plan(scenarios, groups, missing, quick)


def run(
    wanted: Plan,
    store: ScenarioStore,
    *,
    jobs: int = 1,
    data_dir: Any = None,
    device: str | None = None,
    progress: Progress = lambda what, done, total: None,
) -> None:
    """Judge what is not finished; each scenario is written as it ends."""
    known = store.known()
    open_groups = {
        scenario: tuple(g for g in wanted.groups if key_of(scenario, g) not in known)
        for scenario in wanted.scenarios
    }
    left = [scenario for scenario, groups in open_groups.items() if groups]
    total, machine = len(wanted.scenarios), machine_of(device)
    done = total - len(left)
    progress("", done, total)
    with parallel_config(
        "loky", n_jobs=jobs, inner_max_num_threads=1, idle_worker_timeout=IDLE_SECONDS
    ):
        results = Parallel(return_as="generator_unordered", pre_dispatch="4*n_jobs")(
            delayed(_judged)(scenario, open_groups[scenario], data_dir, device) for scenario in left
        )
        for scenario, found in results:
            store.add(scenario, found, machine)
            done += 1
            progress(f"{scenario.dataset}, {scenario.corruption}", done, total)


def _judged(
    scenario: Scenario, groups: tuple[str, ...], data_dir: Any, device: str | None
) -> tuple[Scenario, dict[str, list[Score]]]:
    return scenario, scored(scenario.data(data_dir), groups, device)
