"""What missing values cost: seconds per pass with a share of the entries NaN, over none.

    make bench        (or: python benchmarks/missing.py [--quick])

EWRNMF's pass (entropy weights, squared error, multiplicative updates) from one start. A pass is
the difference between a long and a short fit over the difference in iterations. Contenders take
turns; ratios are taken within a repeat, and their median and range are shown.
"""

from __future__ import annotations

import numpy as np
from harness import parse, seconds_per_pass, spread, write_result

from robustnmf import Entropy, RobustNMF

SHAPES = [(1797, 64, 10), (400, 1024, 40), (20_000, 500, 20), (5_000, 2_000, 50)]
SHARES = (0.0, 0.05, 0.3, 0.8)


def pass_seconds(X: np.ndarray, W: np.ndarray, H: np.ndarray, gamma: float, passes: int) -> float:
    """Return the seconds of a pass."""

    def run(iterations: int) -> None:
        RobustNMF(
            W.shape[1], weighting=Entropy(gamma), solver="mu", init="custom", tol=0,
            max_iter=iterations,
        ).fit(X, W=W, H=H)  # fmt: skip

    return seconds_per_pass(run, 2, 2 + passes)


def main() -> None:
    """Print the ratios for each shape, share and dtype, and write them."""
    quick = parse(__doc__, quick="the two small shapes, two repeats").quick
    repeats = 2 if quick else 4
    rows = []
    print("seconds per pass over complete data, median (range); target <= 2.5\n")
    print(
        "| shape | dtype | complete ms | " + " | ".join(f"{s:.0%} NaN" for s in SHARES[1:]) + " |"
    )
    print("|---" * (3 + len(SHARES[1:])) + "|")
    for n, m, k in SHAPES[:2] if quick else SHAPES:
        for dtype in ("float64", "float32"):
            rng = np.random.default_rng(0)
            X = rng.gamma(1.0, size=(n, k)) @ rng.gamma(1.0, size=(k, m)) + rng.random((n, m))
            hidden = rng.random(X.shape)
            W, H = (0.1 + rng.random(shape).astype(dtype) for shape in ((n, k), (k, m)))
            X = X.astype(dtype)
            tables = [np.where(hidden < share, np.nan, X) for share in SHARES]
            passes = max(16, int(1e9 / (n * m * k)))
            times = np.array(
                [[pass_seconds(t, W, H, float(m), passes) for t in tables] for _ in range(repeats)]
            )
            ratios = times[:, 1:] / times[:, :1]
            head = f"{n} x {m}, k={k} | {dtype} | {1e3 * times[:, 0].min():.2f}"
            print(f"| {head} | {' | '.join(map(spread, ratios.T))} |", flush=True)
            row = {"shape": [n, m, k], "dtype": dtype}
            rows.append({**row, "shares": SHARES, "seconds": times.tolist()})
    if not quick:
        write_result("missing.json", {"rows": rows})


if __name__ == "__main__":
    main()
