"""The library compared with literal transcriptions and with scikit-learn."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.decomposition import NMF

from robustnmf import EWRNMF, FWRNMF, NMFL2, ConvexNMF, EucNMF, HuberRNMF, WeightCollapseWarning
from tests.oracles import paper
from tests.problems import noisy_low_rank, positive_start

T = 100
GAMMAS = [1e-4, 1.0, 1e4]
PS = [1.5, 2.0, 6.0, 11.0]


def random_data():
    return noisy_low_rank(60, 20, 4, seed=3), 4


def wdbc():
    """Breast cancer measurements, features scaled to [0, 1]."""
    X = load_breast_cancer().data
    return (X - X.min(axis=0)) / np.ptp(X, axis=0), 2


DATA = {"random": random_data, "wdbc": wdbc}
every_data = pytest.mark.parametrize("data", DATA)


def compare(model, oracle, X, k, iterations=T, **parameters):
    """Fit both from one start; return the model and the largest relative difference."""
    W, H = positive_start(*X.shape, k)
    with np.errstate(all="ignore"):
        base, representation, objectives = oracle(X.T, H.T, W.T, *parameters.values(), iterations)
    parameters |= {"solver": "mu", "init": "custom", "tol": 0, "max_iter": iterations}
    model.set_params(n_components=k, **parameters)
    codes = model.fit_transform(X, W=W, H=H)
    differences = [
        np.abs(ours - theirs).max() / np.abs(theirs).max()
        for ours, theirs in (
            (codes, representation.T),
            (model.components_, base.T),
            (codes @ model.components_, (base @ representation).T),
            (model.objective_history_, np.array(objectives)),
        )
    ]
    return model, max(differences)


@every_data
@pytest.mark.parametrize(
    ("model", "oracle", "parameters"),
    [
        (EucNMF(), paper.eucnmf, {}),
        (NMFL2(), paper.nmfl2, {}),
        (HuberRNMF(), paper.huberrnmf, {"cutoff": 0.1}),
        (HuberRNMF(), paper.huberrnmf, {"cutoff": 1e4}),
    ],
    ids=["EucNMF", "NMFL2", "HuberRNMF-0.1", "HuberRNMF-1e4"],
)
def test_baselines_equal_their_transcriptions(model, oracle, parameters, data):
    X, k = DATA[data]()
    assert compare(model, oracle, X, k, **parameters)[1] <= 1e-8


@every_data
def test_huber_with_a_tiny_cutoff_agrees_up_to_rounding(data):
    """Weights 1e-4 / |r| amplify rounding: one ulp in the start moves the oracle more."""
    X, k = DATA[data]()
    W, H = positive_start(*X.shape, k)
    literal, moved = (
        paper.huberrnmf(X.T, factor * H.T, factor * W.T, 1e-4, T)[1]
        for factor in (1.0, 1.0 + 2.0**-52)
    )
    _, difference = compare(HuberRNMF(), paper.huberrnmf, X, k, cutoff=1e-4)
    assert difference <= max(1e-8, np.abs(literal - moved).max() / literal.max())


@every_data
def test_convexnmf_equals_its_transcription(data):
    X, k = DATA[data]()
    rng = np.random.default_rng(1)
    mixing, codes = rng.random((2, len(X), k)) + 0.1
    P, G, objectives = paper.convexnmf(X.T, mixing, codes, T)
    model = ConvexNMF(k, init="custom", tol=0, max_iter=T)
    ours = model.fit_transform(X, W=codes, H=mixing.T)
    np.testing.assert_allclose(ours, G, rtol=1e-8, atol=1e-8 * G.max())
    np.testing.assert_allclose(model.mixing_, P.T, rtol=1e-8, atol=1e-8 * P.max())
    np.testing.assert_allclose(model.components_, P.T @ X, rtol=1e-8)
    np.testing.assert_allclose(model.objective_history_, objectives, rtol=1e-8)


COLLAPSING = {("random", p) for p in PS} | {("wdbc", 1.5), ("wdbc", 2.0)}
"""Data and p for which FWRNMF gives one sample nearly all weight within T iterations.

The transcription then divides by a rounding error, so both are compared only before.
"""


@every_data
@pytest.mark.filterwarnings("ignore::robustnmf.exceptions.WeightCollapseWarning")
@pytest.mark.parametrize("p", PS)
@pytest.mark.parametrize("iterations", [1, 3, 10, T])
def test_fwrnmf_equals_algorithm_1(iterations, p, data):
    X, k = DATA[data]()
    model, difference = compare(FWRNMF(), paper.fwrnmf, X, k, iterations, p=p)
    assert np.all(np.isfinite(model.components_))
    if iterations < T or (data, p) not in COLLAPSING:
        assert difference <= 1e-8
    if iterations == T:
        collapsed = model.sample_importances_.max() > 0.5
        assert collapsed == ((data, p) in COLLAPSING)


@every_data
@pytest.mark.filterwarnings("ignore::robustnmf.exceptions.WeightCollapseWarning")
@pytest.mark.parametrize("gamma", GAMMAS)
def test_ewrnmf_equals_algorithm_2(gamma, data):
    X, k = DATA[data]()
    model, difference = compare(EWRNMF(), paper.ewrnmf, X, k, gamma=gamma)
    assert difference <= 1e-8
    assert np.all(np.isfinite(model.components_))


@pytest.mark.filterwarnings("ignore::robustnmf.exceptions.WeightCollapseWarning")
@pytest.mark.parametrize("name", ["yale", "orl"])
@pytest.mark.parametrize(
    "model",
    [FWRNMF(p=p) for p in PS] + [EWRNMF(gamma=gamma) for gamma in GAMMAS],
    ids=repr,
)
def test_images_from_0_to_255_remain_finite(model, name, dataset):
    X = dataset(name)
    model.set_params(n_components=10, tol=0, max_iter=30, random_state=0)
    codes = model.fit_transform(X)
    assert np.all(np.isfinite(codes))
    assert np.all(np.isfinite(model.components_))
    assert model.sample_importances_.sum() == pytest.approx(1.0)
    assert np.all(np.isfinite(model.objective_history_))


@pytest.mark.parametrize("T", [1, 10, 100])
def test_eucnmf_equals_the_multiplicative_solver_of_scikit_learn(T):
    """For transposed X, scikit-learn updates our basis first, as the paper does."""
    X, k = random_data()
    W, H = positive_start(*X.shape, k)
    reference = NMF(k, solver="mu", init="custom", tol=0, max_iter=T)
    base = reference.fit_transform(X.T, W=H.T.copy(), H=W.T.copy())
    model = EucNMF(k, init="custom", tol=0, max_iter=T)
    codes = model.fit_transform(X, W=W, H=H)
    np.testing.assert_allclose(model.components_, base.T, rtol=1e-10)
    np.testing.assert_allclose(codes, reference.components_.T, rtol=1e-10)
    assert model.reconstruction_err_ == pytest.approx(reference.reconstruction_err_, rel=1e-10)


def test_collapse_raises_a_warning_for_the_cells_that_collapse():
    X, k = random_data()
    W, H = positive_start(*X.shape, k)
    model = EWRNMF(k, gamma=1e-4, init="custom", tol=0, max_iter=T)
    with pytest.warns(WeightCollapseWarning, match="Raise gamma from 0.0001 to"):
        model.fit(X, W=W, H=H)
