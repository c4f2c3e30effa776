"""
Gene programs of blood cells
============================

Which genes act together, and in which cells? Consensus NMF (cNMF) answers this with gene programs:
every cell is a mixture of a few of them. This tutorial goes from counts to named programs with
:func:`robustnmf.anndata.consensus`, which follows the definitions of cNMF, and adds damaged cells
at the end to see what they do to the result.

It needs scanpy and the extra ``anndata``: ``pip install '.[anndata]' scanpy``.
"""

# %%
# Counts
# ------
# scanpy includes 700 blood cells with 765 genes. Their X is scaled and has negative values, which
# NMF cannot use, and ``.raw`` contains log-normalised values. The smallest positive value of a cell
# is one transcript, so we can compute the counts from ``.raw``. Your own data usually have the
# counts in X or in a layer, so you do not need this step.

import warnings

import anndata
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import scanpy as sc
import scipy.sparse

from robustnmf.anndata import consensus
from robustnmf.metrics import match_components

warnings.simplefilter("ignore")  # scanpy's file is in an older format

cells = sc.datasets.pbmc68k_reduced()
ratios = np.expm1(cells.raw.X.toarray().astype(float))
one_transcript = np.where(ratios > 0, ratios, np.inf).min(axis=1, keepdims=True)
adata = anndata.AnnData(
    scipy.sparse.csr_matrix(np.rint(ratios / one_transcript)),
    obs=cells.obs[["bulk_labels"]],
    var=cells.var[[]],
    obsm={"X_umap": cells.obsm["X_umap"]},
)

# %%
# Programs
# --------
# One call chooses variable genes, scales them to unit variance, runs NMF from 50 random starts,
# and takes the medians of the components that the runs agree on. Everything is written into the
# object, where scanpy's tools find it.

consensus(adata, 8, n_runs=50, usages_in_obs=True)
print(adata)

# %%
# The stability is the mean cosine between a program and the matching components of all runs. Values
# near one mean that the program does not depend on the random start.

print(adata.uns["consensus"]["stability"].round(2))

# %%
# The usages of a cell sum to one. As columns of ``obs`` they can colour a UMAP.

sc.pl.umap(adata, color=[f"consensus_{i}" for i in range(1, 9)], ncols=3, cmap="viridis")

# %%
# Names
# -----
# The marker genes are stored in the format of ``scanpy.tl.rank_genes_groups``. The score of a gene
# is the increase of its expression with the program, in standard deviations.

markers = sc.get.rank_genes_groups_df(adata, None, key="consensus_markers")
for program, table in markers.groupby("group", observed=True):
    print(f"program {program}: {', '.join(table['names'][:6])}")

# %%
# These are textbook markers: LYZ and CST3 belong to dendritic cells and monocytes, CD79A and MS4A1
# to B cells, NKG7 and GNLY to natural killer cells, MZB1 to plasma cells. The mean usage by cell
# type agrees with these names. The cell types were not used in the fit.

usages = pd.DataFrame(adata.obsm["X_consensus"], index=adata.obs_names)
means = usages.groupby(adata.obs["bulk_labels"], observed=True).mean()
order = means.to_numpy().argmax(axis=1).argsort(kind="stable")

figure, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
image = ax.imshow(means.iloc[order], cmap="Blues", vmin=0, vmax=1)
ax.set_xticks(range(8), [str(i) for i in range(1, 9)])
ax.set_yticks(range(len(means)), means.index[order])
ax.set_xlabel("program")
figure.colorbar(image, ax=ax, label="mean usage")

# %%
# Damaged cells and doublets
# --------------------------
# Real samples contain damaged cells, in which a few genes have nearly all the counts, and doublets:
# two cells in one droplet. We replace 5% of the cells by damaged cells and 10% by doublets, and
# compare two fits: the default, and plain runs (``weighting="uniform"``). Plain runs with the
# density filter are what cNMF computes.

rng = np.random.default_rng(0)
counts = adata.X.toarray()
is_damaged = rng.random(len(counts)) < 0.05
left = rng.gamma(0.02, size=(is_damaged.sum(), counts.shape[1]))
totals = counts[is_damaged].sum(axis=1, keepdims=True)
counts[is_damaged] = rng.poisson(3 * totals * left / left.sum(axis=1, keepdims=True))
is_doublet = ~is_damaged & (rng.random(len(counts)) < 0.1)
counts[is_doublet] += adata.X[rng.integers(len(counts), size=is_doublet.sum())].toarray()
dirty = anndata.AnnData(scipy.sparse.csr_matrix(counts), obs=adata.obs[["bulk_labels"]])

clean = adata.varm["consensus_tpm"].T
for name, options in {"default": {}, "plain runs": {"weighting": "uniform"}}.items():
    consensus(dirty, 8, n_runs=50, **options)
    cosines = match_components(clean, dirty.varm["consensus_tpm"].T)[2]
    print(f"{name}: cosines with the programs of the clean cells")
    print(f"  {np.sort(cosines).round(2)}")
    if name == "default":
        found = dirty.obs["consensus_outlier"]
        print("  outliers:", f"{found[is_damaged].mean():.0%} of the damaged cells,")
        print(f"    {found[is_doublet].mean():.0%} of the doublets,")
        print(f"    {found[~is_damaged & ~is_doublet].mean():.1%} of the other cells")

# %%
# The default finds seven of the eight programs again. The components of the plain runs describe
# damaged cells instead. All damaged cells are marked in ``obs["consensus_outlier"]`` and have no
# weight, neither in the runs nor in the regression of all genes on the usages. About half of the
# doublets are marked as well, and a few other cells.
#
# If the rest of your pipeline reads the files of cNMF, write them with
# ``robustnmf.anndata.write_cnmf(adata, folder, name)``. ``robustnmf.anndata.read_cnmf`` reads the
# tables that ``cnmf prepare`` wrote.

plt.show()
