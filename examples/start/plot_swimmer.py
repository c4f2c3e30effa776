"""
Stick figures
=============

Can NMF find known components if some samples are noise? Swimmers are stick figures with four
limbs. Each limb has one of four positions and some brightness, so all 256 figures are sums of 16
known components. (We omit the torso, because all figures have it and no method can assign it to
one component.) We replace a fifth of the figures with noise. scikit-learn's NMF learns the noise
along with the limbs. ``RobustNMF``, with the same call, leaves it out.
"""

# %%
# The script draws figures of 32 x 32 pixels.

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import NMF

from robustnmf import RobustNMF
from robustnmf.exceptions import OutlierWarning
from robustnmf.experiments.demo import SIDE, draw_figures
from robustnmf.metrics import match_components

# We expect many outliers here, so we ignore the warning.
warnings.filterwarnings("ignore", category=OutlierWarning)
figures = draw_figures(0)
print(f"{len(figures.X)} figures of {SIDE} x {SIDE} pixels, {figures.bad.sum()} of them noise")

# %%
# We fit four random draws. RobustNMF finds every limb in each of them.

ESTIMATORS = {"scikit-learn": NMF, "RobustNMF": RobustNMF}
fits = {}
for seed in range(4):
    figures = draw_figures(seed)
    X, bad = figures.X, np.flatnonzero(figures.bad)
    for name, kind in ESTIMATORS.items():
        fits[seed, name] = kind(16, max_iter=1000, random_state=0).fit(X)
    found = np.flatnonzero(fits[seed, "RobustNMF"].outliers_)
    means = {
        name: round(
            float(match_components(figures.parts, fits[seed, name].components_)[2].mean()), 2
        )
        for name in ESTIMATORS
    }
    print(f"draw {seed}: mean cosine with the true limbs {means}; RobustNMF left out {len(found)} "
          f"samples, {np.isin(found, bad).sum()} of them among the {len(bad)} bad")  # fmt: skip

# %%
# The first draw: figures and noise (top), and the components of each method (below).

figures = draw_figures(0)
rows = {"samples": figures.X[np.r_[np.flatnonzero(figures.bad)[:4], 0:12]]}
for name in ESTIMATORS:
    components = fits[0, name].components_
    rows[name] = components[match_components(figures.parts, components)[1]]
figure, axes = plt.subplots(3, 16, figsize=(12, 2.9), layout="constrained")
for line, (name, images) in zip(axes, rows.items(), strict=True):
    for ax, image in zip(line, images, strict=True):
        ax.imshow(image.reshape(SIDE, SIDE), cmap="gray_r")
        ax.set(xticks=[], yticks=[])
    line[0].set_ylabel(name, fontsize=8)
plt.show()
