"""Cost of robustness: seconds per iteration, ours and a literal transcription.

    make bench        (or: python benchmarks/cost.py [--quick])

All in one process on one table (gamma factors plus noise), from one start, float64 unless
said. An iteration is the difference between a long and a short fit over the difference in
iterations, so that validation and start do not count; ours logs its objective, the
transcription does not even do that. Contenders take turns; the best of the repeats is
what the machine can do, and the spread says how noisy it was. Ratios are taken within a
repeat, and their median is shown.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from harness import in_turns, parse, seconds_per_pass, spread, write_result
from peers import low_rank, start
from tests.oracles import paper

from robustnmf import EWRNMF, FWRNMF, NMFL2, EucNMF, HuberRNMF


def contenders(X: np.ndarray, k: int) -> dict[str, Callable[[int], None]]:
    """Return functions that run T iterations from one start, by name."""
    W, H = start(X, k, "float64")
    gamma = float(X.shape[1] * X.var())
    paper_X, paper_W, paper_H = (np.ascontiguousarray(a.T) for a in (X, H, W))
    single, W32, H32 = (a.astype(np.float32) for a in (X, W, H))

    def ours(cls, **parameters):
        def run(T: int, data=X, codes=W, basis=H) -> None:
            cls(k, init="custom", tol=0, max_iter=T, **parameters).fit(data, W=codes, H=basis)

        return run

    def literal(T: int) -> None:
        base, representation = paper_W, paper_H
        for _ in range(T):
            base, representation = paper.ewrnmf_iteration(paper_X, base, representation, gamma)

    return {
        "EucNMF": ours(EucNMF),
        "EWRNMF": ours(EWRNMF, gamma=gamma),
        "FWRNMF": ours(FWRNMF, p=11.0),
        "NMFL2": ours(NMFL2),
        "HuberRNMF": ours(HuberRNMF, cutoff=float(X.std())),
        "EWRNMF float32": lambda T: ours(EWRNMF, gamma=gamma)(T, single, W32, H32),
        "literal algorithm 2": literal,
    }


def main() -> None:
    """Run the benchmark, print its table and write the result file."""
    quick = parse(__doc__, quick="a small table, two repeats").quick
    n, m, k = (2_000, 100, 10) if quick else (20_000, 500, 20)
    repeats, short, long = (2, 2, 12) if quick else (9, 2, 32)
    X = low_rank(n, m, k)
    runs = contenders(X, k)
    for run in runs.values():
        run(1)  # warm-up of memory and threads is not timed
    slow = runs["literal algorithm 2"], runs["HuberRNMF"]
    times = in_turns(
        runs, repeats, lambda run: seconds_per_pass(run, short, short + 6 if run in slow else long)
    )
    plain, robust = np.array(times["EucNMF"]), np.array(times["EWRNMF"])
    figures = {
        "EWRNMF over EucNMF": robust / plain,
        "literal over EWRNMF": np.array(times["literal algorithm 2"]) / robust,
    }
    report(n, m, k, times, figures, write=not quick)


def report(n: int, m: int, k: int, times: dict, figures: dict, *, write: bool) -> None:
    """Print the table; write the result file if ``write``."""
    print(f"X {n} x {m}, k = {k}: milliseconds per iteration")
    for name, values in times.items():
        best, worst = 1e3 * min(values), 1e3 * max(values)
        print(f"  {name:22s} best {best:8.2f}   worst {worst:8.2f}")
    targets = {"EWRNMF over EucNMF": "<= 1.10", "literal over EWRNMF": ">= 4"}
    for name, ratios in figures.items():
        print(f"  {name:22s} {spread(ratios)}, target {targets[name]}")
    if write:
        content = {
            "shape": [n, m],
            "rank": k,
            "seconds_per_iteration": times,
            "ratios": {name: ratios.tolist() for name, ratios in figures.items()},
        }
        write_result("cost.json", content)


if __name__ == "__main__":
    main()
