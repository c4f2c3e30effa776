"""
On a cluster, with Dask
=======================

A Dask array is fitted on the workers of the active client: a task for every chunk and pass, while
codes and energies stay on the workers. The same lines run on a hundred machines; here the cluster
is two workers on one machine.
"""

# %%
# With a real cluster it would be ``Client("scheduler:8786")``.

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
from distributed import Client, LocalCluster, wait

from robustnmf import RobustNMF

cluster = LocalCluster(2, threads_per_worker=1, processes=False, dashboard_address=None)
client = Client(cluster)

# %%
# Chunks are made on the workers, one for each instrument; the third one was broken for 600 samples.

rng = np.random.default_rng(0)
basis = rng.gamma(0.5, size=(6, 80))


def draw_chunk(block_info=None):
    """Draw one chunk of samples."""
    (number, _) = block_info[None]["chunk-location"]
    local = np.random.default_rng(number)
    samples = local.gamma(0.5, size=(4000, 6)) @ basis + 0.05 * local.random((4000, 80))
    if number == 2:
        samples[:600] = 20 * local.random((600, 80))
    return samples


X = da.map_blocks(draw_chunk, chunks=((4000,) * 4, (80,)), dtype=float).persist()
wait(X)
print(X)

# %%
model = RobustNMF(6, random_state=0, tol=5e-3)
codes = model.fit_transform(X)  # lazy
print(f"{model.n_iter_} passes, effective sample size {model.effective_sample_size_:.0f}")
print(type(model.components_).__name__, model.components_.shape, codes)

# %%
# Which instrument is broken? Outliers, importances and energies are Dask arrays too: reduce them on
# the workers, and compute only small results.

outliers = da.stack([block.mean() for block in model.outliers_.blocks]).compute()
print("share of outliers by chunk:", np.round(outliers, 3))

# %%
# What it would have cost to count them: the same fit with all samples alike.

plain = RobustNMF(6, weighting="uniform", init="nndsvda", random_state=0, tol=5e-3).fit(X)


def cosines_of(components):
    """Return the cosine of the closest component for every true part."""
    unit = [p / np.linalg.norm(p, axis=1, keepdims=True) for p in (basis, components)]
    return (unit[0] @ unit[1].T).max(axis=1)


figure, axes = plt.subplots(1, 2, figsize=(11, 3.5), layout="constrained")
axes[0].bar(np.arange(len(outliers)), 100 * outliers)
axes[0].axhline(15, color="0.6", ls="--", label="bad samples of chunk 2")
axes[0].set(xlabel="chunk", ylabel="outliers in percent", xticks=range(len(outliers)))
axes[0].legend()
for shift, (name, fitted) in zip(
    (-0.2, 0.2), {"plain": plain, "robust": model}.items(), strict=True
):
    cosines = cosines_of(fitted.components_)
    print(f"{name:7s}cosines with the true parts {np.round(cosines, 3)}")
    axes[1].bar(np.arange(6) + shift, cosines, 0.4, label=name)
axes[1].set(xlabel="true part", ylabel="cosine of the closest component", ylim=(0.5, 1))
axes[1].legend()

# %%
# ``transform`` of new data is lazy as well, block by block.

new = model.transform(X[:3000])
print(new.compute().shape)
client.close()
cluster.close()
plt.show()
