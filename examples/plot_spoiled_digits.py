"""
Parts of images, some of which are broken
=========================================

A fifth of scikit-learn's digits is corrupted: replaced by noise, with pixels shuffled, or covered
by a block. Plain NMF spends parts on that; robust NMF learns what it would have learned from the
clean images, and reports which ones it down-weighted.
"""

# %%
# The data: 1,797 images of 8 x 8 pixels, 359 of them spoiled.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from robustnmf import EucNMF, RobustNMF
from robustnmf.corruptions import spoil

clean = load_digits().data
X, bad = spoil(clean, 0.2, ["noise", "shuffled", "occluded"], (8, 8), seed=0)


def show(rows, title, columns=8):
    """Show images in a grid."""
    figure, axes = plt.subplots(-(-len(rows) // columns), columns, figsize=(columns, 2.4))
    for ax, row in zip(axes.ravel(), rows, strict=True):
        ax.imshow(row.reshape(8, 8), cmap="gray_r")
        ax.set_axis_off()
    figure.suptitle(title)
    figure.tight_layout()


show(np.vstack([X[~bad][:8], X[bad][::45]]), "clean images above, spoiled ones below")

# %%
# Plain NMF, which is ``weighting="uniform"``, and robust NMF, which needs no hyperparameter.

plain = EucNMF(16, solver="hals", init="nndsvda").fit(X)
robust = RobustNMF(16).fit(X)
show(plain.components_, "parts of plain NMF")

# %%
show(robust.components_, "parts of robust NMF")

# %%
# How well do the parts describe the *clean* images? One is the error of plain NMF fitted to these
# alone.


def clean_error(model):
    """Return the squared error of the clean images under the parts of a model."""
    images = clean[~bad]
    return np.sum((images - model.inverse_transform(model.transform(images))) ** 2)


best = clean_error(EucNMF(16, solver="hals", init="nndsvda").fit(clean[~bad]))
for name, model in {"plain": plain, "robust": robust}.items():
    print(f"{name:8s}{clean_error(model) / best:.3f}")

# %%
# Every image has an importance: its weight in the parts. Noise and shuffled pixels have none. An
# image with a block in front of it still fits in part, and some of these keep their weight.

figure, ax = plt.subplots(figsize=(7, 3), layout="constrained")
shares = robust.sample_importances_ * len(X)
bins = np.linspace(0, shares.max(), 40)
ax.hist([shares[~bad], shares[bad]], bins, label=["clean", "spoiled"], color=["C0", "C3"])
ax.set(xlabel="importance (1 is an equal share)", ylabel="images", yscale="log")
ax.legend()
plt.show()
