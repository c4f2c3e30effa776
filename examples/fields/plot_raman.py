"""
Raman spectra with cosmic rays
==============================

Raman spectra have two problems: cosmic rays leave spikes in single channels of good spectra, and
some spectra are noise. ``loss="truncated"`` ignores channels with unusual values. The weights of
the samples, which ``RobustNMF`` uses by default, handle the noisy spectra.
"""

# %%
# A line scan over three substances: 300 spectra with 200 channels. Every spectrum has a few
# spikes, and one spectrum in ten is noise.

import warnings

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import linear_sum_assignment

from robustnmf import RobustNMF
from robustnmf.exceptions import OutlierWarning

rng = np.random.default_rng(0)
samples, channels = 300, 200
axis = np.linspace(400, 1800, channels)


def draw_peaks(centres, widths):
    """Return a spectrum (channels,) of Lorentzian peaks."""
    return sum(1 / (1 + ((axis - c) / w) ** 2) for c, w in zip(centres, widths, strict=True))


spectra = np.array([
    draw_peaks([620, 1003, 1450], [12, 8, 15]),
    draw_peaks([780, 1085, 1610], [14, 9, 12]),
    draw_peaks([520, 940, 1300, 1700], [15, 14, 18, 10]),
])  # fmt: skip
place = np.linspace(0, 1, samples)
amounts = np.stack([np.exp(-(((place - c) / 0.2) ** 2)) for c in (0.15, 0.5, 0.85)], axis=1)
amounts *= rng.gamma(8, 1 / 8, size=amounts.shape)
clean = amounts @ spectra
X = rng.poisson(400 * (clean + 0.02)) / 400
spikes = rng.random(X.shape) < 0.015
X[spikes] += rng.uniform(1, 6, size=spikes.sum())
bad = rng.random(samples) < 0.1
X[bad] = rng.gamma(1.0, 0.7, size=(bad.sum(), channels))
spikes[bad] = False

# %%
# We compare three fits: plain NMF, weights of samples, and weights of samples and channels. The
# second fit warns about the spikes and recommends the third. We expect it to fail here.

warnings.filterwarnings("ignore", category=OutlierWarning)
models = {
    "plain": RobustNMF(3, weighting="uniform", random_state=0).fit(X),
    "weights of samples": RobustNMF(3, random_state=0).fit(X),
    "weights of samples and channels": RobustNMF(3, loss="truncated", random_state=0).fit(X),
}


def match_spectra(components):
    """Return learned spectra of largest value one, in the order of the true ones, and cosines."""
    unit = [s / np.linalg.norm(s, axis=1, keepdims=True) for s in (spectra, components)]
    cosines = unit[0] @ unit[1].T
    order = linear_sum_assignment(-cosines)[1]
    chosen = components[order]
    return chosen / chosen.max(axis=1, keepdims=True), cosines[np.arange(3), order]


figure, axes = plt.subplots(1, 3, figsize=(12, 3.4), sharey=True, layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    learned, cosines = match_spectra(model.components_)
    print(f"{name:33s}cosines with the true spectra {np.round(cosines, 3)}")
    for i, (true, part) in enumerate(zip(spectra, learned, strict=True)):
        ax.plot(axis, true / true.max() + 1.2 * i, color="0.7", lw=4)
        ax.plot(axis, part + 1.2 * i, color="C0", lw=1)
    ax.set(title=name, xlabel="wave number (1/cm)", yticks=[])

# %%
# The ignored channels are the spikes. ``inverse_transform`` of the codes gives the table without
# them.

model = models["weights of samples and channels"]
weights = model.entry_weights(X)
ignored = (weights < 0.1) & ~bad[:, None]
print(f"{(ignored & spikes).sum()} of {spikes.sum()} spikes were ignored, "
      f"and {(ignored & ~spikes).sum()} of {(~spikes[~bad]).sum()} other channels")  # fmt: skip
weight = samples * model.sample_importances_ * weights.mean(axis=1)
print(f"mean weight of the channels of good spectra {weight[~bad].mean():.2f}, "
      f"of corrupted ones {weight[bad].mean():.2f}")  # fmt: skip
repaired = model.inverse_transform(model.transform(X))
number = np.flatnonzero(~bad)[np.argmax(spikes[~bad].sum(axis=1))]
figure, ax = plt.subplots(figsize=(9, 3), layout="constrained")
ax.plot(axis, X[number], color="0.7", label="as measured")
ax.plot(axis, repaired[number], color="C0", label="repaired")
ax.plot(axis, clean[number], "k--", lw=1, label="true")
ax.set(xlabel="wave number (1/cm)", ylabel="intensity")
ax.legend()
plt.show()
