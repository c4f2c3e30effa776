"""X that is read block by block: same numbers as in memory, one read per pass, clear errors."""

import os
from functools import cache

import numpy as np
import pytest
import scipy.sparse
from sklearn.utils._testing import ignore_warnings

from robustnmf import ConvexNMF, HuberRNMF, RobustNMF, RobustNMFDetector
from robustnmf.engine import SlicedReader, Stored
from robustnmf.engine._scan import is_usable
from robustnmf.sources import FileReader, reader_of, source_for
from tests.problems import noisy_low_rank

X = noisy_low_rank(600, 30, 4, outliers=20)


def blocks_of(table, rows=130):
    return lambda: (table[at : at + rows] for at in range(0, len(table), rows))


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr("robustnmf.engine.stored.BLOCK_BYTES", 20_000)
    monkeypatch.setattr("robustnmf.sources.stored.WORTH_STORING", 0)


def npy(table, folder):
    path = folder / "x.npy"
    np.save(path, table)
    return path


def kept(kind, table, folder):
    """A table in another kind of storage."""
    if kind == "npy":
        return npy(table, folder)
    if kind == "path as text":
        return str(npy(table, folder))
    if kind == "reader":
        return reader_of(npy(table, folder))
    if kind == "column by column":
        return npy(np.asfortranarray(table), folder)
    if kind == "memmap":
        return np.load(npy(table, folder), mmap_mode="r")
    if kind == "part of a memmap":
        whole = np.concatenate([table, table], axis=1)
        return np.load(npy(whole, folder), mmap_mode="r")[:, : table.shape[1]]
    if kind == "function":
        return blocks_of(table)
    if kind == "zarr":
        zarr = pytest.importorskip("zarr")
        array = zarr.create_array(
            str(folder / "x.zarr"), shape=table.shape, chunks=(70, table.shape[1]),
            dtype=table.dtype,
        )  # fmt: skip
        array[:] = table
        return array
    h5py = pytest.importorskip("h5py")
    return h5py.File(folder / "x.h5", "w").create_dataset("x", data=table, chunks=(90, 30))


KINDS = [
    "npy", "path as text", "column by column", "memmap", "part of a memmap", "function", "zarr",
    "hdf5", "reader",
]  # fmt: skip
MODELS = {
    "trimmed": RobustNMF(4),
    "entropy": RobustNMF(4, weighting="entropy"),
    "several starts": RobustNMF(4, weighting="entropy", init="random", n_init=2),
    "divergence": RobustNMF(4, loss="kullback-leibler", weighting="l21", init="nndsvda"),
    "entries": HuberRNMF(4),
    "mixtures": ConvexNMF(4),
    "orthogonal": RobustNMF(4, structure="orthogonal", weighting="l21", init="random"),
}


@pytest.mark.parametrize("loss", ["kullback-leibler", "frobenius"])
def test_one_huge_entry_gives_the_same_units_and_fit_as_in_memory(loss):
    spoiled = X.copy()
    spoiled[7, 3] = 1e60
    stored = RobustNMF(4, loss=loss, random_state=0, max_iter=20).fit(blocks_of(spoiled))
    model = RobustNMF(4, loss=loss, random_state=0, max_iter=20).fit(spoiled)
    assert stored._scale == model._scale
    np.testing.assert_allclose(stored.components_, model.components_, rtol=1e-6)


@cache
def fit_in_memory():
    return RobustNMF(4, random_state=0, max_iter=12, tol=0).fit(X)


@pytest.mark.xdist_group("kinds of storage")
@ignore_warnings
@pytest.mark.parametrize("kind", KINDS)
def test_the_fit_is_the_same_for_every_kind_of_storage(kind, tmp_path):
    expected = fit_in_memory()
    stored = kept(kind, X, tmp_path)
    model = RobustNMF(4, random_state=0, max_iter=12, tol=0)
    codes = model.fit_transform(stored)
    np.testing.assert_allclose(model.components_, expected.components_, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(model.energies_, expected.energies_, rtol=1e-8)
    assert codes.shape == (600, 4)
    assert model.n_features_in_ == 30
    np.testing.assert_allclose(model.transform(stored), expected.transform(X), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(model.objective(stored), expected.objective(X), rtol=1e-9)


@ignore_warnings
@pytest.mark.parametrize("name", MODELS)
def test_every_method_reads_stored_data(name, tmp_path):
    weights = np.random.default_rng(0).integers(0, 3, 600).astype(float)
    path = npy(X, tmp_path)
    fits = [
        MODELS[name].set_params(random_state=0, max_iter=12, tol=0).fit(data, sample_weight=weights)
        .components_
        for data in (X, path)
    ]  # fmt: skip
    np.testing.assert_allclose(fits[1], fits[0], rtol=1e-7, atol=1e-10)


@ignore_warnings
@pytest.mark.parametrize(
    "dtype", ["float32", ">f4", ">f8", "uint8", ">i2", "int64", "float16", "bool"]
)
def test_every_dtype_is_read_as_in_memory(dtype, tmp_path):
    table = np.minimum(10 * X / X.max(), 10).astype(dtype)
    path = npy(table, tmp_path)
    # Few iterations: in float32, acceleration amplifies rounding errors after the 12th iteration.
    arguments = {"random_state": 0, "max_iter": 8, "tol": 0}
    rank = 1 if dtype == "bool" else 3  # all entries are one
    expected = RobustNMF(rank, **arguments).fit(table)
    model = RobustNMF(rank, **arguments).fit(path)
    assert model.components_.dtype == expected.components_.dtype
    tolerance = 1e-3 if dtype in ("float32", ">f4") else 1e-9
    np.testing.assert_allclose(model.components_, expected.components_, rtol=tolerance, atol=1e-4)


@ignore_warnings
def test_stored_data_can_have_missing_values(tmp_path):
    table = X.copy()
    table[::7, ::5] = np.nan
    arguments = {"init": "random", "random_state": 0, "max_iter": 20, "tol": 0}
    expected = RobustNMF(3, **arguments).fit(table)
    path = npy(table, tmp_path)
    np.testing.assert_allclose(
        RobustNMF(3, **arguments).fit(path).components_, expected.components_, rtol=1e-8
    )
    with pytest.raises(ValueError, match="init='random'"):
        RobustNMF(3, weighting="uniform", init="nndsvda").fit(path)
    # The screening starts from rows in memory, which can have missing values.
    arguments["init"] = "robust"
    expected = RobustNMF(3, **arguments).fit(table)
    np.testing.assert_allclose(
        RobustNMF(3, **arguments).fit(path).components_, expected.components_, rtol=1e-8
    )


def test_codes_in_files_are_decoded(tmp_path):
    model = RobustNMF(4, random_state=0).fit(X)
    codes = model.transform(X)
    for stored in (npy(codes, tmp_path), lambda: iter([codes[:100], codes[100:]])):
        np.testing.assert_allclose(
            model.inverse_transform(stored), model.inverse_transform(codes), rtol=1e-12
        )


def test_detectors_score_stored_data(tmp_path):
    path = npy(X, tmp_path)
    detector = RobustNMFDetector(4, random_state=0).fit(path)
    np.testing.assert_allclose(detector.score_samples(path), detector.score_samples(X), rtol=1e-9)
    with pytest.raises(TypeError, match="in memory"):
        detector.explain(path)


def test_blocks_are_read_once_per_pass():
    reads = []

    def blocks():
        reads.append(0)
        for at in range(0, 600, 100):
            reads[-1] += 1
            yield X[at : at + 100]

    engine = Stored(reader_of(blocks))
    before = len(reads)
    engine.map_blocks(lambda block, local: (None, block.sq_norms.sum()))
    assert len(reads) == before + 1
    engine.map_blocks(lambda block, local: (None, block.sq_norms.sum()), data=False)
    assert len(reads) == before + 1
    assert set(reads) == {6}


def test_files_are_read_without_their_memory_maps(tmp_path):
    path = npy(X, tmp_path)
    mapped = np.load(path, mmap_mode="r")
    assert isinstance(reader_of(mapped), FileReader)
    assert isinstance(reader_of(mapped[:, :10]), SlicedReader)
    assert isinstance(reader_of(mapped[10:]), SlicedReader)
    rows = [read() for read in reader_of(mapped).read(250)]
    np.testing.assert_array_equal(np.concatenate(rows), X)
    assert source_for(X, "RobustNMF").in_memory


@pytest.mark.parametrize("kind", KINDS)
def test_chosen_rows_are_read_in_any_order(kind, tmp_path):
    places = [411, 3, 3, 599, 0]
    np.testing.assert_array_equal(reader_of(kept(kind, X, tmp_path)).take(places), X[places])


def bad_files(folder):
    (folder / "text.npy").write_text("no numbers")
    np.save(folder / "cube.npy", np.ones((2, 2, 2)))
    np.save(folder / "names.npy", np.array([["a", "b"]]))
    np.save(folder / "objects.npy", np.array([[1, None]], dtype=object), allow_pickle=True)
    np.save(folder / "empty.npy", np.ones((0, 3)))
    negative = X.copy()
    negative[411, 7] = -2.0
    np.save(folder / "negative.npy", negative)
    has_inf = X.copy()
    has_inf[3, 3] = np.inf
    np.save(folder / "endless.npy", has_inf)
    np.save(folder / "nothing.npy", np.full((5, 3), np.nan))
    np.save(folder / "short.npy", X)
    size = os.path.getsize(folder / "short.npy")
    with (folder / "short.npy").open("rb+") as file:
        file.truncate(size - 1000)


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("absent", FileNotFoundError, "no such file"),
        ("text", ValueError, "not a .npy file"),
        ("cube", ValueError, "2D array"),
        ("names", ValueError, "real numbers"),
        ("objects", ValueError, "Python objects"),
        ("empty", ValueError, "minimum of 1"),
        ("negative", ValueError, r"first at \[411, 7\] = -2"),
        ("endless", ValueError, "infinity"),
        ("nothing", ValueError, "only NaN"),
        ("short", OSError, "shorter"),
    ],
)
def test_bad_files_raise_errors(name, error, message, tmp_path):
    bad_files(tmp_path)
    with pytest.raises(error, match=message):
        RobustNMF(2).fit(tmp_path / f"{name}.npy")


@ignore_warnings
def test_functions_can_reuse_one_buffer_and_yield_empty_blocks():
    def blocks():
        buffer = np.empty((100, 30))
        for at in range(0, 600, 100):
            buffer[:] = X[at : at + 100]
            yield buffer
            yield X[:0]

    arguments = {"random_state": 0, "max_iter": 20, "tol": 0}
    expected = RobustNMF(3, **arguments).fit(X).components_
    found = RobustNMF(3, **arguments).fit(blocks).components_
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@ignore_warnings
def test_changes_to_a_copy_on_write_map_are_read(tmp_path):
    mapped = np.load(npy(X, tmp_path), mmap_mode="c")
    mapped[:100] *= 3
    arguments = {"random_state": 0, "max_iter": 20, "tol": 0}
    expected = RobustNMF(3, **arguments).fit(np.array(mapped)).components_
    found = RobustNMF(3, **arguments).fit(mapped).components_
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@ignore_warnings
def test_starts_share_one_reader(tmp_path):
    active, most = [], []

    def blocks():
        active.append(1)
        most.append(len(active))
        yield X
        active.pop()

    RobustNMF(3, init="random", n_init=4, random_state=0, max_iter=5, tol=0).fit(blocks)
    assert max(most) == 1


def test_bad_generators_raise_errors():
    with pytest.raises(ValueError, match="real numbers"):
        RobustNMF(2).fit(lambda: iter([X * 1j]))
    with pytest.raises(TypeError, match="sparse"):
        RobustNMF(2).fit(lambda: iter([scipy.sparse.csr_array(X)]))
    cuts = iter([100, 100, 200, 200, 200])

    def other_cuts():
        rows = next(cuts)
        return (X[at : at + rows] for at in range(0, 600, rows))

    with pytest.raises(ValueError, match="the same blocks every time"):
        RobustNMF(2).fit(other_cuts)
    with pytest.raises(TypeError, match="Pass the function"):
        RobustNMF(2).fit(X[at : at + 100] for at in range(0, 600, 100))
    with pytest.raises(ValueError, match="yields no blocks"):
        RobustNMF(2).fit(lambda: iter([]))
    with pytest.raises(ValueError, match="the same number"):
        RobustNMF(2).fit(lambda: iter([X, X[:, :3]]))
    turns = iter([5, 3, 1, 1])

    def unsteady():
        return (X[:100] for _ in range(next(turns)))

    with pytest.raises(ValueError, match="the same blocks every time"):
        RobustNMF(2).fit(unsteady)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, -1.0])
@pytest.mark.parametrize("turn", [3, 6, 9])
def test_a_function_must_not_yield_invalid_values_later(value, turn):
    calls = 0

    def blocks():
        nonlocal calls
        calls += 1
        table = X.copy()
        if calls >= turn:
            table[333, 7] = value
        return iter(np.array_split(table, 4))

    with pytest.raises(ValueError, match="the same blocks every time"):
        RobustNMF(3, weighting="uniform", random_state=0, max_iter=12, tol=0).fit(blocks)
    assert calls == turn


@ignore_warnings
def test_later_passes_allow_nan_only_if_x_has_missing_values():
    table = X.copy()
    table[::7, ::5] = np.nan
    table[1, 1] = -0.0
    model = RobustNMF(3, init="random", random_state=0, max_iter=8, tol=0).fit(blocks_of(table))
    assert np.isfinite(model.components_).all()
    assert is_usable(table, complete=False)
    assert not is_usable(table, complete=True)
    table = np.where(np.isnan(table), 0.0, table)
    for dtype in (np.float32, np.float64):
        assert is_usable(table.astype(dtype), complete=True)
        for value in (np.inf, -np.inf, -1e-30, np.nan):
            spoiled = table.astype(dtype)
            spoiled[5, 5] = value
            assert not is_usable(spoiled, complete=True)
            assert is_usable(spoiled, complete=False) == bool(np.isnan(value))


def test_the_number_of_features_of_new_data_is_checked(tmp_path):
    model = RobustNMF(2, random_state=0, max_iter=5, tol=0).fit(X)
    with pytest.raises(ValueError, match="30 features"):
        model.transform(npy(X[:, :10], tmp_path))
