"""AnnData objects and files: what is read, and where results are written to."""

import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse

from robustnmf import RobustNMF
from robustnmf.cli import main
from robustnmf.tables import read_table

reason = "needs the extra anndata"
ad = pytest.importorskip("anndata", reason=reason)
pd = pytest.importorskip("pandas", reason=reason)
h5py = pytest.importorskip("h5py", reason=reason)

from robustnmf.anndata import nmf  # noqa: E402

SLOTS = {"obsm": "X_nmf", "varm": "nmf_components", "obs": "nmf_outlier", "uns": "nmf"}


def counts(n=120, m=30, k=3):
    rng = np.random.default_rng(0)
    parts = rng.gamma(0.3, size=(k, m))
    X = rng.poisson(40 * rng.dirichlet(np.full(k, 0.3), n) @ parts / parts.sum(1).mean())
    X[:4] = rng.poisson(30, size=(4, m))
    return scipy.sparse.csr_matrix(X.astype(np.float32))


@pytest.fixture
def adata():
    X = counts()
    obs = pd.DataFrame({"batch": ["a", "b"] * 60}, index=[f"cell{i}" for i in range(120)])
    var = pd.DataFrame(index=[f"gene{i}" for i in range(30)])
    return ad.AnnData(X=np.log1p(X), obs=obs, var=var, layers={"counts": X})


def test_results_are_written_into_the_object(adata):
    assert nmf(adata, 3, layer="counts") is None
    model = RobustNMF(3, loss="kullback-leibler", random_state=0)
    codes = model.fit_transform(adata.layers["counts"])
    np.testing.assert_allclose(adata.obsm["X_nmf"], codes)
    np.testing.assert_allclose(adata.varm["nmf_components"], model.components_.T)
    np.testing.assert_array_equal(adata.obs["nmf_outlier"], model.outliers_)
    assert adata.obs["nmf_importance"].sum() == pytest.approx(1.0, rel=1e-4)
    record = adata.uns["nmf"]
    assert record["params"]["layer"] == "counts"
    assert record["params"]["loss"] == "kullback-leibler"
    assert record["error"] == pytest.approx(model.reconstruction_err_)


def test_a_copy_leaves_the_object_as_it_is(adata, tmp_path):
    done = nmf(adata, 2, key_added="parts", copy=True, max_iter=np.int64(20), weighting="cauchy")
    assert "X_parts" in done.obsm
    assert not adata.obsm
    assert not adata.uns
    done.write_h5ad(tmp_path / "done.h5ad")  # parameters are such as a file keeps
    assert ad.read_h5ad(tmp_path / "done.h5ad").uns["parts"]["params"]["weighting"] == "cauchy"
    assert done.uns["parts"]["params"]["max_iter"] == 20


@pytest.mark.parametrize("kind", ["csr", "csc", "dense"])
def test_backed_files_give_what_memory_gives(adata, tmp_path, kind):
    X = adata.layers["counts"]
    adata.X = {"csr": X, "csc": X.tocsc(), "dense": X.toarray()}[kind]
    del adata.layers["counts"]
    adata.write_h5ad(tmp_path / "x.h5ad")
    backed = ad.read_h5ad(tmp_path / "x.h5ad", backed="r")
    nmf(backed, 3)
    nmf(adata, 3)
    np.testing.assert_allclose(backed.obsm["X_nmf"], adata.obsm["X_nmf"], rtol=1e-3, atol=1e-3)
    with pytest.raises(ValueError, match="backed by a file"):
        nmf(backed, 3, copy=True)
    with pytest.raises(ValueError, match="a view of an object that is backed"):
        nmf(backed[:50], 3)


def test_wrong_objects_and_layers_are_refused(adata):
    with pytest.raises(ValueError, match="the layers of adata are 'counts'"):
        nmf(adata, 2, layer="raw")
    with pytest.raises(TypeError, match="an AnnData object is needed"):
        nmf(adata.X, 2)
    adata.X = None
    with pytest.raises(ValueError, match="has no X"):
        nmf(adata, 2)


def fit(path, *more):
    return main(["fit", str(path), "-k", "3", "--loss", "kullback-leibler", "--quiet", *more])


def test_the_command_writes_the_file_with_results_in_it(adata, tmp_path, capsys):
    adata.write_h5ad(tmp_path / "in.h5ad")
    before = (tmp_path / "in.h5ad").read_bytes()
    out = tmp_path / "out.h5ad"
    assert fit(tmp_path / "in.h5ad", "--layer", "counts", "--write-h5ad", str(out)) == 0
    assert (tmp_path / "in.h5ad").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.h5ad", "out.h5ad"]
    done = ad.read_h5ad(out)
    nmf(adata, 3, layer="counts")
    for slot, name in SLOTS.items():
        assert name in getattr(done, slot)
    np.testing.assert_allclose(done.obsm["X_nmf"], adata.obsm["X_nmf"], rtol=1e-5)
    assert list(done.obs_names) == list(adata.obs_names)
    assert list(done.var_names) == list(adata.var_names)
    assert list(done.obs.columns) == ["batch", "nmf_importance", "nmf_outlier"]
    assert (done.layers["counts"] != adata.layers["counts"]).nnz == 0
    assert fit(tmp_path / "in.h5ad", "--write-h5ad", str(out)) == 1
    assert "--force" in capsys.readouterr().err
    assert fit(out, "--write-h5ad", str(out), "--force") == 1
    assert "which is read" in capsys.readouterr().err
    # Results of an earlier fit are replaced.
    assert fit(out, "--layer", "counts", "--write-h5ad", str(tmp_path / "again.h5ad")) == 0
    assert list(ad.read_h5ad(tmp_path / "again.h5ad").obs.columns) == list(done.obs.columns)


def test_files_are_anndata_by_what_they_hold(adata, tmp_path, capsys):
    adata.obsm["X_pca"] = np.ones((120, 4))
    adata.write_h5ad(tmp_path / "in.h5")
    out = str(tmp_path / "out.h5ad")
    source = tmp_path / "in.h5"
    assert fit(source, "--dataset", "obsm/X_pca", "--write-h5ad", out) == 1
    assert "Leave --dataset out" in capsys.readouterr().err
    assert fit(source, "--transpose", "--write-h5ad", out) == 1
    assert "Leave --transpose out" in capsys.readouterr().err
    folder = tmp_path / "o"
    assert fit(source, "-o", str(folder), "--write-h5ad", str(folder / "run.json")) == 2
    assert fit(source, "--layer", "counts", "--write-h5ad", out) == 0
    assert "X_pca" in ad.read_h5ad(out).obsm
    with h5py.File(tmp_path / "plain.h5ad", "w") as file:
        file["table"] = counts().toarray()
    assert fit(tmp_path / "plain.h5ad", "--write-h5ad", out, "--force") == 0
    assert ad.read_h5ad(out).obsm["X_nmf"].shape == (120, 3)


def test_chosen_genes_keep_their_places(adata, tmp_path):
    adata.write_h5ad(tmp_path / "in.h5ad")
    arguments = [
        "--layer",
        "counts",
        "--columns",
        "gene1?",
        "--write-h5ad",
        str(tmp_path / "o.h5ad"),
    ]
    assert fit(tmp_path / "in.h5ad", *arguments) == 0
    components = ad.read_h5ad(tmp_path / "o.h5ad").varm["nmf_components"]
    assert components.shape == (30, 3)
    assert (components[10:20] > 0).any(axis=1).all()
    assert not components[:10].any()


def test_tables_become_anndata(tmp_path, capsys):
    frame = pd.DataFrame(counts().toarray() / 7.0, columns=[f"g{i}" for i in range(30)])
    frame.insert(0, "id", [f"c{i}" for i in range(120)])
    frame.to_csv(tmp_path / "t.csv", index=False)
    arguments = ["--scale", "std", "--write-h5ad", str(tmp_path / "o.h5ad")]
    assert fit(tmp_path / "t.csv", *arguments) == 0
    done = ad.read_h5ad(tmp_path / "o.h5ad")
    np.testing.assert_array_equal(done.X, read_table(tmp_path / "t.csv").data)
    assert list(done.obs_names)[:2] == ["c0", "c1"]
    assert done.uns["nmf"]["feature_scale"].shape == (30,)
    approximation = done.obsm["X_nmf"] @ done.varm["nmf_components"].T
    inside = ~done.obs["nmf_outlier"].to_numpy()
    assert abs(approximation[inside].sum() / done.X[inside].sum() - 1) < 0.05


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize("is_sparse", [True, False])
def test_what_was_read_is_written_whatever_the_scale(tmp_path, dtype, is_sparse):
    X = (counts() / 7.0 if dtype.startswith("f") else counts()).astype(dtype)
    if is_sparse:
        scipy.sparse.save_npz(tmp_path / "x.npz", X)
    else:
        np.savez(tmp_path / "x.npz", X=X.toarray())
    arguments = ["--scale", "std", "--write-h5ad", str(tmp_path / "o.h5ad")]
    assert fit(tmp_path / "x.npz", *arguments) == 0
    done = ad.read_h5ad(tmp_path / "o.h5ad").X
    assert scipy.sparse.issparse(done) == is_sparse
    assert done.dtype == dtype
    np.testing.assert_array_equal(done.toarray() if is_sparse else done, X.toarray())


def test_columns_of_cells_colour_them_and_layers_are_listed(adata, tmp_path):
    adata.obs["depth"] = np.arange(120.0)
    adata.obs["batch"] = adata.obs["batch"].astype("category")
    adata.write_h5ad(tmp_path / "in.h5ad")
    table = read_table(tmp_path / "in.h5ad", color_by="batch")
    assert list(table.colors[:3]) == ["a", "b", "a"]
    assert "layers that were not read: counts" in table.notes[1]
    assert read_table(tmp_path / "in.h5ad", color_by="depth").colors[5] == 5
    with pytest.raises(ValueError, match=r"the columns of obs are 'batch', 'depth'\.$"):
        read_table(tmp_path / "in.h5ad", color_by="sex")
    with pytest.raises(ValueError, match="the layers of the file are 'counts'"):
        read_table(tmp_path / "in.h5ad", layer="raw")


def test_missing_values_of_columns_are_no_colours(adata, tmp_path):
    known = np.arange(120) > 0
    adata.obs["count"] = pd.array(np.arange(120), dtype="Int64")
    adata.obs["good"] = pd.array([True] * 120, dtype="boolean")
    adata.obs.loc[~known, ["count", "good"]] = pd.NA
    adata.write_h5ad(tmp_path / "in.h5ad")
    colors = read_table(tmp_path / "in.h5ad", color_by="count").colors
    assert np.isnan(colors[0])
    assert colors[1] == 1
    colors = read_table(tmp_path / "in.h5ad", color_by="good").colors
    assert list(colors[:2]) == ["missing", "True"]


def test_categories_as_anndata_0_7_wrote_them(tmp_path):
    with h5py.File(tmp_path / "t.h5ad", "w") as file:
        file["X"] = np.ones((3, 2))
        for axis, names in (("obs", "xyz"), ("var", "ab")):
            file[f"{axis}/_index"] = np.array(list(names), dtype="S")
            file[axis].attrs["_index"] = "_index"
        file["obs/__categories/kind"] = np.array(["q", "r"], dtype="S")
        file["obs/kind"] = np.array([1, -1, 0], dtype="i1")
        file["obs/kind"].attrs["categories"] = file["obs/__categories/kind"].ref
    assert list(read_table(tmp_path / "t.h5ad", color_by="kind").colors) == ["r", "missing", "q"]
    with pytest.raises(ValueError, match=r"the columns of obs are 'kind'\.$"):
        read_table(tmp_path / "t.h5ad", color_by="sex")


@pytest.mark.parametrize("dtype", ["int8", "int64", "float32", "float64"])
def test_sparse_values_become_floats_that_hold_them(tmp_path, dtype):
    X = counts().astype(dtype)
    ad.AnnData(X=X).write_h5ad(tmp_path / "x.h5ad")
    data = read_table(tmp_path / "x.h5ad").data
    assert data.dtype.kind == "f"
    assert (scipy.sparse.csr_matrix(data) != X).nnz == 0


def test_without_anndata_the_extra_is_named(adata, tmp_path, monkeypatch, capsys):
    adata.write_h5ad(tmp_path / "in.h5ad")
    monkeypatch.setattr("robustnmf.cli.fit.find_spec", lambda name: None)
    assert fit(tmp_path / "in.h5ad", "--write-h5ad", str(tmp_path / "o.h5ad")) == 1
    assert "robustnmf[anndata]" in capsys.readouterr().err


@pytest.mark.extra
def test_scanpy_reads_what_is_written(adata, tmp_path):
    sc = pytest.importorskip("scanpy", reason="scanpy is not installed")
    adata.write_h5ad(tmp_path / "in.h5ad")
    out = str(tmp_path / "out.h5ad")
    assert fit(tmp_path / "in.h5ad", "--layer", "counts", "--write-h5ad", out) == 0
    done = sc.read_h5ad(out)
    sc.pp.neighbors(done, use_rep="X_nmf")
    assert "connectivities" in done.obsp


def test_the_module_does_not_shadow_the_package():
    program = "import robustnmf.anndata, anndata; print(anndata.AnnData.__name__)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout.strip() == b"AnnData"


@pytest.mark.skipif(not os.path.exists("/dev/null"), reason="this system has no /dev/null")
def test_a_device_is_no_place_for_anndata(adata, tmp_path, capsys):
    adata.write_h5ad(tmp_path / "in.h5ad")
    assert fit(tmp_path / "in.h5ad", "--write-h5ad", "/dev/null", "--force") == 1
    assert "a FIFO or a device, and a file is needed" in capsys.readouterr().err
