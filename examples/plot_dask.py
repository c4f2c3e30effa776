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
# Chunks are made on the workers, and a chunk in four holds samples of a broken instrument.

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
# Importances and energies of samples are Dask arrays too: reduce them on the workers, and compute
# only small results.

shares = model.sample_importances_ * X.shape[0]
by_chunk = da.stack([block.mean() for block in shares.blocks]).compute()
figure, axes = plt.subplots(1, 2, figsize=(11, 3.5), layout="constrained")
axes[0].bar(np.arange(len(by_chunk)), by_chunk)
axes[0].set(xlabel="chunk", ylabel="mean importance of its samples")
unit = [
    parts / np.linalg.norm(parts, axis=1, keepdims=True) for parts in (basis, model.components_)
]
image = axes[1].imshow(unit[0] @ unit[1].T, vmin=0, vmax=1)
axes[1].set(xlabel="learned part", ylabel="true part", title="cosines")
figure.colorbar(image)

# %%
# ``transform`` of new data is lazy as well, block by block.

new = model.transform(X[:3000])
print(new.compute().shape)
client.close()
cluster.close()
plt.show()
