"""
Mutational signatures with hypermutators
========================================

A few tumours have so many mutations that they dominate the signatures of plain NMF in every run.
With robust weights, the consensus signatures describe the other tumours. ``resample="poisson"``
adds the uncertainty of the counts, as is usual for signatures.
"""

# %%
# 250 tumours with five signatures of 96 kinds of mutations: six substitutions in 16 contexts each.
# A signature favours one or two substitutions in some contexts. 5% of the tumours are
# hypermutators. They have thirty times as many mutations, with a profile of their own.

import matplotlib.pyplot as plt
import numpy as np

from robustnmf import ConsensusNMF, RobustNMF, top_features
from robustnmf.metrics import match_components

SUBSTITUTIONS = ("C>A", "C>G", "C>T", "T>A", "T>C", "T>G")
n_tumours, k = 250, 5
rng = np.random.default_rng(1)


def draw_signature():
    """Draw a signature (96,) that sums to one."""
    weights = np.full(6, 0.03)
    favoured = rng.choice(6, rng.integers(1, 3), replace=False)
    weights[favoured] += rng.dirichlet(np.ones(len(favoured)))
    contexts = rng.dirichlet(np.full(16, 0.4), 6)
    signature = (weights[:, None] * contexts).ravel()
    return signature / signature.sum()


signatures = np.stack([draw_signature() for _ in range(k)])
rates = rng.gamma(0.7, 400.0, (n_tumours, k)) @ signatures
is_hypermutator = rng.random(n_tumours) < 0.05
usual = rates.sum(axis=1).mean()
for tumour in np.flatnonzero(is_hypermutator):
    rates[tumour] = 30 * usual * rng.dirichlet(np.full(96, 0.1))
counts = rng.poisson(rates).astype(float)
print(f"{is_hypermutator.sum()} hypermutators of {n_tumours} tumours, with ", end="")
print(f"{counts[is_hypermutator].sum() / counts.sum():.0%} of the mutations")

# %%
models = {
    "plain": ConsensusNMF(
        RobustNMF(k, weighting="uniform"), n_runs=20, resample="poisson", random_state=0
    ),
    "robust": ConsensusNMF(RobustNMF(k), n_runs=20, resample="poisson", random_state=0),
}
for name, model in models.items():
    model.fit(counts)
    _, _, cosines = match_components(signatures, model.components_)
    print(f"{name:8s}cosines {cosines.round(2)}, stability {model.stability_.round(2)}")

# %%
# The plain signatures are stable but wrong: a high stability means that the runs agree, not that
# outliers have no influence. The picture shows the robust signatures with error bars, and the true
# signatures as points.

robust = models["robust"]
colours = np.repeat(["#4dabf7", "#343a40", "#e03131", "#adb5bd", "#82c91e", "#f783ac"], 16)
unit = robust.components_ / robust.components_.sum(axis=1, keepdims=True)
spread = robust.spread_ / robust.components_.sum(axis=1, keepdims=True)
truth, matches, _ = match_components(signatures, unit)
order = truth[np.argsort(matches)]
figure, axes = plt.subplots(k, 1, figsize=(9, 8), sharex=True, layout="constrained")
for ax, part, error, true in zip(axes, unit, spread, order, strict=True):
    ax.bar(np.arange(96), part, yerr=error, color=colours, error_kw={"lw": 0.5})
    ax.plot(np.arange(96), signatures[true], "k.", ms=3)
axes[-1].set_xticks(np.arange(8, 96, 16), SUBSTITUTIONS)
axes[0].set_title("robust consensus signatures, true ones as points")

# %%
# The mutations that distinguish each signature from the others, with their share of it:

for i, features in enumerate(top_features(robust, 3), start=1):
    shares = ", ".join(f"{SUBSTITUTIONS[f.feature // 16]} {f.share:.0%}" for f in features)
    print(f"signature {i}: {shares}")

# %%
# These tumours were left out:

found = np.flatnonzero(robust.outliers_)
print(f"left out: {found}; hypermutators: {np.flatnonzero(is_hypermutator)}")
plt.show()
