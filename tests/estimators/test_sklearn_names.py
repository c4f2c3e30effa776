"""Parameters of scikit-learn's NMF: accepted if they mean the same, else refused by name."""

import inspect

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.decomposition import NMF, MiniBatchNMF

from robustnmf import Beta, EucNMF, ItakuraSaito, KullbackLeibler, RobustNMF
from robustnmf.estimators.robust import REPLACED
from tests.problems import noisy_low_rank, positive_start

X = noisy_low_rank(20, 6, 2) + 0.01
W, H = positive_start(20, 6, 2)


def components(*args, **parameters):
    return (
        RobustNMF(2, *args, random_state=0, max_iter=20, tol=1e-2, **parameters).fit(X).components_
    )


@pytest.mark.parametrize(
    ("beta_loss", "loss"),
    [
        ("frobenius", "frobenius"),
        (2, "frobenius"),
        (2.0, "frobenius"),
        ("kullback-leibler", "kullback-leibler"),
        (1, KullbackLeibler()),
        ("itakura-saito", "itakura-saito"),
        (np.float64(0), ItakuraSaito()),
        (1.5, Beta(1.5)),
        (-0.5, Beta(-0.5)),
    ],
)
def test_beta_loss_is_the_loss(beta_loss, loss):
    np.testing.assert_array_equal(components(beta_loss=beta_loss), components(loss=loss))


def test_two_losses_are_refused():
    with pytest.raises(ValueError, match="are both given"):
        RobustNMF(2, loss="kullback-leibler", beta_loss=1).fit(X)
    with pytest.raises(ValueError, match="'beta_loss' parameter of RobustNMF must be"):
        RobustNMF(2, beta_loss="huber").fit(X)


def test_coordinate_descent_is_hals():
    np.testing.assert_array_equal(components(solver="cd"), components(solver="hals"))
    with pytest.raises(ValueError, match=r"solver='cd' means 'hals': .* needs a squared error"):
        RobustNMF(2, solver="cd", beta_loss=1).fit(X)


def test_no_init_is_the_default_of_the_class():
    np.testing.assert_array_equal(components(init=None), components())
    one, same = (EucNMF(2, random_state=0, max_iter=5, tol=0) for _ in range(2))
    np.testing.assert_array_equal(
        one.set_params(init=None).fit(X).components_, same.fit(X).components_
    )


def test_nndsvdar_depends_on_the_seed():
    models = [RobustNMF(2, init="nndsvdar", max_iter=0, tol=0, weighting="uniform") for _ in "ab"]
    one, other = (m.set_params(random_state=s).fit(X) for s, m in enumerate(models))
    assert one.components_.min() > 0
    assert np.abs(one.components_ - other.components_).max() > 0


def test_more_components_than_features():
    model = RobustNMF(9, random_state=0, max_iter=50, tol=1e-2).fit(X)
    assert model.components_.shape == (9, 6)
    assert model.n_components_ == 9


def test_starts_are_taken_by_position():
    model = RobustNMF(2, init="custom", max_iter=5, tol=0)
    codes = clone(model).fit_transform(X, None, W, H)
    np.testing.assert_array_equal(codes, model.fit_transform(X, W=W, H=H))
    np.testing.assert_array_equal(clone(model).fit(X, None, W, H).components_, model.components_)


def test_shuffle_is_refused_with_a_reason():
    np.testing.assert_array_equal(components(shuffle=False), components())
    with pytest.raises(ValueError, match="shuffle=True is not supported"):
        components(shuffle=True)


def test_every_parameter_of_nmf_is_one_of_ours():
    ours = set(inspect.signature(RobustNMF).parameters)
    assert set(inspect.signature(NMF).parameters) <= ours
    rest = set(inspect.signature(MiniBatchNMF).parameters) - ours
    assert rest == set(REPLACED)


@pytest.mark.parametrize("name", REPLACED)
def test_parameters_of_minibatches_are_refused_with_their_replacement(name):
    with pytest.raises(TypeError, match=f"RobustNMF has no {name}: .*(partial_fit|Leave it out)"):
        RobustNMF(2, **{name: 10})
