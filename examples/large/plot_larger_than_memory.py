"""
Larger than memory
==================

X can be a file. Each iteration reads it once, block by block, so the memory contains only the
codes and a few blocks. Here we limit the memory: we fit a file of 400 MB with 300 MB of memory, in
which the file could not even be loaded. (:doc:`/scale` has measurements for a file of 16 GB.)
"""

# %%
# Frames of a camera in single precision, each with six spots of varying brightness. One frame in
# twenty is broken. We write files of 25 to 400 MB block by block.

import tempfile
import time
import tracemalloc
from contextlib import contextmanager
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from threadpoolctl import threadpool_limits

from robustnmf import RobustNMF

folder = tempfile.TemporaryDirectory()
MB, side, spots = 2**20, 32, 6
rng = np.random.default_rng(0)
rows, columns = np.mgrid[:side, :side]
patterns = np.stack([
    np.exp(-((rows - r) ** 2 + (columns - c) ** 2) / (2 * width**2))
    for r, c, width in rng.uniform((4, 4, 2), (side - 4, side - 4, 4), size=(spots, 3))
]).reshape(spots, -1).astype(np.float32)  # fmt: skip


def write_frames(path, size):
    """Write a file of a size in MB, block by block; return which frames are broken."""
    frames = size * MB // (4 * side**2)
    table = np.lib.format.open_memmap(path, "w+", np.float32, (frames, side**2))
    broken = rng.random(frames) < 0.05
    for begin in range(0, frames, 6400):
        block = table[begin : begin + 6400]
        brightness = rng.gamma(0.7, size=(len(block), spots)).astype(np.float32)
        block[:] = brightness @ patterns + 0.1 * rng.random(block.shape, dtype=np.float32)
        bad = broken[begin : begin + 6400]
        block[bad] = 3 * rng.random((bad.sum(), side**2), dtype=np.float32)
    return broken


sizes = (25, 100, 400)
paths = {size: Path(folder.name) / f"frames{size}.npy" for size in sizes}
broken = {size: write_frames(path, size) for size, path in paths.items()}
for path in paths.values():
    print(f"{path.name}: {path.stat().st_size / MB:.0f} MB")

# %%
# We fit the paths and measure the peak memory of each fit. The codes can go to a file, too, and a
# checkpoint lets a long fit continue after a crash.


def measure(function):
    """Return the result of a function, and the most MB that it has allocated at once."""
    tracemalloc.start()
    result = function()
    peak = tracemalloc.get_traced_memory()[1] / MB
    tracemalloc.stop()
    return result, peak


def fit_file(path):
    """Fit a file by its path, with codes and checkpoints in files."""
    model = RobustNMF(spots + 1, random_state=0, tol=1e-2)
    model.fit_transform(path, codes_path=f"{path}.codes", checkpoint=f"{path}.ckpt")
    return model


def fit_loaded(path):
    """Load a file and fit the array."""
    return RobustNMF(spots + 1, random_state=0, tol=1e-2).fit(np.load(path))


RobustNMF(2, max_iter=2, tol=0).fit(np.load(paths[25])[:100])  # compiles what it needs, once
from_path, in_memory = {}, {}
with threadpool_limits(2):  # every thread has blocks of its own
    for size in sizes[:2]:
        from_path[size] = measure(lambda size=size: fit_file(paths[size]))
        in_memory[size] = measure(lambda size=size: fit_loaded(paths[size]))

# %%
# Now we fit the largest file with a memory limit, if the operating system supports it (Linux).


@contextmanager
def memory_bound(size):
    """Let this process take so many MB more than it has now."""
    try:
        import resource

        data = int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize()
    except (ImportError, FileNotFoundError):
        print("This system cannot limit the memory of a process.")
        yield
        return
    before = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (data + size * MB, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)


bound = 300
with memory_bound(bound), threadpool_limits(2):
    try:
        print("loading the file of 400 MB:", np.load(paths[400]).shape)
    except MemoryError as error:
        print("loading the file of 400 MB: MemoryError:", error)
    begin = time.perf_counter()
    from_path[400] = measure(lambda: fit_file(paths[400]))
    print(f"fitting its path: {from_path[400][0].n_iter_} iterations in "
          f"{time.perf_counter() - begin:.0f} s")  # fmt: skip

# %%
# The memory as a function of the file size. A path and an array give the same result, up to
# rounding in single precision.

print("  file   from its path   in memory")
for size, (_, peak) in from_path.items():
    loaded = f"{in_memory[size][1]:6.0f} MB" if size in in_memory else "        -"
    print(f"{size:3d} MB       {peak:6.0f} MB   {loaded}")
pair = [fits[100][0].components_ for fits in (from_path, in_memory)]
print(f"largest difference of components {np.abs(pair[0] - pair[1]).max() / pair[1].max():.0e}")

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.plot(sizes, [from_path[size][1] for size in sizes], "o-", label="fit of the path")
ax.plot(
    sizes[:2], [in_memory[size][1] for size in sizes[:2]], "s-", label="fit of the loaded array"
)
ax.plot((0, 400), (0, 400), color="0.7", label="the table itself")
ax.axhline(bound, color="C3", ls="--", label="limit for the largest file")
ax.set(xlabel="size of the file (MB)", ylabel="peak memory (MB)", xlim=0, ylim=0)
ax.legend()

# %%
# The components of the largest file, and the broken frames.

model, is_broken = from_path[400][0], broken[400]
print(f"{model.outliers_[is_broken].sum():,} of {is_broken.sum():,} broken frames left out, and "
      f"{model.outliers_[~is_broken].sum():,} of {(~is_broken).sum():,} others")  # fmt: skip
unit = [p / np.linalg.norm(p, axis=1, keepdims=True) for p in (patterns, model.components_)]
order = (unit[0] @ unit[1].T).argmax(axis=1)
figure, axes = plt.subplots(2, spots, figsize=(9, 3.4), layout="constrained")
for ax, part in zip(axes.ravel(), [*model.components_[order], *patterns], strict=True):
    ax.imshow(part.reshape(side, side), vmin=0)
    ax.set(xticks=[], yticks=[])
axes[0, 0].set_ylabel("learned")
axes[1, 0].set_ylabel("true")
folder.cleanup()
plt.show()
