"""How well each loss describes the good samples when a fifth of all is junk.

    make bench        (or: python benchmarks/contamination.py)

Data are drawn from the noise model of the loss: Gaussian noise for the squared error, Poisson
counts for Kullback-Leibler (and for alpha, its neighbour), Gamma noise for Itakura-Saito (and,
between the last two, for beta). 20% of the rows are replaced by rows of the same size without
structure: their entries permuted, and twice as large. Each method sees spoiled data only; its
basis then describes the clean rows, and the mean loss of those is divided by that of
plain NMF fitted on the clean rows alone. Ten seeds, median and range. One start for all
methods (random), to `tol=1e-5` or 2,000 iterations.
"""

from __future__ import annotations

import warnings

import numpy as np
from machine import write_result

from robustnmf import RobustNMF

N, M, K, SPOILED, SEEDS = 300, 60, 5, 0.2, 10
WEIGHTINGS = ("uniform", "l21", "entropy")


def clean_table(loss: str, rng: np.random.Generator) -> np.ndarray:
    """Draw a clean table (N, M) of rank K under the noise model of a loss."""
    rate = rng.gamma(0.5, size=(N, K)) @ rng.gamma(0.5, size=(K, M)) + 0.05
    if loss == "frobenius":
        return np.maximum(rate + 0.1 * rate.mean() * rng.standard_normal(rate.shape), 0.0)
    if loss in ("kullback-leibler", "alpha"):
        return rng.poisson(10 * rate).astype(float)
    return np.maximum(rate * rng.gamma(10.0, 0.1, size=rate.shape), 1e-6)


def corrupt(X: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Replace a share of the rows of X; return the new table and the indices of clean rows."""
    bad = rng.choice(len(X), size=int(SPOILED * len(X)), replace=False)
    dirty = X.copy()
    dirty[bad] = 2 * rng.permuted(X[bad], axis=1)
    return dirty, np.delete(np.arange(len(X)), bad)


def errors(loss: str, seed: int) -> dict[str, float]:
    """Return the mean loss of clean rows under each weighting, over that of the clean-only fit."""
    rng = np.random.default_rng(seed)
    X = clean_table(loss, rng)
    dirty, clean = corrupt(X, rng)
    arguments = {
        "loss": loss,
        "init": "random",
        "random_state": seed,
        "max_iter": 2000,
        "tol": 1e-5,
    }
    reference = RobustNMF(K, weighting="uniform", **arguments).fit(X[clean])
    best = -reference.score(X[clean])
    return {
        name: -RobustNMF(K, weighting=name, **arguments).fit(dirty).score(X[clean]) / best
        for name in WEIGHTINGS
    }


def main() -> None:
    """Print one row for each loss, and write all ratios to the result file."""
    warnings.simplefilter("ignore")
    noise = {
        "frobenius": "Gaussian", "kullback-leibler": "Poisson", "alpha": "Poisson",
        "itakura-saito": "Gamma", "beta": "Gamma",
    }  # fmt: skip
    print(f"{N} x {M}, rank {K}, {SPOILED:.0%} of rows replaced; clean rows, over clean-only fit\n")
    print("| loss | noise | " + " | ".join(f"{w} (range)" for w in WEIGHTINGS) + " |")
    print("|---" * (2 + len(WEIGHTINGS)) + "|")
    rows = []
    for loss, kind in noise.items():
        ratios = [errors(loss, seed) for seed in range(SEEDS)]
        columns = [[run[w] for run in ratios] for w in WEIGHTINGS]
        texts = [f"{np.median(c):.2f} ({min(c):.2f} to {max(c):.2f})" for c in columns]
        print(f"| {loss} | {kind} | {' | '.join(texts)} |", flush=True)
        rows.append({"loss": loss, "noise": kind, "ratios": ratios})
    write_result("contamination.json", {"rows": rows})


if __name__ == "__main__":
    main()
