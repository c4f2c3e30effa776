"""
Mutational signatures with hypermutators
========================================

A few tumours have so many mutations of their own kinds that they determine the signatures that
plain NMF finds, in every run. With robust weights, consensus signatures are those of the other
tumours; ``resample="poisson"`` adds the uncertainty of the counts, as is usual for signatures.
"""

# %%
# 250 tumours with five signatures of 96 kinds of mutations; 5 percent are hypermutators.

import matplotlib.pyplot as plt
import numpy as np

from robustnmf import ConsensusNMF, RobustNMF
from robustnmf.experiments.simulated import SUBSTITUTIONS, matched_cosines, simulate_catalogues

data = simulate_catalogues(250, 5, seed=1)
k = len(data.signatures)
print(f"{data.is_hypermutator.sum()} hypermutators of {len(data.counts)} tumours, with ", end="")
print(f"{data.counts[data.is_hypermutator].sum() / data.counts.sum():.0%} of the mutations")

# %%
models = {
    "plain": ConsensusNMF(
        RobustNMF(k, weighting="uniform"), n_runs=20, resample="poisson", random_state=0
    ),
    "robust": ConsensusNMF(RobustNMF(k), n_runs=20, resample="poisson", random_state=0),
}
for name, model in models.items():
    model.fit(data.counts)
    cosines = matched_cosines(data.signatures, model.components_)
    print(f"{name:8s}cosines {cosines.round(2)}, stability {model.stability_.round(2)}")

# %%
# Plain signatures are stable, and wrong: a high stability says that runs agree, not that outliers
# have no influence. The robust ones, with error bars, beside the true ones (points):

robust = models["robust"]
colours = np.repeat(["#4dabf7", "#343a40", "#e03131", "#adb5bd", "#82c91e", "#f783ac"], 16)
unit = robust.components_ / robust.components_.sum(axis=1, keepdims=True)
spread = robust.spread_ / robust.components_.sum(axis=1, keepdims=True)
order = np.argmax(
    (unit / np.linalg.norm(unit, axis=1, keepdims=True))
    @ (data.signatures / np.linalg.norm(data.signatures, axis=1, keepdims=True)).T,
    axis=1,
)
figure, axes = plt.subplots(k, 1, figsize=(9, 8), sharex=True, layout="constrained")
for ax, part, error, true in zip(axes, unit, spread, order, strict=True):
    ax.bar(np.arange(96), part, yerr=error, color=colours, error_kw={"lw": 0.5})
    ax.plot(np.arange(96), data.signatures[true], "k.", ms=3)
axes[-1].set_xticks(np.arange(8, 96, 16), SUBSTITUTIONS)
axes[0].set_title("robust consensus signatures, true ones as points")

# %%
# Tumours that were left out:

found = np.flatnonzero(robust.outliers_)
print(f"left out: {found}; hypermutators: {np.flatnonzero(data.is_hypermutator)}")
plt.show()
