"""``n_components`` means the same in estimators, the detector and the shell command."""

import json
import pickle
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.utils._testing import ignore_warnings

import robustnmf
from robustnmf import (
    ConsensusNMF,
    ConvexNMF,
    EucNMF,
    RankSelection,
    RobustNMF,
    RobustNMFDetector,
    fit_path,
    select_rank,
)
from robustnmf.cli import main
from robustnmf.estimators import ESTIMATORS
from robustnmf.fitting import check_source, rank
from robustnmf.fitting.rank import MAX_RANK, draw_rank_rows
from robustnmf.fitting.rank import SHORT as OF_COMPARISON
from robustnmf.fitting.starts import default_rank
from robustnmf.sources import source_for
from tests.problems import noisy_low_rank, positive_start
from tests.test_sources import KINDS

X = noisy_low_rank(60, 8, 2, outliers=3)
SHORT = {"random_state": 0, "max_iter": 20, "tol": 1e-2}
LEARNERS = {**ESTIMATORS, "RobustNMFDetector": RobustNMFDetector}
SELECTION = RankSelection(np.array([1, 2, 3]), np.array([[3.0, 1.0, 1.1], [3.1, 1.1, 1.3]]))
"""A comparison that recommends two components."""


@pytest.fixture
def calls(monkeypatch):
    """Replace the comparison, which takes seconds, by a fixed result; return its arguments."""
    arguments = []

    def compare(settings, rows, ranks, **options):
        arguments.append((rows, ranks, settings, options))
        return SELECTION

    monkeypatch.setattr(rank, "compare_ranks", compare)
    return arguments


def rows_of(X):
    """Rows by which ``RobustNMF("auto")`` chooses."""
    settings = RobustNMF()._settings()
    return draw_rank_rows(settings, check_source(settings, source_for(X, settings.name)))


@pytest.mark.parametrize(
    ("shape", "expected"),
    [((50, 30), 10), ((50, 100), 10), ((50, 8), 2), ((4, 30), 4), ((9, 2), 1)],
)
def test_without_a_number_a_rule_of_thumb_holds_for_all(shape, expected):
    assert default_rank(shape) == expected
    table = np.random.default_rng(0).random(shape) + 0.1
    for kind in (RobustNMF, EucNMF, RobustNMFDetector):
        with ignore_warnings():
            assert kind(**SHORT).fit(table).n_components_ == expected


@pytest.mark.parametrize("name", LEARNERS)
def test_no_number_is_the_default(name):
    model = LEARNERS[name]()
    assert model.get_params()["n_components"] is None
    assert clone(model.set_params(n_components="auto")).n_components == "auto"


@pytest.mark.extra
def test_one_choice_in_estimator_detector_and_shell(tmp_path, capsys):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("plotly")
    table = X[:40, :3]
    expected = select_rank(table, range(1, 4), stability=True, n_runs=10, random_state=0)
    for kind in (RobustNMF, RobustNMFDetector):
        model = kind("auto", random_state=0).fit(table)
        assert model.n_components_ == expected.recommended
        np.testing.assert_array_equal(model.rank_selection_.errors, expected.errors)
        np.testing.assert_array_equal(model.rank_selection_.silhouette, expected.silhouette)
    pandas.DataFrame(table).to_csv(tmp_path / "x.csv", index=False)
    assert main(["fit", str(tmp_path / "x.csv"), "-k", "auto", "-o", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["components"] == expected.recommended


def test_the_shell_compares_the_same_rows_with_the_same_parameters(calls, tmp_path, capsys):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("plotly")
    pandas.DataFrame(X).to_csv(tmp_path / "x.csv", index=False)
    options = ["--loss", "kullback-leibler", "--seed", "3", "--json"]
    assert main(["fit", str(tmp_path / "x.csv"), "-k", "auto", "-o", str(tmp_path), *options]) == 0
    RobustNMF("auto", loss="kullback-leibler", random_state=3).fit(X)
    capsys.readouterr()
    (rows, ranks, shell, options), (same_rows, same_ranks, ours, same_options) = calls
    np.testing.assert_allclose(rows, same_rows)
    assert ranks == same_ranks == range(1, 9)
    assert options == same_options
    assert ours.random_state == 3
    assert repr(shell) == repr(replace(ours, n_components=None))
    assert type(ours.spec.loss) is robustnmf.KullbackLeibler


@pytest.mark.parametrize("most", [5000, 25])
@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_x_chooses_by_the_same_rows(name, most, monkeypatch, tmp_path):
    monkeypatch.setattr(rank, "MAX_ROWS", most)
    expected = rows_of(X)
    rows = rows_of(KINDS[name][0](X, tmp_path))
    assert rows.shape == (min(60, most), 8)
    dense = rows.toarray() if scipy.sparse.issparse(rows) else rows
    np.testing.assert_array_equal(dense, expected)
    if most > 60:
        np.testing.assert_array_equal(dense, X)


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_x_takes_the_number_that_is_chosen(name, calls, tmp_path):
    model = RobustNMF("auto", **SHORT).fit(KINDS[name][0](X, tmp_path))
    assert model.n_components_ == 2
    assert model.rank_selection_ is SELECTION
    assert len(calls) == 1


@pytest.mark.parametrize("name", [name for name in LEARNERS if name != "ConvexNMF"])
def test_a_choice_is_the_fit_with_its_number(name, calls):
    chosen = LEARNERS[name]("auto", **SHORT).fit(X)
    given = LEARNERS[name](2, **SHORT).fit(X)
    np.testing.assert_array_equal(chosen.components_, given.components_)
    assert chosen.rank_selection_ is SELECTION
    assert not hasattr(given, "rank_selection_")
    (_, ranks, settings, _) = calls[0]
    assert ranks == range(1, 9)
    assert {name: getattr(settings, name) for name in OF_COMPARISON} == OF_COMPARISON


def test_parameters_of_the_model_are_passed_on(calls):
    fixed = X[:2]
    RobustNMF("auto", beta_loss=1, alpha_W=0.1, fixed_components=fixed, init="random").fit(X)
    EucNMF("auto", solver="hals").fit(X)
    (_, ranks, ours, _), (_, _, paper, _) = calls
    assert ranks == range(2, 9)  # no fewer than those that are given
    assert isinstance(ours.spec.loss, robustnmf.KullbackLeibler)
    assert (ours.alpha_W, ours.init, ours.random_state) == (0.1, "random", 0)
    assert ours.fixed_components is fixed
    assert (paper.solver, paper.init) == ("hals", "random")
    assert type(paper.spec.weighting) is robustnmf.Uniform


def test_samples_without_weight_do_not_affect_the_choice(calls):
    weights = np.ones(60)
    weights[:5] = 0.0
    RobustNMF("auto", **SHORT).fit(X, sample_weight=weights)
    np.testing.assert_array_equal(calls[0][0], X[5:])


def test_a_custom_start_decides(calls):
    W, H = positive_start(60, 8, 4)
    for none in (None, "auto"):
        model = RobustNMF(none, init="custom", max_iter=1, tol=0).fit(X, W=W, H=H)
        assert model.n_components_ == 4
    assert not calls


def test_another_fit_forgets_the_choice(calls):
    for model in (RobustNMF("auto", **SHORT), ConsensusNMF(RobustNMF("auto", **SHORT), n_runs=2)):
        assert model.fit(X).rank_selection_ is SELECTION
        name = "n_components" if isinstance(model, RobustNMF) else "estimator__n_components"
        assert not hasattr(model.set_params(**{name: 2}).fit(X), "rank_selection_")
    assert len(calls) == 2  # once for all runs


@pytest.mark.parametrize("kind", [RobustNMF, RobustNMFDetector, ConsensusNMF])
def test_models_with_a_choice_are_saved_pickled_and_shown(kind, calls, tmp_path):
    model = kind("auto", **SHORT) if kind is not ConsensusNMF else kind(RobustNMF("auto"), n_runs=2)
    model.fit(X)
    model.save(tmp_path / "model.rnmf")
    for again in (robustnmf.load(tmp_path / "model.rnmf"), pickle.loads(pickle.dumps(model))):
        assert again.rank_selection_.recommended == 2
        np.testing.assert_array_equal(again.rank_selection_.errors, SELECTION.errors)
        assert again.rank_selection_.silhouette is None
        assert again.components_.shape == (2, 8)
    assert "auto" in model._repr_html_()
    assert not hasattr(clone(model), "components_")


def test_a_saved_choice_that_contradicts_itself_is_refused(calls, tmp_path):
    model = RobustNMF("auto", **SHORT).fit(X)
    for wrong in (
        RankSelection(np.array([1, 2]), SELECTION.errors),
        RankSelection(SELECTION.ranks, SELECTION.errors[0]),
        RankSelection(SELECTION.ranks * 1.0, SELECTION.errors),
        np.ones(3),
    ):
        model.rank_selection_ = wrong
        model.save(tmp_path / "model.rnmf")
        with pytest.raises(ValueError, match="rank_selection_"):
            robustnmf.load(tmp_path / "model.rnmf")


def test_models_of_before_with_as_many_components_as_features_are_read(tmp_path):
    """ "auto" was the smaller side of X once."""
    model = RobustNMF(8, **SHORT).fit(X).set_params(n_components="auto")
    model.save(tmp_path / "model.rnmf")
    again = robustnmf.load(tmp_path / "model.rnmf")
    assert (again.n_components, again.n_components_) == ("auto", 8)
    np.testing.assert_array_equal(again.transform(X), model.transform(X))


def test_a_choice_at_the_largest_rank_is_reported(monkeypatch):
    errors = np.linspace(1.0, 0.1, MAX_RANK) + np.array([[0.0], [0.001]])
    found = RankSelection(np.arange(1, MAX_RANK + 1), errors)
    monkeypatch.setattr(rank, "compare_ranks", lambda *args, **parameters: found)
    table = np.random.default_rng(0).random((60, 20))
    with pytest.warns(UserWarning, match="chose 15 components, the largest"):
        RobustNMF("auto", **SHORT).fit(table)


@pytest.mark.parametrize(
    ("fit", "message"),
    [
        (lambda: ConvexNMF("auto").fit(X), "not for convex structures.* Give a number"),
        (lambda: RobustNMF("auto").fit(X[:, :1]), "n_samples=60, n_features=1. Use n_components=1"),
        (lambda: RobustNMF("auto").fit(X[:1]), "n_samples=1, n_features=8. Use n_components=1"),
        (lambda: RobustNMF("auto").fit(X[:2, :2]), "too few to hide .* Give a number"),
        (lambda: RobustNMF("auto").partial_fit(X), "partial_fit needs a number of components"),
        (lambda: fit_path(X, "auto", weightings=["l21"]), "fit_path needs a number of"),
    ],
)
def test_tables_too_small_to_compare_need_a_number(fit, message):
    with pytest.raises(ValueError, match=message):
        fit()
