"""Behaviour that users of scikit-learn expect."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from robustnmf import (
    EWRNMF,
    FWRNMF,
    NMFL2,
    Beta,
    Cauchy,
    Entropy,
    EucNMF,
    Fuzzy,
    RobustNMF,
    WeightCollapseWarning,
)
from robustnmf.engine import InMemory
from robustnmf.estimators import ESTIMATORS
from robustnmf.inits import INITS
from tests.problems import noisy_low_rank

X = noisy_low_rank(60, 12, 3, outliers=5)
every_estimator = pytest.mark.parametrize("name", ESTIMATORS)


@pytest.fixture(scope="module")
def digits():
    return load_digits(return_X_y=True)


@every_estimator
def test_transform_agrees_with_fit_transform_on_real_data(name, digits):
    data = digits[0][:400]
    model = ESTIMATORS[name](8, random_state=0)
    codes = model.fit_transform(data)
    error = np.linalg.norm(model.transform(data) - codes) / np.linalg.norm(codes)
    assert error < 1e-3


@every_estimator
def test_a_row_has_the_same_codes_whatever_its_company(name):
    model = ESTIMATORS[name](3, random_state=0, max_iter=100)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", WeightCollapseWarning)
        model.fit(X)
    together = model.transform(X)
    alone = np.concatenate([model.transform(row[None]) for row in X])
    np.testing.assert_allclose(alone, together, rtol=1e-6, atol=1e-8 * together.max())


def test_inverse_transform_approximates(digits):
    model = EucNMF(16, random_state=0)
    back = model.inverse_transform(model.fit_transform(digits[0]))
    assert np.linalg.norm(back - digits[0]) == pytest.approx(model.reconstruction_err_)
    assert model.reconstruction_err_ < 0.4 * np.linalg.norm(digits[0])


def test_energies_importances_and_sizes_belong_together():
    model = EWRNMF(3, random_state=0).fit(X)
    steps = EWRNMF(3, gamma=model.weighting_.gamma, random_state=0, tol=0, max_iter=30).fit(X)
    np.testing.assert_allclose(
        steps.sample_importances_, steps.weighting_.importances(steps.energies_), rtol=1e-10
    )
    assert model.effective_sample_size_ == pytest.approx(1 / (model.sample_importances_**2).sum())
    np.testing.assert_allclose(-model.score_samples(X), model.energies_, rtol=1e-9)
    assert model.score(X) == pytest.approx(-model.energies_.mean())
    assert model.objective_history_[-1] == pytest.approx(model.weighting_.value(model.energies_))


def test_importances_are_those_the_basis_was_learned_with():
    polished = NMFL2(3, random_state=0).fit(X)
    left = NMFL2(3, random_state=0, tol=0, max_iter=polished.n_iter_).fit(X)
    np.testing.assert_allclose(polished.sample_importances_, left.sample_importances_, rtol=1e-12)
    np.testing.assert_allclose(polished.components_, left.components_, rtol=1e-12)
    assert np.all(polished.energies_ <= left.energies_ * (1 + 1e-9))


def test_names_frames_and_clones():
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pd.DataFrame(X, columns=[f"gene {j}" for j in range(12)])
    model = EWRNMF(3, random_state=0).set_output(transform="pandas")
    codes = model.fit_transform(frame)
    assert list(codes.columns) == ["ewrnmf0", "ewrnmf1", "ewrnmf2"]
    assert model.get_feature_names_out().tolist() == list(codes.columns)
    assert model.feature_names_in_.tolist() == list(frame.columns)
    assert clone(model).get_params() == model.get_params()


@pytest.mark.filterwarnings("ignore::robustnmf.exceptions.WeightCollapseWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("model", "grid"),
    [
        (EWRNMF(), {"gamma": [0.1, 10.0, "auto"]}),
        (FWRNMF(), {"p": [2.0, 11.0]}),
        (RobustNMF(weighting=Entropy()), {"weighting__gamma": [1.0, 100.0]}),
        (RobustNMF(), {"weighting": ["l21", "cauchy", Entropy(gamma=3.0)]}),
    ],
    ids=repr,
)
def test_grid_search(model, grid):
    model.set_params(n_components=3, max_iter=30, random_state=0)
    search = GridSearchCV(model, grid, cv=2).fit(X)
    assert set(search.best_params_) == set(grid)
    assert np.all(np.isfinite(search.cv_results_["mean_test_score"]))


def test_a_pipeline_is_searched_through(digits):
    data, labels = digits[0][:300], digits[1][:300]
    pipeline = make_pipeline(
        MinMaxScaler(clip=True), EWRNMF(12, random_state=0), LogisticRegression(max_iter=500)
    )
    search = GridSearchCV(pipeline, {"ewrnmf__gamma": [1.0, "auto"]}, cv=2).fit(data, labels)
    assert search.best_score_ > 0.75


def single_fits(model, data, seed, n_init):
    """The starts that ``n_init`` runs as a batch, one by one."""
    fits = []
    engine = InMemory(data)
    for start in np.random.RandomState(seed).randint(2**31 - 1, size=n_init):
        codes, basis = INITS["random"](engine, model.n_components, int(start))
        custom = clone(model).set_params(init="custom")
        fits.append(custom.fit(data, W=engine.whole(codes), H=basis * engine.scale))
    return fits


def test_n_init_keeps_the_best_of_the_single_fits():
    model = EucNMF(3, tol=1e-5)
    objectives = [m.objective_history_[-1] for m in single_fits(model, X, 7, 4)]
    best = clone(model).set_params(random_state=7, n_init=4).fit(X)
    assert best.objective_history_[-1] == pytest.approx(min(objectives), rel=1e-6)
    first = clone(model).set_params(random_state=7).fit(X)
    assert first.objective_history_[-1] == pytest.approx(objectives[0], rel=1e-6)


def test_n_init_with_automatic_weights_compares_like_with_like():
    model = EWRNMF(3, random_state=0, n_init=5).fit(X)
    assert isinstance(model.weighting_.gamma, float)
    assert np.all(np.diff(model.objective_history_) <= 1e-9)


def test_tol_zero_runs_every_iteration_and_polishes_nothing():
    model = EucNMF(3, random_state=0, tol=0, max_iter=37).fit(X)
    assert model.n_iter_ == 37
    assert len(model.objective_history_) == 38


@pytest.mark.parametrize("method", ["fit", "fit_transform"])
def test_convergence_warnings_point_to_the_line_of_the_user(method):
    with pytest.warns(ConvergenceWarning, match="Raise max_iter or tol") as caught:
        getattr(EucNMF(3, random_state=0, max_iter=3), method)(X)
    assert caught[0].filename == __file__


def test_verbose_prints_progress(capsys):
    EucNMF(3, random_state=0, verbose=1, tol=0, max_iter=20).fit(X)
    printed = capsys.readouterr().out.splitlines()
    assert [line.split(",")[0] for line in printed] == [
        f"EucNMF: iteration {i}" for i in (0, 10, 20)
    ]


def test_verbose_prints_the_units_of_the_history(capsys):
    model = NMFL2(3, random_state=0, verbose=1, tol=0, max_iter=0).fit(100 * X)
    printed = float(capsys.readouterr().out.rsplit(" ", 1)[1])
    assert printed == pytest.approx(model.objective_history_[0], rel=1e-5)


def test_verbose_marks_objectives_that_are_settling(capsys):
    EWRNMF(3, random_state=0, verbose=1).fit(X)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("(settling)")
    assert not lines[-1].endswith("(settling)")


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (EWRNMF(3, gamma=1e-6), r"effective sample size is 1, below .* components, 3.*Raise gamma"),
        (RobustNMF(3, weighting=Cauchy(1e-9)), r"Raise scale from 1e-09 to"),
    ],
    ids=repr,
)
def test_collapse_is_never_silent_and_the_advice_helps(model, message):
    model.set_params(random_state=0)
    with pytest.warns(WeightCollapseWarning, match=message) as caught:
        model.fit(X)
    assert model.effective_sample_size_ < 3
    text = next(str(w.message) for w in caught if w.category is WeightCollapseWarning)
    advised = float(text.rsplit(" to ", 1)[1].rstrip("."))
    knob = model.weighting_.knob
    softer = type(model.weighting_)(**{knob: advised})
    weights = softer.weights(model.energies_)
    assert weights.sum() ** 2 / (weights**2).sum() >= 3


@pytest.mark.parametrize(
    ("model", "size", "advice"),
    [
        (EWRNMF(4, gamma=1.0), 1e80, r"Raise gamma from 1 to \d\S*e\+1[56]\d\."),
        (RobustNMF(4, weighting=Cauchy(1.0)), 1e80, r"Raise scale from 1 to \d\S*e\+1[56]\d\."),
        (EWRNMF(4, gamma=1e-170), 1e-80, r"Raise gamma from 1e-170 to \d\S*e-16\d\."),
        (EWRNMF(4, gamma=1e-170), 1e80, r"Raise gamma from \S+ to \d\S*e\+1[56]\d\."),
        (FWRNMF(4, p=1.0000001), 1.0, "too uneven for any p"),
    ],
    ids=repr,
)
def test_the_advice_on_a_collapse_ends_for_parameters_of_any_size(model, size, advice):
    data = size * np.random.default_rng(0).random((60, 12))
    with pytest.warns(WeightCollapseWarning, match=advice):
        model.set_params(random_state=0, max_iter=30).fit(data)


def test_the_effective_sample_size_is_that_of_the_weights_not_of_their_roots():
    for weight in (None, np.arange(60) % 3):
        model = FWRNMF(3, p=10.5, tol=0, max_iter=9, random_state=0).fit(X, sample_weight=weight)
        assert model.sample_importances_.sum() == pytest.approx(1.0)
        times = np.ones(60) if weight is None else weight
        single = model.sample_importances_ / np.maximum(times, 1)
        weights = times * single**10.5
        size = weights.sum() ** 2 / (times * single**21).sum()
        assert model.effective_sample_size_ == pytest.approx(size)
        assert size < 0.9 / (times * single**2).sum()


def test_fuzzy_weights_that_one_sample_has_taken_are_warned_of():
    """Its importance is a few per cent even then, its weight is all there is."""
    rng = np.random.default_rng(0)
    data = rng.gamma(1.0, size=(80, 20))
    model = FWRNMF(5, p=30.0, random_state=1)
    with pytest.warns(WeightCollapseWarning):
        model.fit(data)
    assert model.effective_sample_size_ < 2 < 20 < 1 / (model.sample_importances_**2).sum()


@pytest.mark.parametrize("loss", ["kullback-leibler", "frobenius", Beta(1.5)], ids=str)
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.filterwarnings("ignore::robustnmf.exceptions.WeightCollapseWarning")
def test_the_objective_does_not_rise_where_a_sample_is_fitted_to_rounding(loss, seed):
    rng = np.random.default_rng(seed)
    data = rng.gamma(1.0, size=(80, 20))
    data[:8] = 10 * rng.random((8, 20))
    model = RobustNMF(
        5, weighting=Fuzzy(30.0), loss=loss, solver="mu", init="random", random_state=1
    ).fit(data)
    history = model.objective_history_
    assert model.energies_.min() < 1e-25  # it is
    assert np.max(history[1:] / history[:-1]) < 1 + 1e-9


def test_plain_nmf_never_warns_of_collapse():
    with warnings.catch_warnings():
        warnings.simplefilter("error", WeightCollapseWarning)
        EucNMF(3, random_state=0).fit(X)
        NMFL2(3, random_state=0).fit(X)
        RobustNMF(3).fit(X)


def test_nothing_is_left_of_an_earlier_fit():
    model = RobustNMF(3, structure="convex", tol=1e-3).fit(X)
    assert model.mixing_.shape == (3, 60)
    model.set_params(structure="free").fit(X[:50])
    assert not hasattr(model, "mixing_")


def test_a_fitted_model_ignores_parameters_set_later():
    model = RobustNMF(3).fit(X)
    codes = model.transform(X)
    model.set_params(loss="nonsense", structure="nonsense")
    np.testing.assert_array_equal(model.transform(X), codes)


def test_a_collapse_turned_into_an_error_leaves_no_fit():
    model = EWRNMF(3, gamma=1e-6, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", WeightCollapseWarning)
        with pytest.raises(WeightCollapseWarning):
            model.fit(X)
    assert not hasattr(model, "components_")
    assert not hasattr(model, "n_features_in_")


@pytest.mark.parametrize(
    ("model", "mean"),
    [
        (FWRNMF(3, p=1000), lambda z: np.log(z).mean()),
        (EWRNMF(3, gamma=1e17), lambda z: z.mean()),
    ],
    ids=["FWRNMF", "EWRNMF"],
)
def test_the_best_start_is_found_where_the_objective_shows_only_its_constants(model, mean):
    """For huge parameters, phi orders fits like the mean of the energies."""
    data = noisy_low_rank(100, 30, 6, noise=0.01)
    model.set_params(tol=1e-3)
    means = [mean(m.energies_) for m in single_fits(model, data, 0, 8)]
    best = clone(model).set_params(random_state=0, n_init=8).fit(data)
    assert mean(best.energies_) == pytest.approx(min(means), rel=1e-6)
    assert min(means) < means[0]


@pytest.mark.parametrize("seed", range(3))
def test_clean_data_lose_nothing_to_automatic_weights(seed):
    rng = np.random.default_rng(seed)
    data = rng.gamma(1.0, size=(100, 4)) @ rng.gamma(1.0, size=(4, 20))
    data += 0.1 * rng.random((100, 20))
    plain = EucNMF(5, init="nndsvda", max_iter=3000).fit(data)
    robust = RobustNMF(5, max_iter=3000).fit(data)
    assert robust.reconstruction_err_ <= 1.25 * plain.reconstruction_err_
    assert robust.effective_sample_size_ > 85


@pytest.mark.parametrize("samples", [6, 15])
def test_no_more_samples_than_components_is_not_a_collapse(samples):
    with warnings.catch_warnings():
        warnings.simplefilter("error", WeightCollapseWarning)
        RobustNMF(max_iter=2000, tol=1e-3).fit(noisy_low_rank(samples, 20, 3))


def test_the_chosen_member_does_not_keep_the_others_alive():
    model = EucNMF(3, random_state=0, n_init=5, tol=1e-3)
    codes = model.fit_transform(X)
    for array in (codes, model.components_, model.energies_, model.sample_importances_):
        assert array.base is None or array.base.size == array.size


@pytest.mark.parametrize(
    ("given", "nested"),
    [
        ({"weighting": "entropy"}, {"weighting__gamma": 3.0}),
        ({"loss": "beta"}, {"loss__beta": 1.5}),
        ({"structure": "orthogonal"}, {"structure__strength": 2.0}),
    ],
)
def test_parameters_of_named_weightings_and_losses_can_be_set(given, nested):
    """Names stand for instances, whether set before or together with their parameters."""
    ((key, value),) = nested.items()
    (name,) = given
    one = RobustNMF(3, **given).set_params(**nested)
    other = RobustNMF(3).set_params(**given, **nested)
    for model in (one, other):
        part = getattr(model, name)
        assert getattr(part, key.removeprefix(f"{name}__")) == value
        assert type(part) is type(getattr(RobustNMF(3, **given)._spec(), name))
    with pytest.raises(ValueError, match="Invalid parameter 'nope'"):
        RobustNMF(3, **given).set_params(**{f"{name}__nope": 1.0})
    with pytest.raises(ValueError, match="must be a str among"):
        RobustNMF(3).set_params(**{name: "nothing"}).fit(X)


def test_grids_over_parameters_of_named_weightings():
    search = GridSearchCV(
        RobustNMF(2, weighting="entropy", random_state=0), {"weighting__gamma": [0.5, 50.0]}, cv=2
    ).fit(X)
    assert search.best_params_["weighting__gamma"] in (0.5, 50.0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_byte_order_of_x_changes_nothing(dtype):
    here = X.astype(dtype)
    swapped = here.astype(np.dtype(dtype).newbyteorder())
    models = [
        RobustNMF(3, random_state=0, max_iter=20, tol=0).fit(table) for table in (here, swapped)
    ]
    assert models[1].components_.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(models[0].components_, models[1].components_)


@pytest.mark.parametrize("dtype", [">f4", ">f8"])
def test_transform_keeps_the_precision_of_foreign_byte_orders(dtype):
    data = np.random.default_rng(0).random((30, 6)).astype(dtype)
    model = EucNMF(2, random_state=0).fit(data)
    expected = np.dtype(dtype).newbyteorder("=")
    assert model.transform(data).dtype == expected
    assert model.components_.dtype == expected


class OfFewParameters(RobustNMF):
    """An estimator of a user that fixes most parameters."""

    def __init__(self, n_components=None, random_state=None):
        super().__init__(n_components, weighting="entropy", random_state=random_state)


def test_a_subclass_may_have_fewer_parameters(tmp_path):
    model = OfFewParameters(3, random_state=0)
    assert set(model.get_params()) == {"n_components", "random_state"}
    codes = model.fit_transform(X, checkpoint=tmp_path / "fit.npz")
    expected = RobustNMF(3, weighting="entropy", random_state=0).fit_transform(X)
    np.testing.assert_array_equal(codes, expected)
