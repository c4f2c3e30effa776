"""
Unmixing spectra with bad pixels
================================

Every pixel of a hyperspectral image is a mixture of the spectra of a few materials. Detectors
have dead lines and saturated pixels, and cosmic rays leave spikes. Plain NMF explains those with
materials of their own; robust NMF down-weights such pixels, and their energies are a map of them.
"""

# %%
# A scene of 60 x 60 pixels with four materials, 120 channels, and 6% bad pixels.

import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import gaussian_filter
from scipy.optimize import linear_sum_assignment

from robustnmf import RobustNMF

rng = np.random.default_rng(1)
side, channels, materials = 60, 120, 4
grid = np.arange(channels)
spectra = np.zeros((materials, channels))
for spectrum in spectra:
    for centre in rng.uniform(5, channels - 5, size=3):
        width, height = rng.uniform(3, 12), rng.uniform(0.3, 1)
        spectrum += height * np.exp(-0.5 * ((grid - centre) / width) ** 2)

maps = np.stack([gaussian_filter(rng.normal(size=(side, side)), 6) for _ in range(materials)])
abundances = np.exp(maps / maps.std() * 2.5)
abundances /= abundances.sum(axis=0)
X = abundances.reshape(materials, -1).T @ spectra
X += 0.01 * np.abs(rng.normal(size=X.shape))

bad = np.zeros((side, side), dtype=bool)
bad[:, 17] = True  # a dead line
bad[rng.integers(side, size=150), rng.integers(side, size=150)] = True
bad = bad.ravel()
line = np.zeros((side, side), dtype=bool)
line[:, 17] = True
hot = np.flatnonzero(bad & ~line.ravel())
X[line.ravel()] = 0.9 * rng.random((side, 1)) + 0.05 * rng.random((side, channels))
for pixel in hot:
    X[pixel, rng.integers(channels, size=8)] += rng.uniform(1, 6, size=8)

# %%
# The same call with and without weights.

plain = RobustNMF(materials, weighting="uniform", init="nndsvda").fit(X)
robust = RobustNMF(materials).fit(X)


def match_spectra(model):
    """Return learned spectra of unit length in the order of the true ones, and their cosines."""
    unit = [s / np.linalg.norm(s, axis=1, keepdims=True) for s in (spectra, model.components_)]
    cosines = unit[0] @ unit[1].T
    order = linear_sum_assignment(-cosines)[1]
    return unit[1][order], cosines[np.arange(materials), order]


figure, axes = plt.subplots(2, materials, figsize=(11, 4), sharex=True, layout="constrained")
for row, (name, model) in zip(axes, {"plain": plain, "robust": robust}.items(), strict=True):
    learned, cosines = match_spectra(model)
    print(f"{name:8s}cosines with the true spectra: {np.round(cosines, 3)}")
    for ax, true, part in zip(row, spectra, learned, strict=True):
        ax.plot(true / np.linalg.norm(true), color="0.6", lw=4)
        ax.plot(part, color="C0" if name == "robust" else "C3")
        ax.set_yticks([])
    row[0].set_ylabel(name)
figure.suptitle("spectra of the materials (grey) and what was learned")

# %%
# The energies are a map of the bad pixels, and the codes are maps of the materials.

figure, axes = plt.subplots(1, 4, figsize=(11, 3), layout="constrained")
energies = robust.energies_.reshape(side, side)
shares = robust.sample_importances_.reshape(side, side) * side**2
for ax, (title, image) in zip(
    axes,
    {
        "bad pixels": bad.reshape(side, side),
        "log energy": np.log10(energies),
        "importance": shares,
        "material 1 in robust NMF": robust.transform(X)[:, 0].reshape(side, side),
    }.items(),
    strict=True,
):
    ax.imshow(image)
    ax.set_title(title)
    ax.set_axis_off()
has_weight = robust.sample_importances_ > 0.5 * robust.sample_importances_.max()
print(f"{np.sum(bad & ~has_weight)} of {bad.sum()} bad pixels lost their say, "
      f"and {np.sum(~bad & ~has_weight)} of {np.sum(~bad)} good ones")  # fmt: skip
plt.show()
