"""How often select_rank returns the true number of components despite noise and outliers.

    python benchmarks/rank_selection.py

50 tables of 200 x 30 with 2 to 6 parts, noise of 5 or 20 percent of the mean, and a tenth of the
samples replaced by noise five times as large. ``select_rank`` chooses among 1 to 9.
"""

from __future__ import annotations

import sys
import time
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

from machine import RESULTS, describe_run, write_result

from robustnmf import select_rank

RANKS, NOISES, PROBLEMS = (2, 3, 4, 5, 6), (0.05, 0.2), 5


def low_rank_table(k: int, noise: float, seed: int) -> np.ndarray:
    """Draw a table (200, 30) of rank k with noise and a tenth of outliers."""
    rng = np.random.default_rng([k, round(100 * noise), seed])
    X = rng.gamma(0.5, size=(200, k)) @ rng.gamma(0.5, size=(k, 30))
    mean = X.mean()
    X += noise * mean * rng.standard_normal(X.shape)
    X[:20] = 5 * mean * rng.random((20, 30))
    return np.maximum(X, 0.0)


def main() -> None:
    """Run the benchmark, print its rows and write the result files."""
    warnings.simplefilter("ignore")
    begin = time.perf_counter()
    rows = []
    for noise in NOISES:
        for k in RANKS:
            ranks = [
                select_rank(
                    low_rank_table(k, noise, seed), range(1, 10), random_state=0
                ).recommended
                for seed in range(PROBLEMS)
            ]
            rows.append({"noise": noise, "parts": k, "found": ranks,
                         "right": sum(r == k for r in ranks)})  # fmt: skip
            print(rows[-1], flush=True)
    right = sum(row["right"] for row in rows)
    content = {**describe_run(__file__), "right": right, "of": len(rows) * PROBLEMS, "rows": rows}
    content["seconds"] = time.perf_counter() - begin
    write_result("rank_selection.json", content)
    lines = ["| noise | parts | right | found |", "|---|---|---|---|"]
    lines += [
        f"| {row['noise']:.0%} | {row['parts']} | {row['right']} of {PROBLEMS} | "
        f"{', '.join(map(str, row['found']))} |"
        for row in rows
    ]
    lines += [f"| all | | {right} of {len(rows) * PROBLEMS} | |", ""]
    (RESULTS / "rank_selection.md").write_text("\n".join(lines))


if __name__ == "__main__":
    main()
