"""
Missing values
==============

NaN in X is a missing value. The fit ignores it, and ``inverse_transform`` fills it in. Broken
samples distort the values that a mean or plain NMF fills in. ``RobustNMF`` down-weights them.
Nearest neighbours are almost as good if, as here, every row has many similar rows.
"""

# %%
# The readings of 30 sensors during one day. A quarter of the values are missing, and a twentieth
# of the rows are garbled.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.impute import KNNImputer, SimpleImputer

from robustnmf import RobustNMF

rng = np.random.default_rng(0)
rows, sensors, sources = 1000, 30, 4
time = np.linspace(0, 24, rows)
activity = np.stack(
    [
        1 + np.sin(2 * np.pi * (time - 6) / 24),
        np.exp(-0.5 * ((time - 9) / 1.5) ** 2),
        np.exp(-0.5 * ((time - 18) / 2) ** 2),
        (np.sin(2 * np.pi * time / 3) > 0.3).astype(float),
    ],
    axis=1,
)
truth = activity @ rng.gamma(1.0, size=(sources, sensors))
X = truth + 0.05 * rng.random(truth.shape)
garbled = rng.random(rows) < 0.05
X[garbled] = 15 * rng.random((garbled.sum(), sensors))
hidden = rng.random(X.shape) < 0.25
X[hidden] = np.nan

# %%
model = RobustNMF(sources, random_state=0).fit(X)
filled = {
    "mean of the sensor": SimpleImputer().fit_transform(X),
    "nearest neighbours": KNNImputer().fit_transform(X),
    "plain NMF": None,
    "robust NMF": model.inverse_transform(model.transform(X)),
}
plain = RobustNMF(sources, weighting="uniform", init="nndsvda").fit(X)
filled["plain NMF"] = plain.inverse_transform(plain.transform(X))

scored = hidden & ~garbled[:, None]
spread = np.std(truth[scored])
for name, guess in filled.items():
    error = np.sqrt(np.mean((guess - truth)[scored] ** 2)) / spread
    print(f"{name:20s}error of hidden values {error:.3f} standard deviations")

# %%
figure, axes = plt.subplots(2, 2, figsize=(10, 5), sharex=True, sharey=True, layout="constrained")
sensor = int(np.argmax(truth.std(axis=0)))
for ax, (name, guess) in zip(axes.ravel(), filled.items(), strict=True):
    ax.plot(time, truth[:, sensor], color="0.7", lw=3, label="truth")
    lost = hidden[:, sensor] & ~garbled
    ax.plot(time[lost], guess[lost, sensor], ".", ms=4, label="filled in")
    ax.set_title(name)
axes[0, 0].legend()
figure.supxlabel("hour")
figure.supylabel(f"sensor {sensor}")
plt.show()
