"""Laws of losses that give every entry a weight."""

import array_api_strict
import numpy as np
import pytest

from robustnmf import RobustNMF
from robustnmf.arrays import DenseBlock, MaskedBlock
from robustnmf.losses import LOSSES, HuberLoss, ReweightedLoss, TruncatedLoss

KINDS = [kind for kind in LOSSES.values() if issubclass(kind, ReweightedLoss)]
every = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
SQUARES = np.concatenate([[0.0], np.geomspace(1e-6, 1e6, 200)])


@every
@pytest.mark.parametrize("cutoff", [0.1, 1.0, 30.0])
def test_weights_are_the_derivative_and_decrease_from_one(kind, cutoff):
    loss = kind(cutoff)
    weights = loss.weight(SQUARES, cutoff)
    assert weights[0] == 1.0
    assert np.all(np.diff(weights) <= 0)  # so the loss is concave in the squared residual
    assert np.all(weights >= 0)
    step = 1e-6 * SQUARES[1:]
    slopes = (loss.rho(SQUARES[1:] + step, cutoff) - loss.rho(SQUARES[1:] - step, cutoff)) / (
        2 * step
    )
    np.testing.assert_allclose(slopes, weights[1:], rtol=1e-5, atol=1e-5)


@every
def test_weighted_squares_lie_above_the_loss_and_touch_it(kind):
    loss = kind(1.0)
    at, other = np.meshgrid(SQUARES, SQUARES)
    majorant = loss.rho(at, 1.0) + loss.weight(at, 1.0) * (other - at)
    assert np.all(loss.rho(other, 1.0) <= majorant * (1 + 1e-12) + 1e-12)


@every
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_compiled_loop_equals_the_formulas(kind, dtype):
    rng = np.random.default_rng(0)
    rows = (8 * rng.gamma(1.0, size=(30, 12))).astype(dtype)
    approximations = rng.gamma(1.0, size=(2, 30, 12)).astype(dtype)
    loss = kind(rng.uniform(0.2, 2.0, 12))
    residuals, sums = loss.weighted_residuals(DenseBlock(rows, 8.0), approximations)
    data, tolerance = rows / 8, 1e-12 if dtype == np.float64 else 1e-5
    weights = loss.entry_weights(data, approximations)
    np.testing.assert_allclose(
        residuals, weights * (data - approximations), rtol=tolerance, atol=tolerance
    )
    assert sums.dtype == np.float64
    np.testing.assert_allclose(sums, loss.entries(data, approximations).sum(-1), rtol=tolerance)


@every
def test_other_libraries_and_missing_values_give_the_same_numbers(kind):
    rng = np.random.default_rng(0)
    rows, approximations = rng.gamma(1.0, size=(9, 5)), rng.gamma(1.0, size=(1, 9, 5))
    loss = kind(rng.uniform(0.2, 2.0, 5))
    expected, sums = loss.weighted_residuals(DenseBlock(rows), approximations)
    strict = DenseBlock(array_api_strict.asarray(rows))
    there = loss.weighted_residuals(strict, array_api_strict.asarray(approximations))
    np.testing.assert_allclose(np.asarray(there[0]), expected, rtol=1e-12)
    np.testing.assert_allclose(np.asarray(there[1]), sums, rtol=1e-12)
    known = rng.random(rows.shape) < 0.7
    masked = MaskedBlock(rows, known)
    residuals, of_known = loss.weighted_residuals(masked, approximations)
    np.testing.assert_allclose(masked.observed(residuals, residuals), np.where(known, expected, 0))
    entries = np.where(known, loss.entries(rows, approximations), 0.0)
    np.testing.assert_allclose(of_known, entries.sum(axis=-1))


@every
def test_an_automatic_cutoff_must_be_estimated_first(kind):
    with pytest.raises(ValueError, match="loss_ of a fitted estimator"):
        kind().entries(np.ones(3), np.zeros(3))


def test_large_residuals_have_bounded_or_zero_influence():
    x, y = np.array([1e6]), np.zeros(1)
    assert HuberLoss(2.0).entry_weights(x, y)[0] * 1e6 == pytest.approx(2.0)
    assert TruncatedLoss(2.0).entry_weights(x, y)[0] == 0.0
    assert TruncatedLoss(2.0).entries(x, y)[0] == 4.0


@pytest.mark.parametrize("loss_type", [TruncatedLoss, HuberLoss])
def test_usual_entries_have_full_weight_for_any_residual(loss_type):
    loss = loss_type(1.0, usual=[[0.0, 0.0], [2.0, 9.0]])
    X, approximation = np.array([[8.0, 8.0], [2.0, 2.0]]), np.zeros((2, 2))
    weights = loss.entry_weights(X, approximation)
    assert weights[0, 0] < 0.2
    np.testing.assert_array_equal(weights[[0, 1, 1], [1, 0, 1]], 1.0)
    np.testing.assert_array_equal(loss.entries(X, approximation)[[0, 1], [1, 0]], [64.0, 4.0])
    assert loss.entries(X, approximation)[0, 0] < 16.0


@pytest.mark.parametrize("loss_type", [TruncatedLoss, HuberLoss])
def test_compiled_residuals_of_usual_entries_equal_numpy(loss_type):
    rng = np.random.default_rng(0)
    X, basis, codes = rng.random((30, 5)) * 4, rng.random((1, 2, 5)), rng.random((1, 30, 2))
    loss = loss_type(0.3, usual=np.array([[0.5] * 5, [2.5] * 5]))
    block = DenseBlock(X)
    approximation = block.approximation(codes, basis)
    residuals, sums = loss.weighted_residuals(block, approximation)
    data = block.values()
    expected = loss.entry_weights(data, approximation) * (data - approximation)
    np.testing.assert_allclose(residuals, expected, atol=1e-14)
    np.testing.assert_allclose(sums, loss.entries(data, approximation).sum(axis=-1), rtol=1e-12)


def test_usual_values_are_rescaled_and_indexed_by_feature():
    loss = TruncatedLoss([1.0, 2.0], usual=[[0.0, 1.0], [2.0, 3.0]])
    np.testing.assert_array_equal(loss.rescaled(10.0).usual, [[0.0, 10.0], [20.0, 30.0]])
    chosen = loss.of_features(np.array([1]))
    np.testing.assert_array_equal(chosen.usual, [[1.0], [3.0]])
    np.testing.assert_array_equal(chosen.cutoff, [2.0])


def test_the_former_name_of_truncated_squares_is_accepted():
    X = np.random.default_rng(0).random((30, 5))
    models = [RobustNMF(2, loss=name, random_state=0).fit(X) for name in ("truncated", "biweight")]
    assert type(models[1].loss_) is TruncatedLoss
    np.testing.assert_array_equal(models[0].components_, models[1].components_)
