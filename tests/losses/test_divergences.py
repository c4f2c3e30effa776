"""Laws of losses: zero if data and approximation agree, gradients, homogeneity."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sklearn.decomposition._nmf import _beta_divergence

from robustnmf.losses import (
    LOSSES,
    Alpha,
    Beta,
    Frobenius,
    ItakuraSaito,
    KullbackLeibler,
    ReweightedLoss,
    TruncatedLoss,
)
from tests.problems import CUTOFF, loss_of

BETAS = [-1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0]
ALPHAS = [-1.0, 0.5, 1.0, 2.0]
ALL = (
    [loss_of(name) for name in LOSSES]
    + [Beta(beta) for beta in BETAS]
    + [Alpha(alpha) for alpha in ALPHAS]
)
every = pytest.mark.parametrize("loss", ALL, ids=repr)
every_curved = pytest.mark.parametrize(
    "loss", [loss for loss in ALL if not loss.weighs_entries], ids=repr
)
"""Without losses of weighted squares (tests/losses/test_reweighted.py)."""

POSITIVE = st.floats(1e-3, 1e3)


def derivative_factor(loss):
    """d'(y) over (positive - negative part): 2, 1 or 1 / |alpha|."""
    if isinstance(loss, (Frobenius, ReweightedLoss)):
        return 2.0
    return 1.0 / abs(loss.alpha) if isinstance(loss, Alpha) else 1.0


def kink(loss, x, y, step):
    """Maximum error of a central difference near the cutoff.

    The curvature of Huber's loss jumps by 2 there, the slope of the truncated loss by 2 cutoffs.
    """
    beside = abs(abs(x[0] - y[0]) - CUTOFF) <= step[0]
    jump = 2 * CUTOFF if isinstance(loss, TruncatedLoss) else step[0] / 2
    return jump if beside and isinstance(loss, ReweightedLoss) else 0.0


def slope(loss, x, y):
    negative, positive = (1.0 if part is None else part for part in loss.split(x, y))
    return derivative_factor(loss) * (positive - negative)


@every
@given(x=POSITIVE, y=POSITIVE)
def test_losses_are_nonnegative_and_zero_at_the_data(loss, x, y):
    x, y = np.array([x]), np.array([y])
    assert loss.entries(x, y)[0] >= 0
    assert loss.entries(x, x)[0] <= 1e-15 * x[0] ** loss.degree * 10


@every
@example(x=1.0 + CUTOFF, y=1.0)
@given(x=POSITIVE, y=POSITIVE)
def test_the_split_is_the_gradient(loss, x, y):
    x, y = np.array([x]), np.array([y])
    step = 1e-5 * y
    difference = (loss.entries(x, y + step) - loss.entries(x, y - step)) / (2 * step)
    size = max(x[0], y[0]) ** loss.degree if loss.degree >= 0 else min(x[0], y[0]) ** loss.degree
    terms = abs(slope(loss, x, y)) + size / y
    ratio = max(x[0] / y[0], y[0] / x[0]) ** 2
    slack = 1e-8 * ratio * (terms + loss.entries(x, y) / y) + kink(loss, x, y, step)
    assert abs(difference - slope(loss, x, y)) <= slack


@pytest.mark.parametrize("loss", [loss for loss in ALL if loss.takes_zeros], ids=repr)
@example(y=CUTOFF)
@given(y=POSITIVE)
def test_losses_that_accept_zeros_are_exact_there(loss, y):
    zero, tiny, y = np.zeros(1), np.full(1, 1e-200), np.array([y])
    np.testing.assert_allclose(loss.entries(zero, y), loss.entries(tiny, y), rtol=1e-6)
    step = 1e-5 * y
    difference = (loss.entries(zero, y + step) - loss.entries(zero, y - step)) / (2 * step)
    slack = 1e-8 + kink(loss, zero, y, step)
    np.testing.assert_allclose(slope(loss, zero, y), difference, rtol=1e-6, atol=slack)
    assert np.isfinite(loss.entries(zero, np.zeros(1)))


@every
@pytest.mark.parametrize("gap", [1e-3, 1e-5, 1e-7])
def test_nearly_exact_entries_keep_their_digits(loss, gap):
    y = np.array([0.3, 1.0, 7.0])
    x = y + gap * y
    want = 0.5 * derivative_factor(loss) * loss.curvature(y, y) * (x - y) ** 2
    np.testing.assert_allclose(loss.entries(x, y), want, rtol=5 * gap)


@every_curved
def test_the_curvature_equals_the_second_derivative_at_the_data(loss):
    y = np.array([0.3, 1.0, 7.0])
    step = 1e-4 * y
    second = (slope(loss, y, y + step) - slope(loss, y, y - step)) / (2 * step)
    np.testing.assert_allclose(derivative_factor(loss) * loss.curvature(y, y), second, rtol=1e-6)


@every_curved
@given(x=POSITIVE, y=POSITIVE)
def test_the_curvature_is_positive_and_exact_for_convex_losses(loss, x, y):
    x, y = np.array([x]), np.array([y])
    step = 1e-4 * y
    second = (slope(loss, x, y + step) - slope(loss, x, y - step)) / (2 * step)
    # If the loss is not convex, its second derivative can be negative, and is raised.
    exact, least = second / derivative_factor(loss), 0.1 * loss.curvature(y, y)
    convex = not isinstance(loss, ItakuraSaito | Beta) or 1 <= getattr(loss, "beta", 0.0) <= 2
    wanted = exact if convex else np.maximum(exact, least)
    np.testing.assert_allclose(loss.curvature(x, y), wanted, rtol=1e-4, atol=1e-4 * least[0])


@every
@given(x=POSITIVE, y=POSITIVE, factor=st.floats(0.1, 10.0))
def test_losses_are_homogeneous(loss, x, y, factor):
    x, y = np.array([x]), np.array([y])
    want = factor**loss.degree * loss.entries(x, y)
    size = max((factor * x[0]) ** loss.degree, (factor * y[0]) ** loss.degree)
    np.testing.assert_allclose(
        loss.rescaled(factor).entries(factor * x, factor * y), want, rtol=1e-8, atol=1e-12 * size
    )


@pytest.mark.parametrize("beta", [0.0, 0.5, 1.0, 1.5, 2.0, 3.0])
def test_beta_equals_scikit_learn(beta):
    rng = np.random.default_rng(0)
    X, W, H = rng.random((9, 7)) + 0.1, rng.random((9, 3)), rng.random((3, 7))
    ours = Beta(beta).entries(X, W @ H).sum()
    assert ours == pytest.approx(_beta_divergence(X, W, H, beta))


def test_named_losses_are_members_of_the_family():
    rng = np.random.default_rng(0)
    x, y = rng.random((2, 50)) + 0.1
    np.testing.assert_allclose(KullbackLeibler().entries(x, y), Beta(1.0).entries(x, y))
    np.testing.assert_allclose(KullbackLeibler().entries(x, y), Alpha(1.0).entries(x, y))
    np.testing.assert_allclose(ItakuraSaito().entries(x, y), Beta(0.0).entries(x, y))
    np.testing.assert_allclose(Beta(1.000001).entries(x, y), Beta(1.0).entries(x, y), rtol=1e-3)
    np.testing.assert_allclose(Alpha(0.999999).entries(x, y), Alpha(1.0).entries(x, y), rtol=1e-3)


@pytest.mark.parametrize(
    ("beta", "exponent"), [(-1.0, 1 / 3), (0.0, 0.5), (1.0, 1.0), (2.0, 1.0), (3.0, 0.5)]
)
def test_exponents_of_beta(beta, exponent):
    assert Beta(beta).exponent == pytest.approx(exponent)
