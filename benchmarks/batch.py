"""Weights, restarts and memory: what robustness and batches cost.

    make bench        (or: python benchmarks/batch.py [--quick])

* Seconds per pass with entropy weights over without, solver hals: the difference between a long
  and a short fit over the difference in passes, contenders taking turns; the best of the long ones
  less the best of the short ones, and for the spread each pair apart.
* EWRNMF with hals against the literal transcription of the paper's algorithm 2: time to the
  objective that the latter has after 1,000 iterations on ORL, gamma the median squared norm of
  the residual that plain NMF leaves. The transcription is timed without logging its objective.
* Ten restarts in one batch against ten fits of scikit-learn's ``cd``, from the same ten starts. A
  member must get to the squared error that ``cd`` has after 200 iterations from its start; "all"
  charges the passes until the last member is there (unless it has settled in another minimum,
  which is counted and shown), "best" until one is as good as the best of the ten ``cd`` fits.
* Peak memory of a fit above the table and the result, in a process of its own.
"""

from __future__ import annotations

import json

import numpy as np
from harness import (
    in_own_process,
    memory,
    met,
    parse,
    reset_peak,
    seconds,
    spread,
    table,
    write_result,
)
from peers import images, low_rank, sq_error, start
from sklearn.datasets import load_digits
from sklearn.decomposition import NMF
from tests.oracles import paper

from robustnmf import EWRNMF, Entropy, RobustNMF, fit_path

SHAPES = [(20_000, 500, 20), (100_000, 100, 10), (5_000, 2_000, 50)]
STARTS, ITERATIONS, LITERAL = 10, 200, 1_000


def cost_of_weights(repeats: int, shapes: list) -> list[dict]:
    """Measure the seconds per pass with entropy weights over those without."""
    figures = []
    for n, m, k in shapes:
        for dtype in ("float64", "float32"):
            X = low_rank(n, m, k).astype(dtype)
            W, H = start(X, k, dtype)
            gamma = 0.01 * float(np.median((X.astype(float) ** 2).sum(axis=1)))

            def fit(weighting, passes, X=X, W=W, H=H, k=k):
                RobustNMF(
                    k, weighting=weighting, solver="hals", init="custom", tol=0, max_iter=passes
                ).fit(X, W=W, H=H)

            times = {name: {"short": [], "long": []} for name in ("off", "on")}
            contenders = {"off": "uniform", "on": Entropy(gamma)}
            for weighting in contenders.values():
                fit(weighting, 2)
            for _ in range(repeats):
                for name, weighting in contenders.items():
                    times[name]["short"].append(seconds(fit, weighting, 2))
                    times[name]["long"].append(seconds(fit, weighting, 32))
            off, on = (np.subtract(t["long"], t["short"]) / 30 for t in times.values())
            least_off, least_on = (min(t["long"]) - min(t["short"]) for t in times.values())
            what = f"entropy weights on over off (best times), {n} x {m}, k = {k}, {dtype}"
            figures.append(
                figure(what, "<= 1.05", on / off, best=least_on / least_off, seconds=times)
            )
    return figures


def literal(repeats: int, iterations: int) -> list[dict]:
    """Time EWRNMF with hals against a transcription of algorithm 2."""
    X, k = images("orl"), 40
    if X is None:
        print("EWRNMF against the transcription: left out, ROBUSTNMF_DATA names no directory")
        return []
    W, H = start(X, k, "float64")
    plain = RobustNMF(k, weighting="uniform", init="custom", tol=0, max_iter=50).fit(X, W=W, H=H)
    gamma = float(np.median(plain.energies_))
    across = [np.ascontiguousarray(a.T) for a in (X, H, W)]

    def transcription():
        base, representation = across[1:]
        for _ in range(iterations):
            base, representation = paper.ewrnmf_iteration(across[0], base, representation, gamma)
        return base, representation

    base, representation = transcription()
    energies = ((across[0] - base @ representation) ** 2).sum(axis=0)
    target = float(Entropy(gamma).value(energies))

    def ours(passes):
        return EWRNMF(
            k, gamma=gamma, solver="hals", init="custom", tol=0, max_iter=passes
        ).fit(X, W=W, H=H)  # fmt: skip

    at_target = np.flatnonzero(ours(300).objective_history_ <= target)
    if not len(at_target):
        print("EWRNMF with hals does not reach the objective of the transcription")
        return []
    passes = int(at_target[0])
    ratios = [seconds(transcription) / seconds(ours, passes) for _ in range(repeats)]
    what = f"EWRNMF hals ({passes} passes) over algorithm 2 ({iterations} iterations), ORL"
    return [figure(what, ">= 20", np.array(ratios), passes=passes)]


def restarts(repeats: int) -> list[dict]:
    """Time ten restarts in a batch against ten fits of scikit-learn."""
    figures = []
    for name, X, k in (("digits", load_digits().data, 10), ("ORL", images("orl"), 40)):
        if X is None:
            print(f"restarts on {name}: left out, ROBUSTNMF_DATA names no directory")
            continue

        def batch(passes, X=X, k=k):
            return fit_path(
                X, k, weightings=["uniform"], n_init=STARTS, random_state=0, tol=0,
                max_iter=passes,
            )  # fmt: skip

        starts = [(member.codes, member.components) for member in batch(0)]

        def peers(X=X, k=k, starts=starts):
            ends = []
            for W, H in starts:
                model = NMF(k, init="custom", solver="cd", tol=0, max_iter=ITERATIONS)
                ends.append((model.fit_transform(X, W=W.copy(), H=H.copy()), model.components_))
            return ends

        targets = np.array([sq_error(X, *end) for end in peers()])
        histories = np.array([member.objective_history for member in batch(2 * ITERATIONS)])
        at_targets = histories <= targets[:, None]
        n_above = int((~at_targets.any(axis=1)).sum())
        last = int(at_targets[at_targets.any(axis=1)].argmax(axis=1).max())
        first = int((histories.min(axis=0) <= targets.min()).argmax())
        ours_at_last, ours_best = histories[:, last], float(histories[:, last].min())
        for what, passes in (("all", last), ("best", first)):
            ratios = [seconds(peers) / seconds(batch, passes) for _ in range(repeats)]
            text = f"ten restarts in one batch ({passes} passes, {what}) over ten cd fits, {name}"
            figures.append(
                figure(
                    text, ">= 10", np.array(ratios), passes=passes, members_elsewhere=n_above,
                    mean_objective_over_cd=float(ours_at_last.mean() / targets.mean()),
                    best_objective_over_cd=ours_best / float(targets.min()),
                )
            )  # fmt: skip
            print(f"    members that stay above cd: {n_above} of {STARTS}")
    return figures


def child(n: int, m: int, k: int, weighting: str) -> None:
    """Fit once and print the peak memory above table and result."""
    X = low_rank(n, m, k)
    model = RobustNMF(k, weighting=weighting, init="random", tol=0, max_iter=10, random_state=0)
    model.fit(X[:2000])
    before = memory("VmRSS")
    reset_peak()
    codes = model.fit_transform(X)
    result = codes.nbytes + model.components_.nbytes + 2 * model.energies_.nbytes
    print(json.dumps({"above_mb": memory("VmHWM") - before - result / 2**20,
                      "codes_mb": codes.nbytes / 2**20}))  # fmt: skip


def memories(shapes: list) -> list[dict]:
    """Measure the peak memory above the table and the result."""
    figures = []
    for n, m, k in shapes:
        for weighting in ("uniform", "entropy"):
            result = in_own_process(__file__, n, m, k, weighting)
            allowed = 64 + 3 * result["codes_mb"]
            what = f"MB above X and result, {n} x {m}, k = {k}, {weighting}"
            target = f"<= {allowed:.0f} (64 + 3 copies of codes)"
            figures.append(figure(what, target, np.array([result["above_mb"]]), **result))
    return figures


def figure(what: str, target: str, values: np.ndarray, best: float | None = None, **more) -> dict:
    """Return an entry of the result file, and print what was measured."""
    more = more if best is None else {"best": best, **more}
    good = met(target, float(np.median(values)) if best is None else best)
    print(f"{what}: {spread(values)}", flush=True)
    return {"figure": what, "target": target, "values": values.tolist(), "met": good, **more}


def main() -> None:
    """Run the benchmark, print its table and write the result file."""
    options = parse(__doc__, quick="small tables, two repeats", child={"nargs": 4})
    if options.child:
        *shape, weighting = options.child
        child(*map(int, shape), weighting)
        return
    quick = options.quick
    repeats = 2 if quick else 7
    shapes = [(n // 10, m, k) for n, m, k in SHAPES] if quick else SHAPES
    figures = memories(shapes)
    figures += cost_of_weights(repeats, shapes)
    figures += literal(min(repeats, 3), 100 if quick else LITERAL)
    figures += restarts(min(repeats, 5))
    print(table(figures))
    if not quick:
        write_result("batch.json", {"figures": figures})


if __name__ == "__main__":
    main()
