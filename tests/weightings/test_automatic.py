"""Automatic parameters are scale-free and continuous, and never collapse a fit to few samples."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from robustnmf import FWRNMF, HuberRNMF, RobustNMF, fit_path
from robustnmf.arrays.histogram import STEP, node_counts
from robustnmf.weightings import (
    WEIGHTINGS,
    Cauchy,
    Entropy,
    Fuzzy,
    Huber,
    LogHistogram,
    Trimmed,
    WarmupWeights,
    effective_sample_size,
)
from robustnmf.weightings.trimmed import MARGIN
from tests.problems import profile_of

ADVERSARIAL = st.lists(st.floats(-20.0, 3.0), min_size=1, max_size=60).map(
    lambda logs: np.exp(np.array(logs))
)
AUTOMATIC = {name: kind() for name, kind in WEIGHTINGS.items() if kind().has_auto}
LEAST_SHARE = {
    # Least effective sample size of every weighting of samples, relative to the number of samples.
    Cauchy: lambda w: 0.25,
    Entropy: lambda w: 0.5 * np.exp(-0.5),
    Fuzzy: lambda w: 0.5 * 0.75 ** (w.p / (w.p - 1)),
    Trimmed: lambda w: 0.5,
}
every = pytest.mark.parametrize(
    "weighting", [w for w in AUTOMATIC.values() if not w.per_entry], ids=repr
)
bounded = pytest.mark.parametrize(
    "weighting", [w for w in AUTOMATIC.values() if type(w) in LEAST_SHARE], ids=repr
)


def size_of(weighting, z, sizes=None):
    weighting = weighting if sizes is None else weighting.for_row_sizes(sizes)
    weights = weighting.normalised_weights(weighting.importances(z), np.ones(len(z)))
    return float(effective_sample_size(weights))


@bounded
@given(z=ADVERSARIAL, seed=st.integers(0, 99))
def test_the_effective_sample_size_is_bounded_for_any_energies(weighting, z, seed):
    sizes = np.exp(np.random.default_rng(seed).normal(0, 4, size=len(z)))
    settled = weighting.resolve_auto(profile_of(z, sizes))
    bound = LEAST_SHARE[type(settled)](settled) * len(z)
    assert size_of(settled, z, sizes) >= bound * (1 - 1e-9)


@bounded
@given(z=ADVERSARIAL, seed=st.integers(0, 9999))
def test_the_bound_holds_if_the_objective_does_not_increase(weighting, z, seed):
    """After parameters are frozen, phi never increases, which bounds the effective sample size."""
    settled = weighting.resolve_auto(profile_of(z))
    if isinstance(settled, Trimmed):
        settled = Trimmed(settled.cutoff, power=settled.power)  # equal cutoffs for all samples
        q, below = settled.power, np.exp(STEP) / MARGIN
        bound = (1 - 0.5 * below - 0.5 * q / (q - 1)) * len(z)
    elif isinstance(settled, Cauchy):
        bound = np.exp(-settled.value(z) / settled.scale / len(z)) * len(z)
    elif isinstance(settled, Fuzzy):
        bound = 0.5**settled.p * 0.75 ** (settled.p / (settled.p - 1)) * len(z)
    else:
        bound = LEAST_SHARE[type(settled)](settled) * len(z)
    rng = np.random.default_rng(seed)
    later = z * np.exp(rng.choice([-30.0, -3.0, 0.0, 3.0, 30.0], size=len(z)))
    level = settled.value(z)
    for _ in range(60):  # towards smaller energies until phi is small enough
        if settled.value(later) <= level:
            assert size_of(settled, later) >= bound * (1 - 1e-9)
        worst = int(np.argmax(later))
        later[worst] *= 1e-6


@every
@given(z=ADVERSARIAL, factor=st.sampled_from([1e-6, 0.3, 7.0, 1e5]))
def test_automatic_parameters_scale_with_the_units_of_the_data(weighting, z, factor):
    one, other = (weighting.resolve_auto(profile_of(c * z, unit=c)) for c in (1.0, factor))
    np.testing.assert_allclose(
        one.rescaled(factor).importances(factor * z), other.importances(factor * z), rtol=1e-6
    )


@every
def test_rounding_errors_of_energies_are_not_amplified(weighting):
    rng = np.random.default_rng(0)
    z = rng.lognormal(0, 0.5, size=50)
    z[:10] *= 30
    near = z * (1 + 1e-12 * rng.standard_normal(50))
    one, other = (weighting.resolve_auto(profile_of(e)) for e in (z, near))
    np.testing.assert_allclose(one.importances(z), other.importances(near), rtol=1e-8)


def test_cutoffs_lie_between_the_majority_and_a_group_of_bad_samples():
    rng = np.random.default_rng(0)
    for share in (0.0, 0.1, 0.3, 0.4):
        z = rng.lognormal(0.0, 0.35, size=1000)
        z[: int(share * 1000)] *= 40
        settled = Trimmed().resolve_auto(profile_of(z / 100))
        weights = settled.weights(z / 100)
        bad = np.arange(1000) < share * 1000
        assert np.mean(weights[~bad] > 0.99) > 0.97
        assert np.all(weights[bad] < 1e-3)


def test_warmup_weights_exclude_samples_that_fit_too_well_at_first():
    z = np.concatenate([np.full(30, 1e-6), np.random.default_rng(0).lognormal(0, 0.3, 70)])
    narrow, wide = (WarmupWeights.at(profile_of(z), openness) for openness in (0.0, 1.0))
    ones = np.ones(100)
    for gate in (narrow, wide):
        weights = gate.for_row_sizes(ones).weight(z)
        assert weights[:30].max() <= 1e-5 < weights[30:].max()
        assert np.all(weights > 0)
    assert narrow.for_row_sizes(ones).weight(z).sum() < wide.for_row_sizes(ones).weight(z).sum()


def test_histograms_of_blocks_add_up():
    logs, sample_weight = np.random.default_rng(0).normal(0, 3, size=(2, 40))
    sample_weight = np.abs(sample_weight)
    whole = LogHistogram(node_counts(logs, sample_weight))
    first, second = (node_counts(logs[at], sample_weight[at]) for at in (slice(15), slice(15, 40)))
    parts = LogHistogram(first + second)
    np.testing.assert_allclose(parts.counts, whole.counts, atol=1e-12)
    assert whole.counts.sum() == pytest.approx(sample_weight.sum())
    assert parts.median() == pytest.approx(whole.median())


def test_an_automatic_cutoff_of_entries_is_proportional_to_their_scale():
    residuals = np.random.default_rng(0).normal(0, 2.0, size=(200, 30))
    histogram = profile_of((residuals**2).sum(axis=1), features=30)
    assert Huber("auto").resolve_auto(histogram).cutoff == pytest.approx(1.345 * 2.0, rel=0.05)


def with_bad_entries():
    """A table of rank five, and the same with 5% of its entries bad."""
    rng = np.random.default_rng(0)
    X = rng.gamma(0.5, size=(300, 5)) @ rng.gamma(0.5, size=(5, 40))
    X /= X.max()
    bad = rng.random(X.shape) < 0.05
    return X, np.where(bad, rng.random(X.shape), X)


@pytest.mark.parametrize("name", WEIGHTINGS)
def test_a_weighting_given_by_name_does_not_depend_on_units(name):
    X, dirty = with_bad_entries()
    X, dirty = X[:100], dirty[:100]
    options = {"weighting": name, "random_state": 0, "max_iter": 60, "tol": 1e-3}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        one, other = (RobustNMF(3, **options).fit(unit * dirty) for unit in (1.0, 255.0))
        (member,) = fit_path(255.0 * dirty, 3, weightings=[name], **_without(options, "weighting"))
    here, there = (m.transform(u * dirty) @ m.components_ for m, u in ((one, 1.0), (other, 255.0)))
    np.testing.assert_allclose(there / 255.0, here, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(member.components, other.components_, rtol=1e-5, atol=1e-6)
    assert other.effective_sample_size_ == pytest.approx(one.effective_sample_size_, rel=1e-6)
    assert not other.weighting_.has_auto


def _without(options, name):
    return {key: value for key, value in options.items() if key != name}


def test_huber_given_by_name_is_better_than_plain_nmf_with_bad_entries():
    X, dirty = with_bad_entries()
    errors = {}
    for name in ("uniform", "huber"):
        model = RobustNMF(5, weighting=name, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            errors[name] = np.linalg.norm(model.fit_transform(dirty) @ model.components_ - X)
    assert errors["huber"] < 0.85 * errors["uniform"]


def test_the_estimators_of_the_paper_keep_its_parameters():
    assert FWRNMF()._spec().weighting.get_params() == {"p": 11.0, "offset": 0.0}
    assert HuberRNMF()._spec().weighting.get_params() == {"cutoff": 1.0}
    for name in AUTOMATIC:
        assert RobustNMF(weighting=name)._spec().weighting.has_auto


@pytest.mark.parametrize("name", WEIGHTINGS)
def test_a_weighting_that_allows_auto_is_automatic_by_default(name):
    kind = WEIGHTINGS[name]
    options = [option for allowed in kind._parameter_constraints.values() for option in allowed]
    assert kind().has_auto == any("auto" in getattr(option, "options", ()) for option in options)


@pytest.mark.parametrize("weighting", AUTOMATIC.values(), ids=repr)
def test_parameters_that_are_not_estimated_yet_raise_an_error(weighting):
    for function in (weighting.value, weighting.weights, weighting.importances):
        with pytest.raises(ValueError, match="weighting_ of a fitted estimator"):
            function([1.0, 2.0])
