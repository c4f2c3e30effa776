"""Every kind of X gives the same fit, and bad tables raise the same errors."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone

from robustnmf import RobustNMF
from robustnmf.sources import SOURCES, source_for
from robustnmf.sources.array import ArraySource, ArrowSource, SparseSource, TensorSource
from robustnmf.sources.dask import DaskSource
from robustnmf.sources.stored import StoredSource

RNG = np.random.default_rng(0)
X = RNG.gamma(0.5, size=(60, 3)) @ RNG.gamma(0.5, size=(3, 8)) + 0.01
NAMES = [f"feature {j}" for j in range(8)]


def as_file(table, folder):
    np.save(folder / "x.npy", table)
    return folder / "x.npy"


def as_frame(table, folder):
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame(table, columns=NAMES)


def as_sparse_frame(table, folder):
    pandas = pytest.importorskip("pandas")
    return as_frame(table, folder).astype(pandas.SparseDtype(float, 0.0))


def as_arrow(table, folder):
    pyarrow = pytest.importorskip("pyarrow")
    return pyarrow.table(dict(zip(NAMES, table.T.copy(), strict=True)))


def as_zarr(table, folder):
    return pytest.importorskip("zarr").array(table, chunks=(20, 8))


def as_hdf5(table, folder):
    file = pytest.importorskip("h5py").File(folder / "x.h5", "w")
    file["x"] = table
    return file["x"]


def as_dask(table, folder):
    return pytest.importorskip("dask.array").from_array(table, chunks=(20, 8))


def as_tensor(table, folder):
    return pytest.importorskip("torch").as_tensor(table)


KINDS = {
    "array": (lambda table, folder: table, ArraySource),
    "list": (lambda table, folder: table.tolist(), ArraySource),
    "frame": (as_frame, ArraySource),
    "sparse": (lambda table, folder: scipy.sparse.csr_array(table), SparseSource),
    "sparse frame": (as_sparse_frame, SparseSource),
    "file": (as_file, StoredSource),
    "zarr": (as_zarr, StoredSource),
    "hdf5": (as_hdf5, StoredSource),
    "function": (lambda table, folder: lambda: iter([table[:25], table[25:]]), StoredSource),
    "dask": (as_dask, DaskSource),
    "tensor": (as_tensor, TensorSource),
    "arrow": (as_arrow, ArrowSource),
}


def numpy_of(array):
    return np.asarray(array.compute() if hasattr(array, "compute") else array)


def test_every_kind_is_tested():
    assert {kind for _, kind in KINDS.values()} == set(SOURCES)


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_has_one_source_and_the_same_fit(name, tmp_path):
    make, kind = KINDS[name]
    table = make(X, tmp_path)
    assert type(source_for(table, "RobustNMF")) is kind
    model = RobustNMF(3, random_state=0, tol=1e-3).fit(table)
    plain = RobustNMF(3, random_state=0, tol=1e-3).fit(X)
    np.testing.assert_allclose(numpy_of(model.components_), plain.components_, atol=1e-8)
    np.testing.assert_allclose(numpy_of(model.transform(table)), plain.transform(X), atol=1e-8)
    np.testing.assert_allclose(
        numpy_of(model.score_samples(table)), plain.score_samples(X), atol=1e-8
    )


@pytest.mark.parametrize("name", KINDS)
def test_negative_values_raise_the_same_error(name, tmp_path):
    spoiled = X.copy()
    spoiled[30, 4] = spoiled[41, 2] = -0.5
    with pytest.raises(
        ValueError, match=r"2 negative values, first at \[30, 4\] = -0.5; NMF needs"
    ):
        RobustNMF(3).fit(KINDS[name][0](spoiled, tmp_path))


@pytest.mark.parametrize("name", [name for name in KINDS if not name.startswith("sparse")])
def test_samples_and_features_without_values_raise_the_same_warnings(name, tmp_path):
    missing = X.copy()
    missing[[30, 50]] = missing[:, 6] = np.nan
    with (
        pytest.warns(UserWarning, match="2 samples without known values, first sample 30:"),
        pytest.warns(UserWarning, match="1 feature without known values, first feature 6:"),
    ):
        RobustNMF(3, random_state=0, init="random").fit(KINDS[name][0](missing, tmp_path))


@pytest.mark.parametrize("name", ["frame", "sparse frame", "arrow"])
def test_column_names_become_feature_names(name, tmp_path):
    make = KINDS[name][0]
    model = RobustNMF(3, random_state=0).fit(make(X, tmp_path))
    assert list(model.feature_names_in_) == NAMES
    other = (
        make(X, tmp_path).rename(columns=str.upper)
        if name.endswith("frame")
        else make(X, tmp_path).rename_columns([name.upper() for name in NAMES])
    )
    with pytest.raises(ValueError, match="feature names"):
        model.transform(other)


def test_record_batches_keep_the_names_of_features():
    pyarrow = pytest.importorskip("pyarrow")
    (batch,) = as_arrow(X, None).to_batches()
    model = RobustNMF(3, random_state=0).fit(batch)
    assert list(model.feature_names_in_) == NAMES
    with pytest.raises(ValueError, match="feature names"):
        model.transform(batch.select(NAMES[::-1]))
    assert isinstance(batch, pyarrow.RecordBatch)


def test_arrow_nulls_are_missing_values(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    missing = X.copy()
    missing[::7, 3] = np.nan
    columns = {
        name: pyarrow.array(values, from_pandas=True)
        for name, values in zip(NAMES, missing.T, strict=True)
    }
    models = [RobustNMF(3, random_state=0).fit(t) for t in (missing, pyarrow.table(columns))]
    np.testing.assert_array_equal(models[0].components_, models[1].components_)


def test_non_numeric_arrow_columns_raise_an_error():
    pyarrow = pytest.importorskip("pyarrow")
    with pytest.raises(ValueError, match="column 'b' of X holds string"):
        RobustNMF(1).fit(pyarrow.table({"a": [1.0, 2.0], "b": ["x", "y"]}))


def test_sparse_columns_with_missing_fill_values_are_read_as_dense():
    pandas = pytest.importorskip("pandas")
    missing = X.copy()
    missing[::7, 3] = np.nan
    frame = pandas.DataFrame(missing, columns=NAMES)
    models = [RobustNMF(3, random_state=0).fit(t) for t in (frame, frame.astype("Sparse[float]"))]
    np.testing.assert_array_equal(models[0].components_, models[1].components_)
    with pytest.raises(ValueError, match=r"contains NaN.*Pass X.sparse.to_dense\(\)"):
        models[0].transform(frame.astype(pandas.SparseDtype(float, 0.0)))


def test_sparse_columns_of_booleans_are_numbers():
    pandas = pytest.importorskip("pandas")
    frame = pandas.get_dummies(pandas.Series(list("abcd") * 6), sparse=True)
    numbers = frame.astype(pandas.SparseDtype(float, 0.0))
    model = RobustNMF(2, weighting="uniform", random_state=0)
    models = [clone(model).fit(table) for table in (frame, numbers)]
    np.testing.assert_array_equal(models[0].components_, models[1].components_)
