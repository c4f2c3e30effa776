"""The contamination benchmark: fair scenarios, resumable, and honest tables."""

import numpy as np
import pytest

from robustnmf.cli import main
from robustnmf.corruptions import CORRUPTIONS
from robustnmf.experiments.contamination import benchmark, tables
from robustnmf.experiments.contamination.benchmark import Plan, plan, run
from robustnmf.experiments.contamination.methods import CEILING, Judge, Score, scored
from robustnmf.experiments.contamination.scenario import Scenario
from robustnmf.experiments.contamination.store import ScenarioStore
from robustnmf.experiments.database import StoreError
from tests.problems import needs_cli

SMALL = Scenario("wdbc", "noise", 0.2, 0)


@pytest.mark.parametrize("kind", CORRUPTIONS)
@pytest.mark.parametrize("dataset", ["digits", "wdbc", "synthetic"])
def test_the_samples_held_back_are_clean_and_the_same_for_all_shares(dataset, kind):
    none, some = (Scenario(dataset, kind, share, 3).data() for share in (0.0, 0.3))
    np.testing.assert_array_equal(none.held_back, some.held_back)
    np.testing.assert_array_equal(none.dirty[~some.bad], some.clean)
    assert some.bad.mean() == pytest.approx(0.3, abs=0.01)
    assert np.isfinite(some.dirty).all()
    assert some.dirty.min() >= 0
    changed = np.any(none.dirty != some.dirty, axis=1)
    np.testing.assert_array_equal(changed, some.bad)


def test_scores_mean_what_they_say():
    data = Scenario("synthetic", "noise", 0.0, 1).data()
    judge = Judge(data)
    assert data.rank == len(data.parts) == 10
    perfect = judge.basis("truth", data.parts)
    assert perfect.parts_distance == pytest.approx(0.0, abs=1e-12)
    assert perfect.relative_error == pytest.approx(1.0, abs=0.1)
    assert np.isnan(perfect.auroc)
    data = SMALL.data()
    assert Judge(data).ranking("oracle", data.bad.astype(float)).auroc == 1.0


def test_robust_parts_are_better_than_plain_ones_and_bad_samples_are_found():
    found = scored(SMALL.data(), ("methods", "detectors"))
    scores = {score.method: score for group in found.values() for score in group}
    assert scores["RobustNMF"].relative_error < 1.05 < scores["EucNMF"].relative_error
    assert scores["RobustNMFDetector"].auroc > 0.99


def test_a_run_that_was_cut_short_goes_on_where_it_was(tmp_path):
    wanted = plan(["wdbc"], ["noise"], 1, quick=True)
    part = Plan(wanted.scenarios[:1], ("detectors",))
    store = ScenarioStore(tmp_path / "scenarios.sqlite")
    run(part, store)
    first = store.scores(part.scenarios[0], "detectors")
    seen = []
    both = Plan(wanted.scenarios[:2], ("detectors",))
    run(both, store, progress=lambda what, done, total: seen.append((done, total)))
    assert seen[0] == (1, 2)
    assert seen[-1] == (2, 2)
    again = store.scores(part.scenarios[0], "detectors")
    assert [s.method for s in again] == [s.method for s in first]
    assert store.scores(part.scenarios[0], "methods") == []
    (tmp_path / "other.sqlite").write_text("no database")
    with pytest.raises(StoreError, match="cannot be used"):
        ScenarioStore(tmp_path / "other.sqlite")


def made_up(relative, auroc):
    """Rows in which every cell has these numbers, for ours and for the others."""
    rows = []
    for dataset in ("digits", "thyroid"):
        for share in (0.0, 0.2, 0.4):
            for seed in (0, 7):
                scenario = Scenario(dataset, "noise", share, seed)
                for method, error in (("RobustNMF", relative), ("EucNMF", 2.0)):
                    rows.append((scenario, Score(method, error)))
                for method, found in (("RobustNMFDetector", auroc), ("IsolationForest", 0.97),
                                      ("LocalOutlierFactor", 0.5), ("EllipticEnvelope", 0.5),
                                      ("PCA error", 0.5), (CEILING, 0.99)):  # fmt: skip
                    rows.append((scenario, Score(method, auroc=found)))
    return rows


def test_tables_keep_tuned_and_held_out_apart_and_say_what_is_missed():
    found = {outcome.key: outcome for outcome in tables.outcomes(made_up(1.2, 0.9))}
    grids = found["errors"].grids
    assert [grid.title.split(":")[0] for grid in grids] == ["tuned", "held out"]
    assert "digits; 1 seeds" in grids[0].title
    assert all("missed" in note for note in found["errors"].notes)
    assert "does in 0 of these" in found["detection"].notes[0]
    found = {outcome.key: outcome for outcome in tables.outcomes(made_up(1.0, 0.99))}
    assert not any("missed" in note for note in found["errors"].notes)
    assert "does in 2 of these." in found["detection"].notes[0]


@needs_cli
def test_the_command_writes_a_page_and_tables(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(benchmark.QUICK, "shares", (0.0, 0.2))
    monkeypatch.setitem(benchmark.QUICK, "seeds", (0,))
    arguments = ["contaminate", "--quick", "--datasets", "wdbc", "--corruptions", "noise"]
    assert main([*arguments, "--out", str(tmp_path), "--jobs", "1"]) == 0
    assert "2 scenarios" in capsys.readouterr().out
    names = {path.name for path in tmp_path.iterdir()}
    assert {"report.html", "errors_tuned.csv", "detection.csv", "scores.csv", "run.json"} <= names
    assert "RobustNMF" in (tmp_path / "tables.md").read_text()


@needs_cli
def test_what_is_not_known_is_said(tmp_path, capsys):
    assert main(["contaminate", "--corruptions", "rust", "--out", str(tmp_path)]) == 1
    assert "'rust' is none of noise" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        main(["contaminate", "--seeds", "0", "--out", str(tmp_path)])
    assert "'0' is no integer of 1 or more" in capsys.readouterr().err
