"""X as a Dask array gives the same numbers on any scheduler, also if a worker dies."""

import itertools
import os
import signal
import threading
import time

import numpy as np
import pytest
import scipy.sparse
from sklearn.exceptions import NotFittedError
from sklearn.utils._testing import ignore_warnings
from threadpoolctl import threadpool_info, threadpool_limits

from robustnmf import ConvexNMF, HuberRNMF, RobustNMF
from robustnmf.loop.passes import Pass
from tests.problems import noisy_low_rank

dask = pytest.importorskip("dask", reason="needs Dask: pip install robustnmf[dask]")
da = pytest.importorskip("dask.array", reason="needs Dask: pip install robustnmf[dask]")
distributed = pytest.importorskip("distributed", reason="needs Dask: pip install robustnmf[dask]")
clustered = pytest.importorskip("robustnmf.engine.dask")

X = noisy_low_rank(400, 30, 4, outliers=20)
CHUNKS = ((150, 150, 40, 60), 30)
MODELS = {
    "trimmed": RobustNMF(4),
    "entropy": RobustNMF(4, weighting="entropy", init="nndsvda"),
    "several starts": RobustNMF(4, weighting="entropy", init="random", n_init=2),
    "divergence": RobustNMF(4, loss="kullback-leibler", weighting="l21", init="random"),
    "entries": HuberRNMF(4),
}


ITERATIONS = 15
LIMIT = 600 * 2**20
"""Memory of a worker, most of which is used by Python and libraries."""


def fitted(model, data, **arguments):
    return model.set_params(random_state=0, max_iter=ITERATIONS, tol=0).fit(data, **arguments)


@ignore_warnings
@pytest.mark.parametrize("name", MODELS)
def test_the_fit_is_the_same_as_in_memory(name):
    weights = np.random.default_rng(0).integers(0, 3, 400).astype(float)
    expected = fitted(MODELS[name], X, sample_weight=weights)
    components, energies = expected.components_, expected.energies_
    importances, size = expected.sample_importances_, expected.effective_sample_size_
    model = fitted(MODELS[name], da.from_array(X, chunks=CHUNKS), sample_weight=weights)
    assert isinstance(model.components_, np.ndarray)
    np.testing.assert_allclose(model.components_, components, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(model.energies_.compute(), energies, rtol=1e-8)
    np.testing.assert_allclose(model.sample_importances_.compute(), importances, rtol=1e-8)
    assert model.effective_sample_size_ == pytest.approx(size)


@ignore_warnings
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.extra] * (name not in ("trimmed", "divergence")))
        for name in MODELS
    ],
)
def test_large_chunks_are_processed_in_tiles(name, monkeypatch):
    expected = fitted(MODELS[name], X).components_
    monkeypatch.setattr(clustered, "BLOCK_BYTES", 30 * 8 * 16)  # sixteen rows
    with dask.config.set(scheduler="sync"):
        model = fitted(MODELS[name], da.from_array(X, chunks=CHUNKS))
    np.testing.assert_allclose(model.components_, expected, rtol=1e-6, atol=1e-9)


def test_one_huge_entry_gives_the_same_units_and_fit_as_in_memory():
    spoiled = X.copy()
    spoiled[7, 3] = 1e60
    expected = fitted(RobustNMF(4, loss="kullback-leibler"), spoiled)
    data = da.from_array(spoiled, chunks=CHUNKS)
    model = fitted(RobustNMF(4, loss="kullback-leibler"), data)
    assert model._scale == expected._scale
    np.testing.assert_allclose(model.components_, expected.components_, rtol=1e-6, atol=1e-9)


def tensors(table, module):
    """A Dask array with chunks of another library, as on a GPU."""
    as_array = pytest.importorskip(module, reason=f"needs {module}").asarray
    places = np.cumsum((0, *CHUNKS[0]))
    parts = [
        da.from_delayed(dask.delayed(as_array)(table[at:stop]), (stop - at, 30), table.dtype)
        for at, stop in itertools.pairwise(places)
    ]
    return da.concatenate(parts)


@ignore_warnings
@pytest.mark.parametrize(
    ("name", "module"), [*((name, "torch") for name in MODELS), ("entropy", "array_api_strict")]
)
def test_chunks_of_other_libraries_are_processed_in_their_library(name, module, monkeypatch):
    looks = []
    to_device_of = Pass.to_device_of
    monkeypatch.setattr(
        Pass,
        "to_device_of",
        lambda self, block: looks.append(type(block.rows)) or to_device_of(self, block),
    )
    expected = fitted(MODELS[name], X).components_
    looks.clear()
    with dask.config.set(scheduler="sync"):
        model = fitted(MODELS[name], tensors(X, module))
    assert len(looks) >= ITERATIONS * len(CHUNKS[0])
    modules = {kind.__module__.partition(".")[0] for kind in looks}
    # The rows that a screening draws are fitted on the host.
    assert modules - {"numpy"} == {module}
    assert name == "trimmed" or modules == {module}
    assert isinstance(model.components_, np.ndarray)
    np.testing.assert_allclose(model.components_, expected, rtol=1e-6, atol=1e-9)
    assert model.energies_.compute().shape == (400,)


@ignore_warnings
def test_codes_of_chunks_of_other_libraries():
    data = tensors(X, "torch")
    model = RobustNMF(4, random_state=0)
    codes = model.fit_transform(data).compute()
    assert isinstance(codes, np.ndarray)
    np.testing.assert_allclose(codes, model.transform(X), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(model.transform(data).compute(), model.transform(X), rtol=1e-9)
    np.testing.assert_allclose(model.score_samples(data).compute(), model.score_samples(X))


@ignore_warnings
def test_codes_are_lazy_and_have_the_chunks_of_the_samples():
    data = da.from_array(X, chunks=CHUNKS)
    model = RobustNMF(4, random_state=0)
    codes = model.fit_transform(data)
    assert isinstance(codes, da.Array)
    assert codes.chunks == (CHUNKS[0], (4,))
    np.testing.assert_allclose(codes.compute(), model.transform(X), rtol=1e-7, atol=1e-9)
    again, scores = model.transform(data), model.score_samples(data)
    assert again.chunks == codes.chunks
    np.testing.assert_allclose(again.compute(), model.transform(X), rtol=1e-12)
    np.testing.assert_allclose(scores.compute(), model.score_samples(X), rtol=1e-12)
    assert model.objective(data) == pytest.approx(model.objective(X), rel=1e-10)


@ignore_warnings
def test_missing_values_and_integers():
    table = X.copy()
    table[::7, ::5] = np.nan
    arguments = {"init": "random", "random_state": 0, "max_iter": 20, "tol": 0}
    for data in (table, (10 * X).astype(np.int32)):
        expected = RobustNMF(3, **arguments).fit(data)
        model = RobustNMF(3, **arguments).fit(da.from_array(data, chunks=(90, -1)))
        np.testing.assert_allclose(model.components_, expected.components_, rtol=1e-8)


@ignore_warnings
def test_zeros_codes_and_dtypes():
    weights = np.where(np.arange(400) < 5, 1.0, 0.0)
    table = X.copy()
    table[:5] = 0.0
    model = RobustNMF(2, random_state=0, max_iter=5, tol=0)
    model.fit(da.from_array(table, chunks=(100, 30)), sample_weight=weights)
    model.fit(X)
    data = da.from_array(X.astype(np.float32), chunks=(100, 30))
    codes = model.transform(data)
    assert codes.dtype == codes.compute().dtype == np.float32
    back = model.inverse_transform(model.transform(da.from_array(X, chunks=(100, 30))))
    np.testing.assert_allclose(back.compute(), model.inverse_transform(model.transform(X)))
    with pytest.raises(NotFittedError):
        RobustNMF(2).transform(data)


def test_blas_keeps_its_threads():
    data = da.from_array(X, chunks=(100, 30))
    model = RobustNMF(2, random_state=0, max_iter=5, tol=0).fit(X)
    with threadpool_limits(3):
        model.transform(data).compute(scheduler="threads", num_workers=4)
        found = [lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"]
        assert found == [3] * len(found)


def test_bad_arrays_raise_errors():
    cut = da.from_array(X, chunks=(100, 10))
    with pytest.raises(ValueError, match=r"rechunk\(\{1: -1\}\)"):
        RobustNMF(2).fit(cut)
    unknown = da.from_array(X, chunks=(100, 30))
    unknown = unknown[unknown[:, 0] > 0]
    with pytest.raises(ValueError, match="compute_chunk_sizes"):
        RobustNMF(2).fit(unknown)
    with pytest.raises(ValueError, match="Expected 2D array"):
        RobustNMF(2).fit(da.ones(3))
    with pytest.raises(ValueError, match="minimum of 1"):
        RobustNMF(2).fit(da.ones((0, 3)))
    with pytest.raises(ValueError, match="Dask array with Convex"):
        ConvexNMF(2).fit(da.from_array(X, chunks=(100, 30)))
    negative = X.copy()
    negative[160, 3] = -1.0
    with pytest.raises(ValueError, match=r"first at \[160, 3\]"):
        RobustNMF(2).fit(da.from_array(negative, chunks=(100, 30)))
    model = RobustNMF(2, random_state=0, max_iter=5, tol=0).fit(X)
    with pytest.raises(ValueError, match="30 features"):
        model.transform(da.ones((10, 5)))


@pytest.mark.parametrize("kind", ["csr_array", "csr_matrix", "coo_array"])
def test_sparse_chunks_with_dense_meta_raise_one_clear_error(kind):
    chunks = da.from_array(X, chunks=(100, 30)).map_blocks(
        getattr(scipy.sparse, kind), meta=np.empty((0, 0))
    )
    with pytest.raises(TypeError, match=rf"chunks are sparse \({kind}\).*chunk\.toarray"):
        RobustNMF(2).fit(chunks)


@ignore_warnings
def test_both_byte_orders_are_read():
    single = X.astype(">f4")
    model = RobustNMF(2, random_state=0, max_iter=5, tol=0).fit(
        da.from_array(single, chunks=CHUNKS)
    )
    assert model.components_.dtype == np.float32
    codes = model.transform(da.from_array(single, chunks=CHUNKS))
    assert codes.dtype == codes.compute().dtype == np.float32


@pytest.fixture(scope="module")
def cluster():
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            memory_limit=LIMIT,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.mark.xdist_group("cluster")
@ignore_warnings
def test_a_cluster_gives_the_same_fit_and_keeps_codes_on_workers(cluster):
    expected = RobustNMF(4, random_state=0, max_iter=10, tol=0).fit(X)
    data = da.from_array(X, chunks=CHUNKS).persist()
    model = RobustNMF(4, random_state=0, max_iter=10, tol=0)
    codes = model.fit_transform(data)
    np.testing.assert_allclose(model.components_, expected.components_, rtol=1e-9, atol=1e-12)
    assert len(distributed.futures_of(codes)) > 0  # they are on the workers


@pytest.mark.xdist_group("cluster")
@ignore_warnings
def test_no_worker_spills(cluster):
    """With memory for its chunks and four more: 8 chunks of 8 MB, one loaded at a time."""
    features, rows = 100, 10_000
    data = da.random.default_rng(0).random((8 * rows, features), chunks=(rows, features))
    RobustNMF(4, init="random", random_state=0, max_iter=5, tol=0).fit(data)

    def used(dask_worker):
        spilled = getattr(dask_worker.data, "spilled_total", None)
        return 0 if spilled is None else int(spilled.disk), dask_worker.memory_manager.memory_limit

    for spilled, limit in cluster.run(used).values():
        assert limit == LIMIT
        assert spilled == 0


@pytest.mark.extra
@pytest.mark.xdist_group("cluster")
@ignore_warnings
def test_a_fit_survives_the_death_of_a_worker(cluster):
    arguments = {"weighting": "entropy", "random_state": 0, "max_iter": 40, "tol": 0}
    expected = RobustNMF(4, **arguments).fit(X).components_
    data = da.from_array(X, chunks=(100, 30)).persist()
    pids = cluster.run(os.getpid)
    killed = threading.Event()

    def kill():
        time.sleep(1.0)
        os.kill(next(iter(pids.values())), signal.SIGKILL)
        killed.set()

    killer = threading.Thread(target=kill)
    killer.start()
    # Long enough to be interrupted in the middle: the killer waits a second.
    while not killed.is_set():
        found = RobustNMF(4, **arguments).fit(data).components_
    killer.join()
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-10)
