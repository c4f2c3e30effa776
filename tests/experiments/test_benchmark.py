"""Estimators of users in the benchmark of bad samples."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.decomposition import NMF

from robustnmf import RobustNMF, benchmark

SMALL = {
    "datasets": ["few_samples"], "corruptions": ["noise"], "shares": [0.2], "seeds": 1,
}  # fmt: skip


class Means(BaseEstimator):
    """Components that are means of the samples; one that raises if asked to."""

    def __init__(self, rows=2, error=None):
        self.rows = rows
        self.error = error

    def fit(self, X, y=None):
        if self.error is not None:
            raise self.error("on purpose")
        self.components_ = np.stack([part.mean(axis=0) for part in np.array_split(X, self.rows)])
        return self


class Wrong(Means):
    def fit(self, X, y=None):
        self.components_ = np.ones((2, X.shape[1] + 1))
        return self


class Constant(BaseEstimator):
    """Components that hold one value."""

    def __init__(self, value):
        self.value = value

    def fit(self, X, y=None):
        self.components_ = np.full((2, X.shape[1]), self.value)
        return self


class Weighing(Means):
    """Importances of a given number of samples."""

    def __init__(self, rows=2, error=None, count=5):
        super().__init__(rows, error)
        self.count = count

    def fit(self, X, y=None):
        self.sample_importances_ = np.full(self.count, 1 / self.count)
        return super().fit(X)


def test_any_estimator_is_scored_beside_ours():
    calls = []
    result = benchmark.run(
        {"means": Means(), "sklearn": NMF(7, init="nndsvda", random_state=0)},
        progress=lambda *call: calls.append(call),
        **SMALL,
    )
    errors = result.mean_errors()
    assert set(errors) == {"RobustNMF", "EucNMF", "scikit-learn NMF", "means", "sklearn"}
    # With the rank of the table set, scikit-learn's NMF is the one that is in every run.
    assert errors["sklearn"] == errors["scikit-learn NMF"]
    assert errors["RobustNMF"] < errors["means"]
    assert calls[-1][1:] == (1, 1)
    assert {row["method"] for row in result.scores} == set(errors)
    assert result.run_record["estimators"]["means"] == "Means()"
    texts = [cell.text for o in result.outcomes for g in o.grids for row in g.rows for cell in row]
    assert "means" in texts
    (cells,) = (outcome for outcome in result.outcomes if outcome.key == "cells")
    assert {"means", "sklearn"} <= set(cells.grids[0].header)
    assert {len(row) for row in cells.grids[0].rows} == {len(cells.grids[0].header)}


def test_ranks_are_left_alone_on_request():
    own = NMF(2, init="nndsvda", random_state=0)
    one = benchmark.run({"own": own}, match_rank=False, **SMALL).mean_errors()
    assert one["own"] != one["scikit-learn NMF"]
    assert own.n_components == 2


def test_importances_are_scored():
    result = benchmark.run({"huber": RobustNMF(weighting="cauchy", random_state=0)}, **SMALL)
    lost = [row["lost"] for row in result.scores if row["method"] == "huber"]
    assert np.isfinite(lost).all()
    shares = [row["effective_share"] for row in result.scores if row["method"] == "huber"]
    assert all(0 < share <= 1 for share in shares)


@pytest.mark.parametrize(
    ("estimator", "text"),
    [
        (Means(error=ValueError), "on purpose"),
        (Means(error=RuntimeError), "RuntimeError: on purpose"),
        (Wrong(), "has shape"),
        (Constant(-1.0), "negative values, NaN"),
        (Constant(np.nan), "negative values, NaN"),
        (Weighing(), "sample_importances_ of 'mine' has shape (5,), but (n_samples,), here ("),
    ],
)
def test_failures_are_reported_and_the_run_goes_on(estimator, text):
    with pytest.warns(UserWarning, match="mine failed in 1 of 1 scenarios") as record:
        result = benchmark.run({"mine": estimator, "means": Means()}, **SMALL)
    (warning,) = record
    assert text in str(warning.message)
    errors = result.mean_errors()
    assert list(errors)[-1] == "mine"
    assert np.isnan(errors["mine"])
    assert np.isfinite(errors["means"])
    (failure,) = (row["failure"] for row in result.scores if row["method"] == "mine")
    assert text in failure
    assert any(text in note for outcome in result.outcomes for note in outcome.notes)


def test_files_are_those_of_the_benchmark(tmp_path):
    pytest.importorskip("plotly", reason="plotly is not installed")
    paths = benchmark.run({"means": Means()}, **SMALL).write(tmp_path / "out")
    assert paths[0].name == "report.html"
    assert "means" in (tmp_path / "out" / "tables.md").read_text()
    assert {"scores.csv", "run.json"} <= {path.name for path in paths}


@pytest.mark.parametrize(
    ("estimators", "error", "text"),
    [
        ({}, ValueError, "at least one estimator"),
        ([Means()], ValueError, "at least one estimator"),
        ({"RobustNMF": Means()}, ValueError, "Use another name"),
        ({"mine": Means}, TypeError, "an instance with fit"),
        ({"mine": object()}, TypeError, "an instance with fit"),
    ],
)
def test_bad_estimators_are_refused(estimators, error, text):
    with pytest.raises(error, match=text):
        benchmark.run(estimators, **SMALL)


def test_bad_shares_are_refused():
    with pytest.raises(ValueError, match="0 <= share < 1 is needed"):
        benchmark.run({"mine": Means()}, **{**SMALL, "shares": [1.5]})


def test_names_of_chosen_groups_and_single_names_are_refused():
    mine = {"IsolationForest, plain NMF": NMF(3, random_state=0)}
    options = {"datasets": ["iris"], "corruptions": ["noise"], "shares": [0.2], "seeds": 1}
    with pytest.raises(ValueError, match="a method of the chosen groups"):
        benchmark.run(mine, groups=["two_step"], **options)
    with pytest.raises(TypeError, match="a list of names"):
        benchmark.run({"mine": NMF(3)}, datasets="iris")
    with pytest.raises(ValueError, match="number of draws"):
        benchmark.run({"mine": NMF(3)}, seeds=0)
