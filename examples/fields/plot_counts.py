"""
Counts with outliers
====================

The noise of counts (words, transcripts, photons) grows with their size. The Kullback-Leibler
divergence is the loss for such data. Robustness comes from the weights of the samples, so you can
combine it with any loss. Sparse matrices stay sparse.
"""

# %%
# 600 cells of five types with 200 genes. A tenth of the cells are burst and contain ambient RNA
# instead of their own.

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse

from robustnmf import RobustNMF

rng = np.random.default_rng(0)
cells, genes, types = 600, 200, 5
profiles = rng.gamma(0.3, size=(types, genes))
profiles /= profiles.sum(axis=1, keepdims=True)
kind = rng.integers(types, size=cells)
codes = 0.15 * rng.dirichlet(np.ones(types), size=cells)
codes[np.arange(cells), kind] += 0.85
depth = rng.lognormal(np.log(800), 0.4, size=(cells, 1))
bad = rng.random(cells) < 0.1
rates = depth * (codes @ profiles)
ambient = rng.gamma(0.4, size=(bad.sum(), genes))
rates[bad] = 3 * depth[bad] * ambient / ambient.sum(axis=1, keepdims=True)
counts = scipy.sparse.csr_array(rng.poisson(rates).astype(float))
print(f"{counts.nnz / np.prod(counts.shape):.0%} of the entries are not zero")

# %%
models = {
    "squared error, plain": RobustNMF(types, weighting="uniform", init="nndsvda"),
    "Kullback-Leibler, plain": RobustNMF(
        types, weighting="uniform", loss="kullback-leibler", init="nndsvda"
    ),
    "Kullback-Leibler, robust": RobustNMF(types, loss="kullback-leibler"),
}


def best_cosines(components):
    """Return the cosine of the closest component for every true profile."""
    unit = [p / np.linalg.norm(p, axis=1, keepdims=True) for p in (profiles, components)]
    return (unit[0] @ unit[1].T).max(axis=1)


figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), sharey=True, layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    model.fit(counts)
    cosines = best_cosines(model.components_)
    ax.bar(np.arange(types), cosines, color=["C0" if c > 0.95 else "C3" for c in cosines])
    ax.set(title=name, xlabel="cell type")
    print(f"{name:26s}cosines {np.round(cosines, 2)}")
axes[0].set_ylabel("cosine of the closest component")

# %%
# The burst cells have the largest reconstruction errors for their size.

model = models["Kullback-Leibler, robust"]
size = counts.sum(axis=1)
figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
for flag, label, colour in ((False, "whole", "C0"), (True, "burst", "C3")):
    ax.semilogy(size[bad == flag], model.energies_[bad == flag], ".", color=colour, label=label)
ax.set(xlabel="counts of a cell", ylabel="reconstruction error")
ax.legend()
plt.show()
