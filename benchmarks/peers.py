"""Contenders, tables and starts of benchmarks/speed.py.

A contender is a function of a table, a start and a number of iterations that returns codes and
basis. All get the same start and run exactly that many of their own iterations, without a stopping
rule. The whole call is timed, with its validation and set-up.
"""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import NMF, MiniBatchNMF

from robustnmf import RobustNMF

Factors = tuple[np.ndarray, np.ndarray]
Run = Callable[[object, np.ndarray, np.ndarray, int], Factors]


def low_rank(n: int, m: int, k: int, seed: int = 0) -> np.ndarray:
    """Return a table (n, m) of gamma factors of rank k, with gamma noise a tenth of the mean."""
    rng = np.random.default_rng(seed)
    X = rng.gamma(1.0, size=(n, k)) @ rng.gamma(1.0, size=(k, m))
    return X + 0.1 * X.mean() * rng.gamma(1.0, size=(n, m))


def sparse_counts(n: int, m: int, k: int, density: float, seed: int = 0) -> sp.csr_array:
    """Return a sparse table (n, m) of counts at entries drawn from a mixture of k topics."""
    rng = np.random.default_rng(seed)
    topics = np.stack([rng.permutation(m) for _ in range(k)])
    stored = int(n * m * density)
    rows = rng.integers(0, n, size=stored)
    topic = rng.integers(0, k, size=(n, 2))[rows, rng.integers(0, 2, size=stored)]
    columns = topics[topic, (m * rng.random(stored) ** 2).astype(int)]
    data = 1.0 + rng.poisson(1.0, size=stored)
    table = sp.coo_array((data, (rows, columns)), shape=(n, m)).tocsr()
    table.sum_duplicates()
    return table


def start(X: object, k: int, dtype: str, seed: int = 1) -> Factors:
    """Return random codes (n, k) and basis (k, m) whose product has about the mean of X."""
    rng = np.random.default_rng(seed)
    size = 2 * np.sqrt(X.mean() / k)
    shapes = (X.shape[0], k), (k, X.shape[1])
    return tuple((size * (0.01 + rng.random(shape))).astype(dtype) for shape in shapes)


def images(name: str) -> np.ndarray | None:
    """Read a dataset from ``ROBUSTNMF_DATA``, pixels over 255; None where its file is missing."""
    path = Path(os.environ.get("ROBUSTNMF_DATA", "")) / f"{name}.npz"
    if not path.is_file():
        return None
    with np.load(path, allow_pickle=False) as file:
        return file["X"].astype(np.float64) / 255


def sq_error(X: object, codes: np.ndarray, basis: np.ndarray) -> float:
    """Return the squared Frobenius norm of the residual, in float64, block of rows by block."""
    codes, basis = codes.astype(np.float64), basis.astype(np.float64)
    if sp.issparse(X):
        wide = X.astype(np.float64)
        inner = float(np.sum(codes * (wide @ basis.T)))
        return (
            float(wide.multiply(wide).sum())
            - 2 * inner
            + float(np.sum((codes.T @ codes) * (basis @ basis.T)))
        )
    step = max(1, 4_000_000 // X.shape[1])
    blocks = (slice(first, first + step) for first in range(0, X.shape[0], step))
    return sum(float(np.sum((X[rows] - codes[rows] @ basis) ** 2)) for rows in blocks)


def ours(X, W, H, iterations: int) -> Factors:
    """Run RobustNMF."""
    model = RobustNMF(W.shape[1], weighting="uniform", init="custom", tol=0, max_iter=iterations)
    return model.fit_transform(X, W=W, H=H), model.components_


def scikit_learn(solver: str) -> Run:
    """Return a run of scikit-learn's NMF."""

    def run(X, W, H, iterations):
        model = NMF(W.shape[1], init="custom", solver=solver, tol=0, max_iter=iterations)
        return model.fit_transform(X, W=W.copy(), H=H.copy()), model.components_

    return run


def minibatch(X, W, H, iterations: int) -> Factors:
    """Run scikit-learn's MiniBatchNMF; an iteration is a pass over X."""
    model = MiniBatchNMF(
        W.shape[1], init="custom", batch_size=1024, tol=0, max_no_improvement=None,
        max_iter=iterations,
    )  # fmt: skip
    return model.fit_transform(X, W=W.copy(), H=H.copy()), model.components_


def nmf_torch(algorithm: str) -> Run:
    """Return a run of nmf-torch's batch HALS, with inner iterations for "halsvar"."""

    def run(X, W, H, iterations):
        import torch
        from nmf.nmf_models import NMFBatchHALS

        class FromStart(NMFBatchHALS):
            def _initialize_H_W(self, eps=1e-6):
                self.H, self.W = torch.tensor(W), torch.tensor(H)

        inner = {} if algorithm == "halsvar" else {"hals_max_iter": 1}
        model = FromStart(
            n_components=W.shape[1], init="random", beta_loss=2.0, tol=-1.0, random_state=0,
            alpha_W=0.0, l1_ratio_W=0.0, alpha_H=0.0, l1_ratio_H=0.0,
            fp_precision="float" if X.dtype == np.float32 else "double", device_type="cpu",
            max_iter=iterations, **inner,
        )  # fmt: skip
        # It stops where its own loss rises, whatever tol is; that stop is left in.
        with contextlib.redirect_stdout(io.StringIO()):
            model.fit(torch.from_numpy(X))
        return model.H.numpy(), model.W.numpy()

    return run


def torchnmf(X, W, H, iterations: int) -> Factors:
    """Run torchnmf: multiplicative updates by automatic differentiation."""
    import torch
    from torchnmf.nmf import NMF

    model = NMF(W=torch.tensor(H.T.copy()), H=torch.tensor(W.copy()))
    model.fit(torch.from_numpy(X), beta=2, tol=0, max_iter=iterations)
    return model.H.detach().numpy(), model.W.detach().numpy().T


CONTENDERS: dict[str, Run] = {
    "RobustNMF uniform": ours,
    "scikit-learn cd": scikit_learn("cd"),
    "scikit-learn mu": scikit_learn("mu"),
    "MiniBatchNMF": minibatch,
    "nmf-torch hals": nmf_torch("hals"),
    "nmf-torch halsvar": nmf_torch("halsvar"),
    "torchnmf": torchnmf,
}
IN_TORCH = ("nmf-torch hals", "nmf-torch halsvar", "torchnmf")
