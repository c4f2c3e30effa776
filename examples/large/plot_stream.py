"""
A stream that drifts
====================

``partial_fit`` takes one minibatch after the other. Sums of earlier ones are multiplied by
``forget_factor`` each time, so parts follow a process that changes: the smaller it is, the faster.
A burst of broken samples changes them little: the weights of a batch follow from the energies of
earlier ones.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

from robustnmf import RobustNMF

rng = np.random.default_rng(0)
features, parts, batches = 60, 3, 120
grid = np.arange(features)


def basis_at(moment):
    """Return three peaks, one of which moves with time."""
    centres = np.array([12, 30 + 15 * moment / batches, 52])
    return np.exp(-0.5 * ((grid - centres[:, None]) / 3.0) ** 2)


def batch_at(moment):
    """Draw a hundred samples; between batches 50 and 60 two fifths of them are broken."""
    X = rng.gamma(0.6, size=(100, parts)) @ basis_at(moment) + 0.02 * rng.random((100, features))
    if 50 <= moment < 60:
        X[:40] = 3 * rng.random((40, features))
    return X


# %%
# The forgetting factor was chosen among eight settings. With 1.0, where nothing is forgotten, the
# robust fit was worse than the plain one; with 0.9 it was worse before the burst.

settings = {"forget_factor": 0.7, "random_state": 0}
models = {
    "plain": RobustNMF(parts, weighting="uniform", init="nndsvda", **settings),
    "robust": RobustNMF(parts, **settings),
}
cosines = {name: [] for name in models}
for moment in range(batches):
    batch, true = batch_at(moment), basis_at(moment)
    for name, model in models.items():
        model.partial_fit(batch)
        unit = [b / np.linalg.norm(b, axis=1, keepdims=True) for b in (true, model.components_)]
        cosines[name].append((unit[0] @ unit[1].T).max(axis=1).min())

figure, ax = plt.subplots(figsize=(8, 3.5), layout="constrained")
ax.axvspan(50, 60, color="0.9", label="broken samples")
for name, values in cosines.items():
    ax.plot(values, label=name, color="C0" if name == "robust" else "C3")
    print(f"{name:8s}cosine of the worst part: before the burst {min(values[:50]):.2f}, "
          f"in it {min(values[50:60]):.2f}, after it {min(values[60:]):.2f}")  # fmt: skip
ax.set(xlabel="minibatch", ylabel="cosine of the worst part", ylim=(0.6, 1.02))
ax.legend()
plt.show()
