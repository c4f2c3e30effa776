"""
Wrong pixels in good images
===========================

We set a tenth of all pixels of scikit-learn's digits to one to five times the largest value, so
that every image has wrong pixels. Weights of samples cannot help. ``loss="truncated"`` ignores
unusual pixels, learns the components from the others, and repairs the images.
"""

# %%
# 600 images of 8 x 8 pixels. Each image has six wrong pixels on average.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from robustnmf import RobustNMF
from robustnmf.displays import plot_entry_weights

rng = np.random.default_rng(0)
clean = load_digits().data[:600]
bad = rng.random(clean.shape) < 0.1
X = np.where(bad, clean.max() * rng.uniform(1, 5, clean.shape), clean)

# %%
# The models differ only in the loss.

models = {
    "plain NMF": RobustNMF(16, weighting="uniform", random_state=0).fit(X),
    "huber": RobustNMF(16, loss="huber", random_state=0).fit(X),
    "truncated": RobustNMF(16, loss="truncated", random_state=0).fit(X),
}

# %%
# The images, the corrupted images, and the reconstructions of each model.

shown = slice(0, 8)
rows = {"corrupted": X[shown], "clean": clean[shown]}
for name, model in models.items():
    rows[name] = model.inverse_transform(model.transform(X[shown]))
figure, axes = plt.subplots(len(rows), 8, figsize=(8, 1.1 * len(rows)))
for line, (name, images) in zip(axes, rows.items(), strict=True):
    for ax, image in zip(line, images, strict=True):
        ax.imshow(image.reshape(8, 8), cmap="gray_r", vmin=0, vmax=16)
        ax.set(xticks=[], yticks=[])
    line[0].set_ylabel(name, fontsize=8)
figure.tight_layout()

# %%
# The components of each model.

figure, axes = plt.subplots(len(models), 16, figsize=(12, 0.9 * len(models)))
for line, (name, model) in zip(axes, models.items(), strict=True):
    for ax, part in zip(line, model.components_, strict=True):
        ax.imshow(part.reshape(8, 8), cmap="gray_r")
        ax.set(xticks=[], yticks=[])
    line[0].set_ylabel(name, fontsize=8)
figure.tight_layout()

# %%
# The entry weights: dark pixels were ignored.

figure, ax = plt.subplots(figsize=(8, 1.6), layout="constrained")
display = plot_entry_weights(models["truncated"], X[shown], image_shape=(8, 8), ax=ax)

# %%
# The squared error of the repaired images, relative to plain NMF of the clean images:


def error(images):
    """Return the squared error against the clean images."""
    return np.sum((images - clean) ** 2)


of_clean = RobustNMF(16, weighting="uniform", random_state=0).fit(clean)
best = error(of_clean.inverse_transform(of_clean.transform(clean)))
for name, model in models.items():
    repaired = model.inverse_transform(model.transform(X))
    print(f"{name:10s}{error(repaired) / best:6.2f}")

plt.show()
