"""Orthogonal codes: the literal rule, one component per sample, correct clusters."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from robustnmf import Entropy, Fuzzy, Orthogonal, RobustNMF, Uniform
from robustnmf.losses import LOSSES
from tests.oracles import paper, weighted
from tests.problems import noisy_low_rank, positive_start

X = noisy_low_rank(40, 15, 3, seed=3)
W, H = positive_start(40, 15, 3)
WEIGHTINGS = {
    "uniform": (Uniform(), np.ones_like),
    "entropy": (Entropy(gamma=100.0), lambda Z: paper.entropy_importances(Z, 100.0)),
    "fuzzy": (Fuzzy(p=60.0), lambda Z: paper.fuzzy_importances(Z, 60.0) ** 60.0),
}


@pytest.mark.parametrize("strength", [0.3, 1.0])
@pytest.mark.parametrize("name", WEIGHTINGS)
def test_updates_equal_the_literal_updates(name, strength):
    weighting, weights = WEIGHTINGS[name]
    model = RobustNMF(
        3, weighting=weighting, structure=Orthogonal(strength), solver="mu", init="custom",
        tol=0, max_iter=15,
    )  # fmt: skip
    codes = model.fit_transform(X, W=W, H=H)
    base, representation = weighted.orthogonal(X.T, H.T, W.T, weights, 15, strength)
    np.testing.assert_allclose(model.components_, base.T, rtol=1e-8)
    np.testing.assert_allclose(codes, representation.T, rtol=1e-8)


def blobs(seed=0):
    centres = 10 * np.random.default_rng(seed).random((4, 12))
    data, labels = make_blobs(200, centers=centres, cluster_std=0.7, random_state=seed)
    return np.maximum(data, 0.0), labels


@pytest.mark.parametrize("loss", LOSSES)
def test_every_sample_has_one_component_and_clusters_are_found(loss):
    data, labels = blobs()
    data = data + 0.1  # the Itakura-Saito divergence needs positive entries
    model = RobustNMF(4, loss=loss, structure=Orthogonal(), random_state=0).fit(data)
    codes = model.transform(data)
    assert model.codes_overlap_ < 0.02
    assert adjusted_rand_score(labels, codes.argmax(axis=1)) > 0.95


def test_strength_one_makes_a_single_component_the_best():
    """No codes with other components are better."""
    data, _ = blobs(1)
    model = RobustNMF(4, structure="orthogonal", random_state=0).fit(data)
    codes = model.transform(data)
    assert np.all(np.count_nonzero(codes, axis=1) == 1)
    assert model.codes_overlap_ == 0.0
    C = model.components_
    norms = np.linalg.norm(C, axis=1)

    def energies(a):
        parts = a * norms
        together = parts.sum(axis=1) ** 2 - (parts**2).sum(axis=1)
        return ((data - a @ C) ** 2).sum(axis=1) + together

    rng = np.random.default_rng(0)
    size = codes.max()
    for _ in range(200):
        other = size * rng.random(codes.shape) * (rng.random(codes.shape) < 0.5)
        assert np.all(energies(codes) <= energies(other) * (1 + 1e-12))


def test_with_less_strength_samples_use_several_components():
    overlaps = [
        RobustNMF(3, weighting="uniform", structure=Orthogonal(strength), random_state=0)
        .fit(X)
        .codes_overlap_
        for strength in (1e-6, 0.1, 0.5, 1.0)
    ]
    free = RobustNMF(3, weighting="uniform", random_state=0, solver="mu").fit(X).codes_overlap_
    assert overlaps[0] == pytest.approx(free, abs=0.15)  # the starts differ
    assert overlaps == sorted(overlaps, reverse=True)
    assert overlaps[-1] < 0.01 < free


def test_missing_values_of_other_rows_do_not_change_the_codes_of_a_row():
    model = RobustNMF(3, weighting="uniform", structure="orthogonal", random_state=0).fit(X)
    holes = X.copy()
    holes[0, 0] = np.nan
    np.testing.assert_allclose(model.transform(holes)[1:], model.transform(X)[1:], rtol=1e-9)


@pytest.mark.parametrize("loss", ["frobenius", "kullback-leibler"])
def test_unused_components_do_no_harm(loss):
    line = np.outer(np.arange(1.0, 100.0), np.arange(1.0, 9.0))
    model = RobustNMF(3, loss=loss, weighting="uniform", structure="orthogonal", random_state=0)
    codes = model.fit_transform(line)
    largest = np.linalg.norm(line, axis=1).max() / np.linalg.norm(model.components_, axis=1).max()
    assert codes.max() < 10 * largest
    np.testing.assert_allclose(codes @ model.components_, line, rtol=0.05)


def test_a_fixed_component_of_zeros_is_accepted():
    model = RobustNMF(
        3, structure="orthogonal", loss="kullback-leibler", weighting="uniform",
        fixed_components=np.zeros((1, 15)), max_iter=60, random_state=0,
    )  # fmt: skip
    assert np.isfinite(model.fit_transform(50 * X)).all()
