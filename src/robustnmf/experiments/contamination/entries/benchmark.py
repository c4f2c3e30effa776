"""Plan the scenarios of the benchmark of bad entries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from robustnmf.corruptions import ENTRY_CORRUPTIONS
from robustnmf.datasets._base import DataDir
from robustnmf.experiments.contamination.benchmark import Plan, check_names, find_tables
from robustnmf.experiments.contamination.entries.methods import GROUPS, score_groups
from robustnmf.experiments.contamination.entries.scenario import EntryScenario
from robustnmf.experiments.contamination.generated import SYNTHETIC
from robustnmf.experiments.contamination.scenario import IRIS
from robustnmf.experiments.contamination.store import ScenarioStore

DATASETS = (
    "digits", "wdbc", "orl", SYNTHETIC, "gtfd", "yale", "page_blocks", IRIS, "two_clusters",
    "three_clusters", "mixed_clusters",
)  # fmt: skip
SHARES: dict[str, tuple[float, ...]] = {
    "extreme": (0.05, 0.1, 0.2),
    "large": (0.05, 0.1, 0.2),
    "covered": (0.1, 0.2, 0.3, 0.4),
    "mixed": (0.1,),
    "missing": (0.1,),
}
"""Shares of bad entries by corruption; shares of bad samples for covered blocks."""

SEEDS = tuple(range(6))
TUNED_DATASETS = ("digits", "wdbc", "orl", IRIS, "two_clusters", "three_clusters")
TUNED_SEEDS = tuple(range(3))
"""Tables and seeds that the rules of the library are derived from; all others are held out."""

QUICK: dict[str, Any] = {
    "datasets": ("digits", "wdbc", SYNTHETIC), "seeds": (0, 3),
    "shares": {"extreme": (0.1,), "large": (0.1,), "covered": (0.2,), "mixed": (0.1,),
               "missing": (0.1,)},
    "groups": ("methods", "two_step", "peers"),
}  # fmt: skip

__all__ = ["open_store", "plan", "score_groups"]

CODE = ("contamination/entries/methods.py", "contamination/entries/scenario.py")
"""Files of experiments that scores depend on, besides their imports."""


def open_store(path: str | Path) -> ScenarioStore:
    """Open the store of the scores of this benchmark."""
    return ScenarioStore(path, CODE)


def plan(
    datasets: Sequence[str] = (),
    corruptions: Sequence[str] = (),
    seeds: int | None = None,
    *,
    quick: bool = False,
    grids: bool = True,
    groups: Sequence[str] = (),
    data_dir: DataDir = None,
) -> Plan:
    """Plan a run; by default of all datasets whose data are on this machine."""
    settings = QUICK if quick else {}
    names = tuple(dict.fromkeys(datasets)) or settings.get("datasets", DATASETS)
    methods = tuple(dict.fromkeys(groups)) or settings.get("groups", tuple(GROUPS))
    shares = settings.get("shares", SHARES)
    kinds = tuple(dict.fromkeys(corruptions)) or tuple(shares)
    for requests, valid in ((names, DATASETS), (kinds, ENTRY_CORRUPTIONS), (methods, GROUPS)):
        check_names(requests, valid)
    available, missing = find_tables(names, data_dir, required=bool(datasets))
    draws = settings.get("seeds", SEEDS) if seeds is None else tuple(range(seeds))
    # Seeds are the outer loop, so that an interrupted run has results of all datasets.
    scenarios = tuple(
        scenario
        for seed in draws
        for name in available
        for scenario in _scenarios(name, seed, {kind: shares[kind] for kind in kinds})
    )
    methods = tuple(group for group in methods if grids or group != "grids")
    return Plan(scenarios, methods, missing, quick)


def _scenarios(
    dataset: str, seed: int, shares: Mapping[str, tuple[float, ...]]
) -> Iterator[EntryScenario]:
    """Yield the clean table, then every corruption with every share."""
    yield EntryScenario(dataset, next(iter(shares)), 0.0, seed)
    for kind, kind_shares in shares.items():
        for share in kind_shares:
            yield EntryScenario(dataset, kind, share, seed)
