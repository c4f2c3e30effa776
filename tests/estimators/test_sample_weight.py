"""A weight of two is the sample twice; a weight of zero is the sample absent."""

import warnings

import numpy as np
import pytest
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning

from robustnmf import EWRNMF, EucNMF, RobustNMF, WeightCollapseWarning
from robustnmf.estimators import ESTIMATORS
from robustnmf.losses import LOSSES
from tests.problems import KINDS, noisy_low_rank

X = noisy_low_rank(30, 8, 3)
WEIGHTS = np.random.default_rng(0).integers(0, 4, size=30)
REPEATED = np.repeat(X, WEIGHTS, axis=0)
ROWS = np.repeat(np.arange(30), WEIGHTS)


def quiet(model, *args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", WeightCollapseWarning)
        return model.fit_transform(*args, **kwargs)


@pytest.mark.parametrize("init", ["random", "nndsvda"])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_weights_are_repetitions(name, init):
    weighted, repeated = (
        ESTIMATORS[name](3, init=init, random_state=0, max_iter=8, tol=0) for _ in range(2)
    )
    codes = quiet(weighted, X, sample_weight=WEIGHTS)
    others = quiet(repeated, REPEATED)
    np.testing.assert_allclose(weighted.components_, repeated.components_, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(codes[ROWS], others, rtol=1e-6, atol=1e-9)
    histories = weighted.objective_history_, repeated.objective_history_
    np.testing.assert_allclose(*histories, rtol=1e-7, atol=1e-8 * np.abs(histories[1][0]))
    assert weighted.effective_sample_size_ == pytest.approx(
        repeated.effective_sample_size_, rel=1e-4
    )
    shares = np.bincount(ROWS, repeated.sample_importances_, minlength=30)
    np.testing.assert_allclose(weighted.sample_importances_, shares, rtol=1e-4, atol=1e-9)


@pytest.mark.parametrize("loss", LOSSES)
def test_weights_are_repetitions_for_every_loss(loss):
    weighted, repeated = (RobustNMF(3, loss=loss, max_iter=300) for _ in range(2))
    quiet(weighted, X, sample_weight=WEIGHTS)
    quiet(repeated, REPEATED)
    # Rounding decides when a member goes back and when its parameters rest: both are alike then,
    # and no longer equal.
    np.testing.assert_allclose(weighted.components_, repeated.components_, rtol=1e-3, atol=1e-8)
    cutoffs = weighted.weighting_.cutoff, repeated.weighting_.cutoff
    assert cutoffs[0] == pytest.approx(cutoffs[1], rel=1e-3)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("missing", {"init": "random"}),
        ("missing", {"init": "nndsvda", "structure": "convex"}),
        ("sparse", {"loss": "kullback-leibler"}),
        ("dense", {"alpha_W": 0.01, "alpha_H": 0.02}),
    ],
    ids=str,
)
def test_weights_are_repetitions_in_every_kind_of_table(kind, options):
    table = KINDS[kind](noisy_low_rank(40, 15, 3))
    weights = np.random.default_rng(0).integers(0, 4, size=40)
    rows = np.repeat(np.arange(40), weights)
    tables = [scipy.sparse.csr_array(t) if kind == "sparse" else t for t in (table, table[rows])]
    weighted, repeated = (
        RobustNMF(3, random_state=0, max_iter=8, tol=0, **options) for _ in range(2)
    )
    codes = quiet(weighted, tables[0], sample_weight=weights)
    np.testing.assert_allclose(codes[rows], quiet(repeated, tables[1]), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(weighted.components_, repeated.components_, rtol=1e-6, atol=1e-9)


def test_convex_components_are_weighted_mixtures():
    model = ESTIMATORS["ConvexNMF"](3, random_state=0, max_iter=50, tol=0)
    model.fit(X, sample_weight=WEIGHTS)
    np.testing.assert_allclose(model.components_, (model.mixing_ * WEIGHTS) @ X, rtol=1e-10)


def test_known_weights_combine_with_adaptive_ones():
    """Outliers that are also said to count ten times are still found out."""
    data = noisy_low_rank(200, 20, 3, noise=0.1, outliers=5)
    weights = np.ones(200)
    weights[:5] = 10
    plain = EucNMF(3, random_state=0).fit(data, sample_weight=weights)
    robust = EWRNMF(3, random_state=0).fit(data, sample_weight=weights)
    assert robust.sample_importances_[:5].sum() < 0.05
    assert np.median(robust.energies_[5:]) < 0.5 * np.median(plain.energies_[5:])


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (-np.ones(30), "Negative values in data passed to `sample_weight`"),
        (np.zeros(30), "at least one non-zero"),
        (np.ones(29), "sample_weight.shape"),
        (np.full(30, np.nan), "NaN"),
        (np.full(30, 1e200), r"1e\+200, but it must lie between"),
        (np.full(30, 1e-200), "1e-200, but it must lie between"),
    ],
    ids=["negative", "zero", "length", "NaN", "huge", "tiny"],
)
def test_bad_weights_are_refused(weights, message):
    with pytest.raises(ValueError, match=message):
        EucNMF(3).fit(X, sample_weight=weights)
