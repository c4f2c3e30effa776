"""
A GPU
=====

If X is a PyTorch tensor or a CuPy array on a GPU, the fit runs on the GPU. Nothing else in the
call changes. This page runs in every installation, and its first output tells you which device was
used.
"""

# %%
# A table in single precision, with a tenth of the samples replaced by noise. If there is a GPU,
# the table is moved to it. Otherwise it stays on the CPU. The page then shows only that the call
# and the results are the same, and nothing about speed.

import tempfile
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import robustnmf
from robustnmf import RobustNMF

try:
    import torch
except ImportError:
    torch = None
try:
    import cupy
except ImportError:
    cupy = None


def to_device(table):
    """Return the table as an array on the GPU if there is one, and what computes with it."""
    if torch is not None and torch.cuda.is_available():
        return torch.as_tensor(table, device="cuda"), f"PyTorch, {torch.cuda.get_device_name()}"
    if cupy is not None and cupy.is_available():
        return cupy.asarray(table), "CuPy, GPU"
    if torch is not None:
        return torch.as_tensor(table), "PyTorch, CPU"
    return table, "NumPy, CPU"


def draw(n, m, k):
    """Draw a table (n, m) with k components and noise, in float32."""
    rng = np.random.default_rng(0)
    table = rng.random((n, k)) ** 3 @ rng.random((k, m)) ** 3 + 0.1 * rng.random((n, m))
    return table.astype(np.float32)


table = draw(4000, 300, 8)
bad = np.arange(len(table)) < 400
table[bad] = table.max() * np.random.default_rng(1).random((400, 300), dtype=np.float32)
X, used = to_device(table)
print(f"computed with {used}: {type(X).__module__}.{type(X).__name__}, {X.dtype}")
on_gpu = "CPU" not in used
if not on_gpu:
    missing = "PyTorch is not installed" if torch is None else "there is no GPU that it can use"
    print(f"Nothing below was computed on a GPU: {missing}.")

# %%
# The call is the usual one. The results have the library and the device of X.

model = RobustNMF(8, random_state=0).fit(X)
codes = model.transform(X)
for name in ("components_", "energies_", "outliers_"):
    value = getattr(model, name)
    print(f"{name:14s}{type(value).__name__:9s}{getattr(value, 'device', 'cpu')}  {value.dtype}")

# %%
# The same fit of the NumPy array on the CPU, and the difference of the results:

by_numpy = RobustNMF(8, random_state=0).fit(table)


def to_numpy(array):
    """Copy an array of PyTorch or CuPy to the memory of the CPU, as NumPy's."""
    if hasattr(array, "get"):  # CuPy
        return array.get()
    return array.cpu().numpy() if hasattr(array, "cpu") else np.asarray(array)


apart = np.abs(to_numpy(model.energies_) - by_numpy.energies_) / np.median(by_numpy.energies_)
outliers = to_numpy(model.outliers_)
print(f"median difference of reconstruction errors, over their median: {np.median(apart):.0e}")
print(f"the same outliers: {np.array_equal(outliers, by_numpy.outliers_)}; "
      f"{outliers[bad].sum()} of {bad.sum()} noisy samples are among them")  # fmt: skip

# %%
# A saved model contains NumPy arrays, so you can load it on a machine without a GPU. Its
# ``transform`` accepts arrays of any library.

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "model.rnmf"
    model.save(path)
    loaded = robustnmf.load(path)
print(type(loaded.components_).__name__, loaded.components_.shape)
difference = np.abs(loaded.transform(table[:100]) - to_numpy(codes[:100])).max()
print(f"largest difference of codes after loading: {difference:.0e}")
print("codes of X as it was given:", type(loaded.transform(X[:100])).__name__)

# %%
# Is a GPU worth it? The picture shows the times of default fits. The times of this machine are
# measured now. The times of an NVIDIA H200 were measured by ``benchmarks/defaults.py --gpu`` with
# PyTorch (medians of five, on similar tables). On the H200, a fit of 2,000 samples takes two thirds
# of the time of a fit of 100,000, so small tables gain little: with an earlier version, this page
# took 0.20 s on the GPU and 0.20 s on its 16 CPU cores for 2,000 samples, and 0.48 s and 0.57 s
# for 8,000.
# Without a GPU, do not convert arrays to tensors: the loops for NumPy arrays are compiled, and the
# loops for tensors on a CPU are not.

H200 = {(2_000, 500, 10): 0.3264, (100_000, 1_000, 20): 0.4787, (500_000, 1_000, 50): 1.5154}


def seconds(array, k):
    """Return the time of the second of two fits: the first one compiles what it needs."""
    for _ in range(2):
        begin = time.perf_counter()
        to_numpy(RobustNMF(k, random_state=0).fit(array).components_)  # waits for the GPU
        elapsed = time.perf_counter() - begin
    return elapsed


shapes = [(500, 500, 10), (2_000, 500, 10), (8_000, 500, 10)]
measured = {
    "NumPy on this CPU": {shape: seconds(draw(*shape), shape[2]) for shape in shapes},
    "NVIDIA H200, measured before": H200,
}
if used != "NumPy, CPU":
    fast_enough = shapes if on_gpu else shapes[:1]
    measured[f"{used}, here"] = {
        shape: seconds(to_device(draw(*shape))[0], shape[2]) for shape in fast_enough
    }
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for (name, times), mark in zip(measured.items(), "osD", strict=False):
    ax.loglog([n * m * k for n, m, k in times], list(times.values()), f"{mark}-", label=name)
    for (n, m, k), value in times.items():
        print(f"{name:30s}{n:>8,} x {m:<5,} k = {k}  {value:5.2f} s")
ax.minorticks_off()
ax.set_yticks([0.1, 0.25, 0.5, 1, 2, 4], labels=["0.1", "0.25", "0.5", "1", "2", "4"])
ax.set(xlabel="samples x features x components", ylabel="seconds of a fit", ylim=(0.05, 8))
ax.legend()
plt.show()
