"""Run your own estimators in the benchmark of corrupted samples and compare them with this library.

:func:`run` corrupts a share of the samples of tables, fits every estimator to them, and scores the
``components_`` by how well they describe held-out clean samples.
"""

from __future__ import annotations

import math
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cached_property, partial
from os import PathLike
from pathlib import Path
from typing import Any

from robustnmf._version import __version__
from robustnmf.exceptions import warn
from robustnmf.experiments.contamination.cells import failures
from robustnmf.experiments.contamination.sample_methods import OURS, PLAIN, SCIKIT, score_estimators
from robustnmf.experiments.contamination.samples import SAMPLES, outcomes
from robustnmf.experiments.contamination.study import Row
from robustnmf.experiments.outcome import Outcome

__all__ = ["BenchmarkResult", "run"]

KNOWN = (OURS, PLAIN, SCIKIT)
"""Methods that are part of every run."""

GROUP = "estimators"
"""Name of the group of the user's estimators."""


@dataclass(frozen=True)
class BenchmarkResult:
    """Scores of a run of the benchmark.

    Attributes
    ----------
    rows : list of (Scenario, Score)
        Every score with its table, corruption, share, seed and rank.
    run_record : dict
        Date, version and settings of the run.
    """

    rows: Sequence[Row]
    run_record: dict[str, Any]

    @cached_property
    def outcomes(self) -> list[Outcome]:
        """The tables and charts of the benchmark."""
        return outcomes(self.rows, list(self.run_record["estimators"]))

    @property
    def scores(self) -> list[dict[str, Any]]:
        """Every score as a dict of plain values, for a data frame."""
        return [{**asdict(scenario), **asdict(score)} for scenario, score in self.rows]

    def mean_errors(self) -> dict[str, float]:
        """Return the mean relative error of every method over all its scenarios.

        Returns
        -------
        errors : dict of float
            Errors by method, the best first. 1 is the error of plain NMF fitted to the clean
            samples; NaN is a method that failed in all scenarios.
        """
        errors: dict[str, list[float]] = {}
        for _, score in self.rows:
            if score.relative_error == score.relative_error:  # not NaN
                errors.setdefault(score.method, []).append(score.relative_error)
        means = {method: sum(values) / len(values) for method, values in errors.items()}
        failed = {score.method for _, score in self.rows if score.failure} - set(means)
        ordered = dict(sorted(means.items(), key=lambda pair: pair[1]))
        return ordered | dict.fromkeys(sorted(failed), math.nan)

    def write(self, folder: str | PathLike) -> list[Path]:
        """Write the page, tables (CSV, Markdown), figures and all scores to a folder.

        Parameters
        ----------
        folder : path
            Created if it does not exist. Needs the extra ``robustnmf[cli]``.

        Returns
        -------
        paths : list of Path
            The page first.
        """
        from robustnmf.experiments.pages import write_benchmark

        return write_benchmark(self.rows, self.outcomes, self.run_record, Path(folder), SAMPLES)


def run(
    estimators: Mapping[str, Any],
    *,
    datasets: Sequence[str] = (),
    corruptions: Sequence[str] = (),
    shares: Sequence[float] = (),
    seeds: int | None = None,
    quick: bool = True,
    groups: Sequence[str] = ("methods",),
    match_rank: bool = True,
    jobs: int = 1,
    data_dir: str | PathLike | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> BenchmarkResult:
    """Compare estimators with RobustNMF and plain NMF in the benchmark of corrupted samples.

    Parameters
    ----------
    estimators : dict of estimators
        Estimators by their name in the tables. Each needs ``fit(X)``, which sets nonnegative
        ``components_`` (n_components, n_features), and ``get_params`` and ``set_params`` of
        scikit-learn's ``BaseEstimator``, because it is cloned. Estimators with
        ``sample_importances_`` (n_samples,) are included in the table of lost samples. If ``fit``
        raises an error, or components are negative or not finite, a warning is issued, and the
        tables leave out the scenario for this estimator.
    datasets : sequence of str, optional
        Tables: "digits", "iris" and generated ones ("synthetic", "three_clusters", "counts", ...)
        need no files. The default is a few tables with ``quick``, else all on this machine.
    corruptions : sequence of str, optional
        Ways to corrupt samples, see :func:`robustnmf.corruptions.spoil`. The default is a few with
        ``quick``, else all.
    shares : sequence of float, optional
        Shares of corrupted samples; 0 is the clean table at several ranks. By default up to 40%.
    seeds : int, optional
        Number of draws of each table; by default two with ``quick``, else ten.
    quick : bool, default=True
        Use small tables and few corruptions by default: minutes instead of hours.
    groups : sequence of str, default=("methods",)
        Methods of this library to compare with: "methods" (always), "two_step", "paper", "grids",
        "detectors".
    match_rank : bool, default=True
        Set ``n_components`` of the estimators to the rank of the table, so that all methods learn
        the same number of components. Otherwise they are used as given.
    jobs : int, default=1
        Number of processes; with several, estimators are pickled.
    data_dir : path, optional
        Folder of the .npz files of datasets; the environment variable ROBUSTNMF_DATA by default.
    progress : callable, optional
        Called with a description, the number of finished scenarios and their total.

    Returns
    -------
    result : BenchmarkResult

    Examples
    --------
    >>> from sklearn.decomposition import NMF
    >>> from robustnmf import benchmark
    >>> result = benchmark.run(
    ...     {"random start": NMF(init="random", random_state=0)},
    ...     datasets=["three_clusters"], corruptions=["noise"], shares=[0.2], seeds=1,
    ... )
    >>> errors = result.mean_errors()
    >>> bool(errors["RobustNMF"] < errors["random start"])
    True
    """
    _check(estimators)
    for name, value in (("datasets", datasets), ("corruptions", corruptions), ("groups", groups)):
        if isinstance(value, str):
            raise TypeError(f"{name} is {value!r}, but a list of names is needed: [{value!r}].")
    if seeds is not None and (isinstance(seeds, bool) or seeds < 1):
        raise ValueError(f"seeds is {seeds!r}, but a number of draws (1 or more) is needed.")
    begin = time.perf_counter()
    methods = tuple(dict.fromkeys(("methods", *groups)))
    own = partial(score_estimators, estimators=dict(estimators), match_rank=match_rank)
    study = replace(SAMPLES, groups={**SAMPLES.groups, GROUP: own})
    plan = study.plan(
        datasets, corruptions, seeds, quick=quick, groups=methods, shares=shares, data_dir=data_dir
    )
    plan = replace(plan, groups=(*plan.groups, GROUP))
    # Use a temporary store: the version of the library does not identify the user's code.
    with tempfile.TemporaryDirectory() as folder:
        store = study.open_store(Path(folder) / "scenarios.sqlite")
        study.run(
            plan, store, jobs=jobs, data_dir=data_dir,
            progress=progress or (lambda what, done, total: None),
        )  # fmt: skip
        rows = store.rows(plan)
        machines = store.machines()
    _check_names(rows, estimators)
    for text in failures([row for row in rows if row[1].method in estimators]):
        warn(text, UserWarning)
    record = {
        "date": datetime.now(UTC).date().isoformat(),
        "robustnmf": __version__,
        "estimators": {name: repr(estimator) for name, estimator in estimators.items()},
        "scenarios": len(plan.scenarios),
        "groups": list(plan.groups),
        "quick": quick,
        "match_rank": match_rank,
        "seconds": round(time.perf_counter() - begin, 1),
        "fitted_on": machines,
        "left_out": list(plan.missing),
    }
    return BenchmarkResult(rows, record)


def _check_names(rows: list[Row], estimators: Mapping[str, Any]) -> None:
    """Refuse the name of a method of the chosen groups, because scores would be mixed."""
    counts = Counter((scenario, score.method) for scenario, score in rows)
    for (_, name), count in counts.items():
        if count > 1 and name in estimators:
            raise ValueError(f"{name!r} is a method of the chosen groups. Use another name.")


def _check(estimators: Mapping[str, Any]) -> None:
    """Refuse estimators without names or ``fit``, and names of methods of the benchmark."""
    if not isinstance(estimators, Mapping) or not estimators:
        raise ValueError(
            f"estimators is {estimators!r}, but a dict of at least one estimator is needed, for "
            "example {'mine': MyNMF(10)}."
        )
    for name, estimator in estimators.items():
        if name in KNOWN:
            raise ValueError(f"{name!r} is a method of the benchmark already. Use another name.")
        for method in ("fit", "get_params", "set_params"):
            if isinstance(estimator, type) or not hasattr(estimator, method):
                raise TypeError(
                    f"estimators[{name!r}] is {estimator!r}, but an instance with fit, get_params "
                    "and set_params is needed. Derive it from sklearn.base.BaseEstimator."
                )
