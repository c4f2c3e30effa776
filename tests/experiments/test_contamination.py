"""Scenarios, scores, baselines and runs of the contamination benchmark."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from robustnmf import RobustNMFDetector
from robustnmf.cli import main
from robustnmf.corruptions import CORRUPTIONS
from robustnmf.experiments.contamination import STUDIES
from robustnmf.experiments.contamination.first_steps import (
    DETECTORS,
    FACTOR,
    FOREST,
    OUR_DETECTOR,
    outside_fences,
)
from robustnmf.experiments.contamination.generated import FEW, GENERATED, VERY_FEW
from robustnmf.experiments.contamination.generated import SAMPLES as GENERATED_SAMPLES
from robustnmf.experiments.contamination.judge import Detection, Judge, plain_basis
from robustnmf.experiments.contamination.sample_methods import (
    FACTOR_FIRST,
    FENCES_FIRST,
    FOREST_FIRST,
    GROUPS,
    ORACLE_FIRST,
    TWO_STEP,
)
from robustnmf.experiments.contamination.samples import FULL, MINORITY, QUICK, SAMPLES, scenarios
from robustnmf.experiments.contamination.scenario import (
    Data,
    Scenario,
    draw_samples,
    ranks_of,
    table_of,
)
from robustnmf.experiments.contamination.study import Plan, plan_scope
from robustnmf.experiments.database import StoreError
from tests.problems import needs_cli, noisy_low_rank

SMALL = Scenario("wdbc", "noise", 0.2, 0)


@pytest.mark.parametrize("kind", CORRUPTIONS)
@pytest.mark.parametrize("dataset", ["digits", "wdbc", "synthetic"])
def test_the_samples_held_back_are_clean_and_the_same_for_all_shares(dataset, kind):
    clean, corrupted = (draw_samples(Scenario(dataset, kind, share, 3)) for share in (0.0, 0.3))
    np.testing.assert_array_equal(clean.held_back, corrupted.held_back)
    np.testing.assert_array_equal(clean.dirty[~corrupted.bad], corrupted.clean)
    assert corrupted.bad.mean() == pytest.approx(0.3, abs=0.01)
    assert np.isfinite(corrupted.dirty).all()
    assert corrupted.dirty.min() >= 0
    changed = np.any(clean.dirty != corrupted.dirty, axis=1)
    np.testing.assert_array_equal(changed, corrupted.bad)


@pytest.mark.parametrize("name", GENERATED)
def test_generated_tables_are_nonnegative_and_reproducible_by_seed(name):
    table, again, other = (table_of(name, seed) for seed in (4, 4, 5))
    assert len(table.X) == {"few_clusters": VERY_FEW, "few_samples": FEW}.get(
        name, GENERATED_SAMPLES
    )
    assert np.isfinite(table.X).all()
    assert table.X.min() >= 0
    assert table.X.any(axis=1).all()
    assert table.parts is None or table.parts.shape[1] == table.X.shape[1]
    np.testing.assert_array_equal(table.X, again.X)
    assert not np.array_equal(table.X, other.X)


def test_clusters_have_the_sizes_of_their_shares():
    X = table_of("three_clusters", 0).X
    largest = X.reshape(len(X), 3, 10).sum(axis=2).argmax(axis=1)
    np.testing.assert_array_equal(np.bincount(largest), [90, 270, 540])


@pytest.mark.parametrize(
    ("name", "ranks"),
    [("iris", (0, 2)), ("three_clusters", (0, 2, 5, 10, 20)), ("counts", (0, 2, 5, 10, 20, 40)),
     ("synthetic", (0, 2, 5, 20, 40))],
)  # fmt: skip
def test_clean_tables_are_fitted_at_the_ranks_that_fit(name, ranks):
    assert ranks_of(name) == ranks
    own, other = (draw_samples(Scenario(name, "noise", 0.0, 0, rank)) for rank in (0, ranks[1]))
    assert own.rank == table_of(name, 0).rank
    assert other.rank == ranks[1]
    np.testing.assert_array_equal(own.dirty, other.dirty)
    assert max(own.rank, *ranks) <= min(2 * own.dirty.shape[1] / 3 + 1, len(own.dirty) / 2)


def test_scores_mean_what_they_say():
    data = draw_samples(Scenario("synthetic", "noise", 0.0, 1))
    judge = Judge(data)
    assert data.rank == len(data.parts) == 10
    perfect = judge.basis("truth", data.parts)
    assert perfect.parts_distance == pytest.approx(0.0, abs=1e-12)
    assert perfect.relative_error == pytest.approx(1.0, abs=0.1)
    assert np.isnan(perfect.auroc)
    reference = judge.basis("reference", judge.reference_basis)
    assert reference.relative_error == reference.geometric_error == 1.0
    data = draw_samples(SMALL)
    assert Judge(data).ranking(data.bad.astype(float))["auroc"] == 1.0


def test_the_geometric_error_is_that_of_the_typical_sample():
    judge = Judge(draw_samples(SMALL))
    errors = judge._reference_errors.copy()
    errors[0] *= 1e6
    assert judge.relative_error(errors) > 100
    assert judge.geometric_error(errors) == pytest.approx(1e6 ** (1 / len(errors)))
    # Errors of nothing, as where features are few, are no infinite gain.
    assert judge.geometric_error(0 * errors) > 1e-6


def test_lost_samples_are_good_ones_without_weight():
    data = replace(draw_samples(SMALL), rank=2)
    judge = Judge(data)
    importances = np.where(data.bad, 0.0, 1.0)
    assert judge.without_weight(importances / importances.sum()) == 0.0
    importances[np.flatnonzero(~data.bad)[:30]] = 0.01
    lost = judge.without_weight(importances / importances.sum())
    assert lost == pytest.approx(30 / np.sum(~data.bad))


def test_robust_components_are_better_than_plain_ones_and_bad_samples_are_found():
    groups = SAMPLES.score(draw_samples(SMALL), ("methods", "two_step", "detectors"))
    scores = {score.method: score for group in groups.values() for score in group}
    assert scores["RobustNMF"].relative_error < 1.05 < scores["EucNMF"].relative_error
    assert scores["RobustNMFDetector"].auroc > 0.99
    assert scores["EucNMF"].lost == 0.0
    assert np.isnan(scores["scikit-learn NMF"].lost)
    assert {*TWO_STEP, ORACLE_FIRST} == {score.method for score in groups["two_step"]}
    assert scores[FOREST_FIRST].relative_error < scores["EucNMF"].relative_error
    assert scores[FOREST_FIRST].lost == scores["IsolationForest"].lost
    assert scores[ORACLE_FIRST].relative_error < scores["EucNMF"].relative_error


def small_data(bad=0) -> Data:
    """Data of sixty samples, some of them replaced, and thirty held back."""
    X = noisy_low_rank(n=90, m=8, k=2)
    spoiled = noisy_low_rank(n=90, m=8, k=2, outliers=bad)
    return Data(spoiled[:60], np.arange(60) < bad, X[60:], 2)


def two_step_scores(data):
    return {score.method: score for score in SAMPLES.score(data, ("two_step",))["two_step"]}


def test_two_step_baselines_drop_flagged_samples_and_the_oracle_none_of_clean_data():
    data = small_data()
    scores = two_step_scores(data)
    assert scores[ORACLE_FIRST].relative_error == pytest.approx(1.0, abs=1e-9)
    assert scores[ORACLE_FIRST].lost == 0.0
    for name, detector in ((FOREST_FIRST, FOREST), (FACTOR_FIRST, FACTOR)):
        flagged = DETECTORS[detector](data.dirty, data.rank).flagged
        expected = Judge(data).basis("", plain_basis(data.dirty[~flagged], data.rank))
        assert scores[name].relative_error == pytest.approx(expected.relative_error)
        assert scores[name].lost == pytest.approx(flagged.mean())
    spoiled = two_step_scores(small_data(bad=6))
    assert spoiled[ORACLE_FIRST].effective_share == pytest.approx(0.9)
    assert spoiled[ORACLE_FIRST].relative_error < 1.2


def test_flags_are_those_of_scikit_learn():
    from sklearn.ensemble import IsolationForest
    from sklearn.neighbors import LocalOutlierFactor

    X = small_data(bad=6).dirty
    for name, model in ((FOREST, IsolationForest(random_state=0)), (FACTOR, LocalOutlierFactor()),
                        (OUR_DETECTOR, RobustNMFDetector(2, random_state=0))):  # fmt: skip
        np.testing.assert_array_equal(DETECTORS[name](X, 2).flagged, model.fit_predict(X) == -1)


def test_entries_outside_the_fences_are_missing():
    X = np.tile(np.arange(1.0, 9.0), (2, 1)).T
    X[0, 1] = 100.0
    np.testing.assert_array_equal(np.argwhere(outside_fences(X)), [[0, 1]])
    data = small_data()
    assert not outside_fences(np.ones((5, 3))).any()
    dirty = data.dirty.copy()
    dirty[0] = 1e4  # no known entry is left
    bad = np.arange(60) < 1
    score = two_step_scores(replace(data, dirty=dirty, bad=bad))[FENCES_FIRST]
    assert not score.failure
    assert score.relative_error < 1.5
    assert score.effective_share < 1


def test_a_baseline_that_fails_is_reported_and_does_not_affect_others(monkeypatch):
    def flags_all(X, rank):
        return Detection(np.arange(len(X)), np.ones(len(X), dtype=bool))

    def flags_all_but_one(X, rank):
        return Detection(np.arange(len(X)), np.arange(len(X)) > 0)

    monkeypatch.setitem(DETECTORS, FOREST, flags_all)
    monkeypatch.setitem(DETECTORS, FACTOR, flags_all_but_one)
    data = small_data()
    scores = two_step_scores(data)
    assert scores[FOREST_FIRST].failure == "ValueError: all 60 samples are dropped."
    assert np.isnan(scores[FOREST_FIRST].relative_error)
    assert not scores[FACTOR_FIRST].failure  # one row is left for two components
    assert np.isfinite(scores[FACTOR_FIRST].relative_error)
    rows = [(SMALL, score) for score in scores.values()]
    notes = SAMPLES.outcomes(rows)[0].notes
    assert "IsolationForest, plain NMF failed in 1 of 1 scenarios" in notes[0]


def test_the_plan_has_clean_tables_at_every_rank_and_bad_samples_at_their_own():
    run_plan = SAMPLES.plan(["iris", "small_cluster"], [], 2)
    assert run_plan.groups == tuple(GROUPS)
    assert {scenario.seed for scenario in run_plan.scenarios} == {0, 1}
    iris = [s for s in run_plan.scenarios if s.dataset == "iris" and s.seed == 0]
    assert [s.rank for s in iris if not s.share] == [0, 2]
    assert [s.rank for s in iris if s.share] == [0] * 6 * (len(FULL.shares["noise"]) - 1)
    assert Scenario(*MINORITY, 1) in run_plan.scenarios
    assert not SAMPLES.plan(["iris"], quick=True).missing
    smaller = SAMPLES.plan(["iris"], groups=["two_step", "grids", "detectors"], grids=False)
    assert smaller.groups == ("two_step", "detectors")
    assert smaller.groups_of(Scenario("iris", "noise", 0.0, 0, rank=2)) == ("two_step",)


def test_an_interrupted_run_resumes(tmp_path):
    run_plan = SAMPLES.plan(["iris"], ["noise"], 1, quick=True)
    own_rank = tuple(scenario for scenario in run_plan.scenarios if not scenario.rank)
    part = Plan(own_rank[:1], ("detectors",))
    store = SAMPLES.open_store(tmp_path / "scenarios.sqlite")
    SAMPLES.run(part, store)
    first = store.rows(part)
    calls = []
    both = Plan(own_rank[:2], ("detectors",))
    SAMPLES.run(both, store, progress=lambda what, done, total: calls.append((done, total)))
    assert calls[0] == (1, 2)
    assert calls[-1] == (2, 2)
    assert repr(store.rows(part)) == repr(first)  # NaN is not equal to itself
    assert {scenario for scenario, _ in store.rows(both)} == set(both.scenarios)
    assert store.rows(Plan(part.scenarios, ("methods",))) == []
    (tmp_path / "other.sqlite").write_text("no database")
    with pytest.raises(StoreError, match="cannot be used"):
        SAMPLES.open_store(tmp_path / "other.sqlite")


@needs_cli
def test_the_command_writes_a_page_and_tables(tmp_path, monkeypatch, capsys):
    small = replace(QUICK, shares={"noise": (0.0, 0.2)}, seeds=(0,))
    study = replace(SAMPLES, plan=partial(plan_scope, scenarios, FULL, small))
    monkeypatch.setitem(STUDIES, SAMPLES.name, study)
    arguments = ["contaminate", "--quick", "--datasets", "iris", "--corruptions", "noise"]
    assert main([*arguments, "--out", str(tmp_path), "--jobs", "1"]) == 0
    assert "3 scenarios" in capsys.readouterr().out  # clean at two ranks
    names = {path.name for path in tmp_path.iterdir()}
    assert {"report.html", "errors_tuned.csv", "lost_tuned.csv", "ranks.csv", "detection.csv",
            "detection_clean.csv", "scores.csv", "run.json"} <= names  # fmt: skip
    assert "RobustNMF" in (tmp_path / "tables.md").read_text()


@needs_cli
def test_unknown_names_are_refused(tmp_path, capsys):
    assert main(["contaminate", "--corruptions", "rust", "--out", str(tmp_path)]) == 1
    assert "'rust' is not one of noise" in capsys.readouterr().err
    assert main(["contaminate", "--groups", "rust", "--out", str(tmp_path)]) == 1
    assert "'rust' is not one of methods, two_step" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        main(["contaminate", "--seeds", "0", "--out", str(tmp_path)])
    assert "integer of 1 or more" in capsys.readouterr().err
