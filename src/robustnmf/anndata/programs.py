r"""Consensus gene programs of an AnnData object, as cNMF (Kotliar et al., 2019) defines them.

Counts :math:`X` of the most variable genes, each divided by its standard deviation, are factorised
many times; the medians of matched components are the programs. Everything else is regression on
the usages :math:`U` of the programs: the TPM of *all* genes :math:`Y` give the spectra in TPM units
(:math:`S \ge 0` that minimises :math:`\|Y - U S\|^2`, rows of U summing to one) and the z-scores
(ordinary least squares of standardised Y on U). Cells that the robust fit leaves out have no weight
in any of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse
from scipy import stats

from robustnmf._version import __version__
from robustnmf.anndata.slots import (
    check_object,
    chosen_features,
    is_counts,
    plain_parameters,
    spread_over,
    values_of,
    write_results,
)
from robustnmf.arrays import WORTH_A_DEVICE, to_numpy
from robustnmf.exceptions import warn
from robustnmf.solvers import nonnegative_least_squares

if TYPE_CHECKING:
    from anndata import AnnData

    from robustnmf.estimators import ConsensusNMF

TPM = 1e6
"""Sum of the values of a cell in TPM units (transcripts per million)."""

BRIGHTEST = 20
"""Genes of the largest means by which the noise of strong genes is estimated, as in cNMF."""

MARKERS = 100
"""Genes of each program in the table of markers."""

TOLERANCE = 1e-6
"""Relative decrease at which runs stop: at 1e-4 programs are less exact than those of cNMF."""

DENSE_SHARE = 0.1
"""Share of counts that are not zero above which dense products are faster than sparse ones."""

DENSE_BYTES = 2**31
"""Largest dense table that sparse counts are turned into."""


def consensus(
    adata: AnnData,
    n_components: int | str,
    *,
    layer: str | None = None,
    use_raw: bool = False,
    mask_var: Any = None,
    n_top_genes: int = 2000,
    n_runs: int = 100,
    density_threshold: float = 0.5,
    loss: str = "frobenius",
    random_state: int = 0,
    tpm_layer: str | None = None,
    key_added: str = "consensus",
    usages_in_obs: bool = False,
    keep_runs: bool = False,
    device: str | None = None,
    copy: bool = False,
    **parameters: Any,
) -> AnnData | None:
    """Find stable gene programs in counts by many runs, as cNMF does, and mark damaged cells.

    Use it in place of the pipeline prepare, factorize, combine, consensus of the package ``cnmf``:
    the definitions are the same, and one robust fit decides beforehand which cells the runs use.

    Parameters
    ----------
    adata : AnnData (n_obs, n_vars)
        With counts in X, a layer or ``.raw``. The runs use single precision. Sparse counts stay
        sparse if at most 10% of them are nonzero, or if a dense table would exceed 2 GiB.
    n_components : int or "auto"
        Number of programs.
    layer, use_raw
        Where the counts are: a layer, or ``adata.raw`` if it has the same variables; X by default.
    mask_var : str or array of bool (n_vars,), optional
        Genes that the runs use: a column of ``var``, for example ``"highly_variable"``, or a mask.
        By default the ``n_top_genes`` that vary most beyond counting noise, chosen as in cNMF.
    n_top_genes : int, default=2000
        Number of these genes.
    n_runs : int, default=100
        Number of random starts.
    density_threshold : float, default=0.5
        Mean distance to its neighbours beyond which a component of a run is left out.
    loss : str or Loss, default="frobenius"
        Loss of :class:`robustnmf.RobustNMF`; the default is the loss of cNMF.
    random_state : int, default=0
        Seed of the starts.
    tpm_layer : str, optional
        Layer with values in TPM units, if you normalise in your own way; by default the counts of a
        cell are divided by their sum.
    key_added : str, default="consensus"
        Name of the results in the object.
    usages_in_obs : bool, default=False
        Also write the usages to the columns ``obs["consensus_1"]``, ..., which
        ``scanpy.pl.umap(adata, color=...)`` can show.
    keep_runs : bool, default=False
        Also write the components of all runs to ``uns["consensus"]["runs"]``, for
        :func:`robustnmf.anndata.write_cnmf`.
    device : str, optional
        Device of PyTorch for the runs, for example ``"cuda"``. Fewer than a million values stay on
        the processor, which is faster.
    copy : bool, default=False
        Whether to return a copy with the results instead of writing to ``adata``.
    **parameters
        Further parameters of :class:`robustnmf.RobustNMF`, for example ``weighting="uniform"`` for
        plain runs. ``tol`` is 1e-6 by default.

    Returns
    -------
    adata : AnnData, or None
        None unless ``copy``. Programs are in the order of their total usage. These are set, where
        ``consensus`` is ``key_added``:

        ``obsm["X_consensus"]``
            Usages of the programs, which sum to one in each cell (n_obs, n_components).
        ``varm["consensus_spectra"]``
            The programs in the genes that the runs use, each summing to one; zero elsewhere.
        ``varm["consensus_tpm"]``, ``varm["consensus_score"]``
            The programs in all genes (n_vars, n_components): in TPM units, and as z-scores.
        ``var["consensus_gene"]``
            Which genes the runs use.
        ``obs["consensus_energy"]``, ``obs["consensus_importance"]``, ``obs["consensus_outlier"]``
            Reconstruction error of each cell, its weight in the fit, and whether it is an outlier.
        ``obs["consensus_total"]``
            Sum of the usages of a cell before they are made to sum to one.
        ``uns["consensus"]``
            ``params``, ``version``, ``error``; ``stability`` and ``silhouette`` of each program.
        ``uns["consensus_markers"]``
            Genes of the largest z-scores in each program, as ``scanpy.tl.rank_genes_groups``
            stores them: ``scanpy.get.rank_genes_groups_df(adata, "1", key="consensus_markers")``.

    Examples
    --------
    >>> import anndata, numpy as np
    >>> from robustnmf.anndata import consensus
    >>> rng = np.random.default_rng(0)
    >>> rates = rng.gamma(0.3, size=(80, 3)) @ rng.gamma(0.3, size=(3, 40))
    >>> adata = anndata.AnnData(rng.poisson(20 * rates + 1).astype(float))
    >>> consensus(adata, 3, n_runs=10)
    >>> adata.obsm["X_consensus"].shape, adata.varm["consensus_tpm"].shape
    ((80, 3), (40, 3))
    """
    from robustnmf.estimators import ConsensusNMF, RobustNMF

    check_object(adata, copy)
    counts = _float_values(adata, layer, use_raw)
    stored = counts.data if scipy.sparse.issparse(counts) else counts
    if not np.isfinite(stored).all() or not stored.any():
        raise ValueError(
            "The counts are all zero, or hold NaN or infinite values, but finite counts are "
            "needed. Name the layer that holds the counts, or leave out such cells."
        )
    if n_top_genes < 1 or n_top_genes != int(n_top_genes):
        raise ValueError(f"n_top_genes is {n_top_genes!r}, but a whole number >= 1 is needed.")
    if tpm_layer is None and not is_counts(counts):
        warn(
            "The values are not whole numbers. Programs are defined for counts; if X is normalised "
            "or on a log scale, name the layer that holds the counts.",
            UserWarning,
        )
    tpm = to_tpm(counts) if tpm_layer is None else _float_values(adata, tpm_layer, False)
    mask = chosen_features(adata, mask_var, use_raw)
    if mask is None:
        mask = variable_genes(tpm, int(n_top_genes))
    scaled = _as_runs_use(unit_variance(counts[:, mask]), device)
    model = ConsensusNMF(
        RobustNMF(n_components, loss=loss, **{"tol": TOLERANCE, **parameters}),
        n_runs=n_runs, density_threshold=density_threshold, random_state=random_state,
        keep_runs=keep_runs,
    )  # fmt: skip
    fitted = Programs.of(model, to_numpy(model.fit_transform(scaled)), tpm, mask)
    given = {
        "layer": layer, "use_raw": use_raw or None, "tpm_layer": tpm_layer,
        "n_top_genes": int(mask.sum()),
        **model.get_params(deep=False), "estimator": None,
        **{f"estimator__{name}": value for name, value in parameters.items()},
        "n_components": fitted.usages.shape[1], "loss": loss,
    }  # fmt: skip
    if copy:
        adata = adata.copy()
    results = _slots(fitted, model, mask, key_added, given)
    names = np.asarray(adata.var_names, dtype=str)
    results["uns"][f"{key_added}_markers"] = marker_table(fitted, names, key_added)
    if keep_runs:
        results["uns"][key_added]["runs"] = to_numpy(model.run_components_)
    if usages_in_obs:
        for program, column in enumerate(fitted.usages.T, start=1):
            results["obs"][f"{key_added}_{program}"] = column
    write_results(adata, results)
    return adata if copy else None


def to_tpm(counts: Any) -> Any:
    """Return counts (cells, genes) times a factor per cell, so that each cell sums to a million."""
    totals = np.asarray(counts.sum(axis=1), dtype=np.float64).ravel()
    factors = np.divide(TPM, totals, out=np.zeros_like(totals), where=totals > 0)
    if scipy.sparse.issparse(counts):
        return scipy.sparse.csr_array(scipy.sparse.diags_array(factors) @ counts)
    return counts * factors[:, None]


def unit_variance(values: Any) -> Any:
    """Divide every column by its standard deviation; nothing is subtracted, so zeros stay zero."""
    rows = values.shape[0]
    deviations = np.sqrt(mean_and_variance(values)[1] * (rows / max(rows - 1, 1)))
    factors = 1.0 / np.where(deviations > 0, deviations, 1.0)
    if scipy.sparse.issparse(values):
        return scipy.sparse.csr_array(values @ scipy.sparse.diags_array(factors))
    return values * factors


def variable_genes(tpm: Any, count: int) -> np.ndarray:
    r"""Return which genes (genes,) vary most beyond what their means explain, as cNMF chooses them.

    The ratio of variance to mean (Fano factor) of a gene of mean :math:`\mu` is expected to be
    :math:`A^2 \mu + B^2`: A is the least coefficient of variation of the strongest genes, B the
    median ratio of usual genes.
    """
    means, variances = mean_and_variance(tpm)
    seen = means > 0
    fano = np.divide(variances, means, out=np.full_like(means, np.nan), where=seen)
    strongest = np.argsort(-means, kind="stable")[:BRIGHTEST]
    strongest = strongest[seen[strongest]]
    noise = np.min(np.sqrt(variances[strongest]) / means[strongest])
    usual = np.ones_like(seen)
    for values in (means, fano):
        low, high = np.nanquantile(values, (0.1, 0.9))
        usual &= (values > low) & (values < high)
    base = np.median(fano[usual]) if usual.any() else np.nanmedian(fano)
    ratio = fano / (noise**2 * means + base)
    chosen = np.argsort(np.where(seen, -ratio, np.inf), kind="stable")[: min(count, seen.sum())]
    return np.isin(np.arange(len(means)), chosen)


@dataclass(frozen=True)
class Programs:
    """Programs in the order of their total usage, and how genes depend on them.

    ``spectra`` (k, chosen genes) sum to one; ``usages`` (cells, k) too; ``raw_usages`` (cells, k)
    are in the units of the refit; ``tpm`` and ``scores`` (k, genes) are TPM and z-scores of all
    genes, ``p_values`` (k, genes) those of the scores; ``order`` (k,) are the components.
    """

    spectra: np.ndarray
    usages: np.ndarray
    raw_usages: np.ndarray
    tpm: np.ndarray
    scores: np.ndarray
    p_values: np.ndarray
    order: np.ndarray

    @classmethod
    def of(cls, model: ConsensusNMF, codes: np.ndarray, tpm: Any, mask: np.ndarray) -> Programs:
        """Regress the TPM (cells, genes) of all genes on the codes of a fitted consensus."""
        spectra = to_numpy(model.components_).astype(np.float64)
        totals = spectra.sum(axis=1)
        codes = codes.astype(np.float64) * totals  # of spectra that sum to one
        importances = to_numpy(model.sample_importances_).astype(np.float64)
        weights = importances / importances.max()
        shares = rows_to_one(codes)
        order = np.argsort(-(weights @ shares), kind="stable")
        codes, shares, spectra = codes[:, order], shares[:, order], spectra[order]
        spectra /= totals[order][:, None]
        means, variances = mean_and_variance(tpm, weights)
        weighted = shares * weights[:, None]
        in_tpm = nonnegative_least_squares(np.asarray(tpm.T @ weighted), weighted.T @ shares).T
        scores, p_values = _z_scores(tpm, codes, weights, means, variances)
        deviations = np.sqrt(np.where(variances[mask] > 0, variances[mask], 1.0))
        basis = in_tpm[:, mask] / deviations
        chosen = tpm[:, mask] @ (basis / deviations).T
        raw_usages = nonnegative_least_squares(np.asarray(chosen), basis @ basis.T)
        return cls(spectra, rows_to_one(raw_usages), raw_usages, in_tpm, scores, p_values, order)


def rows_to_one(usages: np.ndarray) -> np.ndarray:
    """Divide rows (cells, k) by their sums; rows of zeros stay zero."""
    totals = usages.sum(axis=1, keepdims=True)
    return np.divide(usages, totals, out=np.zeros_like(usages), where=totals > 0)


def marker_table(programs: Programs, names: np.ndarray, key: str) -> dict[str, Any]:
    """Return the genes of the largest z-scores of each program, as scanpy stores such tables."""
    k = len(programs.scores)
    best = np.argsort(-programs.scores, axis=1, kind="stable")[:, :MARKERS]
    others = (programs.tpm.sum(axis=0) - programs.tpm) / max(k - 1, 1)
    columns = {
        "names": np.broadcast_to(names.astype(object), programs.scores.shape),
        "scores": programs.scores,
        "logfoldchanges": np.log2((programs.tpm + 1) / (others + 1)),
        "pvals": programs.p_values,
        "pvals_adj": np.stack([stats.false_discovery_control(row) for row in programs.p_values]),
    }

    def best_rows(rows: np.ndarray) -> np.ndarray:
        dtype = [(str(program), rows.dtype) for program in range(1, k + 1)]
        taken = np.take_along_axis(rows, best, axis=1)
        return np.rec.fromarrays(list(taken), dtype=dtype)

    return {
        "params": {"groupby": key, "reference": "rest", "method": "ols", "use_raw": False},
        **{column: best_rows(rows) for column, rows in columns.items()},
    }


def _float_values(adata: AnnData, layer: str | None, use_raw: bool) -> Any:
    """Return the values as float64, sparse ones as CSR."""
    values = values_of(adata, layer, use_raw)
    if scipy.sparse.issparse(values):
        return scipy.sparse.csr_array(values).astype(np.float64)
    return np.asarray(values, dtype=np.float64)


def _as_runs_use(values: Any, device: str | None) -> Any:
    """Return values in single precision, on a device if one is given and they are worth it.

    They are dense there, and where this is faster and fits into memory.
    """
    values, size = values.astype(np.float32), values.shape[0] * values.shape[1]
    device = device if size >= WORTH_A_DEVICE else None
    if scipy.sparse.issparse(values):
        is_dense = values.nnz > DENSE_SHARE * size and size * values.dtype.itemsize <= DENSE_BYTES
        values = values.toarray() if is_dense or device is not None else values
    if device is None:
        return values
    import torch

    return torch.asarray(values, device=device)


def _slots(
    programs: Programs, model: ConsensusNMF, mask: np.ndarray, key: str, given: dict[str, Any]
) -> dict[str, dict[str, Any]]:
    """Return results by the slot of an AnnData object and the name in it."""
    order = programs.order
    record = {
        "params": plain_parameters(given),
        "version": __version__,
        "stability": to_numpy(model.stability_)[order],
        "silhouette": to_numpy(model.silhouette_)[order],
        "error": float(model.reconstruction_err_),
    }
    return {
        "obsm": {f"X_{key}": programs.usages},
        "varm": {
            f"{key}_spectra": spread_over(programs.spectra.T, mask),
            f"{key}_tpm": np.ascontiguousarray(programs.tpm.T),
            f"{key}_score": np.ascontiguousarray(programs.scores.T),
        },
        "var": {f"{key}_gene": mask},
        "obs": {
            f"{key}_energy": to_numpy(model.energies_),
            f"{key}_importance": to_numpy(model.sample_importances_),
            f"{key}_outlier": to_numpy(model.outliers_).astype(bool),
            f"{key}_total": programs.raw_usages.sum(axis=1),
        },
        "uns": {key: record},
    }


def _z_scores(
    tpm: Any, usages: np.ndarray, weights: np.ndarray, means: np.ndarray, variances: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Regress standardised genes on usages (cells, k): coefficients (k, genes) and p-values.

    Nothing is made dense: products with standardised genes follow from those with the TPM.
    """
    weighted = usages * weights[:, None]
    gram = weighted.T @ usages
    deviations = np.sqrt(np.where(variances > 1e-12, variances, 1e-12))
    products = np.asarray((tpm.T @ weighted).T)
    products = (products - weighted.sum(axis=0)[:, None] * means) / deviations
    inverse = np.linalg.pinv(gram, hermitian=True)
    coefficients = inverse @ products
    total = weights.sum()
    explained = np.einsum("kg,kg->g", coefficients, products)
    free = max(total - len(gram), 1.0)
    noise = np.maximum(total * (variances > 1e-12) - explained, 0.0) / free
    errors = np.sqrt(np.maximum(np.diag(inverse), 0.0)[:, None] * noise)
    t = np.divide(coefficients, errors, out=np.zeros_like(coefficients), where=errors > 0)
    return coefficients, 2 * stats.t.sf(np.abs(t), free)


def mean_and_variance(
    values: Any, weights: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Compute weighted means and variances (columns,) of a dense or sparse table."""
    weights = np.ones(values.shape[0]) if weights is None else weights
    squares = values.power(2) if scipy.sparse.issparse(values) else values**2
    means, second = (np.asarray(table.T @ weights) / weights.sum() for table in (values, squares))
    return means, np.maximum(second - means**2, 0.0)
