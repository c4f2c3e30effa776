"""Where hals ends beside mu, from the same start: 200 random problems.

    make bench        (or: python benchmarks/solvers.py [--quick])

Shape, rank, noise, share of outliers, weighting and its hyperparameter are drawn at random. Both
solvers run from one start to ``tol=1e-6`` or 3,000 iterations. Members are compared by
their level: the objective up to the constant that makes it zero for a perfect fit. Reported:
in how many problems hals ends no worse (to one part in a thousand), the distribution of the
ratio, and the iterations. The same for extrapolated multiplicative updates against plain ones
with Kullback-Leibler and beta losses, after equal numbers of iterations.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

from machine import described, written

from robustnmf import L21, Beta, Cauchy, Entropy, Fuzzy, KullbackLeibler, RobustNMF, Uniform

PERCENTILES = (0, 5, 25, 50, 75, 90, 95, 99, 100)
EQUAL = 1e-3


def problem(seed: int):
    """A random table, rank, weighting and start."""
    rng = np.random.default_rng(seed)
    n, m, k = int(rng.integers(30, 400)), int(rng.integers(10, 120)), int(rng.integers(2, 9))
    X = rng.gamma(1.0, size=(n, k)) @ rng.gamma(1.0, size=(k, m))
    X += 10 ** rng.uniform(-2, -0.3) * X.mean() * rng.gamma(1.0, size=(n, m))
    bad = rng.random(n) < rng.choice([0.0, 0.1, 0.2])
    X[bad] = rng.permuted(X[bad], axis=1) * rng.choice([1.0, 3.0])
    typical = float(np.median(((X - X.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)))
    weighting = [
        Uniform(), L21(), Fuzzy(rng.uniform(6, 20)), Entropy(typical * 10 ** rng.uniform(-0.5, 1)),
        Cauchy(typical * 10 ** rng.uniform(-1, 1)),
    ][seed % 5]  # fmt: skip
    rank = max(2, k + int(rng.integers(-1, 2)))
    size = 2 * np.sqrt(X.mean() / rank)
    W, H = (size * (0.01 + rng.random(s)) for s in ((n, rank), (rank, m)))
    return X, weighting, W, H


def level(model: RobustNMF) -> float:
    """Objective up to the constant that makes it zero for a perfect fit."""
    energies = model.energies_[None, :]
    objective_sums = model.weighting_.weigh(energies, np.ones(energies.shape[1])).objective_sums
    return float(model.weighting_.shifted_value_of(objective_sums)[0, 0])


def fitted(X, W, H, **parameters) -> RobustNMF:
    """A model fitted from a start."""
    return RobustNMF(W.shape[1], init="custom", **parameters).fit(X, W=W, H=H)


def hals_beside_mu(count: int) -> dict:
    """Level of hals over that of mu, and how often it rose on the way."""
    ratios, rises, names, iterations = [], 0, [], []
    for seed in range(count):
        X, weighting, W, H = problem(seed)
        common = {"weighting": weighting, "tol": 1e-6, "max_iter": 3000}
        mu, hals = (fitted(X, W, H, solver=solver, **common) for solver in ("mu", "hals"))
        ratios.append(level(hals) / level(mu))
        names.append(type(weighting).__name__)
        iterations.append((mu.n_iter_, hals.n_iter_))
        history = hals.objective_history_
        sizes = (X**2).sum(axis=1)
        slack = 8 * np.finfo(float).eps * float(weighting.weights(hals.energies_) @ sizes)
        rises += int(np.sum(np.diff(history) > slack))
    ratios_array = np.array(ratios)
    good = float(np.mean(ratios_array <= 1 + EQUAL))
    shown = ", ".join(
        f"{q}%: {v:.4f}"
        for q, v in zip(PERCENTILES, np.percentile(ratios_array, PERCENTILES), strict=True)
    )
    print(f"hals no worse than mu in {100 * good:.1f}% of {count} problems (target >= 95%)")
    print(f"  level of hals over mu, percentiles: {shown}")
    print(f"  steps of hals on which the objective rose: {rises}")
    middle = np.median(np.array(iterations), axis=0)
    print(f"  median iterations: mu {middle[0]:.0f}, hals {middle[1]:.0f}")
    for name in dict.fromkeys(names):
        own = ratios_array[[n == name for n in names]]
        print(f"  {name:8s} no worse {100 * np.mean(own <= 1 + EQUAL):.1f}%, worst {own.max():.4f}")
    return {
        "no_worse": good, "ratios": ratios, "weightings": names, "iterations": iterations,
        "rises": rises,
    }  # fmt: skip


def extrapolated_beside_plain(count: int) -> list[dict]:
    """Level of extrapolated multiplicative updates over plain ones, after equal iterations."""
    found = []
    for loss in (KullbackLeibler(), Beta(1.5)):
        for passes in (20, 100, 500):
            ratios = []
            for seed in range(0, 5 * count, 5):
                X, weighting, W, H = problem(seed)
                common = {"weighting": weighting, "loss": loss, "tol": 0, "max_iter": passes}
                plain, fast = (
                    fitted(X, W, H, solver=solver, **common) for solver in ("mu", "mu-extrapolated")
                )
                ratios.append(level(fast) / level(plain))
            worse = float(np.mean(np.array(ratios) > 1 + EQUAL))
            print(
                f"{loss!r}, {passes} iterations: extrapolated over plain, median "
                f"{np.median(ratios):.4f}, worst {max(ratios):.4f}, worse in {100 * worse:.0f}%"
            )
            found.append({"loss": repr(loss), "iterations": passes, "ratios": ratios})
    return found


def main() -> None:
    """Run, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="20 problems")
    quick = parser.parse_args().quick
    warnings.simplefilter("ignore")
    result = {
        "hals_beside_mu": hals_beside_mu(20 if quick else 200),
        "extrapolated_beside_plain": extrapolated_beside_plain(4 if quick else 20),
    }
    if not quick:
        written("solvers.json", {**described(__file__), **result})


if __name__ == "__main__":
    main()
