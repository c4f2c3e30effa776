"""How the time of a pass grows, and where it goes.

    make bench        (or: python benchmarks/growth.py [--quick])

Entropy weights, solver hals, float64. One size is varied at a time; the slope of log seconds
against log size says with which power a pass grows. A pass is the difference between a long
and a short fit over the difference in passes, the best of several, sizes taking turns.

The profile times the parts of a pass on one thread by calling them alone on the same blocks: the
two products with X, the sweeps over coordinates, the energies; the rest is what is left of the
time of a pass. Beside it, what share of the machine's rate for square products the products reach.
"""

from __future__ import annotations

import numpy as np
from harness import parse, seconds, write_plot, write_result
from peers import low_rank, sparse_counts, start
from threadpoolctl import threadpool_limits

from robustnmf import Entropy, RobustNMF, fit_path
from robustnmf.engine import InMemory
from robustnmf.solvers.updates import SWEEPS

BASE = (16_000, 400, 16)


def best(function, repeats: int) -> float:
    """Return the least wall time of several calls."""
    return min(seconds(function) for _ in range(repeats))


def make_run(X, k: int, members: int = 1):
    """Return a function that fits X for a given number of passes."""
    squares = X.multiply(X).sum(axis=1) if not isinstance(X, np.ndarray) else (X**2).sum(axis=1)
    weighting = Entropy(0.01 * float(np.median(squares)))
    W, H = start(X, k, "float64")

    def run(passes: int) -> None:
        if members == 1:
            RobustNMF(
                k, weighting=weighting, solver="hals", init="custom", tol=0, max_iter=passes
            ).fit(X, W=W, H=H)
        else:
            fit_path(
                X, k, weightings=[weighting], n_init=members, solver="hals", random_state=0, tol=0,
                max_iter=passes,
            )  # fmt: skip

    run(1)
    return run


def per_pass(runs: dict, repeats: int, passes: int = 12) -> dict:
    """Return the best seconds per pass of every run; runs take turns."""
    times: dict = {size: ([], []) for size in runs}
    for _ in range(repeats):
        for size, run in runs.items():
            for measured, count in zip(times[size], (2, 2 + passes), strict=True):
                measured.append(seconds(run, count))
    # The best of each: a disturbed short fit would make a pass look shorter than it is.
    return {size: (min(long) - min(short)) / passes for size, (short, long) in times.items()}


def slope(times: dict) -> float:
    """Return the slope of log times against log sizes."""
    return float(np.polyfit(np.log(list(times)), np.log(list(times.values())), 1)[0])


def growth(repeats: int, size: int) -> dict[str, dict]:
    """Measure the seconds per pass against every size, and against the threads."""
    n, m, k = BASE[0] // size, *BASE[1:]
    steps = (1, 2, 4, 8)
    results = {}
    cases = {
        "samples": lambda s: (n * s, make_run(low_rank(n * s, m, k), k)),
        "features": lambda s: (m * s, make_run(low_rank(n // 2, m * s, k), k)),
        "rank": lambda s: (k * s // 2, make_run(low_rank(n, m, k), k * s // 2)),
        "members": lambda s: (s, make_run(low_rank(n // 4, m, k), k, s)),
        "stored entries": lambda s: (
            s, make_run(sparse_counts(20_000 // size * s, 5_000, 20, 2e-3), 20)),
    }  # fmt: skip
    for name, case in cases.items():
        runs = dict(case(step) for step in steps)
        times = per_pass(runs, repeats)
        results[name] = {"seconds_per_pass": times, "slope": slope(times)}
        listing = ", ".join(f"{size}: {1e3 * t:.2f}" for size, t in times.items())
        print(f"{name:15s} slope {results[name]['slope']:.3f}   ms per pass by size {listing}")
    run = make_run(low_rank(n * 4, m, k), k)
    times = {}
    for threads in (1, 2):
        with threadpool_limits(threads):
            times[threads] = per_pass({threads: run}, repeats)[threads]
    results["threads"] = {"seconds_per_pass": times, "slope": slope(times)}
    print(f"threads         two over one: {times[1] / times[2]:.2f} times as fast")
    return results


def profile(n: int, m: int, k: int, dtype: str, repeats: int) -> dict:
    """Measure the parts of a pass on one thread, as shares of its time."""
    X = low_rank(n, m, k).astype(dtype)
    W, H = start(X, k, dtype)
    engine = InMemory(X, columns=k)
    gram = (H @ H.T)[None]
    ends = np.cumsum([len(block) for block in engine.blocks]).tolist()
    rows = [
        (block, W[end - len(block) : end][None])
        for block, end in zip(engine.blocks, ends, strict=True)
    ]
    projections, kernels = [block.project(H[None]) for block, _ in rows], rows[0][0].kernels
    square = np.random.default_rng(0).random((1500, 1500)).astype(dtype)

    def fit(passes):
        RobustNMF(
            k, weighting="uniform", solver="hals", init="custom", tol=0, max_iter=passes
        ).fit(X, W=W, H=H)  # fmt: skip

    with threadpool_limits(1):
        fit(2)
        whole = (best(lambda: fit(12), repeats) - best(lambda: fit(2), repeats)) / 10
        rate = 2 * 1500**3 / best(lambda: square @ square, repeats)
        parts = {
            "products": best(
                lambda: [(b.project(H[None]), b.cross(c)) for b, c in rows], repeats
            ),
            "sweeps": best(
                lambda: [
                    kernels.sweep_coordinates(c, p, gram, SWEEPS)
                    for (_, c), p in zip(rows, projections, strict=True)
                ],
                repeats,
            ),
            "energies": best(
                lambda: [
                    kernels.quadratic_part(c, p, gram)
                    for (_, c), p in zip(rows, projections, strict=True)
                ],
                repeats,
            ),
        }  # fmt: skip
    parts["rest"] = max(0.0, whole - sum(parts.values()))
    flops = 4.0 * n * m * k
    result = {
        "shape": [n, m, k], "dtype": dtype, "ms_per_pass": 1e3 * whole,
        "shares": {name: part / whole for name, part in parts.items()},
        "product_rate_over_square": flops / parts["products"] / rate,
    }  # fmt: skip
    shares = ", ".join(f"{name} {100 * share:.0f}%" for name, share in result["shares"].items())
    print(
        f"{n} x {m}, k = {k}, {dtype}: {1e3 * whole:.1f} ms per pass on one thread; {shares}; "
        f"products at {100 * result['product_rate_over_square']:.0f}% of the rate of square ones"
    )
    return result


def main() -> None:
    """Run the benchmark, print its tables, write the result file and plot it."""
    quick = parse(__doc__, quick="small tables, two repeats").quick
    repeats, size = (2, 8) if quick else (5, 1)
    profiles = [
        profile(n // size, m, k, dtype, repeats)
        for n, m, k in ((20_000, 500, 20), (100_000, 100, 10), (5_000, 2_000, 50))
        for dtype in ("float64", "float32")
    ]
    results = growth(repeats, size)
    if not quick:
        write_result("growth.json", {"profiles": profiles, "growth": results})
        plot(results)


def plot(results: dict[str, dict]) -> None:
    """Plot the seconds per pass against every size."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, len(results), figsize=(3 * len(results), 3), sharey=True)
    for axis, (name, case) in zip(panels, results.items(), strict=True):
        times = case["seconds_per_pass"]
        axis.loglog(list(times), [1e3 * t for t in times.values()], "o-", color="C3")
        axis.set_title(f"{name}: slope {case['slope']:.2f}", fontsize=10)
        axis.set_xlabel(name)
    panels[0].set_ylabel("ms per pass")
    figure.tight_layout()
    write_plot("growth.svg", figure)


if __name__ == "__main__":
    main()
