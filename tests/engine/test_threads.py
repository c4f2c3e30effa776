"""Blocks on threads give the same numbers, and BLAS thread limits are restored."""

import threading

import numpy as np
import pytest
from sklearn.utils._testing import ignore_warnings
from threadpoolctl import threadpool_info, threadpool_limits

from robustnmf import RobustNMF, fit_path
from robustnmf.engine import InMemory
from robustnmf.engine.threads import Threads
from tests.problems import noisy_low_rank

X = noisy_low_rank(4000, 60, 4, outliers=100)


def blas_threads():
    """BLAS threads of NumPy and SciPy; PyTorch can have a separate limit for each thread."""
    return [
        lib["num_threads"]
        for lib in threadpool_info()
        if lib["user_api"] == "blas" and lib["threading_layer"] != "openmp"
    ]


@pytest.mark.parametrize("solver", ["mu", "hals"])
@pytest.mark.parametrize("weighting", ["uniform", "entropy"])
def test_the_result_does_not_depend_on_the_number_of_threads(solver, weighting, monkeypatch):
    monkeypatch.setattr("robustnmf.engine.memory.WORTH_A_BLOCK", 1e4)
    monkeypatch.setattr("robustnmf.engine._base.WORTH_A_THREAD", 1.0)
    arguments = {"weighting": weighting, "solver": solver, "init": "random", "random_state": 0}
    fits = []
    for threads in (1, 2, 3):
        with threadpool_limits(threads):
            fits.append(RobustNMF(4, max_iter=30, tol=0, **arguments).fit(X))
    for other in fits[1:]:
        np.testing.assert_allclose(other.components_, fits[0].components_, rtol=1e-12)
        np.testing.assert_allclose(other.energies_, fits[0].energies_, rtol=1e-12)


@ignore_warnings(category=UserWarning)
def test_members_on_threads_equal_members_of_one_batch():
    small = X[:200]
    arguments = {
        "weightings": ["uniform", "entropy"],
        "n_init": 3,
        "random_state": 0,
        "max_iter": 40,
    }
    with threadpool_limits(1):
        batch = fit_path(small, 3, **arguments)
    with threadpool_limits(3):
        shared = fit_path(small, 3, **arguments)
    for one, other in zip(batch, shared, strict=True):
        assert (one.start, one.n_iter) == (other.start, other.n_iter)
        np.testing.assert_allclose(other.components, one.components, rtol=1e-7, atol=1e-9)


def test_blas_threads_are_restored_also_after_an_error():
    with threadpool_limits(2):
        before = blas_threads()
        engine = InMemory(X, block_rows=100)

        def fail(block, local):
            assert max(blas_threads()) == 1
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError), engine.thread_pool():
            engine.map_blocks(fail)
        assert blas_threads() == before
        RobustNMF(2, max_iter=2, tol=0).fit(X)
        assert blas_threads() == before


def test_fits_in_several_threads_restore_blas_threads():
    results = {}
    arguments = {"weighting": "entropy", "init": "random", "max_iter": 10, "tol": 0}

    def fit(seed):
        results[seed] = RobustNMF(3, random_state=seed, **arguments).fit(X).components_

    with threadpool_limits(2):
        before = blas_threads()
        workers = [threading.Thread(target=fit, args=(seed,)) for seed in range(2)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert blas_threads() == before
        for seed in range(2):
            alone = RobustNMF(3, random_state=seed, **arguments).fit(X)
            np.testing.assert_allclose(results[seed], alone.components_, rtol=1e-10)


def test_results_are_in_order_and_the_pool_can_be_opened_twice():
    threads = Threads()
    with threadpool_limits(3), threads.open(), threads.open():
        assert threads.count == 3
        assert list(threads.each(lambda i: i * i, range(50))) == [i * i for i in range(50)]
    assert threads.count == 1
    assert list(threads.each(abs, [-1])) == [1]


def test_small_batches_use_few_threads():
    small, large = InMemory(X[:50]), InMemory(X, block_rows=len(X))
    for engine in (small, large):
        engine.threads.count = 8
    assert len(small.member_slices(8, 4, cost=1.0)) == 1
    assert len(small.member_slices(8, 4, cost=1e4)) > 1
    assert 1 < len(large.member_slices(100, 10, cost=1.0)) <= 8
