"""
A cluster with Dask
===================

A Dask array is fitted on the workers of the active client. There is one task per chunk and
iteration, and codes stay on the workers. The same lines run on a hundred machines. Here the
cluster is two workers on one machine. The example compares the result with a fit in memory, and
shows what the workers do and how little they send.
"""

# %%
# On a real cluster, use ``Client("scheduler:8786")``.

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
from distributed import Client, LocalCluster, get_task_stream, wait

from robustnmf import RobustNMF

options = {"threads_per_worker": 1, "processes": False, "dashboard_address": None}
cluster = LocalCluster(n_workers=2, **options)
client = Client(cluster)

# %%
# The workers create the chunks, one for each instrument. The third instrument was broken for 6,000
# of its 40,000 samples.

n_chunks, features, k = 8, 80, 6
basis = np.random.default_rng(0).gamma(0.5, size=(k, features))


def draw_chunk(block_info=None):
    """Draw one chunk of samples."""
    (number, _) = block_info[None]["chunk-location"]
    local = np.random.default_rng(number)
    samples = local.gamma(0.5, size=(40_000, k)) @ basis + 0.05 * local.random((40_000, features))
    if number == 2:
        samples[:6000] = 20 * local.random((6000, features))
    return samples


chunks = ((40_000,) * n_chunks, (features,))
X = da.map_blocks(draw_chunk, chunks=chunks, dtype=float).persist()
wait(X)
print(f"{X.shape[0]:,} x {X.shape[1]}, {X.nbytes / 1e6:.0f} MB in {X.npartitions} chunks")
for number, keys in enumerate(client.has_what().values()):
    print(f"  worker {number} holds {len(keys)} of them")

# %%
# The call is the same as for an array in memory. Results with one row per sample are lazy Dask
# arrays, and the components are a NumPy array.

model = RobustNMF(k, random_state=0, tol=5e-3)
with get_task_stream(client) as stream:
    codes = model.fit_transform(X)
print(f"components_ {type(model.components_).__name__} {model.components_.shape}")
print(f"outliers_   {model.outliers_}")
print(f"codes       {codes}")

# %%
# The numbers are the same as in memory.

in_memory = RobustNMF(k, random_state=0, tol=5e-3).fit(X.compute())
apart = np.abs(model.components_ - in_memory.components_).max() / in_memory.components_.max()
print(f"largest difference of components: {apart:.0e} of the largest value")
print(f"iterations: {model.n_iter_} on the cluster, {in_memory.n_iter_} in memory")

# %%
# Every bar is a task of a worker. Chunks stay on their worker. In each iteration, the basis is
# sent to the workers, and every chunk returns sums of k (m + k) numbers, independent of the number
# of samples.

fitting = [task for task in stream.data if "robustnmf" in str(task["key"])]
others = len(stream.data) - len(fitting)
print(f"{len(fitting)} tasks on {n_chunks} chunks for {model.n_iter_} iterations, the start and "
      f"the last codes; {others} short ones for sums over samples")  # fmt: skip
print(f"sums of a chunk: {8 * k * (features + k):,} bytes; the chunk: {X.nbytes // n_chunks:,}")

workers = sorted({task["worker"] for task in stream.data})
start = min(step["start"] for task in stream.data for step in task["startstops"])
figure, ax = plt.subplots(figsize=(9, 2.4), layout="constrained")
for task in stream.data:
    for step in task["startstops"]:
        if step["action"] == "compute":
            ax.barh(
                workers.index(task["worker"]), step["stop"] - step["start"], 0.7,
                left=step["start"] - start, color="C0" if task in fitting else "C1",
            )  # fmt: skip
names = [f"worker {number}" for number in range(len(workers))]
ax.set(xlabel="seconds", yticks=range(len(workers)), yticklabels=names)
ax.bar(0, 0, color="C0", label="work on chunks")
ax.bar(0, 0, color="C1", label="sums over samples")
ax.legend(loc="upper center", bbox_to_anchor=(0.5, 1.25), ncols=2, frameon=False)

# %%
# Both workers are busy in every iteration. In the long gap, the client searches for outliers in a
# few thousand samples. In the short gaps, it computes the next basis. For a table of 2 GB, two
# workers were 1.87 times as fast as one (:doc:`/scale`).
#
# Which instrument is broken? We reduce on the workers and compute only small results. The right
# picture compares the components with a fit that gives all samples the same weight.

outliers = da.stack([block.mean() for block in model.outliers_.blocks]).compute()
print("share of outliers by chunk:", np.round(outliers, 3))
plain = RobustNMF(k, weighting="uniform", init="nndsvda", random_state=0, tol=5e-3).fit(X)


def cosines_of(components):
    """Return the cosine of the closest component for every true component."""
    unit = [p / np.linalg.norm(p, axis=1, keepdims=True) for p in (basis, components)]
    return (unit[0] @ unit[1].T).max(axis=1)


figure, axes = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
axes[0].bar(np.arange(n_chunks), 100 * outliers)
axes[0].axhline(15, color="0.6", ls="--", label="broken samples of chunk 2")
axes[0].set(xlabel="chunk", ylabel="outliers in percent", xticks=range(n_chunks), ylim=(0, 20))
axes[0].legend(loc="upper right")
for shift, (name, fitted) in zip(
    (-0.2, 0.2), {"plain": plain, "robust": model}.items(), strict=True
):
    cosines = cosines_of(fitted.components_)
    print(f"{name:7s}cosines with the true components {np.round(cosines, 3)}")
    axes[1].bar(np.arange(k) + shift, cosines, 0.4, label=name)
axes[1].set(xlabel="true component", ylabel="cosine of the closest component", ylim=(0.5, 1.1))
axes[1].legend(ncols=2)

# %%
# ``transform`` of new data is lazy as well.

new = model.transform(X[:3000])
print(new)
print(new.compute().shape)
client.close()
cluster.close()
plt.show()
