"""
Stable gene programs
====================

Consensus NMF finds gene programs of single cells by clustering the components of many runs. Plain
runs agree on damaged cells as well as on programs, because every run fits the damaged cells. In
:class:`~robustnmf.ConsensusNMF`, one robust fit computes the weights of the cells, and all runs
share these weights.
"""

# %%
# 600 cells with six programs. Each program raises some genes above a basal expression. A cell uses
# the program of its type and some of the others. A tenth of the cells are doublets. Another 4% are
# damaged, and only a few of their genes are left. A tenth of all transcripts is ambient.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.decomposition import NMF

from robustnmf import ConsensusNMF, RobustNMF, select_rank, top_features
from robustnmf.metrics import match_parts

k, n_runs = 6, 20
n_cells, n_genes = 600, 400
rng = np.random.default_rng(0)
basal = rng.lognormal(0.0, 1.0, n_genes)
programs = np.tile(0.2 * basal, (k, 1))
for program in programs:
    raised = rng.permutation(n_genes)[: n_genes // 20]
    program[raised] += basal[raised] * rng.lognormal(0.7, 0.7, len(raised))
programs /= programs.sum(axis=1, keepdims=True)

frequency = rng.dirichlet(np.full(k, 2.0)) + 0.2 / k
types = rng.choice(k, n_cells, p=frequency / frequency.sum())
usages = 0.5 * rng.dirichlet(np.full(k, 0.2), n_cells)
usages[np.arange(n_cells), types] += 0.5
sizes = rng.lognormal(np.log(1000), 0.5, (n_cells, 1))
rates = sizes * (usages @ programs) * rng.gamma(2.0, 0.5, (n_cells, n_genes))

is_doublet = rng.random(n_cells) < 0.1
rates[is_doublet] += rates[rng.integers(n_cells, size=is_doublet.sum())]
is_damaged = rng.random(n_cells) < 0.04
left = rng.gamma(0.02, size=(is_damaged.sum(), n_genes))
rates[is_damaged] = 5 * sizes[is_damaged] * left / left.sum(axis=1, keepdims=True)
ambient = rates.mean(axis=0) / rates.mean(axis=0).sum()
counts = rng.poisson(0.9 * rates + 0.1 * rates.sum(axis=1, keepdims=True) * ambient)

# %%
# Genes are divided by their standard deviations, as usual.

deviation = counts.std(axis=0)
X, programs = counts / deviation, programs / deviation

# %%
# Consensus NMF in a few lines: plain runs, components of unit length, k-means, medians. Then the
# same with robust weights.

runs = [
    NMF(k, init="random", random_state=seed, max_iter=500, tol=1e-3).fit(X).components_
    for seed in range(n_runs)
]
components = np.concatenate(runs)
components /= np.linalg.norm(components, axis=1, keepdims=True)
labels = KMeans(k, n_init=10, random_state=0).fit_predict(components)
plain = np.stack([np.median(components[labels == group], axis=0) for group in range(k)])

model = ConsensusNMF(RobustNMF(k), n_runs=n_runs, random_state=0).fit(X)
print(f"stability of the components: {model.stability_.round(2)}")
print(f"damaged cells left out: {model.outliers_[is_damaged].mean():.0%}, ", end="")
print(f"other cells: {model.outliers_[~is_damaged].mean():.0%}")

figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True, layout="constrained")
for ax, name, parts in zip(
    axes, ("plain runs, k-means", "ConsensusNMF"), (plain, model.components_), strict=True
):
    _, _, cosines = match_parts(programs, parts)
    ax.bar(np.arange(k), cosines, color=["C0" if c > 0.9 else "C3" for c in cosines])
    ax.set(title=name, xlabel="program")
    print(f"{name:22s}cosines {cosines.round(2)}")
axes[0].set_ylabel("cosine of the matched component")

# %%
# How many programs are there? ``select_rank`` compares the error of hidden entries and the
# silhouette of the components. An additional component is not stable.

selection = select_rank(X, range(4, 9), stability=True, n_runs=10, n_folds=3, random_state=0)
selection.plot()
print(selection.reason)

# %%
# The distinctive genes of each program, with error bars.

figure, axes = plt.subplots(2, 3, figsize=(9, 4.5), layout="constrained")
for ax, features in zip(axes.flat, top_features(model, 6), strict=True):
    names = [feature.name for feature in features]
    spread = [feature.spread for feature in features]
    ax.bar(names, [feature.value for feature in features], yerr=spread, color="C0")
    ax.set_title(f"component {features[0].component}", fontsize=9)
figure.supylabel("value in the component")
plt.show()
