"""The benchmark of bad entries: scenarios, scores, peers, tables and the command."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from robustnmf.cli import main
from robustnmf.experiments.contamination import STUDIES, peers
from robustnmf.experiments.contamination import entry_methods as methods
from robustnmf.experiments.contamination.entries import ENTRIES, FULL, LAYOUT, QUICK, scenarios
from robustnmf.experiments.contamination.entry_methods import outlyingness_by_weights, score_basis
from robustnmf.experiments.contamination.judge import Judge, Score
from robustnmf.experiments.contamination.scenario import Data, Scenario, draw_entries
from robustnmf.experiments.contamination.study import plan_scope
from robustnmf.metrics import residuals, squared_errors
from tests.problems import needs_cli

WDBC = Scenario("wdbc", "large", 0.1, 0)


def small_data(missing=0) -> Data:
    """Sixty samples of two components with some large entries, and thirty held back."""
    rng = np.random.default_rng(0)
    X = rng.gamma(1.0, size=(90, 2)) @ rng.gamma(1.0, size=(2, 12))
    X += 0.3 * rng.random(X.shape)
    bad = rng.random((60, 12)) < 0.05
    dirty = np.where(bad, 3 * X.max(), X[:60])
    dirty[rng.random(dirty.shape) < missing] = np.nan
    return Data(dirty, np.zeros(60, dtype=bool), X[60:], 2, original=X[:60])


def test_scenarios_differ_in_their_bad_entries_only():
    clean, spoiled = (draw_entries(replace(WDBC, share=share)) for share in (0.0, 0.2))
    np.testing.assert_array_equal(clean.dirty, clean.clean)
    np.testing.assert_array_equal(clean.clean, spoiled.clean)
    np.testing.assert_array_equal(clean.held_back, spoiled.held_back)
    assert spoiled.bad_entries.mean() == pytest.approx(0.2, abs=0.001)
    assert not spoiled.bad.any()
    assert not spoiled.has_missing
    assert draw_entries(replace(WDBC, corruption="missing")).has_missing


def test_residuals_leave_missing_values_out():
    rng = np.random.default_rng(0)
    basis = rng.random((2, 8))
    X = rng.random((5, 2)) @ basis
    X[0, :4] = np.nan
    differences = residuals(X, basis)
    np.testing.assert_array_equal(np.isnan(differences), np.isnan(X))
    np.testing.assert_allclose(differences[~np.isnan(X)], 0.0, atol=1e-12)
    np.testing.assert_allclose(squared_errors(X, basis), 0.0, atol=1e-20)


def test_scores_mean_what_they_say():
    data = small_data()
    judge = Judge(data)
    score = score_basis(judge, "reference", judge.reference_basis)
    assert score.relative_error == 1.0
    assert score.entry_auroc > 0.95
    assert np.isnan(score.auroc)
    told = score_basis(judge, "told", judge.reference_basis, entry_weights=1.0 - data.bad_entries)
    assert told.entry_auroc == 1.0
    covered = Judge(replace(data, bad=data.bad_entries.any(axis=1)))
    assert score_basis(covered, "reference", judge.reference_basis).auroc > 0.9


def test_equal_weights_are_ranked_by_residuals_in_units_of_their_feature():
    weights = np.array([[1.0, 1.0], [0.5, 1.0], [1.0, 1.0], [1.0, 0.0]])
    differences = np.array([[2.0, 30.0], [0.1, 10.0], [-1.0, 10.0], [1.0, np.nan]])
    order = np.argsort(outlyingness_by_weights(weights, differences).ravel())
    assert order[-2:].tolist() == [2, 7]  # the smallest weights
    assert order[-3] == 1  # three times the median of its feature


def test_sparse_outliers_descend_and_separate_an_easy_case():
    data = small_data()
    judge = Judge(data)
    penalty = peers.penalty_of_noise(residuals(data.dirty, judge.reference_basis))
    basis, objectives = peers.sparse_outlier_nmf(data.dirty, 2, penalty)
    steps = np.diff(objectives)
    assert (steps <= 1e-9 * objectives[0]).all()
    plain = methods.plain_basis(data.dirty, 2)
    ours, others = (judge.basis("", basis).relative_error for basis in (basis, plain))
    assert ours < 0.5 * others


def test_weighted_sweeps_descend():
    rng = np.random.default_rng(0)
    V, weights = rng.random((30, 8)), rng.random((30, 8))
    codes, basis = rng.random((30, 3)), rng.random((3, 8))
    errors = []
    for _ in range(50):
        differences = peers.weighted_sweep(V, weights, codes, basis)
        np.testing.assert_allclose(differences, V - codes @ basis, atol=1e-12)
        errors.append((weights * differences**2).sum())
    assert (np.diff(errors) <= 1e-12).all()


@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_truncated_cauchy_finds_the_bad_entries_of_an_easy_case(missing):
    data = small_data(missing)
    judge = Judge(data)
    plain = judge.basis("", methods.plain_basis(data.dirty, 2)).relative_error
    for start in (None, judge.reference_basis):
        score = score_basis(judge, "", peers.truncated_cauchy_nmf(data.dirty, 2, start))
        assert score.entry_auroc > 0.95
        assert score.relative_error < (0.1 * plain if start is None else 2.0)


def test_nagys_algorithm_finds_the_scale_of_cauchy_noise():
    noise = 3.0 * np.random.default_rng(0).standard_cauchy(20_000)
    assert peers.cauchy_scale(np.abs(noise), 1.0) == pytest.approx(3.0, rel=0.05)
    assert peers.cauchy_scale(np.zeros(5), 1.0) == 0.0


def test_all_methods_are_scored_and_the_ceiling_is_near_the_clean_fit():
    groups = ENTRIES.score(draw_entries(WDBC), ("methods", "two_step"))
    scores = {score.method: score for group in groups.values() for score in group}
    assert set(scores) == {*methods.ENTRY_METHODS, *methods.TWO_STEP, methods.CEILING}
    assert not any(score.failure for score in scores.values())
    assert scores[methods.PLAIN].relative_error > 5
    assert scores[methods.CEILING].relative_error < 1.2
    assert all(0.5 < score.entry_auroc <= 1 for score in scores.values())
    (group,) = ENTRIES.score(small_data(missing=0.1), ("methods",)).values()
    assert methods.SCIKIT not in {score.method for score in group}


def test_the_plan_has_every_share_and_the_clean_table_once():
    run_plan = ENTRIES.plan(["wdbc"], [], 2)
    shares = sum(len(shares) for shares in FULL.shares.values())
    assert len(run_plan.scenarios) == 2 * (1 + shares)
    assert run_plan.groups == tuple(methods.GROUPS)
    assert "grids" not in ENTRIES.plan(["wdbc"], grids=False).groups
    with pytest.raises(ValueError, match="'noise' is not one of extreme"):
        ENTRIES.plan(["wdbc"], ["noise"])


def rows_with(ours):
    """Rows in which ours has this error, plain NMF three, the ceiling one."""
    names = {methods.OURS: ours, methods.PLAIN: 3.0, methods.CEILING: 1.0}
    names |= dict.fromkeys(methods.TWO_STEP, 2.0)
    return [
        (Scenario(dataset, kind, share, seed),
         Score(name, error, error, auroc=1 / error, entry_auroc=1 / error, seconds=1.0))
        for dataset, seed in (("digits", 0), ("digits", 5), ("yale", 0))
        for kind, share in (("extreme", 0.0), ("extreme", 0.1), ("large", 0.2), ("covered", 0.3),
                            ("mixed", 0.1), ("missing", 0.1))
        for name, error in names.items()
    ]  # fmt: skip


def test_notes_say_which_goals_are_met():
    for ours, missed in ((1.0, False), (2.5, True)):
        results = {outcome.key: outcome for outcome in ENTRIES.outcomes(rows_with(ours))}
        parts = [grid.title.split(":")[0] for grid in results["errors"].grids]
        assert parts == ["tuned", "other draws", "held out"]
        notes = [note for outcome in results.values() for note in outcome.notes]
        assert len(notes) == 3 * (2 + len(LAYOUT.bands) + 1 + 1 + 3)
        assert all(("missed" in note) == missed for note in notes)
        assert all(("met" in note) != missed for note in notes)
        last = results["ceiling"].grids[0].rows[-1]
        assert last[0].text == methods.OURS
        assert last[2].number == pytest.approx(ours)


@pytest.mark.extra  # fits of all methods; test_contamination.py has the command with fewer
@needs_cli
def test_the_command_writes_its_files(tmp_path, monkeypatch, capsys):
    small = replace(QUICK, shares={"large": (0.1,)})
    study = replace(ENTRIES, plan=partial(plan_scope, scenarios, FULL, small))
    monkeypatch.setitem(STUDIES, ENTRIES.name, study)
    arguments = ["contaminate", "--entries", "--quick", "--datasets", "synthetic", "--seeds", "1"]
    arguments += ["--groups", "methods", "two_step", "peers", "--jobs", "1"]
    assert main([*arguments, "--out", str(tmp_path)]) == 0
    assert "2 scenarios" in capsys.readouterr().out
    names = {path.name for path in tmp_path.iterdir()}
    assert {"report.html", "errors_held_out.csv", "ceiling_held_out.csv", "auroc_held_out.csv",
            "seconds.csv", "cells.csv", "scores.csv", "run.json", "tables.md"} <= names  # fmt: skip
    scores = (tmp_path / "scores.csv").read_text()
    assert methods.CEILING in scores
    assert methods.SPARSE in scores
    assert methods.CAUCHY in scores
