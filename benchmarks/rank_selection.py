"""How often select_rank returns the true number of components, and the processor time it takes.

    python benchmarks/rank_selection.py [--before FILE]

First 50 tables of 200 x 30 with 2 to 6 parts, noise of 5 or 20 percent of the mean, and a tenth of
the samples replaced by noise five times as large. ``select_rank`` chooses among 1 to 9, by errors.

Then tables of 200 x 40 of six kinds with 2 to 12 parts, and four without a known number of parts,
as ``robustnmf fit -k auto`` chooses: among 1 to 15, by errors and stability of ten runs. Rules that
save time were chosen on seeds 0 and 1; seed 2 was not looked at before. ``--before`` adds the
results of an earlier version: a result file that this script has written with it.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from harness import RESULTS, parse, read_result, write_result
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine

from robustnmf import select_rank
from robustnmf.fitting.rank import largest_rank

RANKS, NOISES, PROBLEMS = (2, 3, 4, 5, 6), (0.05, 0.2), 5
KINDS = ("gamma", "clustered", "counts", "heavy", "sparse", "outliers")
SHAPE, PARTS, SEEDS = (200, 40), (2, 4, 6, 9, 12), {0: "chosen on", 2: "held out"}
LARGEST, RUNS = 15, 10
TABLES = {"iris": load_iris, "wine": load_wine, "wdbc": load_breast_cancer, "digits": load_digits}


def low_rank_table(k: int, noise: float, seed: int) -> np.ndarray:
    """Draw a table (200, 30) of rank k with noise and a tenth of outliers."""
    rng = np.random.default_rng([k, round(100 * noise), seed])
    X = rng.gamma(0.5, size=(200, k)) @ rng.gamma(0.5, size=(k, 30))
    mean = X.mean()
    X += noise * mean * rng.standard_normal(X.shape)
    X[:20] = 5 * mean * rng.random((20, 30))
    return np.maximum(X, 0.0)


def planted_table(kind: str, k: int, seed: int, shape: tuple[int, int] = SHAPE) -> Any:
    """Draw a table of a shape with k parts; sparse for the kind of that name."""
    rng = np.random.default_rng([KINDS.index(kind), k, seed])
    n, m = shape
    codes, basis = rng.gamma(0.5, size=(n, k)), rng.gamma(0.5, size=(k, m))
    if kind == "clustered":  # every sample has most of one part
        codes *= 0.1
        codes[np.arange(n), rng.integers(k, size=n)] += rng.gamma(4.0, 0.25, size=n)
    if kind == "heavy":  # samples and features of very different sizes, noise in proportion
        codes *= rng.lognormal(0.0, 1.0, size=(n, 1))
        basis *= rng.lognormal(0.0, 1.5, size=m)
    if kind == "counts":
        profiles = rng.dirichlet(np.full(m, 0.3), size=k)
        shares = rng.dirichlet(np.full(k, 0.3), size=n)
        return rng.poisson(rng.lognormal(6, 0.5, size=(n, 1)) * (shares @ profiles)).astype(float)
    if kind == "sparse":
        codes *= rng.random(codes.shape) < 0.4
        basis *= rng.random(basis.shape) < 0.3
        mean = codes @ basis
        return scipy.sparse.csr_array(rng.poisson(10 * mean / mean.mean()).astype(float))
    X = codes @ basis
    if kind == "heavy":
        return X * rng.lognormal(0.0, 0.15, size=X.shape)
    mean = X.mean()
    X = np.maximum(X + 0.1 * mean * rng.standard_normal(X.shape), 0.0)
    if kind == "outliers":
        X[: n // 10] = 5 * mean * rng.random((n // 10, m))
    return X


def wide_table() -> np.ndarray:
    """Draw a table (5000, 500) with 12 parts."""
    rng = np.random.default_rng(0)
    X = rng.gamma(0.5, size=(5000, 12)) @ rng.gamma(0.5, size=(12, 500))
    return X + 0.1 * X.mean() * rng.random(X.shape)


def choose(table: Any) -> dict[str, Any]:
    """Choose the rank of a table as ``robustnmf fit -k auto`` does; also note processor seconds."""
    begin = time.process_time()
    selection = select_rank(
        table, range(1, min(LARGEST, largest_rank(table)) + 1), random_state=0, stability=True,
        n_runs=RUNS,
    )  # fmt: skip
    seconds = time.process_time() - begin
    tried = len(selection.ranks)
    return {"found": selection.recommended, "tried": tried, "seconds": round(seconds, 2)}


def compare_by_errors() -> list[dict]:
    """Choose the rank of 50 tables by errors alone."""
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
    return rows


def compare_kinds(wide: bool) -> list[dict]:
    """Choose the rank of all kinds of tables, and of those without a known number of parts."""
    rows = []
    for seed in SEEDS:
        for kind in KINDS:
            for k in PARTS:
                row = {"table": kind, "seed": seed, "parts": k}
                rows.append(row | choose(planted_table(kind, k, seed)))
                print(rows[-1], flush=True)
    for name, load in TABLES.items():
        rows.append({"table": name, "seed": None, "parts": None} | choose(load().data))
        print(rows[-1], flush=True)
    if wide:
        row = {"table": "5000 x 500", "seed": None, "parts": 12}
        rows.append(row | choose(wide_table()))
        print(rows[-1], flush=True)
    return rows


def add_before(rows: list[dict], path: str) -> None:
    """Add what an earlier version has found, from its result file, to the same tables."""
    keys = ("table", "seed", "parts")
    earlier = {
        tuple(row[key] for key in keys): row for row in json.loads(Path(path).read_text())["kinds"]
    }
    for row in rows:
        if before := earlier.get(tuple(row[key] for key in keys)):
            row |= {"found before": before["found"], "seconds before": before["seconds"]}


def lines_of_errors(rows: list[dict], right: int) -> list[str]:
    """Return the lines of the table of ranks by errors."""
    lines = ["| noise | components | correct | chosen |", "|---|---|---|---|"]
    lines += [
        f"| {row['noise']:.0%} | {row['parts']} | {row['right']} of {PROBLEMS} | "
        f"{', '.join(map(str, row['found']))} |"
        for row in rows
    ]
    return [*lines, f"| all | | {right} of {len(rows) * PROBLEMS} | |", ""]


def lines_of_kinds(rows: list[dict]) -> list[str]:
    """Return the lines of the table of kinds: ranks that were right, and mean seconds."""
    has_before = all("found before" in row for row in rows if row["seed"] is not None)
    names = ["tables", "correct", "processor seconds"]
    names += ["correct before", "processor seconds before"] if has_before else []
    lines = [f"| {' | '.join(names)} |", "|" + "---|" * len(names)]
    groups = [
        (f"{kind}, {SEEDS[seed]}", [r for r in rows if (r["table"], r["seed"]) == (kind, seed)])
        for seed in SEEDS
        for kind in KINDS
    ]
    groups += [(row["table"], [row]) for row in rows if row["seed"] is None]
    for name, group in groups:
        cells = [name]
        for suffix in ["", " before"] if has_before else [""]:
            known = [row for row in group if f"found{suffix}" in row]
            found = [row[f"found{suffix}"] for row in known]
            right = sum(row["parts"] == row[f"found{suffix}"] for row in known)
            whole = f"{right} of {len(known)}" if len(group) > 1 else f"chosen: {found[0]}"
            seconds = np.mean([row[f"seconds{suffix}"] for row in known]) if known else np.nan
            cells += [whole, f"{seconds:.1f}"] if known else ["", ""]
        lines.append(f"| {' | '.join(cells)} |")
    return [*lines, ""]


def main() -> None:
    """Run the benchmark, print its rows and write the result files."""
    options = parse(
        __doc__,
        before={"help": "result file of an earlier version"},
        no_wide={"action": "store_true", "help": "leave out the table of 5000 x 500"},
        kinds_only={"action": "store_true", "help": "leave out the 50 tables"},
    )
    begin = time.perf_counter()
    choose(planted_table("gamma", 2, 99)[:, :16])  # compile
    content: dict[str, Any] = {}
    if options.kinds_only:
        earlier = read_result("rank_selection.json")
        content |= {name: earlier[name] for name in ("right", "of", "rows")}
    else:
        rows = compare_by_errors()
        content |= {"right": sum(row["right"] for row in rows), "of": len(rows) * PROBLEMS}
        content["rows"] = rows
    kinds = compare_kinds(not options.no_wide)
    if options.before:
        add_before(kinds, options.before)
    content |= {"kinds": kinds, "seconds": time.perf_counter() - begin}
    write_result("rank_selection.json", content)
    lines = lines_of_errors(content["rows"], content["right"])
    (RESULTS / "rank_selection.md").write_text("\n".join(lines))
    (RESULTS / "rank_kinds.md").write_text("\n".join(lines_of_kinds(kinds)))


if __name__ == "__main__":
    main()
