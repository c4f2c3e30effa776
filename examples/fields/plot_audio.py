"""
Notes in a damaged recording
============================

The power spectrogram of music is a sum of notes: each note is a spectrum times its loudness. Power
spans many orders of magnitude. The Itakura-Saito divergence compares ratios, so quiet partials
have the same influence as loud ones. Some frames of this recording are damaged: their frequencies
are scrambled.
"""

# %%
# The recording has eight seconds of five notes, two at a time. One frame in ten is damaged.

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.signal import stft

from robustnmf import RobustNMF

rng = np.random.default_rng(0)
rate, seconds = 8000, 8
time = np.arange(rate * seconds) / rate
pitches = np.array([220.0, 261.6, 329.6, 392.0, 493.9])


def play(pitch, beginning):
    """Return a note with six partials that begins softly and fades."""
    since = np.maximum(time - beginning, 0.0)
    partials = sum(np.sin(2 * np.pi * pitch * p * time) / p**1.5 for p in range(1, 7))
    return partials * np.exp(-2.5 * since) * (1 - np.exp(-since / 0.05))


sound = 1e-2 * rng.standard_normal(len(time))
for beginning in np.arange(0, seconds, 0.4):
    for pitch in rng.choice(pitches, size=2, replace=False):
        sound += rng.uniform(0.3, 1) * play(pitch, beginning)
frequencies, moments, transform = stft(sound, rate, nperseg=512, noverlap=192)
power = np.abs(transform.T) ** 2 + 1e-12  # frames in rows
bad = rng.random(len(power)) < 0.1
X = power.copy()
X[bad] = rng.permuted(X[bad], axis=1)

# %%
# We fit plain and robust NMF with one component more than there are notes, for the noise. This
# loss has many local minima, so we keep the best of ten random starts. ``beta_loss=0`` is
# scikit-learn's name for this loss.

settings = {"loss": "itakura-saito", "init": "random", "n_init": 10, "tol": 1e-3}
plain = RobustNMF(6, weighting="uniform", random_state=0, **settings).fit(X)
robust = RobustNMF(6, random_state=0, **settings).fit(X)
found = robust.outliers_
print(f"{(found & bad).sum()} of {bad.sum()} damaged frames were left out, "
      f"and {(found & ~bad).sum()} of {(~bad).sum()} others")  # fmt: skip

# %%
# The mean divergence of the undamaged recording from its reconstruction:

for name, model in {"plain": plain, "robust": robust}.items():
    print(f"{name:7s} divergence from the clean frames {-model.score(power):.1f}")

# %%
# The learned spectra (blue) and the spectra of the single notes (grey). Robust weights suit this
# recording well: in 14 variants (one to three notes at a time, other attacks, noise, starts),
# plain NMF missed a note in all of them, and the robust fit in ten (a correlation below 0.4).

notes = []
for pitch in pitches:
    alone = np.abs(stft(play(pitch, 0.0), rate, nperseg=512, noverlap=192)[2].T) ** 2
    notes.append(alone[2:6].mean(axis=0))
notes = np.log10(np.array(notes) + 1e-8)
figure, axes = plt.subplots(2, 5, figsize=(12, 4), sharex=True, layout="constrained")
for line, (name, model) in zip(axes, {"plain": plain, "robust": robust}.items(), strict=True):
    scaled = model.components_ / model.components_.max(axis=1, keepdims=True)
    learned = np.log10(scaled + 1e-8)
    likeness = np.corrcoef(notes, learned)[: len(notes), len(notes) :]
    order = linear_sum_assignment(-likeness)[1]
    print(f"{name:7s} correlations of log spectra "
          f"{np.round(likeness[np.arange(len(notes)), order], 2)}")  # fmt: skip
    for ax, note, part in zip(line, notes, learned[order], strict=True):
        ax.plot(frequencies, note - note.max(), color="0.7", lw=3)
        ax.plot(frequencies, part, color="C0", lw=1)
        ax.set(xlim=(0, 3000), ylim=(-7, 0.5), yticks=[])
    line[0].set_ylabel(name)
for ax, pitch in zip(axes[0], pitches, strict=True):
    ax.set_title(f"{pitch:.0f} Hz")
figure.supxlabel("frequency (Hz)")
figure.supylabel("log power")
plt.show()
