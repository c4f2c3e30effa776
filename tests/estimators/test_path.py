"""A path is its single fits."""

import numpy as np
import pytest
import scipy.sparse

from robustnmf import L21, Entropy, Fuzzy, Huber, RobustNMF, fit_path
from tests.problems import noisy_low_rank, positive_start

X = noisy_low_rank(60, 15, 3, outliers=6)


@pytest.mark.parametrize("solver", ["mu", "hals"])
def test_a_path_is_its_single_fits(solver):
    weightings = [Entropy(5.0), L21(), Huber(0.3), Entropy(50.0), "uniform", Fuzzy(20.0)]
    W, H = positive_start(60, 15, 3)
    arguments = {"init": "custom", "solver": solver, "max_iter": 25, "tol": 0}
    path = fit_path(X, 3, weightings=weightings, W=W, H=H, **arguments)
    assert [member.weighting for member in path[:4]] == weightings[:4]
    for weighting, member in zip(weightings, path, strict=True):
        model = RobustNMF(3, weighting=weighting, **arguments)
        codes = model.fit_transform(X, W=W, H=H)
        close = {"rtol": 1e-6, "atol": 1e-8}
        np.testing.assert_allclose(member.codes, codes, **close)
        np.testing.assert_allclose(member.components, model.components_, **close)
        np.testing.assert_allclose(member.sample_importances, model.sample_importances_, **close)
        np.testing.assert_allclose(member.energies, model.energies_, **close)
        assert member.objective == pytest.approx(model.objective_history_[-1])
        assert member.effective_sample_size == pytest.approx(model.effective_sample_size_)
        assert member.n_iter == 25
        assert not member.converged


def test_every_weighting_has_the_same_starts_and_the_best_is_what_n_init_keeps():
    grid = [Entropy(5.0), Huber(0.5)]
    path = fit_path(X, 3, weightings=grid, n_init=4, random_state=3, tol=0, max_iter=0)
    assert [member.start for member in path] == [0, 1, 2, 3] * 2
    for one, other in zip(path[:4], path[4:], strict=True):
        np.testing.assert_array_equal(one.components, other.components)
    path = fit_path(X, 3, weightings=grid[:1], n_init=4, random_state=3, tol=1e-6)
    model = RobustNMF(3, weighting=grid[0], init="random", n_init=4, random_state=3, tol=1e-6)
    best = min(member.objective for member in path)
    assert model.fit(X).objective_history_[-1] == pytest.approx(best)
    assert all(member.converged for member in path)


def test_the_order_of_the_weightings_does_not_matter():
    names = ["uniform", "l21"]
    one, other = (fit_path(X, 3, weightings=w, random_state=0) for w in (names, names[::-1]))
    for member, same in zip(one, other[::-1], strict=True):
        np.testing.assert_allclose(member.components, same.components, rtol=1e-6)


@pytest.mark.parametrize("state", [None, np.random.RandomState(0)])
def test_any_random_state_gives_all_batches_the_same_starts(state):
    path = fit_path(
        X, 2, weightings=["l21", Huber(0.5)], n_init=2, random_state=state, tol=0, max_iter=0
    )
    np.testing.assert_array_equal(path[0].codes, path[2].codes)


@pytest.mark.parametrize(
    ("weightings", "message"),
    [
        ([], "at least one weighting"),
        ("entropy", "at least one weighting"),
        (["entropi"], "Known names are"),
        ([3], "3"),
        ([[1]], "neither a Weighting nor the name"),
        ([Entropy(-1.0)], "gamma"),
    ],
)
def test_weightings_that_are_not_a_list_are_refused(weightings, message):
    with pytest.raises((ValueError, TypeError), match=message):
        fit_path(X, 2, weightings=weightings)


def test_unknown_parameters_and_bad_counts_are_refused():
    with pytest.raises(TypeError, match="unexpected keyword"):
        fit_path(X, 2, weightings=["l21"], gamma=3)
    with pytest.raises(TypeError, match="list as weightings"):
        fit_path(X, 2, weightings=["l21"], weighting="l21")
    for bad in ({"n_init": 0}, {"n_init": "a"}, {"random_state": "x"}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            fit_path(X, 2, weightings=["l21"], **bad)


@pytest.mark.parametrize("structure", ["free", "convex"])
def test_a_device_gives_the_same_numbers(structure):
    pytest.importorskip("torch")
    weightings = ["uniform"] if structure == "convex" else ["uniform", "l21", Fuzzy(1.5), "entropy"]
    settings = {
        "weightings": weightings, "n_init": 2, "structure": structure, "solver": "mu", "tol": 0,
        "max_iter": 30, "random_state": 0,
    }  # fmt: skip
    here = fit_path(X, 3, **settings)
    there = fit_path(X, 3, device="cpu", **settings)
    for one, other in zip(here, there, strict=True):
        assert type(other.codes) is np.ndarray
        np.testing.assert_allclose(other.codes, one.codes, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(other.sample_importances, one.sample_importances, atol=1e-9)


def test_a_device_takes_dense_tables_only():
    pytest.importorskip("torch")
    holes = X.copy()
    holes[0, 0] = np.nan
    with pytest.raises(ValueError, match="needs dense X"):
        fit_path(scipy.sparse.csr_array(X), 3, weightings=["uniform"], device="cpu")
    with pytest.raises(ValueError, match="needs dense X"):
        fit_path(holes, 3, weightings=["uniform"], device="cpu")
