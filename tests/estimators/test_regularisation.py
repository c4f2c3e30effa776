"""alpha_W, alpha_H and l1_ratio mean what scikit-learn means by them."""

import warnings

import numpy as np
import pytest
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning

from robustnmf import Beta, RobustNMF, Uniform, WeightCollapseWarning
from robustnmf.losses import LOSSES
from robustnmf.structures import STRUCTURES
from tests.problems import PAIRS, law_over, loss_of, noisy_low_rank, positive_start, with_holes

X = noisy_low_rank(40, 15, 3, seed=3)
W, H = positive_start(40, 15, 3)
T = 15


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", WeightCollapseWarning)
        yield


def both(loss, beta, alpha_W, alpha_H, l1_ratio, iterations=T):
    """scikit-learn on X transposed, and ours: one order of updates."""
    shared = {"init": "custom", "solver": "mu", "tol": 0, "max_iter": iterations}
    of_basis = alpha_W if alpha_H == "same" else alpha_H  # X is transposed, "same" is not
    reference = NMF(
        3, beta_loss=beta, alpha_W=of_basis, alpha_H=alpha_W, l1_ratio=l1_ratio, **shared
    )
    base = reference.fit_transform(X.T, W=H.T.copy(), H=W.T.copy())
    model = RobustNMF(
        3, loss=loss, weighting="uniform", alpha_W=alpha_W, alpha_H=alpha_H, l1_ratio=l1_ratio,
        **shared,
    )  # fmt: skip
    codes = model.fit_transform(X, W=W, H=H)
    return (reference.components_.T, base.T), (codes, model.components_), model


@pytest.mark.parametrize(
    ("alpha_W", "alpha_H"), [(0.02, 0.0), (0.0, 0.05), (0.02, 0.05), (0.02, "same")]
)
@pytest.mark.parametrize(
    ("loss", "beta", "l1_ratio"),
    [
        ("frobenius", 2, 0.0),
        ("frobenius", 2, 0.3),
        ("frobenius", 2, 1.0),
        ("kullback-leibler", 1, 1.0),
        ("itakura-saito", 0, 1.0),
        (Beta(1.5), 1.5, 1.0),
        (Beta(1), 1, 1.0),
        (Beta(2), 2, 0.3),
    ],
)
def test_updates_are_scikit_learns_where_those_descend(loss, beta, l1_ratio, alpha_W, alpha_H):
    expected, found, _ = both(loss, beta, alpha_W, alpha_H, l1_ratio)
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-8)


@pytest.mark.parametrize(("loss", "beta"), [("kullback-leibler", 1), ("itakura-saito", 0)])
def test_squares_beside_a_divergence_end_where_scikit_learn_does(loss, beta):
    """Its rule takes a step that is not sure to descend; ours is, and reaches the same end."""

    def value(codes, basis):
        part = LOSSES[loss]()
        squares = 15 * 0.01 * (codes**2).sum() + 40 * 0.01 * (basis**2).sum()
        return part.entries(X, codes @ basis).sum() + squares / 2

    wanted, found, model = both(loss, beta, 0.01, 0.01, 0.0, iterations=3000)
    assert value(*found) == pytest.approx(value(*wanted), rel=1e-3)
    assert np.all(np.diff(model.objective_history_) <= 1e-9 * model.objective_history_[0])


@law_over(
    "loss, weighting, structure, data, l1_ratio",
    [
        (*pair, structure, data, l1_ratio)
        for pair in PAIRS
        for structure in STRUCTURES
        for data in ("dense", "missing")
        for l1_ratio in (0.5, 0.0, 1.0)
    ],
)
def test_the_objective_never_rises(loss, weighting, structure, data, l1_ratio):
    table = X if data == "dense" else with_holes(X)
    model = RobustNMF(
        3, loss=loss, weighting=weighting, structure=structure, alpha_W=0.01, alpha_H=0.02,
        l1_ratio=l1_ratio, init="random", random_state=0, max_iter=40, tol=0,
    ).fit(table)  # fmt: skip
    history = model.objective_history_
    assert np.all(np.diff(history) <= 1e-12 * np.abs(history).max())
    assert history[-1] < history[0]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("factor", [1e-3, 1e3])
def test_units_do_not_matter(loss, factor):
    """X, penalties and start in other units: the same fit."""
    arguments = {"weighting": Uniform(), "init": "custom", "tol": 0, "max_iter": 20}
    degree = LOSSES[loss]().degree
    one = RobustNMF(
        3, loss=loss_of(loss), alpha_W=0.01, alpha_H=0.02, l1_ratio=1.0, **arguments
    )  # fmt: skip
    # Codes keep their size: what they pay grows as the loss; the basis takes the factor.
    other = RobustNMF(
        3, loss=loss_of(loss, factor), alpha_W=0.01 * factor**degree,
        alpha_H=0.02 * factor ** (degree - 1), l1_ratio=1.0, **arguments,
    )  # fmt: skip
    codes = one.fit_transform(X, W=W, H=H)
    np.testing.assert_allclose(other.fit_transform(factor * X, W=W, H=factor * H), codes, rtol=1e-8)
    np.testing.assert_allclose(other.components_, factor * one.components_, rtol=1e-8)
    np.testing.assert_allclose(
        other.objective_history_, factor**degree * one.objective_history_, rtol=1e-8
    )


def test_unbalanced_starts_give_the_same_fit():
    arguments = {"weighting": "uniform", "init": "custom", "tol": 0, "max_iter": 20}
    penalties = {"alpha_W": 0.01, "alpha_H": 0.02, "l1_ratio": 0.5}
    one = RobustNMF(3, **arguments, **penalties)
    codes = one.fit_transform(X, W=1e6 * W, H=H)
    reference = NMF(
        3, init="custom", solver="mu", tol=0, max_iter=20, alpha_W=0.02, alpha_H=0.01, l1_ratio=0.5
    )
    base = reference.fit_transform(X.T, W=H.T.copy(), H=1e6 * W.T)
    np.testing.assert_allclose(one.components_, base.T, rtol=1e-8)
    np.testing.assert_allclose(codes, reference.components_.T, rtol=1e-8)


def test_alpha_h_is_alpha_w_by_default():
    arguments = {"alpha_W": 0.05, "random_state": 0, "max_iter": 20, "tol": 0}
    one, other = RobustNMF(3, **arguments), RobustNMF(3, alpha_H=0.05, **arguments)
    np.testing.assert_array_equal(one.fit(X).components_, other.fit(X).components_)


def test_energies_and_reconstruction_are_of_the_loss_alone():
    model = RobustNMF(3, alpha_W=0.1, l1_ratio=1.0, random_state=0)
    codes = model.fit_transform(X)
    residual = X - codes @ model.components_
    np.testing.assert_allclose(model.energies_, (residual**2).sum(axis=1), rtol=1e-9)
    assert model.reconstruction_err_ == pytest.approx(np.linalg.norm(residual))
    np.testing.assert_allclose(model.score_samples(X), -model.energies_, rtol=1e-9)


@pytest.mark.parametrize(("solver", "alpha_H"), [("mu", 0.1), ("hals", 0.01)])
def test_absolute_values_make_codes_sparse(solver, alpha_H):
    arguments = {
        "alpha_H": alpha_H,
        "l1_ratio": 1.0,
        "random_state": 0,
        "solver": solver,
        "init": "random",
    }
    zeros = [
        np.mean(RobustNMF(6, alpha_W=alpha, **arguments).fit_transform(X) == 0)
        for alpha in (0.0, 0.05)
    ]
    assert zeros[1] > zeros[0] + 0.1


def test_the_best_start_is_chosen_with_penalties():
    arguments = {"alpha_W": 0.3, "alpha_H": 0.3, "l1_ratio": 0.5, "max_iter": 300}
    best = RobustNMF(4, init="random", n_init=4, random_state=0, **arguments).fit(X)
    # Under one weighting: the level of every start, measured by the estimator itself.
    weighting = best.weighting_
    values = []
    for seed in range(4):
        one = RobustNMF(4, init="random", random_state=seed, **arguments).fit(X)
        one.weighting_ = weighting
        values.append(one.objective(X))
    assert best.objective(X) <= np.median(values)


@pytest.mark.parametrize("loss", ["frobenius", "kullback-leibler", Beta(3.0)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_prohibitive_penalties_leave_nothing(loss, dtype):
    """Penalties are in the units of the user: of tiny data they leave zeros, not infinities."""
    tiny = (1e-25 * X).astype(dtype)
    model = RobustNMF(3, loss=loss, alpha_W=10.0, l1_ratio=0.5, random_state=0, max_iter=50)
    codes = model.fit_transform(tiny)
    assert np.isfinite(codes).all()
    assert np.abs(codes @ model.components_).max() < 1e-3 * tiny.max()
