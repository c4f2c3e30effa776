"""Time to a given objective: ours and every peer, on the same data from the same start.

    make bench        (or: python benchmarks/speed.py [--quick] [--only NAME ...])

The objective to reach is the squared error that scikit-learn's coordinate descent (``cd``, its
fastest solver) has after 200 iterations from that start. For every contender the fewest iterations
that reach it are found first; then complete fits with just so many iterations are timed, the
contenders taking turns. A ratio is taken within a turn; its median and range over the turns are
shown. A contender that has not got there in the time of ``cd`` (three times it, for nmf-torch) is
shown as such. Peers in PyTorch run in float32, their default, only.
dtype rule: data, start and arithmetic of a row of the table are all float32 or all float64; only
the figure that says so compares our float32 with the float64 that scikit-learn's users get by
default. Everything runs in one process on all cores that BLAS uses. With ``--only``, rows of other
tables stay in the result file.
"""

from __future__ import annotations

import time
from functools import partial

import numpy as np
from harness import in_turns, parse, read_result, seconds, spread, table, write_plot, write_result
from peers import CONTENDERS, IN_TORCH, images, low_rank, sparse_counts, sq_error, start
from sklearn.datasets import load_digits

from robustnmf import RobustNMF

OURS, REFERENCE, ITERATIONS = "RobustNMF uniform", "scikit-learn cd", 200
PATIENCE = {"nmf-torch hals": 3.0, "nmf-torch halsvar": 3.0}  # times the time of cd, else one
LONG = 3.0
CURVE = (1, 3, 10, 30, 100, 200)
CURVE_SECONDS = 6.0


def tables(quick: bool) -> dict[str, tuple]:
    """Return functions that load tables, with ranks and dtypes, by name."""
    size = 10 if quick else 1
    both = ("float64", "float32")
    return {
        f"{20_000 // size} x 500": (lambda: low_rank(20_000 // size, 500, 20), 20, both),
        f"{100_000 // size} x 100": (lambda: low_rank(100_000 // size, 100, 10), 10, both),
        f"{5_000 // size} x 2000": (lambda: low_rank(5_000 // size, 2_000, 50), 50, both),
        "orl": (lambda: images("orl"), 40, both),
        "gtfd": (lambda: images("gtfd"), 50, both),
        "digits": (lambda: load_digits().data, 10, both),
        f"sparse {50_000 // size} x 20000": (
            lambda: sparse_counts(50_000 // size, 20_000, 20, 1e-3), 20, ("float64",),
        ),
    }  # fmt: skip


def passes_of_ours(X, W, H, target: float) -> int | None:
    """Return the fewest iterations of RobustNMF to the target, from the history of one fit."""
    model = RobustNMF(
        W.shape[1], weighting="uniform", init="custom", tol=0, max_iter=ITERATIONS
    ).fit(X, W=W, H=H)
    at_target = np.flatnonzero(model.objective_history_ <= target)
    return int(at_target[0]) if len(at_target) else None


def fewest(run, X, W, H, target: float, patience: float) -> int | None:
    """Return the fewest iterations to the target, by bisection; None where it takes too long."""
    short, long = (min(seconds(run, X, W, H, n) for _ in range(3)) for n in (2, 12))
    # Where ten iterations are lost in the noise, they count as a tenth of the call.
    high = max(12, int(10 * patience / max(long - short, long / 10)))
    if sq_error(X, *run(X, W, H, high)) > target:
        return None
    low = 0
    while high - low > max(1, high // 10):
        middle = (low + high) // 2
        if sq_error(X, *run(X, W, H, middle)) <= target:
            high = middle
        else:
            low = middle
    return high


def measure(name: str, X, k: int, dtype: str, repeats: int, plot: bool) -> dict:
    """Measure iterations and times of every contender on one table in one dtype."""
    X = X.astype(dtype)
    W, H = start(X, k, dtype)
    sparse = not isinstance(X, np.ndarray)
    left_out = IN_TORCH if sparse or dtype == "float64" else ()
    runs = {n: r for n, r in CONTENDERS.items() if n not in left_out}
    for run in runs.values():
        run(X[:500], W[:500], H, 2)  # imports and compilation are not timed
    begin = time.perf_counter()
    target = sq_error(X, *runs[REFERENCE](X, W, H, ITERATIONS))
    reference = time.perf_counter() - begin
    counts: dict[str, int | None] = {REFERENCE: ITERATIONS}
    for n, run in runs.items():
        if n == OURS:
            counts[n] = passes_of_ours(X, W, H, target)
            assert counts[n] is None or sq_error(X, *run(X, W, H, counts[n])) <= 1.0001 * target
        elif n != REFERENCE:
            counts[n] = fewest(run, X, W, H, target, PATIENCE.get(n, 1.0) * reference)
    reached = {n: partial(r, X, W, H, counts[n]) for n, r in runs.items() if counts[n] is not None}
    times = in_turns(reached, repeats if reference < LONG else max(2, repeats // 2))
    print(f"\n{name}, k = {k}, {dtype}: to the squared error of 200 iterations of cd")
    for n in runs:
        if n not in times:
            print(f"  {n:20s} not reached in {PATIENCE.get(n, 1.0):.0f} times the time of cd")
            continue
        ratios = np.array(times[REFERENCE]) / np.array(times[n])
        print(
            f"  {n:20s} {counts[n]:5d} iterations  {min(times[n]):8.3f} s   "
            f"times as fast as cd: {spread(ratios)}"
        )
    result = {
        "table": name, "rank": k, "dtype": dtype, "iterations": counts, "seconds": times,
        "target": target / sq_error(X, np.zeros_like(W), H),
    }  # fmt: skip
    if plot:
        result["curves"] = curves({n: runs[n] for n in runs if n in times or not sparse}, X, W, H)
    return result


def curves(runs, X, W, H) -> dict[str, list]:
    """Measure the relative squared error against seconds, for fits of growing length."""
    total = sq_error(X, np.zeros_like(W), H)
    points_by_name = {}
    for name, run in runs.items():
        points, spent = [], 0.0
        for iterations in CURVE:
            begin = time.perf_counter()
            factors = run(X, W, H, iterations)
            elapsed = time.perf_counter() - begin
            points.append([elapsed, sq_error(X, *factors) / total])
            spent += elapsed
            if spent + 3 * elapsed > CURVE_SECONDS:  # the next one would take about that
                break
        points_by_name[name] = points
    return points_by_name


def figures(rows: list[dict]) -> list[dict]:
    """Return the figures that have targets, each with its measured ratios."""
    by_key = {(row["table"], row["dtype"]): row for row in rows}
    results = []

    def add(what: str, target: float, upper: list[float], lower: list[float]) -> None:
        ratios = np.array(upper) / np.array(lower)
        results.append({"figure": what, "target": f">= {target:g}", "ratios": ratios.tolist()})

    names = dict.fromkeys(row["table"] for row in rows)
    shapes = [name for name in names if name[0].isdigit() and (name, "float32") in by_key]
    for name in shapes:
        for dtype in ("float64", "float32"):
            row = by_key[name, dtype]["seconds"]
            if OURS in row:
                add(f"{name}, {dtype}: over cd", 3, row[REFERENCE], row[OURS])
        double, single = (by_key[name, dtype]["seconds"] for dtype in ("float64", "float32"))
        if OURS in single:
            add(f"{name}: our float32 over cd float64", 5, double[REFERENCE], single[OURS])
        for peer in ("nmf-torch hals", "nmf-torch halsvar"):
            if peer in single and OURS in single:
                add(f"{name}, float32: over {peer}", 3, single[peer], single[OURS])
    return results


def main() -> None:
    """Run the benchmark, print its figures, write the result file and plot it."""
    arguments = parse(
        __doc__,
        quick="a tenth of the rows, two repeats",
        only={"nargs": "*", "help": "names of tables"},
    )
    loads = tables(arguments.quick)
    keeps_others = arguments.only and not arguments.quick
    rows = read_result("speed.json")["rows"] if keeps_others else []
    for name in arguments.only or loads:
        load, k, dtypes = loads[name]
        X = load()
        if X is None:
            print(f"\n{name}: left out, ROBUSTNMF_DATA names no directory with it")
            continue
        repeats = 2 if arguments.quick else 5
        rows = [row for row in rows if row["table"] != name]
        rows += [measure(name, X, k, dtype, repeats, plot=dtype == "float32") for dtype in dtypes]
        rows.sort(key=lambda row: list(loads).index(row["table"]))
        if not arguments.quick:  # after every table: a run that is cut off keeps what it has
            left_out = sorted(set(loads) - {row["table"] for row in rows})
            content = {"rows": rows, "figures": figures(rows), "left_out": left_out}
            write_result("speed.json", content)
    print(table(figure | {"values": figure["ratios"]} for figure in figures(rows)))
    if not arguments.quick:
        plot_curves(rows)


def plot_curves(rows: list[dict]) -> None:
    """Plot the relative squared error against seconds, one panel a table."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plot_rows = [row for row in rows if "curves" in row]
    columns = 3
    figure, panels = plt.subplots(
        -(-len(plot_rows) // columns), columns, figsize=(13, 3.4 * -(-len(plot_rows) // columns))
    )
    for axis in panels.flat[len(plot_rows) :]:
        axis.set_visible(False)
    for axis, row in zip(panels.flat, plot_rows, strict=False):
        for name, points in row["curves"].items():
            times, errors = np.array(points).T
            is_ours = name == OURS
            axis.loglog(times, errors, lw=2.5 if is_ours else 1.2, color="C3" if is_ours else None,
                        label=name, zorder=3 if is_ours else 2)  # fmt: skip
        axis.axhline(row["target"], color="0.6", lw=0.8, ls=":")
        axis.set_title(f"{row['table']}, k = {row['rank']}, {row['dtype']}", fontsize=10)
        axis.set_xlabel("seconds")
        axis.set_ylabel("squared error / |X|²")
    panels.flat[0].legend(fontsize=7)
    figure.tight_layout()
    write_plot("speed.svg", figure)


if __name__ == "__main__":
    main()
