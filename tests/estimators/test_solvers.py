"""The choice of the solver, and its results."""

import numpy as np
import pytest

from robustnmf import (
    EWRNMF,
    NMFL2,
    ConvexNMF,
    EucNMF,
    Free,
    Frobenius,
    Huber,
    HuberRNMF,
    KullbackLeibler,
    Orthogonal,
    RobustNMF,
    Uniform,
)  # fmt: skip
from robustnmf.loop.compatibility import ModelSpec, fastest_solver
from robustnmf.losses import LOSSES
from robustnmf.structures import STRUCTURES
from tests.problems import noisy_low_rank, positive_start

X = noisy_low_rank(80, 20, 4, outliers=8)


def test_auto_is_the_fastest_that_applies():
    chosen = {
        (loss, structure): fastest_solver(
            ModelSpec(LOSSES[loss](), Uniform(), STRUCTURES[structure]())
        )
        for loss in LOSSES
        for structure in STRUCTURES
    }
    assert chosen["frobenius", "free"] == "hals"
    assert chosen["kullback-leibler", "free"] == chosen["beta", "free"] == "mu-extrapolated"
    assert fastest_solver(ModelSpec(Frobenius(), Huber(1.0), Free())) == "mu-extrapolated"
    assert {solver for (_, s), solver in chosen.items() if s != "free"} == {"mu"}


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (RobustNMF(2, loss="kullback-leibler", solver="hals"), "needs a squared error"),
        (RobustNMF(2, structure="convex", solver="hals"), "mixture of samples"),
        (RobustNMF(2, structure="convex", solver="mu-extrapolated"), "mixture of samples"),
        (RobustNMF(2, structure=Orthogonal(), solver="hals"), "has several"),
        (ConvexNMF(2, solver="hals"), "mixture of samples"),
        (RobustNMF(2, solver="newton"), "solver"),
    ],
)
def test_a_solver_that_does_not_apply_is_refused(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(X)


@pytest.mark.parametrize(
    "model", [EucNMF(3), NMFL2(3), HuberRNMF(3, cutoff=0.5), EWRNMF(3, gamma=20.0)]
)
def test_the_papers_methods_take_hals_and_end_no_worse(model):
    arguments = {"init": "custom", "tol": 1e-7, "max_iter": 5000}
    W, H = positive_start(80, 20, 3)
    assert model.solver == "mu"
    ends = []
    for solver in ("mu", "hals"):
        model.set_params(solver=solver, **arguments).fit(X, W=W, H=H)
        ends.append((model.objective_history_[-1], model.n_iter_))
    (mu, mu_passes), (hals, hals_passes) = ends
    assert hals <= mu + 1e-4 * abs(mu)
    assert hals_passes < mu_passes


@pytest.mark.parametrize("share", [0.0, 0.2])
def test_fixed_components_stay_under_hals_and_the_objective_falls(share):
    rng = np.random.default_rng(0)
    table = np.where(rng.random(X.shape) < share, np.nan, X)
    fixed = rng.random((2, X.shape[1]))
    model = RobustNMF(
        4, weighting="l21", fixed_components=fixed, solver="hals", max_iter=60, tol=0,
        random_state=0,
    ).fit(table)  # fmt: skip
    np.testing.assert_allclose(model.components_[:2], fixed, rtol=1e-12)
    assert np.all(np.diff(model.objective_history_) <= 1e-9 * model.objective_history_[0])


@pytest.mark.parametrize("solver", ["mu", "mu-extrapolated", "hals"])
def test_tol_means_the_same_for_every_solver(solver):
    model = RobustNMF(4, weighting="uniform", solver=solver, tol=1e-3, random_state=0).fit(X)
    history = model.objective_history_[:-1]  # the last entry is for the final codes
    assert (history[-11] - history[-1]) <= 10 * 1e-3 * history[-11]
    assert (history[-12] - history[-2]) > 10 * 1e-3 * history[-12]
    assert model.n_iter_ == len(history) - 1


@pytest.mark.parametrize("loss", [KullbackLeibler(), "beta"])
def test_extrapolation_is_never_worse_than_plain_updates(loss):
    for seed in range(5):
        table = noisy_low_rank(50, 15, 3, seed=seed)
        W, H = positive_start(50, 15, 3, seed)
        arguments = {"loss": loss, "weighting": Uniform(), "init": "custom", "tol": 0}
        for passes in (5, 40, 200):
            plain, fast = (
                RobustNMF(3, solver=solver, max_iter=passes, **arguments)
                .fit(table, W=W, H=H)
                .objective_history_[-1]
                for solver in ("mu", "mu-extrapolated")
            )
            assert fast <= 1.0001 * plain


@pytest.mark.parametrize("l1_ratio", [0.0, 0.5])
def test_a_small_penalty_kills_no_component(l1_ratio):
    for seed in range(8):
        rng = np.random.default_rng(seed)
        table = rng.gamma(0.5, size=(30, 3)) @ rng.gamma(0.5, size=(3, 20))
        table += 0.1 * rng.random((30, 20))
        table[:3] += 100 * rng.random((3, 20))
        model = RobustNMF(
            3, weighting="uniform", solver="hals", init="random", random_state=seed,
            alpha_W=np.float64(1e-6), l1_ratio=l1_ratio,
        )  # fmt: skip
        codes = model.fit_transform(table)
        assert np.all(codes.max(axis=0) * model.components_.max(axis=1) > 0)


@pytest.mark.parametrize("solver", ["hals", "mu-extrapolated"])
def test_the_history_never_rises_however_soon_an_automatic_parameter_is_frozen(solver):
    for seed in range(30):
        table = np.random.default_rng(seed).gamma(0.5, size=(8, 6))
        model = RobustNMF(
            2, solver=solver, init="random", random_state=seed, max_iter=4 + seed % 9, tol=0
        ).fit(table)
        history = model.objective_history_
        assert np.all(np.diff(history) <= 1e-10 * np.abs(history).max())


def test_hals_starts_from_zeros_where_multiplicative_updates_cannot():
    W, H = positive_start(80, 20, 3)
    W[0], H[:, 0] = 0, 0
    RobustNMF(3, init="custom", solver="hals").fit(X, W=W, H=H)
    with pytest.warns(UserWarning, match="zero"):
        model = RobustNMF(3, init="custom", solver="mu").fit(X, W=W, H=H)
    assert not model.components_[:, 0].any()
    with pytest.raises(ValueError, match="W is all zero"):
        RobustNMF(3, init="custom", solver="hals").fit(X, W=0 * W, H=H)
    W[0, 0] = -1
    with pytest.raises(ValueError, match=r"W holds 1 negative value, first at \[0, 0\] = -1,"):
        RobustNMF(3, init="custom", solver="hals").fit(X, W=W, H=H)
