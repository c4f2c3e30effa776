"""
A stream that drifts
====================

``partial_fit`` processes one minibatch after the other. The sums of earlier minibatches are
multiplied by ``forget_factor``, so the components adapt to a process that changes: a smaller
factor adapts faster. A burst of broken samples has little influence, because the weights of a
minibatch are based on earlier reconstruction errors.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

from robustnmf import RobustNMF

rng = np.random.default_rng(0)
features, components, batches = 60, 3, 120
grid = np.arange(features)


def basis_at(moment):
    """Return three peaks, one of which moves with time."""
    centres = np.array([12, 30 + 15 * moment / batches, 52])
    return np.exp(-0.5 * ((grid - centres[:, None]) / 3.0) ** 2)


def batch_at(moment):
    """Draw a hundred samples; between batches 50 and 60 two fifths of them are broken."""
    X = rng.gamma(0.6, size=(100, components)) @ basis_at(moment) + 0.02 * rng.random(
        (100, features)
    )
    if 50 <= moment < 60:
        X[:40] = 3 * rng.random((40, features))
    return X


# %%
# We chose the forgetting factor among eight settings. With 1.0, which discounts nothing, the
# robust fit was worse than the plain fit. With 0.9, it was worse before the burst.

settings = {"forget_factor": 0.7, "random_state": 0}
models = {
    "plain": RobustNMF(components, weighting="uniform", init="nndsvda", **settings),
    "robust": RobustNMF(components, **settings),
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
    print(f"{name:8s}cosine of the worst component: before the burst {min(values[:50]):.2f}, "
          f"in it {min(values[50:60]):.2f}, after it {min(values[60:]):.2f}")  # fmt: skip
ax.set(xlabel="minibatch", ylabel="cosine of the worst component", ylim=(0.6, 1.02))
ax.legend()
plt.show()
