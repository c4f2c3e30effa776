"""Components that are given stay as they are, and the others are learned around them."""

import numpy as np
import pytest

from robustnmf import EucNMF, RobustNMF
from tests.problems import PAIRS, noisy_low_rank

rng = np.random.default_rng(0)
PARTS = rng.gamma(1.0, size=(4, 15)) * (rng.random((4, 15)) < 0.6)
X = 100 * rng.gamma(1.0, size=(80, 4)) @ PARTS + rng.random((80, 15))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::robustnmf.exceptions.WeightCollapseWarning")
@pytest.mark.parametrize(
    ("loss", "weighting"),
    [
        pytest.param(*pair, marks=[pytest.mark.extra] * (not {"frobenius", "trimmed"} & {*pair}))
        for pair in PAIRS
    ],
)
def test_fixed_components_stay_and_the_objective_falls(loss, weighting):
    model = RobustNMF(
        4, loss=loss, weighting=weighting, fixed_components=PARTS[:2], max_iter=60, random_state=0
    ).fit(X)
    np.testing.assert_allclose(model.components_[:2], PARTS[:2], rtol=1e-14)
    assert np.abs(model.components_[2:]).sum() > 0
    history = model.objective_history_
    if weighting != "fuzzy":  # collapses here, onto the rounding of one energy
        assert np.all(np.diff(history) <= 1e-9 * np.abs(history[0]))


def test_known_components_help_to_find_the_others():
    model = RobustNMF(
        4, weighting="uniform", fixed_components=PARTS[:3], max_iter=3000, tol=1e-6
    ).fit(X)
    learned, true = model.components_[3], PARTS[3]
    cosine = learned @ true / np.linalg.norm(learned) / np.linalg.norm(true)
    assert cosine > 0.99


def test_all_components_may_be_fixed():
    model = RobustNMF(4, fixed_components=PARTS).fit(X)
    np.testing.assert_allclose(model.components_, PARTS, rtol=1e-14)
    assert model.transform(X).shape == (80, 4)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"fixed_components": PARTS[:, :3]}, r"shape \(4, 3\), but must have at most"),
        ({"fixed_components": np.ones((5, 15))}, r"shape \(5, 15\)"),
        ({"fixed_components": -PARTS}, "negative values"),
        ({"fixed_components": PARTS, "structure": "convex"}, "cannot be combined"),
    ],
    ids=["features", "rank", "negative", "convex"],
)
def test_bad_fixed_components_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        RobustNMF(4, **parameters).fit(X)


def test_the_objective_of_other_data():
    data = noisy_low_rank(60, 12, 3)
    model = EucNMF(3, random_state=0).fit(data[:40])
    assert model.objective(data[40:]) == pytest.approx(-model.score_samples(data[40:]).sum())


def test_components_beside_fixed_ones_are_learned_under_a_loss_that_is_flat_far_off():
    rng = np.random.default_rng(0)
    basis = rng.gamma(0.5, size=(4, 20))
    X = rng.gamma(0.5, size=(100, 4)) @ basis + 0.01 * rng.random((100, 20))
    model = RobustNMF(4, loss="truncated", fixed_components=basis[:1], random_state=0)
    residuals = X - model.fit_transform(X) @ model.components_
    assert np.linalg.norm(residuals) < 0.01 * np.linalg.norm(X)


def test_named_components_have_the_features_of_x_in_the_same_order():
    pd = pytest.importorskip("pandas")
    names = [f"f{j}" for j in range(15)]
    frame, parts = (pd.DataFrame(table, columns=names) for table in (X, PARTS[:2]))
    RobustNMF(4, fixed_components=parts, max_iter=2, tol=0).fit(frame)
    with pytest.raises(ValueError, match="fixed_components are not the features of X"):
        RobustNMF(4, fixed_components=parts[names[::-1]]).fit(frame)
    W = np.ones((80, 2))
    with pytest.raises(ValueError, match="H are not the features of X"):
        RobustNMF(2, init="custom").fit(frame, W=W, H=parts[names[::-1]])
