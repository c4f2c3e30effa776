"""
Parts of figures, beside scikit-learn's NMF
===========================================

Swimmers are stick figures with four limbs, each in one of four positions and of some brightness:
all 256 figures are sums of 16 known parts. (Their torso is left out. It is in all of them, and no
method can know which part it belongs to.) Here a fifth of them is replaced by noise. scikit-learn's
NMF learns the noise along with the limbs; ``RobustNMF``, called in the same way, leaves it out.
"""

# %%
# Figures of 32 x 32 pixels, drawn by rule.

import warnings

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.decomposition import NMF

from robustnmf import RobustNMF
from robustnmf.exceptions import OutlierWarning

# More than a fifth of the samples left out is warned of; here they are meant to be there.
warnings.filterwarnings("ignore", category=OutlierWarning)
SIDE = 32


def draw_line(start, angle, length):
    """Return an image (SIDE * SIDE,) of a line of some pixels."""
    image = np.zeros((SIDE, SIDE))
    for step in np.linspace(3, length, 4 * length):  # joints would belong to several limbs
        row, column = start + step * np.array([np.sin(angle), np.cos(angle)])
        image[round(row), round(column)] = 1.0
    return image.ravel()


limbs = []
for row, side in ((11, -1), (11, 1), (20, -1), (20, 1)):
    shoulder = np.array([row, 15.5 + 2 * side])
    angles = np.deg2rad([-60, -20, 20, 60])
    limbs += [draw_line(shoulder, a if side > 0 else np.pi - a, 9) for a in angles]
choices = np.array(np.meshgrid(*[range(4)] * 4)).reshape(4, -1).T


def draw_table(seed):
    """Return 256 figures, a fifth of them replaced by noise, and which ones are."""
    rng = np.random.default_rng(seed)
    codes = np.zeros((len(choices), len(limbs)))
    for limb in range(4):
        codes[np.arange(len(choices)), 4 * limb + choices[:, limb]] = rng.uniform(0.5, 1.5, 256)
    X = codes @ np.array(limbs)
    bad = np.sort(rng.choice(len(X), len(X) // 5, replace=False))
    X[bad] = rng.random((len(bad), SIDE * SIDE))
    return X, bad


def match_parts(components):
    """Return components in the order of the limbs they match best, and their cosines."""
    unit = [p / np.linalg.norm(p, axis=1, keepdims=True) for p in (np.array(limbs), components)]
    cosines = unit[0] @ unit[1].T
    order = linear_sum_assignment(-cosines)[1]
    return components[order], cosines[np.arange(len(limbs)), order]


# %%
# The same call, on four draws. Not every fit finds every limb: the objective has local minima.

ESTIMATORS = {"scikit-learn": NMF, "RobustNMF": RobustNMF}
fits = {}
for seed in range(4):
    X, bad = draw_table(seed)
    for name, kind in ESTIMATORS.items():
        fits[seed, name] = kind(16, max_iter=1000, random_state=0).fit(X)
    found = np.flatnonzero(fits[seed, "RobustNMF"].outliers_)
    means = {
        name: round(float(match_parts(fits[seed, name].components_)[1].mean()), 2)
        for name in ESTIMATORS
    }
    print(f"draw {seed}: mean cosine with the true limbs {means}; RobustNMF left out {len(found)} "
          f"samples, {np.isin(found, bad).sum()} of them among the {len(bad)} bad")  # fmt: skip

# %%
# Of the first draw: above, figures and noise; below, what each has learned of the sixteen limbs.

X, bad = draw_table(0)
rows = {"samples": X[np.r_[bad[:4], 0:12]]}
rows |= {name: match_parts(fits[0, name].components_)[0] for name in ESTIMATORS}
figure, axes = plt.subplots(3, 16, figsize=(12, 2.9), layout="constrained")
for line, (name, images) in zip(axes, rows.items(), strict=True):
    for ax, image in zip(line, images, strict=True):
        ax.imshow(image.reshape(SIDE, SIDE), cmap="gray_r")
        ax.set(xticks=[], yticks=[])
    line[0].set_ylabel(name, fontsize=8)
plt.show()
