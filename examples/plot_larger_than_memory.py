"""
Larger than memory
==================

X may be a file. Blocks of it are read once a pass, the next one while the last is computed, so
memory holds the codes and a few blocks, whatever the size of the file. The numbers are those of a
fit in memory.
"""

# %%
# A file of ``uint8``, as cameras and counters write them; numbers are converted block by block. As
# floats this one would have 470 MB; the fit takes less than half. (A file of 16 GB is measured in
# :doc:`/scale`.)

import resource  # not on Windows
import sys
import tempfile
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from robustnmf import RobustNMF

folder = tempfile.TemporaryDirectory()
path = Path(folder.name) / "frames.npy"
rng = np.random.default_rng(0)
frames, side, spots = 60_000, 32, 6
rows, columns = np.mgrid[:side, :side]
centres = rng.uniform(4, side - 4, size=(spots, 2))
patterns = np.stack([
    np.exp(-((rows - r) ** 2 + (columns - c) ** 2) / (2 * rng.uniform(2, 4) ** 2))
    for r, c in centres
]).reshape(spots, -1)  # fmt: skip
table = np.lib.format.open_memmap(path, "w+", np.uint8, (frames, side * side))
for begin in range(0, frames, 5000):
    brightness = rng.gamma(0.7, 25, size=(5000, spots))
    noise = rng.poisson(3, size=(5000, side * side))
    table[begin : begin + 5000] = np.minimum(brightness @ patterns + noise, 255)
broken = rng.choice(frames, frames // 20, replace=False)
table[np.sort(broken)] = rng.integers(0, 256, size=(len(broken), side * side), dtype=np.uint8)
table.flush()
del table
print(
    f"{path.stat().st_size / 2**20:.0f} MB on disk, as floats {frames * side**2 * 8 / 2**20:.0f} MB"
)

# %%
# Fit the path. The codes may go to a file too, and a checkpoint lets a long fit survive a crash.


def peak_memory():
    """Return the most memory that this process has had so far, in MB."""
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


model = RobustNMF(spots + 1, init="random", random_state=0, tol=1e-3)
begin, before = time.perf_counter(), peak_memory()
codes = model.fit_transform(
    path,
    codes_path=Path(folder.name) / "codes.npy",
    checkpoint=Path(folder.name) / "fit.ckpt",
)
print(f"{model.n_iter_} passes in {time.perf_counter() - begin:.1f} s")
print(f"{peak_memory() - before:.0f} MB more memory than before the fit; "
      f"the table has {frames * side**2 * 8 / 2**20:.0f} MB as floats")  # fmt: skip
print(f"codes: {type(codes).__name__} {codes.shape}")

# %%
# Which frames were broken?

flagged = model.sample_importances_ < 0.5 * model.sample_importances_.max()
both = np.isin(np.flatnonzero(flagged), broken).sum()
print(f"{flagged.sum()} frames without a say, {both} of them among the {len(broken)} broken ones")

figure, axes = plt.subplots(2, spots + 1, figsize=(11, 3.4), layout="constrained")
for ax, part in zip(axes[0], model.components_, strict=True):
    ax.imshow(part.reshape(side, side))
for ax, pattern in zip(axes[1], [*patterns, np.ones(side * side)], strict=True):
    ax.imshow(pattern.reshape(side, side), vmin=0)
for ax in axes.ravel():
    ax.set(xticks=[], yticks=[])
axes[0, 0].set_ylabel("learned")
axes[1, 0].set_ylabel("true")
folder.cleanup()
plt.show()
