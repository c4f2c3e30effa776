"""
Known components held fixed
===========================

Often some parts are known: the spectrum of a solvent, the profile of a common cell type, the
background of a camera. ``fixed_components`` holds them as given while the others are learned. Here
two of four emission spectra have been measured alone, and some samples are contaminated.
"""

# %%
# 300 mixtures of four dyes, 150 wavelengths; a tenth of the samples is contaminated.

import matplotlib.pyplot as plt
import numpy as np

from robustnmf import RobustNMF

rng = np.random.default_rng(3)
wavelengths = np.linspace(450, 700, 150)
centres, widths = np.array([510, 545, 575, 620]), np.array([18, 22, 20, 28])
dyes = np.exp(-(((wavelengths - centres[:, None]) / widths[:, None]) ** 2))
dyes += 0.35 * np.exp(-(((wavelengths - centres[:, None] - 45) / 30) ** 2))  # the red shoulder
amounts = rng.gamma(1.0, size=(300, 4)) + 0.3  # every dye is in every sample
X = amounts @ dyes + 0.01 * rng.standard_normal((300, 150)) ** 2
bad = rng.random(300) < 0.1
X[bad] += 8 * rng.random((bad.sum(), 1)) * rng.random((bad.sum(), 150))
known, unknown = dyes[:2], dyes[2:]

# %%
# Learn everything, or the two dyes that are not known.

free = RobustNMF(4, random_state=0, tol=1e-5).fit(X)
fixed = RobustNMF(4, fixed_components=known, random_state=0, tol=1e-5).fit(X)
print("known components unchanged:", np.allclose(fixed.components_[:2], known))
fixed_plain = RobustNMF(
    4, weighting="uniform", fixed_components=known, random_state=0, tol=1e-5
).fit(X)


def closest(model):
    """Return the components closest to the unknown dyes, largest value one, and their cosines."""
    unit = [s / np.linalg.norm(s, axis=1, keepdims=True) for s in (unknown, model.components_)]
    cosines = unit[0] @ unit[1].T
    chosen = model.components_[cosines.argmax(axis=1)]
    return chosen / chosen.max(axis=1, keepdims=True), cosines.max(axis=1)


# %%
# What was learned of the unknown ones, and how much of them every sample holds.

models = {"all learned": free, "two fixed, plain": fixed_plain, "two fixed, robust": fixed}
figure, axes = plt.subplots(1, 3, figsize=(12, 3.2), sharey=True, layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    learned, cosines = closest(model)
    codes = model.transform(X)[~bad]
    number = np.argmax(
        [[abs(np.corrcoef(a, c)[0, 1]) for c in codes.T] for a in amounts[~bad, 2:].T], axis=1
    )
    likeness = [np.corrcoef(a, codes[:, i])[0, 1]
                for a, i in zip(amounts[~bad, 2:].T, number, strict=True)]  # fmt: skip
    print(f"{name:18s}cosines of spectra {np.round(cosines, 3)}, "
          f"correlations of amounts {np.round(likeness, 3)}")  # fmt: skip
    ax.plot(wavelengths, (unknown / unknown.max(axis=1, keepdims=True)).T, color="0.7", lw=4)
    ax.plot(wavelengths, learned.T, color="C0")
    ax.set(title=name, xlabel="wavelength (nm)")
plt.show()
