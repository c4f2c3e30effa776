"""
When not to use it
==================

Robust weights help if a minority of the samples does not belong to the data. They cost time, and
they are the wrong tool for some data. Here are five such cases, and what you can do instead.
"""

# %%
import time
import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import NMF

from robustnmf import RobustNMF
from robustnmf.exceptions import OutlierWarning

rng = np.random.default_rng(0)
warnings.simplefilter("ignore", OutlierWarning)  # we expect outliers here


def error(model, X):
    """Return the mean squared error on a table."""
    return np.mean((X - model.inverse_transform(model.transform(X))) ** 2)


# %%
# **Clean data.** Robust weights have no benefit, and the search for outliers takes time. Use
# ``weighting="uniform"`` or scikit-learn.

X = load_digits().data
half = X[:900], X[900:]
RobustNMF(10, weighting="uniform", max_iter=2, tol=0).fit(half[0])  # compiles what it needs, once
for name, model in {
    "scikit-learn": NMF(10, init="nndsvda", max_iter=500, random_state=0),
    "RobustNMF, uniform": RobustNMF(10, weighting="uniform", random_state=0),
    "RobustNMF": RobustNMF(10, random_state=0),
}.items():
    begin = time.perf_counter()
    model.fit(half[0])
    print(f"{name:20s}{time.perf_counter() - begin:6.2f} s, error on new digits "
          f"{error(model, half[1]):.3f}")  # fmt: skip

# %%
# **Most samples are outliers.** The components describe the majority of the samples. With 60% of
# noise, the noise is the majority. Select good samples with other knowledge, or fit a clean
# subset.

errors = []
shares = (0.0, 0.3, 0.6, 0.8)
for share in shares:
    table = half[0].copy()
    bad = rng.random(len(table)) < share
    table[bad] = 16 * rng.random((bad.sum(), 64))
    errors.append(error(RobustNMF(10, random_state=0, tol=1e-3).fit(table), half[1]))
print(
    "error on clean digits:", {s: round(float(e), 2) for s, e in zip(shares, errors, strict=True)}
)

# %%
# **Every sample has some wrong entries.** Weights of samples cannot help, because all samples
# would have to be left out. Use ``loss="truncated"``.

spoiled = half[0].copy()
spikes = rng.random(spoiled.shape) < 0.1
spoiled[spikes] = rng.uniform(16, 60, size=spikes.sum())
by_loss = {
    loss: error(RobustNMF(10, loss=loss, random_state=0, tol=1e-3).fit(spoiled), half[1])
    for loss in ("frobenius", "truncated")
}
print("error on clean digits:", {name: round(float(e), 2) for name, e in by_loss.items()})

# %%
# **The outliers resemble each other.** For example, fluorescence in spectra or clicks in a
# recording: a tenth of the samples, all of one kind. Samples that predict each other can be
# accepted as a group of good samples. With as many components as the good samples need, all of
# these outliers are left out. With two more components, only some are. Look at the components, and
# ignore the one that you do not want.

kinds = rng.gamma(0.5, size=(3, 40))
alike = rng.gamma(1.0, size=(400, 3)) @ kinds
alike *= np.exp(0.1 * rng.normal(size=alike.shape))
glow = rng.random(400) < 0.12
centres = rng.uniform(0, 40, size=(400, 1))
alike[glow] = 5 * np.exp(-(((np.arange(40) - centres[glow]) / 15) ** 2))
for rank in (3, 5):
    outliers = RobustNMF(rank, random_state=0).fit(alike).outliers_
    print(f"{rank} components: {int(outliers[glow].sum())} of {int(glow.sum())} outliers left out")

# %%
# **You are interested in rare samples.** For example, a rare cell type or a new topic: four
# samples of a fourth kind, and three components. They are left out, and plain NMF would mix them
# into the other components. Look at ``outliers_`` and ``energies_`` before you remove samples, and
# increase ``n_components`` to give them a component.

profiles = rng.gamma(0.5, size=(4, 40))
label = np.repeat([0, 1, 2, 3], [130, 100, 66, 4])
rare = rng.uniform(0.5, 1.5, (300, 1)) * profiles[label] * np.exp(0.1 * rng.normal(size=(300, 40)))
model = RobustNMF(3, random_state=0).fit(rare)
print("rare samples left out:", int(model.outliers_[label == 3].sum()), "of 4")

# %%
figure, axes = plt.subplots(1, 3, figsize=(12, 3.2), layout="constrained")
axes[0].plot([100 * s for s in shares], errors, "o-")
axes[0].set(
    xlabel="noise in percent", ylabel="error on clean digits", title="most samples are noise"
)
axes[1].bar(list(by_loss), list(by_loss.values()))
axes[1].set(ylabel="error on clean digits", title="wrong entries in all samples")
axes[2].semilogy(np.flatnonzero(label < 3), model.energies_[label < 3], ".", label="common")
axes[2].semilogy(np.flatnonzero(label == 3), model.energies_[label == 3], "C3.", label="rare")
axes[2].set(xlabel="sample", ylabel="reconstruction error", title="four samples of a rare kind")
axes[2].legend()
plt.show()
