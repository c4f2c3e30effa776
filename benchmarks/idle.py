"""A machine that is idle most of the time: copies of one sample, 300 working samples, and noise.

    make bench        (or: python benchmarks/idle.py)

The error of good working samples over that of plain NMF of the table without noise, for several
shares of idle samples. An isolation forest before plain NMF is what a user would do.
"""

from __future__ import annotations

import numpy as np
from harness import parse, write_result
from sklearn.decomposition import NMF
from sklearn.ensemble import IsolationForest

from robustnmf import RobustNMF
from robustnmf.metrics import squared_errors

WORKING, FEATURES, RANK = 300, 10, 4
SHARES, NOISE, DRAWS = (0.0, 0.3, 0.55, 0.8, 0.95), (0.0, 0.15), 6


def draw(
    share: float, noise: float, is_clustered: bool, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a table, which of its samples are noise, and new working samples.

    Three components describe the working samples; the idle sample has one of its own or is one of
    the working samples.
    """
    rng = np.random.default_rng(seed)
    parts = rng.gamma(0.6, size=(RANK - 1, FEATURES))
    codes = rng.gamma(0.7, size=(2 * WORKING, RANK - 1))
    if is_clustered:
        codes = 0.05 * rng.random(codes.shape)
        codes[np.arange(len(codes)), rng.integers(0, RANK - 1, len(codes))] += 1.0
    X = codes @ parts
    X += 0.03 * X.mean() * np.abs(rng.standard_normal(X.shape))
    idle = rng.random(FEATURES) * X.mean(axis=0) if seed % 2 else X[WORKING - 1]
    copies = int(share * WORKING / (1 - share))
    table = np.vstack([X[:WORKING], np.tile(idle, (copies, 1))])
    is_noise = np.arange(len(table)) < noise * WORKING
    table[is_noise] = rng.random((is_noise.sum(), FEATURES)) * X.max(axis=0)
    order = rng.permutation(len(table))
    return table[order], is_noise[order], X[WORKING:]


def main() -> None:
    """Print and write the mean errors, and the largest one of RobustNMF."""
    parse(__doc__)
    rows = []
    print("| working samples | idle | noise | RobustNMF (worst) | forest, then NMF | plain NMF |")
    print("|---|---|---|---|---|---|")
    for is_clustered in (False, True):
        for share in SHARES:
            for noise in NOISE:
                logs = []
                for seed in range(DRAWS):
                    table, is_noise, new = draw(share, noise, is_clustered, seed)
                    kept = IsolationForest(random_state=0).fit_predict(table) == 1
                    plain = NMF(RANK, init="nndsvda", max_iter=1000, random_state=0)
                    bases = [
                        RobustNMF(RANK, random_state=0).fit(table).components_,
                        plain.fit(table[kept]).components_,
                        plain.fit(table).components_,
                        plain.fit(table[~is_noise]).components_,
                    ]
                    errors = np.log([squared_errors(new, basis).sum() for basis in bases])
                    logs.append(errors[:3] - errors[3])
                kind = "clusters" if is_clustered else "mixed"
                mean, worst = np.exp(np.mean(logs, axis=0)), np.exp(np.max(logs, axis=0))
                rows.append(
                    {"working": kind, "idle": share, "noise": noise}
                    | {"mean": mean.round(3).tolist(), "worst": worst.round(3).tolist()}
                )
                print(f"| {kind} | {share:.0%} | {noise:.0%} | {mean[0]:.2f} ({worst[0]:.2f}) | "
                      f"{mean[1]:.3g} | {mean[2]:.3g} |", flush=True)  # fmt: skip
    write_result("idle.json", {"methods": ["RobustNMF", "forest", "plain"], "rows": rows})


if __name__ == "__main__":
    main()
