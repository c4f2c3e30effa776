"""The number of components by hidden entries."""

import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse

from robustnmf import RobustNMF, select_rank
from robustnmf.fitting import rank
from robustnmf.fitting.rank import capped_mean, distinct_rows, held_out_errors, hidden_errors
from robustnmf.fitting.rank_selection import has_risen
from robustnmf.screening import fit_good_entries


def planted(k, seed, *, noise=0.05, outliers=0.1, shape=(120, 25)):
    """A table of some rank with noise, some of its rows replaced."""
    rng = np.random.default_rng(seed)
    n, m = shape
    X = rng.gamma(0.5, size=(n, k)) @ rng.gamma(0.5, size=(k, m))
    X = np.maximum(X + noise * X.mean() * rng.standard_normal(X.shape), 0.0)
    bad = rng.permutation(n)[: int(outliers * n)]
    X[bad] = 5 * X.mean() * rng.random((len(bad), m))
    return X


@pytest.mark.parametrize(("k", "seed"), [(2, 0), (3, 1), (4, 2)])
def test_planted_ranks_are_found_among_outliers(k, seed):
    selection = select_rank(planted(k, seed), range(1, 7), n_folds=4, random_state=0)
    assert selection.recommended == k
    assert selection.errors.shape == (4, 6)
    assert selection.best >= selection.recommended


def test_a_batch_of_ranks_is_its_single_fits():
    X = planted(3, 0, shape=(60, 15))
    out = np.random.default_rng(1).random(X.shape) < 0.1
    parameters = {"random_state": 3, "max_iter": 100, "tol": 1e-3}
    settings, settled = rank._settle(RobustNMF(4, **parameters)._settings(), X)
    together = hidden_errors(settings, settled, X, out, np.arange(1, 5))
    for k in range(1, 5):
        alone = hidden_errors(settings, settled, X, out, np.array([k]))
        # Products of one member and of a batch round differently.
        slack = 1e-6 * np.nanmax(alone)
        np.testing.assert_allclose(together[k - 1], alone[0], rtol=1e-6, atol=slack)


def test_a_batch_of_starts_without_wrong_entries_is_its_single_starts():
    X = planted(3, 0, shape=(60, 15))
    X[np.random.default_rng(1).random(X.shape) < 0.03] *= 30
    settings = RobustNMF(4, loss="truncated", init="robust", random_state=0)._settings()
    settings, settled = rank._settle(settings, X)
    source = rank.check_source(settings, rank.source_for(X, "RobustNMF"))
    plan = rank.plan_settled(settings, settled, source, 3)
    bases = rank._fit_good_entries(settings, settled, plan, X, np.array([2, 3, 4]))
    seeds = rank.draw_seeds(settings, plan.problem.solver)
    for k, basis in zip([2, 3, 4], bases, strict=True):
        single = fit_good_entries(plan.engine, plan.problem, plan.reference, k, "robust", seeds)
        one, other = (b / b.sum(axis=1, keepdims=True) for b in (basis[:k], single[0]))
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-6)
        assert not basis[k:].any()


def test_no_larger_ranks_are_tried_once_errors_have_risen():
    selection = select_rank(planted(2, 0, noise=0.3), range(1, 13), random_state=0)
    assert selection.recommended == 2
    tried = len(selection.ranks)
    assert tried < 12
    assert selection.left_out == tuple(range(tried + 1, 13))
    assert selection.reason.endswith(f"more than {tried} were not tried.")
    assert not selection.at_edge
    again = select_rank(planted(2, 0, noise=0.3), range(1, tried + 1), random_state=0)
    np.testing.assert_allclose(again.errors, selection.errors, rtol=1e-6)
    assert again.left_out == ()


def test_errors_have_risen_if_three_ranks_are_clearly_worse():
    folds = np.array([[0.9], [1.0], [1.1]])
    jitter = np.array([[0.0], [0.01], [-0.01]]) * [0, 0, 0, 1, 1, 1]
    assert has_risen(folds * [3, 2, 1, 1.5, 1.6, 1.7] + jitter)
    assert not has_risen(folds * [3, 2, 1, 1.5, 1.6])  # two ranks only
    assert not has_risen(folds * [3, 2, 1, 1.5, 1.02, 1.7] + jitter)  # as good as the best
    assert not has_risen(folds * [3, 2, 1, 1.5, 1.6, 1.7] + 50 * jitter)  # not in all folds


def test_ranks_are_batches_in_increasing_order():
    ranks = np.arange(1, 12)
    batches = rank._batches(ranks, 5)
    np.testing.assert_array_equal(np.concatenate(batches), ranks)
    assert [len(batch) for batch in batches] == [5, 6]
    assert [len(batch) for batch in rank._batches(ranks, 3)] == [3, 3, 3, 2]
    assert [len(batch) for batch in rank._batches(ranks[:1], 3)] == [1]


def silhouettes_needed(errors, silhouette):
    """Return the indices of the ranks that are run for a recommendation, in their order."""
    needed, known = [], np.full(len(silhouette), np.nan)
    selection = rank.RankSelection(np.arange(1, len(silhouette) + 1), errors, known)
    while (at := selection.undecided) is not None:
        known[at] = silhouette[at]
        needed.append(at)
    full = rank.RankSelection(selection.ranks, errors, np.array(silhouette))
    return needed, selection.recommended == full.recommended


def test_only_ranks_that_the_recommendation_depends_on_are_run():
    folds = np.array([[0.99], [1.0], [1.02]])
    errors = folds * [9, 6, 3, 1.1, 1.0, 1.05, 1.2, 1.3]
    assert silhouettes_needed(errors, [np.nan, 1, 1, 1, 1, 0.7, 0.6, 0.5]) == ([4], True)
    assert silhouettes_needed(errors, [np.nan, 1, 1, 1, 0.7, 0.7, 0.6, 0.5]) == ([4, 5, 3], True)
    noise = 0.3 * np.array([[1], [-1], [0]]) * (np.arange(8) == 3)
    assert silhouettes_needed(errors + noise, [np.nan, 1, 1, 1, 1, 0.7, 0.6, 0.5]) == ([4, 3], True)
    # No more after the three of the least errors, if all are far from stable.
    assert silhouettes_needed(errors, [np.nan, 1, 1, 0.3, 0.4, 0.3, 0.3, 0.2]) == ([4, 5, 3], True)


def test_ranks_begin_with_the_number_of_fixed_components():
    X = planted(3, 0, shape=(60, 15))
    held = np.random.default_rng(0).random((6, 15))
    selection = select_rank(X, range(1, 9), n_folds=2, random_state=0, fixed_components=held)
    assert selection.ranks.tolist() == [6, 7, 8]
    assert np.isfinite(selection.errors).all()
    with pytest.raises(ValueError, match="6 fixed_components"):
        select_rank(X, [4, 5], fixed_components=held)


def test_other_losses_and_missing_values():
    X = planted(2, 0, shape=(60, 15))
    X[3, 4] = np.nan
    selection = select_rank(X, [1, 2, 4], loss="kullback-leibler", n_folds=2, random_state=0)
    assert np.isfinite(selection.errors).all()


def planted_counts(k, seed, shape=(200, 60)):
    """Sparse counts of some rank; a tenth of the rows are of another kind."""
    rng = np.random.default_rng(seed)
    n, m = shape
    profiles = rng.dirichlet(np.full(m, 0.3), size=k)
    X = rng.poisson(200 * rng.dirichlet(np.full(k, 0.3), size=n) @ profiles).astype(float)
    X[: n // 10] = rng.poisson(600 * rng.dirichlet(np.full(m, 0.3), size=n // 10))
    return scipy.sparse.csr_array(X)


@pytest.mark.parametrize("loss", ["frobenius", "kullback-leibler"])
@pytest.mark.parametrize(("k", "seed"), [(2, 0), (4, 1)])
@pytest.mark.extra
def test_planted_ranks_of_sparse_data(k, seed, loss):
    selection = select_rank(planted_counts(k, seed), range(1, 7), random_state=0, loss=loss)
    assert selection.recommended == k
    assert selection.errors.shape == (5, 6)


def test_held_out_entries_are_predicted_from_the_rest():
    """Of a table without noise they are right, whatever stands in their place."""
    rng = np.random.default_rng(0)
    X = rng.gamma(0.5, size=(40, 2)) @ rng.gamma(0.5, size=(2, 15))
    rows, columns = np.arange(40) < 12, np.arange(15) < 5
    spoiled = X.copy()
    spoiled[np.ix_(rows, columns)] += 1.0
    settings = RobustNMF(2, random_state=0, max_iter=2000, tol=1e-8)._settings()
    settings, settled = rank._settle(settings, scipy.sparse.csr_array(X))
    errors = [
        held_out_errors(
            settings, settled, scipy.sparse.csr_array(table), rows, columns, np.array([2])
        )[0]
        for table in (X, spoiled)
    ]
    assert np.isnan(errors[0][~rows]).all()
    assert errors[0][rows].max() < 1e-4 * (X**2).mean()
    np.testing.assert_allclose(errors[1][rows], 1.0, rtol=1e-2)


def test_sparse_data_are_never_made_dense():
    shape = (6000, 5000)
    X = scipy.sparse.random_array(shape, density=5e-4, rng=np.random.default_rng(0), format="csr")
    select_rank(planted_counts(1, 0), [1], n_folds=2, max_iter=2, random_state=0)  # compile
    tracemalloc.start()
    select_rank(X, [1, 2], n_folds=2, max_iter=5, random_state=0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * shape[0] * shape[1] / 3


def test_ranks_and_losses_that_sparse_data_do_not_support():
    X = planted_counts(2, 0, shape=(30, 15))
    with pytest.raises(ValueError, match=r"from 1 to 10 .* sparse X of shape \(30, 15\)"):
        select_rank(X, [11])
    with pytest.raises(ValueError, match="does not support fixed_components"):
        select_rank(X, [2], fixed_components=np.ones((1, 15)))
    with pytest.raises(ValueError, match="cannot read sparse X"):
        select_rank(X, [2], weighting="huber")


def test_outliers_are_capped():
    errors = np.ones((2, 3, 50))
    errors[:, 1] = 0.1 * np.exp(0.1 * np.random.default_rng(0).standard_normal((2, 50)))
    capped = capped_mean(errors)
    errors[:, :, 0] = 1e6 * np.array([1.0, 2.0, 3.0])
    assert np.allclose(capped_mean(errors), capped, rtol=0.05)


def test_a_plot():
    pytest.importorskip("matplotlib").use("agg")
    selection = rank.RankSelection(np.array([1, 2]), np.array([[2.0, 1.0], [2.2, 1.1]]))
    axes = selection.plot()
    assert "recommended: 2" in axes.get_title()
    assert all(float(place).is_integer() for place in axes.get_xticks())


def test_equal_rows_do_not_reveal_hidden_entries():
    X = planted(2, 3, noise=1.5, outliers=0, shape=(25, 30))
    rows = np.random.default_rng(0).integers(25, size=25)
    first, copies = distinct_rows(X[rows])
    np.testing.assert_array_equal(X[rows][first][copies], X[rows])
    assert len(first) == len(set(rows))
    np.testing.assert_array_equal(distinct_rows(X)[1], np.arange(25))
    repeated = np.concatenate([X, X, X])
    selection = select_rank(repeated, [1, 2, 4, 8, 12], n_folds=3, random_state=0)
    assert selection.best == 2  # 8, if other entries are hidden in each copy


def test_stability_is_drawn_and_decides_with_the_error():
    pytest.importorskip("matplotlib").use("agg")
    errors = np.array([[3.0, 1.1, 1.0, 0.99], [3.2, 1.12, 1.02, 1.01]])
    ranks = np.array([1, 2, 3, 4])
    stable = rank.RankSelection(ranks, errors, np.array([np.nan, 1.0, 0.9, 0.4]))
    assert stable.recommended == 3  # the smallest error among stable ones
    assert "stable" in stable.reason
    assert not stable.at_edge
    all_stable = rank.RankSelection(ranks, errors, np.array([np.nan, 1.0, 0.9, 0.85]))
    assert all_stable.recommended == 4  # less in every fold
    assert all_stable.at_edge
    near = rank.RankSelection(ranks, errors, np.array([np.nan, 1.0, 0.5, 0.4]))
    assert near.recommended == 2
    unstable = rank.RankSelection(ranks[:3], errors[:, [0, 2, 3]], np.array([1.0, 0.5, 0.4]))
    assert unstable.recommended == 2
    assert "no number with a small error is stable" in unstable.reason
    axes = stable.plot()
    assert len(axes.figure.axes) == 2


def test_planted_ranks_are_found_with_stability():
    X = planted(3, 1, shape=(80, 20))
    settings = {"ranks": [1, 2, 3, 5], "n_folds": 2, "random_state": 0}
    selection = select_rank(X, stability=True, n_runs=6, **settings)
    assert selection.recommended == 3
    assert np.isnan(selection.silhouette[0])
    assert selection.silhouette[2] > 0.9
    settled = rank._settle(RobustNMF(5, tol=1e-3)._settings(), X)
    assert rank._mean_silhouette(*settled, X, 6) < 0.9
    without = select_rank(X, **settings)
    np.testing.assert_array_equal(without.errors, selection.errors)
    assert without.silhouette is None


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"ranks": []}, "numbers of components from 1 to 15"),
        ({"ranks": [0, 2]}, "numbers of components from 1 to 15"),
        ({"ranks": [16]}, "numbers of components from 1 to 15"),
        ({"ranks": [1.5]}, "numbers of components from 1 to 15"),
        ({"ranks": 3.5}, "numbers of components from 1 to 15"),
        ({"ranks": [1, "a"]}, "numbers of components from 1 to 15"),
        ({"ranks": [True]}, "numbers of components from 1 to 15"),
        ({"ranks": (k for k in (0, 99))}, "ranks is .0, 99."),
        ({"n_folds": 2.5}, "n_folds must be an integer"),
        ({"n_folds": "5"}, "n_folds must be an integer"),
        ({"structure": "convex"}, "mix all samples"),
        ({"n_folds": 1}, "n_folds must be an integer"),
        ({"hidden": 0.5}, "hidden between 0 and 1 / n_folds"),
        ({"hidden": 0.0}, "hidden between 0 and 1 / n_folds"),
    ],
)
def test_bad_requests_are_refused(arguments, told):
    with pytest.raises(ValueError, match=told):
        select_rank(planted(2, 0, shape=(30, 15)), **arguments)


def test_small_tables_are_refused_or_chosen_for():
    X = planted(2, 0, shape=(4, 4))
    assert select_rank(X, [1, 2], random_state=0).recommended in (1, 2)
    with pytest.raises(ValueError, match="too few"):
        select_rank(X[:2, :2], [1], random_state=0)
    with pytest.raises(TypeError, match="instead of n_components"):
        select_rank(X, [1], n_components=2)


def test_progress_is_printed_if_verbose(capsys):
    X = planted(2, 3, noise=0.1, outliers=0, shape=(40, 8))
    select_rank(X, [1, 2], n_folds=2, random_state=0)
    assert capsys.readouterr().out == ""
    select_rank(X, [1, 2], n_folds=2, random_state=0, stability=True, n_runs=2, verbose=1)
    said = capsys.readouterr().out
    assert "errors of 1 to 2 components, of up to 2" in said
    assert "stability of 2 components" in said


def test_components_under_a_loss_that_is_flat_far_off_are_stable():
    rng = np.random.default_rng(0)
    X = rng.gamma(0.5, size=(100, 3)) @ rng.gamma(0.5, size=(3, 15)) + 0.01 * rng.random((100, 15))
    selection = select_rank(
        X, [2, 3], n_folds=2, stability=True, n_runs=5, random_state=0, loss="truncated"
    )
    assert selection.silhouette[1] > 0.9


def test_a_selection_prints_its_recommendation():
    errors = np.array([[3.0, 1.0, 1.2], [3.1, 1.1, 1.2]])
    text = repr(rank.RankSelection(np.array([1, 2, 3]), errors))
    assert "2 is the smallest" in text
    assert "1, 2, 3" in text


def test_several_random_starts_compare_the_same_ranks():
    X = planted(3, 0, shape=(60, 15))
    one, two = (
        select_rank(X, range(1, 5), n_folds=3, init="random", n_init=n, random_state=0)
        for n in (1, 2)
    )
    np.testing.assert_array_equal(one.errors, two.errors)


def test_the_unit_of_x_does_not_change_the_rank():
    X = planted(3, 0, shape=(60, 15))
    one, huge = (
        select_rank(unit * X, range(1, 6), n_folds=3, random_state=0) for unit in (1, 1e90)
    )
    assert one.recommended == huge.recommended
    assert np.isfinite(huge.standard_error).all()


def test_hidden_entries_are_not_reported_as_missing():
    X = np.ones((30, 8))
    with warnings.catch_warnings(action="error"):
        assert select_rank(X, [1, 2, 3], random_state=0).recommended == 1
    X[:, 3] = np.nan
    with pytest.warns(UserWarning, match="1 feature without known values") as caught:
        select_rank(X, [1, 2], random_state=0)
    assert len(caught) == 1
    with pytest.raises(ValueError, match="the different samples of X have 4 known entries"):
        select_rank(X[:, 4:], [1])
