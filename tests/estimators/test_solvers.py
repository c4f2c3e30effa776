"""Which solver runs, and where it ends."""

import numpy as np
import pytest

from robustnmf import (
    EWRNMF,
    NMFL2,
    ConvexNMF,
    EucNMF,
    HuberRNMF,
    KullbackLeibler,
    Orthogonal,
    RobustNMF,
    Uniform,
)  # fmt: skip
from robustnmf.combinations import fastest_solver
from robustnmf.losses import LOSSES
from robustnmf.structures import STRUCTURES
from tests.problems import noisy_low_rank, positive_start

X = noisy_low_rank(80, 20, 4, outliers=8)


def test_auto_is_the_fastest_that_applies():
    chosen = {
        (loss, structure): fastest_solver(LOSSES[loss](), STRUCTURES[structure]())
        for loss in LOSSES
        for structure in STRUCTURES
    }
    assert chosen["frobenius", "free"] == "hals"
    assert chosen["kullback-leibler", "free"] == chosen["beta", "free"] == "mu-extrapolated"
    assert {solver for (_, s), solver in chosen.items() if s != "free"} == {"mu"}


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (RobustNMF(2, loss="kullback-leibler", solver="hals"), "needs a squared error"),
        (RobustNMF(2, structure="convex", solver="hals"), "mixture of samples"),
        (RobustNMF(2, structure="convex", solver="mu-extrapolated"), "mixture of samples"),
        (RobustNMF(2, structure=Orthogonal(), solver="hals"), "has several"),
        (ConvexNMF(2, solver="hals"), "mixture of samples"),
        (RobustNMF(2, solver="cd"), "solver"),
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
