"""Files of the package ``cnmf``: read what its ``prepare`` wrote, write what its others write."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse

from robustnmf.anndata.programs import mean_and_variance, to_tpm, unit_variance
from robustnmf.anndata.slots import values_of
from robustnmf.files.archive import path_beside

if TYPE_CHECKING:
    from anndata import AnnData
    from pandas import DataFrame


def read_cnmf(folder: str | Path, name: str) -> AnnData:
    """Read the tables that ``cnmf prepare`` wrote, to go on with :func:`consensus`.

    Parameters
    ----------
    folder, name
        ``--output-dir`` and ``--name`` of ``cnmf prepare``.

    Returns
    -------
    adata : AnnData (n_obs, n_vars)
        X has the scaled counts of the genes that cNMF chose (zero in others), the layer "tpm" all
        genes in TPM units, and ``var["highly_variable"]`` the choice:
        ``consensus(adata, k, mask_var="highly_variable", tpm_layer="tpm")``.
    """
    import anndata

    at = Path(folder) / name / "cnmf_tmp"
    paths = [at / f"{name}.{table}.h5ad" for table in ("norm_counts", "tpm")]
    for path in paths:
        if not path.is_file():
            raise FileNotFoundError(f"{path} is missing; run cnmf prepare first.")
    chosen, tpm = (anndata.read_h5ad(path) for path in paths)
    columns = tpm.var_names.get_indexer(chosen.var_names)
    if (columns < 0).any() or not chosen.obs_names.equals(tpm.obs_names):
        raise ValueError(f"{paths[0].name} and {paths[1].name} have different cells or genes.")
    counts = scipy.sparse.csr_array(chosen.X, dtype=np.float64)
    values = scipy.sparse.csr_matrix(
        (counts.data, columns[counts.indices], counts.indptr), shape=tpm.shape
    )
    var = tpm.var.assign(highly_variable=tpm.var_names.isin(chosen.var_names))
    return anndata.AnnData(values, obs=chosen.obs, var=var, layers={"tpm": tpm.X})


def write_cnmf(
    adata: AnnData,
    folder: str | Path,
    name: str,
    *,
    key: str = "consensus",
    overwrite: bool = False,
) -> list[Path]:
    """Write the results of :func:`consensus` as the tables that ``cnmf consensus`` writes.

    These are ``*.spectra.k_*.consensus.txt``, ``*.usages.*``, ``*.gene_spectra_score.*``,
    ``*.gene_spectra_tpm.*`` and ``*.overdispersed_genes.txt``. If the runs were kept
    (``consensus(..., keep_runs=True)``), the folder ``cnmf_tmp`` is written, too: the merged
    spectra of all runs and the tables of ``cnmf prepare``, so that ``cnmf consensus`` can go on.

    Parameters
    ----------
    adata : AnnData
        With the results of :func:`consensus`, and the counts that it used, in the same place.
    folder, name
        ``--output-dir`` and ``--name`` of cNMF.
    key : str, default="consensus"
        Name of the results in the object.
    overwrite : bool, default=False
        Replace files that exist.

    Returns
    -------
    paths : list of Path
        The files that were written.
    """
    if key not in adata.uns or f"{key}_tpm" not in adata.varm:
        raise ValueError(f"adata has no results {key!r}. Call robustnmf.anndata.consensus first.")
    tables = _result_tables(adata, name, key)
    if "runs" in adata.uns[key]:
        tables |= _run_tables(adata, name, key)
    root = Path(folder) / name
    paths = [root / file for file in tables]
    existing = [path for path in paths if path.exists()]
    if existing and not overwrite:
        raise FileExistsError(f"{existing[0]} exists. Choose another name, or overwrite=True.")
    for path, write in zip(paths, tables.values(), strict=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path_beside(path) as beside:
            write(beside)
    return paths


Writer = Callable[[Path], Any]
"""Writes one file to a path."""


def _result_tables(adata: AnnData, name: str, key: str) -> dict[str, Writer]:
    """Return the writers of the tables that cNMF's ``consensus`` ends with, by file."""
    import pandas

    usages = adata.obsm[f"X_{key}"] * np.asarray(adata.obs[f"{key}_total"])[:, None]
    programs = np.arange(1, usages.shape[1] + 1)
    mask = np.asarray(adata.var[f"{key}_gene"], dtype=bool)

    def of_genes(slot: str, genes: Any = slice(None)) -> DataFrame:
        rows = adata.varm[f"{key}_{slot}"][genes].T
        return pandas.DataFrame(rows, index=programs, columns=adata.var_names[genes])

    threshold = str(adata.uns[key]["params"]["density_threshold"]).replace(".", "_")
    ending = f"k_{len(programs)}.dt_{threshold}"
    frames = {
        f"spectra.{ending}.consensus": of_genes("spectra", mask),
        f"usages.{ending}.consensus": pandas.DataFrame(usages, adata.obs_names, programs),
        f"gene_spectra_tpm.{ending}": of_genes("tpm"),
        f"gene_spectra_score.{ending}": of_genes("score"),
    }
    genes = "\n".join(adata.var_names[mask])
    tables: dict[str, Writer] = {
        f"{name}.overdispersed_genes.txt": lambda path: path.write_text(genes, encoding="utf-8")
    }
    for part, frame in frames.items():
        tables[f"{name}.{part}.txt"] = partial(frame.to_csv, sep="\t")
    return tables


def _run_tables(adata: AnnData, name: str, key: str) -> dict[str, Writer]:
    """Return the writers of the tables that cNMF's ``consensus`` begins with, by file."""
    import anndata
    import pandas

    given = adata.uns[key]["params"]
    runs = np.asarray(adata.uns[key]["runs"], dtype=np.float64)
    mask = np.asarray(adata.var[f"{key}_gene"], dtype=bool)
    n_runs, k, _ = runs.shape
    names = [f"iter{run}_topic{topic + 1}" for run in range(n_runs) for topic in range(k)]
    merged = pandas.DataFrame(runs.reshape(n_runs * k, -1), names, adata.var_names[mask])
    counts = values_of(adata, given.get("layer"), bool(given.get("use_raw", False)))
    layer = given.get("tpm_layer")
    tpm = to_tpm(counts) if layer is None else adata.layers[layer]
    obs = pandas.DataFrame(index=adata.obs_names)

    def as_object(values: Any, genes: Any) -> AnnData:
        if scipy.sparse.issparse(values):
            values = scipy.sparse.csr_matrix(values)
        return anndata.AnnData(values, obs=obs, var=pandas.DataFrame(index=genes))

    means, variances = mean_and_variance(tpm)
    statistics = pandas.DataFrame(
        {"__mean": means, "__std": np.sqrt(variances)}, index=adata.var_names
    )
    starts = pandas.DataFrame(
        {"n_components": k, "iter": range(n_runs), "nmf_seed": 0, "completed": True}
    )
    loss = str(given.get("loss", "frobenius"))
    refit = {
        "alpha_H": 0.0, "alpha_W": 0.0, "beta_loss": loss, "init": "random", "l1_ratio": 0.0,
        "max_iter": 1000, "solver": "cd" if loss == "frobenius" else "mu", "tol": 1e-4,
    }  # fmt: skip
    as_yaml = "".join(f"{name}: {value}\n" for name, value in refit.items())
    scaled = as_object(unit_variance(counts[:, mask]), adata.var_names[mask])
    at = f"cnmf_tmp/{name}"
    return {
        f"{at}.spectra.k_{k}.merged.df.npz": _as_arrays(merged),
        f"{at}.tpm_stats.df.npz": _as_arrays(statistics),
        f"{at}.nmf_params.df.npz": _as_arrays(starts),
        f"{at}.nmf_idvrun_params.yaml": lambda path: path.write_text(as_yaml, encoding="utf-8"),
        f"{at}.norm_counts.h5ad": scaled.write_h5ad,
        f"{at}.tpm.h5ad": as_object(tpm, adata.var_names).write_h5ad,
    }


def _as_arrays(frame: DataFrame) -> Writer:
    """Write a data frame as cNMF does, with names as plain texts instead of pickled objects."""
    arrays: dict[str, Any] = {"index": frame.index.to_numpy(), "columns": frame.columns.to_numpy()}
    arrays = {axis: a.astype(str) if a.dtype == object else a for axis, a in arrays.items()}

    def write(path: Path) -> None:
        with path.open("wb") as file:  # np.savez would add an ending to the name
            np.savez_compressed(file, data=frame.to_numpy(), **arrays)

    return write
