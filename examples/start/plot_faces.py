"""
Faces
=====

What happens to the components of faces if some of the images are damaged? One image in eight
is damaged here: a block covers the face, its rows are shifted, or it is noise. scikit-learn's NMF
uses some components for the damage. ``RobustNMF``, with the same call, learns from the intact
faces and reports which images it left out.
"""

# %%
# If the environment variable ``ROBUSTNMF_DATA`` is the path of a folder with ``orl.npz``,
# ``yale.npz`` or ``gtfd.npz`` (see :func:`robustnmf.datasets.load_dataset`), the script uses these
# faces. Otherwise, as on this page, it draws faces: an oval with eyes, brows, nose, mouth and
# hair, with varying positions and light.

import os
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import NMF

from robustnmf import RobustNMF
from robustnmf.datasets import VARIABLE, load_dataset
from robustnmf.exceptions import OutlierWarning

side = 32
rows, columns = np.mgrid[-1 : 1 : side * 1j, -1 : 1 : side * 1j]
rng = np.random.default_rng(0)


def spot(row, column, height, width):
    """Return an image (side, side) of a soft oval."""
    return np.exp(-(((rows - row) / height) ** 2) - ((columns - column) / width) ** 2)


def draw_face():
    """Return an image (side, side) of a face; what is dark absorbs the light."""
    y, x = rng.normal(0, 0.06, size=2)
    radius = np.hypot((rows - y) / rng.uniform(0.85, 1), (columns - x) / rng.uniform(0.62, 0.8))
    light = 1 + rng.uniform(-0.6, 0.6) * (columns - x) + rng.uniform(-0.2, 0.2) * (rows - y)
    smile = y + rng.normal(0.5, 0.03) - rng.uniform(-0.4, 0.4) * (columns - x) ** 2
    dark = rng.uniform(0.5, 0.9) * spot(smile, x, rng.uniform(0.04, 0.12), rng.uniform(0.17, 0.32))
    dark += rng.uniform(0.1, 0.5) * spot(y + 0.2, x + rng.choice([-0.08, 0.08]), 0.2, 0.06)  # nose
    dark += rng.uniform(0.3, 1) * spot(y - 1, x, rng.uniform(0.2, 0.5), 1)  # hair
    eye, apart = y + rng.normal(-0.15, 0.03), rng.uniform(0.27, 0.36)
    brow, strength = eye - rng.uniform(0.15, 0.25), rng.uniform(0.3, 0.8)
    for place in (x - apart, x + apart):
        dark += 0.9 * spot(eye, place, 0.08, 0.11) + strength * spot(brow, place, 0.05, 0.17)
    head = np.clip(light, 0, None) / (1 + np.exp(8 * (radius - 1)))
    return rng.uniform(0.6, 1) * head * np.exp(-1.2 * dark) + 0.02 * rng.random((side, side))


folder = Path(os.environ.get(VARIABLE, ""))
found = [name for name in ("orl", "yale", "gtfd") if (folder / f"{name}.npz").is_file()]
if os.environ.get(VARIABLE) and found:
    pixels = load_dataset(found[0]).data / 255  # stored column by column
    clean = pixels.reshape(-1, side, side).transpose(0, 2, 1)
    print(f"{len(clean)} faces from {found[0]}.npz")
else:
    clean = np.array([draw_face() for _ in range(400)])
    print(f"{len(clean)} faces drawn by a rule")

# %%
# One third of the damaged images has each kind of damage.

images = clean.copy()
damaged = rng.permutation(len(images))[: len(images) // 8]
covered, slipped, noise = np.array_split(damaged, 3)
for image in covered:
    y, x = rng.integers(0, side // 2, size=2)
    images[image, y : y + side // 2, x : x + side // 2] = 1.0
for image in slipped:
    shifts = rng.integers(side, size=side)
    images[image] = [np.roll(row, n) for row, n in zip(images[image], shifts, strict=True)]
images[noise] = rng.random((len(noise), side, side))
is_bad = np.isin(np.arange(len(images)), damaged)
X, intact = images.reshape(len(images), -1), clean.reshape(len(images), -1)[~is_bad]


def show(axes, pictures, title=""):
    """Draw one picture (side * side,) on each of some axes, under a title."""
    for ax, picture in zip(axes.ravel(), pictures, strict=True):
        ax.imshow(picture.reshape(side, side), cmap="gray")
        ax.set(xticks=[], yticks=[])
    axes.ravel()[0].set_title(title, loc="left", fontsize=10)


figure, axes = plt.subplots(2, 9, figsize=(9, 2.6), layout="constrained")
show(axes[0], X[~is_bad][:9], "intact")
show(axes[1], X[[*covered[:3], *slipped[:3], *noise[:3]]], "damaged")

# %%
# Both models have sixteen components.

warnings.simplefilter("ignore", OutlierWarning)  # many samples are left out, as intended
settings = {"max_iter": 1000, "tol": 1e-3, "random_state": 0}
models = {
    "scikit-learn's NMF": NMF(16, **settings).fit(X),
    "RobustNMF": RobustNMF(16, **settings).fit(X),
}
# sphinx_gallery_thumbnail_number = 2
figure = plt.figure(figsize=(9, 4.9), layout="constrained")
for part, (name, model) in zip(figure.subfigures(1, 2), models.items(), strict=True):
    part.suptitle(name)
    show(part.subplots(4, 4), model.components_)

# %%
# How well do the components describe the intact faces? The error is relative to scikit-learn's NMF
# of the intact faces. (On the 400 faces of ORL, this script prints 1.15 and 1.00.) The picture
# shows eight faces and their reconstructions.


def rebuild(model):
    """Return the intact faces as the model describes them."""
    return model.inverse_transform(model.transform(intact))


def error(pictures):
    """Return the squared error against the intact faces."""
    return np.sum((pictures - intact) ** 2)


best = error(rebuild(NMF(16, **settings).fit(intact)))
rebuilt = {name: rebuild(model) for name, model in models.items()}
for name, pictures in rebuilt.items():
    print(f"{name:19s}error on intact faces {error(pictures) / best:.2f}")
figure, axes = plt.subplots(3, 8, figsize=(9, 4), layout="constrained")
for line, (name, pictures) in zip(axes, {"faces": intact, **rebuilt}.items(), strict=True):
    show(line, pictures[:8], name)

# %%
# These images were left out, most unusual first. A red frame marks an image that is not damaged.

model = models["RobustNMF"]
outliers = np.flatnonzero(model.outliers_)
print(f"{model.outliers_[is_bad].sum()} of {is_bad.sum()} damaged images were left out, and "
      f"{model.outliers_[~is_bad].sum()} of {(~is_bad).sum()} others")  # fmt: skip
for kind, members in {"covered": covered, "slipped": slipped, "noise": noise}.items():
    print(f"  {kind:8s}{model.outliers_[members].sum()} of {len(members)}")
outliers = outliers[np.argsort(-model.energies_[outliers])]
lines = -(-len(outliers) // 9)
figure, axes = plt.subplots(lines, 9, figsize=(9, lines), layout="constrained", squeeze=False)
show(axes.ravel()[: len(outliers)], X[outliers])
for ax in axes.ravel()[len(outliers) :]:
    ax.set_axis_off()
for ax, number in zip(axes.ravel(), outliers, strict=False):
    if not is_bad[number]:
        ax.spines[:].set(color="red", linewidth=3)
plt.show()
