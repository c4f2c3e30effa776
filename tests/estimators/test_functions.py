"""``non_negative_factorization``: the call of scikit-learn, by ``RobustNMF``."""

import inspect

import numpy as np
import pytest
import sklearn.decomposition

from robustnmf import RobustNMF, non_negative_factorization
from tests.problems import noisy_low_rank, positive_start

X = noisy_low_rank(30, 6, 2) + 0.01
W, H = positive_start(30, 6, 2)
SHORT = {"random_state": 0, "max_iter": 30, "tol": 1e-2}


def test_it_is_the_fit_of_the_class():
    model = RobustNMF(2, **SHORT)
    codes = model.fit_transform(X)
    W_, H_, n_iter = non_negative_factorization(X, n_components=2, **SHORT)
    np.testing.assert_array_equal(W_, codes)
    np.testing.assert_array_equal(H_, model.components_)
    assert n_iter == model.n_iter_
    assert non_negative_factorization(X, **SHORT)[1].shape == (2, 6)  # the rule of thumb


def test_a_start_is_taken_by_position():
    model = RobustNMF(2, init="custom", tol=0, max_iter=3)
    codes = model.fit_transform(X, W=W, H=H)
    for n_components in (2, None, "auto"):
        got = non_negative_factorization(X, W, H, n_components, init="custom", tol=0, max_iter=3)
        np.testing.assert_array_equal(got[0], codes)
    with pytest.warns(RuntimeWarning, match="W and H are ignored"):
        non_negative_factorization(X, W, H, 2, **SHORT)


@pytest.mark.parametrize("n_components", [None, "auto", 2])
def test_a_basis_is_fixed(n_components):
    model = RobustNMF(2, **SHORT).fit(X)
    basis = model.components_
    codes, same, _ = non_negative_factorization(
        X, H=basis, n_components=n_components, update_H=False, weighting="uniform"
    )
    np.testing.assert_array_equal(same, basis)
    np.testing.assert_allclose(codes, model.transform(X), atol=1e-8)


def test_arguments_that_contradict_a_fixed_basis_are_refused():
    with pytest.raises(ValueError, match=r"update_H=False needs .* Pass H"):
        non_negative_factorization(X, update_H=False)
    with pytest.raises(ValueError, match="n_components=3, but H has 2 rows"):
        non_negative_factorization(X, H=H, n_components=3, update_H=False)
    with pytest.raises(TypeError, match="Pass H with update_H=False"):
        non_negative_factorization(X, fixed_components=H)
    with pytest.warns(RuntimeWarning, match="W is ignored"):
        non_negative_factorization(X, W, H, update_H=False, **SHORT)


def test_every_parameter_of_scikit_learns_function_is_taken():
    theirs = inspect.signature(sklearn.decomposition.non_negative_factorization).parameters
    ours = inspect.signature(non_negative_factorization).parameters
    assert set(theirs) <= set(ours) | set(inspect.signature(RobustNMF).parameters)
    assert list(ours)[:4] == list(theirs)[:4]


def test_codes_for_given_components_are_the_best_ones_without_a_warning(recwarn):
    expected = RobustNMF(2, **SHORT).fit(X)
    best = expected.transform(X)
    few = non_negative_factorization(X[:5], H=expected.components_, update_H=False)[0]
    np.testing.assert_allclose(few, best[:5], rtol=1e-9, atol=1e-12)
    assert not recwarn.list
