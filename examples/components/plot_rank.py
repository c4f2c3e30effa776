"""
The number of components
========================

To choose the number of components, hide entries of the table and predict them with one component,
two, three and so on. With too few components the model misses structure, and with too many it fits
noise. Both increase the error of the hidden entries. :func:`robustnmf.select_rank` limits the
error of a single sample, so outliers do not determine the choice.
"""

# %%
# Five components with some noise. A tenth of the samples are only noise.

import matplotlib.pyplot as plt
import numpy as np

from robustnmf import RobustNMF, select_rank

rng = np.random.default_rng(3)
samples, features, components = 300, 40, 5
X = rng.gamma(0.5, size=(samples, components)) @ rng.gamma(0.5, size=(components, features))
X += 0.1 * X.mean() * rng.random(X.shape)
X[:30] = 4 * X.mean() * rng.random((30, features))

# %%
# ``select_rank`` fits a few numbers of components at a time, in increasing order.

curve = select_rank(X, range(1, 11), random_state=0)
print(f"least error at {curve.best}, recommended {curve.recommended}")

figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
curve.plot(ax=ax)
ax.set_title("error of hidden entries")

# %%
# The error of the fit itself decreases with every component, and most of it comes from the noisy
# samples.

ranks = range(1, 11)
models = [RobustNMF(k, weighting="uniform", init="nndsvda").fit(X) for k in ranks]
figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
ax.plot(ranks, [m.energies_.sum() for m in models], "o-", color="C3", label="all samples")
ax.plot(ranks, [m.energies_[30:].sum() for m in models], "o-", label="samples without noise")
ax.set(xlabel="number of components", ylabel="squared error of plain NMF", yscale="log")
ax.set_title("error of fitted entries")
ax.legend()
plt.show()
