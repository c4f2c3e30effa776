"""Consensus programs of AnnData objects: definitions of cNMF, and the files of cNMF."""

import warnings

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse

reason = "needs the extra anndata"
ad = pytest.importorskip("anndata", reason=reason)
pd = pytest.importorskip("pandas", reason=reason)

from robustnmf.anndata import consensus, nmf, read_cnmf, write_cnmf  # noqa: E402
from robustnmf.anndata.programs import (  # noqa: E402
    mean_and_variance,
    rows_to_one,
    to_tpm,
    unit_variance,
    variable_genes,
)

K = 3


def cells(damaged=0, n=150, m=60):
    """Counts of cells that mix three programs; the first ones are damaged."""
    rng = np.random.default_rng(1)
    spectra = rng.gamma(0.4, size=(K, m)) + 0.02
    usages = rng.dirichlet(np.full(K, 0.3), n)
    rates = 3000 * usages @ (spectra / spectra.sum(axis=1, keepdims=True))
    left = rng.gamma(0.05, size=(damaged, m)) + 1e-4
    rates[:damaged] = 9000 * left / left.sum(axis=1, keepdims=True)
    adata = ad.AnnData(scipy.sparse.csr_matrix(rng.poisson(rates).astype(np.float32)))
    adata.obs_names = [f"cell{i}" for i in range(n)]
    adata.var_names = [f"gene{i}" for i in range(m)]
    return adata, spectra / spectra.sum(axis=1, keepdims=True)


@pytest.fixture(scope="module")
def found():
    adata, spectra = cells()
    consensus(adata, K, n_runs=10, n_top_genes=40, usages_in_obs=True, keep_runs=True)
    return adata, spectra


def cosines(a, b):
    a, b = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (a, b))
    table = a @ b.T
    return table[scipy.optimize.linear_sum_assignment(-table)]


def test_programs_of_all_genes_are_found(found):
    adata, spectra = found
    assert cosines(spectra, adata.varm["consensus_tpm"].T).min() > 0.99
    assert adata.var["consensus_gene"].sum() == 40
    outside = ~adata.var["consensus_gene"].to_numpy()
    assert not adata.varm["consensus_spectra"][outside].any()
    np.testing.assert_allclose(adata.varm["consensus_spectra"].sum(axis=0), 1.0)


def test_usages_sum_to_one_and_come_in_the_order_of_their_totals(found):
    usages = found[0].obsm["X_consensus"]
    np.testing.assert_allclose(usages.sum(axis=1), 1.0)
    for program in range(K):
        np.testing.assert_array_equal(found[0].obs[f"consensus_{program + 1}"], usages[:, program])
    assert np.all(np.diff(usages.sum(axis=0)) < 0.05 * len(usages))


def test_spectra_and_scores_are_the_regressions_that_they_claim_to_be(found):
    adata = found[0]
    tpm = to_tpm(scipy.sparse.csr_array(adata.X).astype(float)).toarray()
    np.testing.assert_allclose(tpm.sum(axis=1), 1e6)
    scaled = unit_variance(adata.X.toarray()[:, adata.var["consensus_gene"]])
    np.testing.assert_allclose(scaled.std(axis=0, ddof=1), 1.0, rtol=1e-5)
    weights = np.asarray(adata.obs["consensus_importance"])
    kept = weights > 0
    first = adata.varm["consensus_spectra"][adata.var["consensus_gene"]]
    usages = np.stack([scipy.optimize.nnls(first, row)[0] for row in scaled])
    shares = rows_to_one(usages)
    exact = np.stack([scipy.optimize.nnls(shares[kept], gene[kept])[0] for gene in tpm.T])
    np.testing.assert_allclose(adata.varm["consensus_tpm"], exact, rtol=1e-3, atol=1.0)
    y = (tpm - tpm[kept].mean(axis=0)) / tpm[kept].std(axis=0)
    scores = np.linalg.lstsq(usages[kept], y[kept], rcond=None)[0].T
    np.testing.assert_allclose(adata.varm["consensus_score"], scores, rtol=1e-2, atol=1e-5)


def test_damaged_cells_shape_no_program():
    adata, spectra = cells(damaged=8)
    consensus(adata, K, n_runs=10)
    assert adata.obs["consensus_outlier"][:8].all()
    assert adata.obs["consensus_outlier"][8:].mean() < 0.03
    errors = [1 - cosines(spectra, adata.varm["consensus_tpm"].T).min()]
    consensus(adata, K, n_runs=10, weighting="uniform")
    errors.append(1 - cosines(spectra, adata.varm["consensus_tpm"].T).min())
    assert errors[0] < min(0.01, 0.5 * errors[1])


def test_dense_and_sparse_counts_have_the_same_programs(found):
    dense, _ = cells()
    dense.X = dense.X.toarray()
    consensus(dense, K, n_runs=10, n_top_genes=40)
    for name in ("consensus_tpm", "consensus_score"):
        np.testing.assert_allclose(dense.varm[name], found[0].varm[name], rtol=5e-2, atol=1.0)


def test_genes_that_vary_beyond_counting_noise_are_chosen():
    rng = np.random.default_rng(0)
    rates = np.tile(rng.lognormal(3, 1, 300), (400, 1))
    rates[:200, :10] *= 5
    mask = variable_genes(to_tpm(rng.poisson(rates).astype(float)), 10)
    assert mask[:10].all()
    assert mask.sum() == 10
    with_absent = np.hstack([rng.poisson(rates), np.zeros((400, 5))]).astype(float)
    assert variable_genes(to_tpm(with_absent), 1000).sum() == 300


def test_weights_of_cells_are_repetitions():
    rng = np.random.default_rng(0)
    table, weights = rng.random((20, 4)), rng.integers(0, 4, 20).astype(float)
    repeated = np.repeat(table, weights.astype(int), axis=0)
    for one, other in zip(
        mean_and_variance(table, weights), mean_and_variance(repeated), strict=True
    ):
        np.testing.assert_allclose(one, other)


def test_the_table_of_markers_is_as_scanpy_reads_it(found):
    sc = pytest.importorskip("scanpy", reason="scanpy is not installed")
    adata = found[0]
    table = sc.get.rank_genes_groups_df(adata, "1", key="consensus_markers")
    scores = pd.Series(adata.varm["consensus_score"][:, 0], adata.var_names)
    assert list(table["names"][:3]) == list(scores.sort_values(ascending=False).index[:3])
    assert table["pvals_adj"].between(0, 1).all()


def test_results_are_kept_by_files(found, tmp_path):
    adata = found[0]
    adata.write_h5ad(tmp_path / "cells.h5ad")
    again = ad.read_h5ad(tmp_path / "cells.h5ad")
    np.testing.assert_array_equal(again.obsm["X_consensus"], adata.obsm["X_consensus"])
    assert again.uns["consensus"]["runs"].shape == (10, K, 40)
    assert write_cnmf(again, tmp_path, "run")


def test_where_counts_are_is_chosen_and_recorded():
    adata, _ = cells()
    expected = consensus(adata, K, n_runs=4, mask_var=np.arange(60) < 30, copy=True)
    assert "consensus" not in adata.uns
    other = ad.AnnData(
        adata.X.toarray() - adata.X.mean(), var=adata.var, layers={"counts": adata.X}
    )
    other.raw = adata
    other.var["mine"] = np.arange(60) < 30
    with pytest.raises(ValueError, match=r"negative values.*layer='counts' \(counts\).*use_raw"):
        consensus(other, K)
    with pytest.raises(ValueError, match=r"negative values.*layer='counts'"):
        nmf(other, K)
    for place in ({"layer": "counts"}, {"use_raw": True}):
        other.raw.var["mine"] = other.var["mine"]
        consensus(other, K, n_runs=4, mask_var="mine", **place)
        np.testing.assert_allclose(
            other.varm["consensus_tpm"], expected.varm["consensus_tpm"], rtol=1e-6
        )
    nmf(other, K, use_raw=True, mask_var="mine")
    assert not other.varm["nmf_components"][30:].any()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mask_var": "none such"}, "columns of adata.var"),
        ({"mask_var": np.zeros(60, dtype=bool)}, "no variable"),
        ({"mask_var": np.ones(7, dtype=bool)}, "each of the 60"),
        ({"use_raw": True}, "adata.raw is None"),
        ({"layer": "none such"}, "layers of adata are none"),
    ],
)
def test_what_is_not_there_is_named(options, message):
    with pytest.raises(ValueError, match=message):
        consensus(cells()[0], K, **options)


def test_values_that_are_no_counts_are_warned_about():
    adata, _ = cells()
    adata.X = np.log1p(adata.X)
    with pytest.warns(UserWarning, match="not whole numbers"):
        consensus(adata, K, n_runs=2, n_top_genes=20)


def test_cells_without_counts_have_no_usages():
    adata, _ = cells()
    adata.X[3] = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        consensus(adata, K, n_runs=4)
    assert not adata.obsm["X_consensus"][3].any()
    assert np.isfinite(adata.varm["consensus_score"]).all()


def test_files_of_cnmf(found, tmp_path):
    adata = found[0]
    paths = {path.name: path for path in write_cnmf(adata, tmp_path, "run")}
    with pytest.raises(FileExistsError, match="overwrite=True"):
        write_cnmf(adata, tmp_path, "run")
    tables = {
        "run.spectra.k_3.dt_0_5.consensus.txt": (K, 40),
        "run.usages.k_3.dt_0_5.consensus.txt": (150, K),
        "run.gene_spectra_tpm.k_3.dt_0_5.txt": (K, 60),
        "run.gene_spectra_score.k_3.dt_0_5.txt": (K, 60),
    }
    for name, shape in tables.items():
        assert pd.read_csv(paths[name], sep="\t", index_col=0).shape == shape
    with np.load(paths["run.spectra.k_3.merged.df.npz"]) as merged:  # no pickled objects in it
        assert merged["data"].shape == (10 * K, 40)
        assert merged["index"][0] == "iter0_topic1"
    prepared = read_cnmf(tmp_path, "run")
    consensus(prepared, K, n_runs=10, mask_var="highly_variable", tpm_layer="tpm")
    np.testing.assert_allclose(
        prepared.varm["consensus_tpm"], adata.varm["consensus_tpm"], rtol=1e-2, atol=1.0
    )
    with pytest.raises(FileNotFoundError, match="cnmf prepare"):
        read_cnmf(tmp_path, "other")
    with pytest.raises(ValueError, match="no results 'mine'"):
        write_cnmf(adata, tmp_path, "more", key="mine")


def test_genes_of_raw_in_another_order_are_refused():
    adata, _ = cells()
    other = adata.copy()
    other.raw = adata[:, adata.var_names[::-1]].copy()
    for call in (nmf, consensus):
        with pytest.raises(ValueError, match="another order"):
            call(other, K, use_raw=True)


@pytest.mark.parametrize("value", [np.nan, np.inf, 0.0])
def test_counts_that_are_not_finite_are_refused(value):
    counts = np.random.default_rng(0).poisson(2.0, (40, 12)).astype(float)
    counts[3, 5] = value
    if value == 0.0:
        counts[:] = 0.0
    with pytest.raises(ValueError, match="finite counts are needed"):
        consensus(ad.AnnData(counts), 2, n_runs=2)


@pytest.mark.parametrize("count", [-1, 0, 1.5])
def test_the_number_of_genes_is_checked(count):
    with pytest.raises(ValueError, match="n_top_genes is"):
        consensus(cells()[0], K, n_top_genes=count, n_runs=2)
