"""Published robust NMF methods for bad entries, implemented from the papers in NumPy.

Starts are random unless one is given. Missing values (NaN) have no weight.
"""

from __future__ import annotations

import numpy as np

from robustnmf.metrics import best_codes

LARGE = 100_000
"""Tables with more entries get the smaller of two numbers of iterations."""

ITERATIONS, TOLERANCE = (1000, 200), 1e-5
"""Maximum numbers of iterations, and the relative decrease of the objective to stop at."""

UPDATES = (200, 40)
"""Numbers of updates of the weights of entries; entries are truncated in the second half."""

TINY = 1e-12
"""Smallest value of factors and denominators, relative to the data."""

NAGY_STEPS, NAGY_TOLERANCE = 20, 1e-3
"""Maximum number of steps of Nagy's algorithm, and the relative change to stop at."""

SIGMAS = 3.0
"""Standard deviations between the mean of small residuals and the truncation."""

TO_SIGMA = 1.4826
"""Ratio of the standard deviation and the median absolute value of Gaussian noise."""


def sparse_outlier_nmf(X: np.ndarray, rank: int, penalty: float) -> tuple[np.ndarray, list[float]]:
    """Fit ``X ~ codes basis + R`` with nonnegative outliers R and a penalty on their row norms.

    Minimises half the squared error plus ``penalty`` times the sum of the norms of the rows of R.
    Févotte and Dobigeon, *Nonlinear hyperspectral unmixing with robust nonnegative matrix
    factorization*, IEEE Trans. Image Process. 24(12), 2015, with beta = 2 and without their
    sum-to-one constraint, which belongs to abundances. Returns the basis (rank, n_features) and the
    objective after each iteration.
    """
    V, known = _known_values(X)
    codes, basis, rng = _random_start(V, known, rank)
    tiny = TINY * V.max()
    outliers = rng.random(V.shape) * V.mean() * known
    objectives = []
    fitted = codes @ basis
    for _ in range(ITERATIONS[X.size > LARGE]):
        norms = np.sqrt((outliers**2).sum(axis=1, keepdims=True)) + tiny
        outliers *= V / (known * (fitted + outliers) + penalty * (outliers / norms) + tiny)
        total = known * (fitted + outliers)
        codes *= (V @ basis.T) / (total @ basis.T + tiny)
        total = known * (codes @ basis + outliers)
        basis *= (codes.T @ V) / (codes.T @ total + tiny)
        fitted = codes @ basis
        error = ((V - known * (fitted + outliers)) ** 2).sum()
        norm = np.sqrt((outliers**2).sum(axis=1)).sum()
        objectives.append(float(0.5 * error + penalty * norm))
        if len(objectives) > 1 and objectives[-2] - objectives[-1] <= TOLERANCE * objectives[-1]:
            break
    return basis, objectives


def penalty_of_noise(differences: np.ndarray) -> float:
    """Return the norm of a sample of pure noise, from residuals (n_samples, n_features).

    A row of outliers is zero if the positive residuals of its sample have a norm below the penalty.
    The paper gives no rule; this is the usual rule for group penalties.
    """
    sigma = TO_SIGMA * np.nanmedian(np.abs(differences))
    return float(sigma * np.sqrt(differences.shape[1]))


def truncated_cauchy_nmf(X: np.ndarray, rank: int, start: np.ndarray | None = None) -> np.ndarray:
    """Return the basis of NMF with the truncated Cauchy loss ``log(1 + (r / scale)**2)``.

    Guan, Liu, Zhang, Tao and Davis, *Truncated Cauchy non-negative matrix factorization*, IEEE
    Trans. Pattern Anal. Mach. Intell. 41(1), 2019: half-quadratic weights, the scale by Nagy's
    algorithm, truncation by the three-sigma rule feature by feature, all of them before every sweep
    of weighted HALS. The loss is not truncated in the first half of the sweeps, because a random
    start would otherwise decide which entries are good; this was better on all tables we tried.
    ``start`` is the first basis (rank, n_features); by default it is random, as published.
    """
    V, known = _known_values(X)
    codes, basis, _ = _random_start(V, known, rank)
    tiny = TINY * V.max()
    if start is not None:
        basis = start.copy()
        codes = best_codes(V, basis)
    sizes = np.where(known, np.abs(V - codes @ basis), np.nan)
    scale = max(float(np.nanmedian(sizes)), tiny)
    updates = UPDATES[X.size > LARGE]
    for update in range(updates):
        scale = max(cauchy_scale(sizes[known], scale), tiny)
        cutoffs = truncation(sizes) if 2 * update >= updates else np.full(V.shape[1], np.inf)
        weights = 1.0 / (1.0 + (sizes / scale) ** 2)
        weights[~(sizes < cutoffs)] = 0.0
        differences = weighted_sweep(V, weights, codes, basis)
        sizes = np.where(known, np.abs(differences), np.nan)
    return basis


def weighted_sweep(
    V: np.ndarray, weights: np.ndarray, codes: np.ndarray, basis: np.ndarray
) -> np.ndarray:
    """Update codes and basis in place by one sweep of HALS with weights (n_samples, n_features).

    Every component gets its best codes and then its best profile while the others are fixed.
    Returns the residuals (n_samples, n_features).
    """
    differences = V - codes @ basis
    for code, profile in zip(codes.T, basis, strict=True):
        for factor, other, axes in ((code, profile, (0, 1)), (profile, code, (1, 0))):
            by_factor, weight = differences.transpose(axes), weights.transpose(axes)
            curvature = weight @ other**2
            step = ((weight * by_factor) @ other) / np.where(curvature > 0, curvature, 1.0)
            new = np.maximum(factor + step, 0.0)
            by_factor -= np.outer(new - factor, other)
            factor[:] = new
    return differences


def cauchy_scale(sizes: np.ndarray, scale: float) -> float:
    """Return the scale of a Cauchy distribution around zero by Nagy's algorithm.

    ``sizes`` (n,) are absolute values, ``scale`` is the first guess.
    """
    for _ in range(NAGY_STEPS):
        mean_weight = float(np.mean(1.0 / (1.0 + (sizes / scale) ** 2)))
        previous, scale = scale, scale * float(np.sqrt(max(1.0 / mean_weight - 1.0, 0.0)))
        if scale <= 0.0 or abs(scale - previous) <= NAGY_TOLERANCE * previous:
            break
    return scale


def truncation(sizes: np.ndarray) -> np.ndarray:
    """Return the absolute residual of each feature above which entries are outliers.

    This is the three-sigma rule, with mean and standard deviation of the smaller half of the
    residuals ``sizes`` (n_samples, n_features) of a feature.
    """
    small = np.where(sizes <= np.nanmedian(sizes, axis=0), sizes, np.nan)
    return np.nanmean(small, axis=0) + SIGMAS * np.nanstd(small, axis=0)


def _known_values(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return X with zeros for missing values, and the mask of the others."""
    known = ~np.isnan(X)
    return np.where(known, X, 0.0), known


def _random_start(
    V: np.ndarray, known: np.ndarray, rank: int
) -> tuple[np.ndarray, np.ndarray, np.random.Generator]:
    """Return uniform codes and basis whose product has the size of a typical entry."""
    rng = np.random.default_rng(0)
    size = np.sqrt(max(float(np.median(V[known])), TINY * V.max(), 0.1 * V.mean()) / rank)
    codes = size * (0.5 + rng.random((len(V), rank)))
    basis = size * (0.5 + rng.random((rank, V.shape[1])))
    return codes, basis, rng
