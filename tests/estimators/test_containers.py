"""Containers of X that are not tables: each has an error with advice; output containers."""

import re

import array_api_strict
import numpy as np
import pytest
import scipy.sparse

from robustnmf import RobustNMF, RobustNMFDetector, select_rank
from tests.problems import noisy_low_rank

X = noisy_low_rank(60, 8, 2)


@pytest.fixture
def both():
    """Fit, and transform by a fitted model."""
    return RobustNMF(2, random_state=0).fit, RobustNMF(2, random_state=0).fit(X).transform


def test_a_zarr_group(both, tmp_path):
    zarr = pytest.importorskip("zarr")
    group = zarr.open_group(tmp_path / "g.zarr", mode="w")
    group.create_array("counts", data=X)
    for function in both:
        with pytest.raises(TypeError, match=r"group of arrays.*'counts'.*X\['name'\]"):
            function(group)
        function(group["counts"])


def test_an_hdf5_group_and_a_closed_dataset(both, tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        dataset = file.create_dataset("counts", data=X)
        for function in both:
            with pytest.raises(TypeError, match=r"group of arrays.*'counts'"):
                function(file)
            function(dataset)
    for function in both:
        with pytest.raises(ValueError, match="HDF5 file that is closed"):
            function(dataset)
        with pytest.raises(ValueError, match="HDF5 file that is closed"):
            function(file)


@pytest.mark.parametrize("kind", [scipy.sparse.csr_array, scipy.sparse.csr_matrix])
def test_sparse_chunks_of_dask(kind):
    da = pytest.importorskip("dask.array")
    table = da.from_array(X, chunks=(20, 8)).map_blocks(kind)
    with pytest.raises(TypeError, match=r"chunks are sparse \(csr_") as error:
        RobustNMF(2).fit(table)
    advice = re.search(r"Use (X\.map_blocks\(.*\)), or pass", str(error.value))
    RobustNMF(2, random_state=0).fit(eval(advice[1], {"X": table, "numpy": np}))


def test_an_anndata_object(both):
    adata = pytest.importorskip("anndata").AnnData(X)
    for function in (*both, RobustNMFDetector(2).fit, select_rank):
        with pytest.raises(TypeError, match=r"X is an AnnData object.*robustnmf.anndata.nmf\("):
            function(adata)


def in_torch(array):
    return pytest.importorskip("torch").as_tensor(array)


@pytest.mark.parametrize("convert", [in_torch, array_api_strict.asarray])
def test_minibatches_of_several_libraries(convert):
    arrays = X, convert(X)
    for first, second in (arrays, arrays[::-1]):
        model = RobustNMF(2, random_state=0).partial_fit(first)
        components = model.components_
        with pytest.raises(TypeError, match="all minibatches need the same library"):
            model.partial_fit(second)
        assert model.components_ is components
        assert model.partial_fit(first).n_steps_ == 2


def test_explanations_follow_set_output():
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(X, columns=list("abcdefgh"), index=range(100, 160))
    model = RobustNMF(2, random_state=0).fit(table)
    plain = model.explain(table)
    assert isinstance(plain, np.ndarray)
    frame = model.set_output(transform="pandas").explain(table)
    pd.testing.assert_frame_equal(frame, pd.DataFrame(plain, table.index, table.columns))
    unnamed = RobustNMF(2, random_state=0).set_output(transform="pandas").fit(X).explain(X[:2])
    assert list(unnamed.columns)[:2] == ["x0", "x1"]
