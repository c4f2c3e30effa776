"""Final objectives of hals and mu from the same start on 200 random problems.

    make bench        (or: python benchmarks/solvers.py [--quick])

Shape, rank, noise, share of outliers, weighting and its hyperparameter are drawn at random. Both
solvers run from one start to ``tol=1e-6`` or 3,000 iterations. They are compared by their shifted
objective: up to the constant that makes it zero for a perfect fit. Reported:
in how many problems hals ends no worse (to one part in a thousand), the distribution of the
ratio, and the iterations. The same for extrapolated multiplicative updates against plain ones
with Kullback-Leibler and beta losses, after equal numbers of iterations.
"""

from __future__ import annotations

import numpy as np
from harness import parse, write_result

from robustnmf import L21, Beta, Cauchy, Entropy, Fuzzy, KullbackLeibler, RobustNMF, Uniform

PERCENTILES = (0, 5, 25, 50, 75, 90, 95, 99, 100)
EQUAL = 1e-3


def problem(seed: int):
    """Draw a random table, weighting and start."""
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


def shifted_objective(model: RobustNMF) -> float:
    """Return the objective up to the constant that makes it zero for a perfect fit."""
    energies = model.energies_[None, :]
    objective_sums = model.weighting_.weigh(energies, np.ones(energies.shape[1])).objective_sums
    return float(model.weighting_.shifted_value_of(objective_sums)[0, 0])


def fit_from(X, W, H, **parameters) -> RobustNMF:
    """Fit a model from a start."""
    return RobustNMF(W.shape[1], init="custom", **parameters).fit(X, W=W, H=H)


def hals_beside_mu(count: int) -> dict:
    """Compare the final objectives of hals and mu; count the steps on which that of hals rose."""
    ratios, rises, names, iterations = [], 0, [], []
    for seed in range(count):
        X, weighting, W, H = problem(seed)
        common = {"weighting": weighting, "tol": 1e-6, "max_iter": 3000}
        mu, hals = (fit_from(X, W, H, solver=solver, **common) for solver in ("mu", "hals"))
        ratios.append(shifted_objective(hals) / shifted_objective(mu))
        names.append(type(weighting).__name__)
        iterations.append((mu.n_iter_, hals.n_iter_))
        history = hals.objective_history_
        sizes = (X**2).sum(axis=1)
        slack = 8 * np.finfo(float).eps * float(weighting.weights(hals.energies_) @ sizes)
        rises += int(np.sum(np.diff(history) > slack))
    ratios_array = np.array(ratios)
    good = float(np.mean(ratios_array <= 1 + EQUAL))
    listing = ", ".join(
        f"{q}%: {v:.4f}"
        for q, v in zip(PERCENTILES, np.percentile(ratios_array, PERCENTILES), strict=True)
    )
    print(f"hals no worse than mu in {100 * good:.1f}% of {count} problems (target >= 95%)")
    print(f"  level of hals over mu, percentiles: {listing}")
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
    """Compare extrapolated multiplicative updates with plain ones after equal iterations."""
    results = []
    for loss in (KullbackLeibler(), Beta(1.5)):
        for passes in (20, 100, 500):
            ratios = []
            for seed in range(0, 5 * count, 5):
                X, weighting, W, H = problem(seed)
                common = {"weighting": weighting, "loss": loss, "tol": 0, "max_iter": passes}
                plain, fast = (
                    fit_from(X, W, H, solver=solver, **common)
                    for solver in ("mu", "mu-extrapolated")
                )
                ratios.append(shifted_objective(fast) / shifted_objective(plain))
            worse = float(np.mean(np.array(ratios) > 1 + EQUAL))
            print(
                f"{loss!r}, {passes} iterations: extrapolated over plain, median "
                f"{np.median(ratios):.4f}, worst {max(ratios):.4f}, worse in {100 * worse:.0f}%"
            )
            results.append({"loss": repr(loss), "iterations": passes, "ratios": ratios})
    return results


def main() -> None:
    """Run the benchmark, print its table and write the result file."""
    quick = parse(__doc__, quick="20 problems").quick
    result = {
        "hals_beside_mu": hals_beside_mu(20 if quick else 200),
        "extrapolated_beside_plain": extrapolated_beside_plain(4 if quick else 20),
    }
    if not quick:
        write_result("solvers.json", result)


if __name__ == "__main__":
    main()
