"""
Choosing the number of parts
============================

Hide entries all over the table, predict them with one part, two, three... Too few parts miss
structure and too many follow noise; both show in what was hidden. If errors were squared and
summed, bad samples would decide: :func:`robustnmf.select_rank` bounds what a sample contributes.
"""

# %%
# Five parts with some noise, and a tenth of the samples that is nothing but noise.

import matplotlib.pyplot as plt
import numpy as np

from robustnmf import RobustNMF, select_rank

rng = np.random.default_rng(3)
samples, features, parts = 300, 40, 5
X = rng.gamma(0.5, size=(samples, parts)) @ rng.gamma(0.5, size=(parts, features))
X += 0.1 * X.mean() * rng.random(X.shape)
X[:30] = 4 * X.mean() * rng.random((30, features))

# %%
# All ranks of a fold are one batch that reads X once a pass.

curve = select_rank(X, range(1, 11), random_state=0)
print(f"least error at {curve.best}, recommended {curve.recommended}")

figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
curve.plot(ax=ax)
ax.set_title("error of entries that were hidden")

# %%
# The errors of the fit itself fall with every part, and the bad samples are most of them.

ranks = range(1, 11)
models = [RobustNMF(k, weighting="uniform", init="nndsvda").fit(X) for k in ranks]
figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
ax.plot(ranks, [m.energies_.sum() for m in models], "o-", color="C3", label="all samples")
ax.plot(ranks, [m.energies_[30:].sum() for m in models], "o-", label="good samples")
ax.set(xlabel="number of parts", ylabel="squared error of plain NMF", yscale="log")
ax.set_title("error of entries that were fitted")
ax.legend()
plt.show()
