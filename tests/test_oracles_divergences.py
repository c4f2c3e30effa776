"""Divergences compared with scikit-learn's multiplicative solver and weighted transcriptions."""

import numpy as np
import pytest
from sklearn.decomposition import NMF

from robustnmf import (
    Alpha,
    Beta,
    Convex,
    Entropy,
    Fuzzy,
    ItakuraSaito,
    KullbackLeibler,
    RobustNMF,
    Uniform,
)
from tests.oracles import paper, weighted
from tests.problems import noisy_low_rank, positive_start

T = 15
X, K = noisy_low_rank(40, 15, 3, seed=3), 3
W, H = positive_start(40, 15, K)
WEIGHTINGS = {
    "uniform": (Uniform(), np.ones_like),
    # Large enough that the transcriptions, which divide by weights and energies, remain finite.
    "entropy": (Entropy(gamma=100.0), lambda Z: paper.entropy_importances(Z, 100.0)),
    "fuzzy": (Fuzzy(p=60.0), lambda Z: paper.fuzzy_importances(Z, 60.0) ** 60.0),
}
every_weighting = pytest.mark.parametrize("name", WEIGHTINGS)


def ours(loss, weighting, structure="free", codes=W, other=H):
    model = RobustNMF(
        K, loss=loss, weighting=weighting, structure=structure, solver="mu", init="custom",
        tol=0, max_iter=T,
    )  # fmt: skip
    return model.fit_transform(X, W=codes, H=other), model


@pytest.mark.parametrize(
    ("loss", "beta"),
    [
        (KullbackLeibler(), "kullback-leibler"),
        (ItakuraSaito(), "itakura-saito"),
        (Beta(0.5), 0.5),
        (Beta(1.0), 1),
        (Beta(1.5), 1.5),
        (Beta(2.0), 2),
        (Beta(3.0), 3),
    ],
    ids=repr,
)
def test_plain_divergences_equal_scikit_learn(loss, beta):
    """For transposed X, scikit-learn updates our basis first, as the paper does."""
    reference = NMF(K, solver="mu", beta_loss=beta, init="custom", tol=0, max_iter=T)
    base = reference.fit_transform(X.T, W=H.T.copy(), H=W.T.copy())
    codes, model = ours(loss, "uniform")
    np.testing.assert_allclose(model.components_, base.T, rtol=1e-8)
    np.testing.assert_allclose(codes, reference.components_.T, rtol=1e-8)
    assert model.reconstruction_err_ == pytest.approx(reference.reconstruction_err_)


@every_weighting
def test_weighted_kl_equals_its_transcription(name):
    weighting, weights = WEIGHTINGS[name]
    base, representation = weighted.kl(X.T, H.T, W.T, weights, T)
    codes, model = ours(KullbackLeibler(), weighting)
    np.testing.assert_allclose(model.components_, base.T, rtol=1e-8)
    np.testing.assert_allclose(codes, representation.T, rtol=1e-8)


@pytest.mark.parametrize("a", [0.5, 2.0, -1.0])
@every_weighting
def test_weighted_alpha_equals_its_transcription(name, a):
    weighting, weights = WEIGHTINGS[name]
    base, representation = weighted.alpha(X.T, H.T, W.T, weights, T, a)
    codes, model = ours(Alpha(a), weighting)
    np.testing.assert_allclose(model.components_, base.T, rtol=1e-8)
    np.testing.assert_allclose(codes, representation.T, rtol=1e-8)


@every_weighting
def test_weighted_convex_equals_its_transcription(name):
    weighting, weights = WEIGHTINGS[name]
    mixing = (np.random.default_rng(4).random((40, K)) + 0.1) / 40
    P, G = weighted.convex(X.T, mixing, W, weights, T)
    codes, model = ours("frobenius", weighting, Convex(), other=mixing.T)
    np.testing.assert_allclose(model.mixing_, P.T, rtol=1e-8)
    np.testing.assert_allclose(codes, G, rtol=1e-8)


def test_scikit_learn_agrees_on_data_with_zeros():
    data = X * (np.random.default_rng(0).random(X.shape) < 0.6)
    reference = NMF(K, solver="mu", beta_loss="kullback-leibler", init="custom", tol=0, max_iter=20)
    base = reference.fit_transform(data.T, W=H.T.copy(), H=W.T.copy())
    model = RobustNMF(
        K,
        loss="kullback-leibler",
        weighting="uniform",
        solver="mu",
        init="custom",
        tol=0,
        max_iter=20,
    )
    codes = model.fit_transform(data, W=W, H=H)
    np.testing.assert_allclose(model.components_, base.T, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(codes, reference.components_.T, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("loss", [ItakuraSaito(), Beta(-0.5), Beta(0.0), Alpha(-1.0)], ids=repr)
def test_zeros_raise_an_error_if_the_loss_is_infinite(loss):
    data = X.copy()
    data[2, 3] = data[4, 1] = 0
    with pytest.raises(ValueError, match=r"needs X > 0, but X .* 2 zeros, first at \[2, 3\]"):
        RobustNMF(K, loss=loss).fit(data)
    model = RobustNMF(K, loss=loss, max_iter=5, tol=0).fit(X)
    with pytest.raises(ValueError, match="needs X > 0"):
        model.transform(data)


@pytest.mark.parametrize(
    "loss", [KullbackLeibler(), ItakuraSaito(), Beta(1.5), Alpha(0.5)], ids=repr
)
def test_transform_finds_the_best_codes(loss):
    """The codes of a row are a minimum: no small change of one of them lowers the loss."""
    model = RobustNMF(K, loss=loss, weighting="uniform", max_iter=300)
    codes = model.fit_transform(X)
    np.testing.assert_allclose(model.transform(X), codes, rtol=1e-6)
    values = loss.entries(X, codes @ model.components_).sum(axis=1)
    for k in range(K):
        for factor in (0.999, 1.001):
            moved = codes.copy()
            moved[:, k] = factor * moved[:, k] + (factor > 1) * 1e-4 * codes.mean()
            nearby = loss.entries(X, moved @ model.components_).sum(axis=1)
            assert np.all(nearby >= values * (1 - 1e-9))
