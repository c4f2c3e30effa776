"""
A weighting of your own
=======================

A weighting is a concave, increasing function of the reconstruction errors of the samples. Its
derivative is the weight of a sample. You can define your own weighting with two formulas. It then
works with all solvers, losses, kinds of data and displays.
"""

# %%
# The function of Geman and McClure is :math:`\rho(z) = s z / (s + z)`. A sample with an error far
# beyond the scale s adds a constant to the objective and has no weight.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from robustnmf import RobustNMF
from robustnmf.weightings import Separable


class GemanMcClure(Separable):
    """Weights that fall like one over the square of the energy."""

    scales = {"scale": 1.0}  # an energy: it scales with the energies

    def __init__(self, scale=1.0):
        self.scale = scale

    def rho(self, energies):
        """Return what every sample adds to the objective."""
        return self.scale * energies / (self.scale + energies)

    def weight(self, energies):
        """Return the derivative of rho."""
        return (self.scale / (self.scale + energies)) ** 2


# %%
# A fifth of the digits are replaced by noise. The scale is the median reconstruction error of
# plain NMF, or three times that. The scale matters, so the weightings of this library compute it
# from the data. Your own weighting can do this with ``has_auto`` and ``resolve_auto``.

rng = np.random.default_rng(0)
X = load_digits().data[:900].copy()
bad = rng.random(len(X)) < 0.2
X[bad] = rng.permuted(X[bad], axis=1) + 4 * rng.random((bad.sum(), 64))

plain = RobustNMF(16, weighting="uniform", random_state=0).fit(X)
scale = np.median(plain.energies_)
mine = RobustNMF(16, weighting=GemanMcClure(scale), random_state=0).fit(X)
milder = RobustNMF(16, weighting=GemanMcClure(3 * scale), random_state=0).fit(X)

# %%
# The weighting works like the others: the objective never increases, and samples have importances.

print("objective never increases:", bool((np.diff(mine.objective_history_) <= 1e-6).all()))
clean = load_digits().data[900:]


def error(model):
    """Return the mean squared error on clean digits that no model has seen."""
    return np.mean((clean - model.inverse_transform(model.transform(clean))) ** 2)


default = RobustNMF(16, random_state=0).fit(X)
models = {"plain": plain, "mine": mine, "mine, three times the scale": milder, "default": default}
for name, model in models.items():
    print(f"{name:28s}error on clean digits {error(model):.3f}, "
          f"effective sample size {model.effective_sample_size_:.0f} of {len(X)}")  # fmt: skip

# %%
figure, axes = plt.subplots(1, 2, figsize=(10, 3.5), layout="constrained")
energies = np.linspace(0, 12 * scale, 200)
axes[0].plot(energies / scale, GemanMcClure(scale).weights(energies))
axes[0].set(xlabel="reconstruction error over the scale", ylabel="weight", title="the function")
weights = len(X) * mine.sample_importances_
axes[1].hist([weights[~bad], weights[bad]], bins=30, label=["good samples", "noise"])
axes[1].set(xlabel="importance (1: an equal share)", ylabel="samples", title="its effect")
axes[1].legend()
plt.show()
