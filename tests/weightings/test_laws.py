"""Laws for all registered weightings; a new one needs no new test."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robustnmf.weightings import WEIGHTINGS, Batch, effective_sample_size
from tests.problems import ALL_VARIANTS, settled, variants

every = pytest.mark.parametrize("weighting", ALL_VARIANTS, ids=repr)
ENERGIES = st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=30).map(np.array)


@given(z=st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=30).map(np.array))
def test_weights_are_the_gradient_of_value(z):
    for weighting in ALL_VARIANTS:
        # The slope of a concave function lies between the forward and the backward difference
        # for any step. Rounding errors of a difference are n eps * size / step, with the size of
        # the terms of phi (parameters are at most 33 here).
        weights, value = weighting.weights(z), weighting.value(z)
        size = abs(value) + weights @ z + 33
        step = 1e-5 * z
        for i in range(len(z)):
            up, down = z.copy(), z.copy()
            up[i] += step[i]
            down[i] -= step[i]
            slack = 3e-15 * len(z) * size / step[i] + 1e-12 * weights[i]
            forward = (weighting.value(up) - value) / step[i]
            backward = (value - weighting.value(down)) / step[i]
            assert forward - slack <= weights[i] <= backward + slack, weighting


@given(z=ENERGIES, seed=st.integers(0, 99))
def test_value_is_concave_and_increasing(z, seed):
    for weighting in ALL_VARIANTS:
        other = z * np.random.default_rng(seed).lognormal(0, 2, size=len(z))
        values = weighting.value(z), weighting.value(other)
        slack = 1e-12 * (max(map(abs, values)) + weighting.weights(z) @ z)
        assert weighting.value((z + other) / 2) >= np.mean(values) - slack, weighting
        assert weighting.value(np.maximum(z, other)) >= max(values) - slack, weighting


@given(z=ENERGIES)
def test_importances_sum_to_one_and_fall_with_the_energy(z):
    for weighting in ALL_VARIANTS:
        importances = weighting.importances(z)
        assert importances.sum() == pytest.approx(1.0, abs=1e-12), weighting
        assert np.all(importances >= 0), weighting
        assert np.all(np.diff(importances[np.argsort(z)]) <= 1e-15), weighting
        size = effective_sample_size(importances)
        assert 1 - 1e-9 <= size <= len(z) * (1 + 1e-9), weighting


@every
@pytest.mark.parametrize(
    "z",
    [[0.0], [0.0, 0.0], [0.0, 1.0], [1e-300, 1e300], [1e300], [1e200] * 3, [0.0, 1e300, 1.0]],
    ids=str,
)
def test_extreme_energies_give_finite_results(weighting, z):
    z = np.array(z)
    assert np.isfinite(weighting.value(z))
    importances = weighting.importances(z)
    assert np.all(np.isfinite(importances))
    assert importances.sum() == pytest.approx(1.0, abs=1e-12)
    weights = weighting.weights(z)
    assert np.all(np.isfinite(weights))
    assert np.all(weights >= 0)


@every
def test_a_single_sample_has_all_the_importance(weighting):
    assert weighting.importances(np.array([3.7])).tolist() == [1.0]


@every
def test_equal_energies_have_equal_importances(weighting):
    assert np.ptp(weighting.importances(np.full(7, 0.3))) == 0


@given(z=ENERGIES, factor=st.floats(1e-3, 1e3))
def test_rescaled_energies_give_an_equivalent_weighting(z, factor):
    for weighting in ALL_VARIANTS:
        rescaled = weighting.rescaled(factor)
        expected = factor**weighting.degree * weighting.value(z)
        slack = 1e-10 * abs(expected) + 1e-12 * factor
        assert abs(rescaled.value(factor * z) - expected) <= slack, weighting
        np.testing.assert_allclose(
            rescaled.importances(factor * z), weighting.importances(z), rtol=1e-9, atol=1e-15,
            err_msg=repr(weighting),
        )  # fmt: skip


@given(z=ENERGIES, cut=st.integers(0, 30))
def test_objective_sums_of_blocks_merge_to_those_of_all_rows(z, cut):
    def objective_sums(weighting, part):
        return weighting.weigh(part[None], np.ones(len(part))).objective_sums

    cut = cut % len(z)
    for weighting in ALL_VARIANTS:
        whole = merged = objective_sums(weighting, z)
        if cut:
            merged = objective_sums(weighting, z[:cut]).merge(objective_sums(weighting, z[cut:]))
        # A soft minimum can be almost zero, with terms as large as its parameter (about 1).
        values = weighting.value_of(merged), weighting.value_of(whole)
        np.testing.assert_allclose(*values, rtol=1e-12, atol=1e-13, err_msg=repr(weighting))
        values = weighting.shifted_value_of(merged), weighting.shifted_value_of(whole)
        np.testing.assert_allclose(*values, rtol=1e-9, err_msg=repr(weighting))


@every
def test_the_shifted_objective_is_zero_for_a_perfect_fit_and_otherwise_positive(weighting):
    def level(z):
        return weighting.shifted_value_of(
            weighting.weigh(np.array([z]), np.ones(len(z))).objective_sums
        )[0, 0]

    assert 0 <= level([0.0, 0.0, 0.0]) <= 1e-150
    assert level([1.0, 2.0, 0.5]) > 0


@every
def test_rows_of_weight_zero_have_no_influence(weighting):
    z = np.array([[0.3, 0.0, 2.0, 1e9]])
    sample_weight = np.array([1.0, 0.0, 1.0, 0.0])
    some, alone = weighting.weigh(z, sample_weight), weighting.weigh(z[:, ::2], sample_weight[::2])
    np.testing.assert_allclose(some.weights[:, ::2], alone.weights, rtol=1e-15)
    np.testing.assert_array_equal(some.weights[:, 1::2], 0)
    np.testing.assert_allclose(
        weighting.value_of(some.objective_sums),
        weighting.value_of(alone.objective_sums),
        rtol=1e-14,
    )
    importances = weighting.importances(z, sample_weight)
    assert importances[0, 1] == importances[0, 3] == 0
    assert importances.sum() == pytest.approx(1)


@pytest.mark.parametrize("empty_first", [True, False])
@every
def test_blocks_of_weight_zero_have_no_influence(weighting, empty_first):
    full = weighting.weigh(np.array([[0.3, 2.0]]), np.ones(2)).objective_sums
    empty = weighting.weigh(np.array([[0.0, 5.0]]), np.zeros(2)).objective_sums
    empty = empty.merge(empty)
    merged = empty.merge(full) if empty_first else full.merge(empty)
    np.testing.assert_allclose(weighting.value_of(merged), weighting.value_of(full), rtol=1e-14)


@pytest.mark.parametrize("name", WEIGHTINGS)
def test_a_batch_equals_its_members(name, xp):
    members = variants(name)
    if len(members) == 1:
        members = members * 2
    rng = np.random.default_rng(0)
    z = rng.gamma(1.0, size=(len(members), 9))
    batch = Batch(members, xp.asarray(z))
    if batch.per_entry:
        entries = xp.asarray(z[:, :, None])
        for function in ("rho", "weight"):
            got = np.asarray(getattr(batch, function)(entries))[:, :, 0]
            want = [getattr(w, function)(row) for w, row in zip(members, z, strict=True)]
            np.testing.assert_allclose(got, want, rtol=1e-14)
        return
    weighed = batch.weigh(xp.asarray(z), xp.ones(9, dtype=xp.float64))
    values = np.asarray(batch.value_of(weighed.objective_sums))[:, 0]
    np.testing.assert_allclose(
        values, [w.value(row) for w, row in zip(members, z, strict=True)], rtol=1e-13
    )
    shares = np.asarray(batch.importances(xp.asarray(z), xp.ones(9, dtype=xp.float64)))
    want = [w.importances(row) for w, row in zip(members, z, strict=True)]
    np.testing.assert_allclose(shares, want, rtol=1e-13)


def test_a_batch_of_several_types_keeps_their_order():
    kinds = [settled(kind()) for kind in WEIGHTINGS.values() if not kind.per_entry]
    z = np.random.default_rng(0).gamma(1.0, size=(len(kinds), 6))
    batch = Batch(kinds, z)
    values = batch.value_of(batch.weigh(z, np.ones(6)).objective_sums)[:, 0]
    np.testing.assert_allclose(values, [w.value(r) for w, r in zip(kinds, z, strict=True)])
    kept = batch.keep([3, 0])
    np.testing.assert_allclose(
        kept.value_of(kept.weigh(z[[3, 0]], np.ones(6)).objective_sums)[:, 0], values[[3, 0]]
    )


def test_weights_per_entry_and_per_row_cannot_share_a_batch():
    kinds = [WEIGHTINGS["huber"](), WEIGHTINGS["uniform"]()]
    with pytest.raises(ValueError, match="cannot share a batch"):
        Batch(kinds, np.ones(3))
