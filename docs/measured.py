"""Write the tables that pages include, from the library and the committed result files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from robustnmf import combinations

RESULTS = Path(__file__).resolve().parents[1] / "benchmarks" / "results"


def write_tables(folder: Path) -> None:
    """Write every table to a file of its own in a folder."""
    folder.mkdir(exist_ok=True)
    for make in (
        together,
        solvers,
        extrapolation,
        weights_cost,
        sparse,
        missing,
        defaults,
        defaults_gpu,
        provenance,
    ):
        (folder / f"{make.__name__}.md").write_text(make())


def together() -> str:
    """Return the table of supported combinations, with the reasons why others are not."""
    cells = combinations()
    reasons = list(dict.fromkeys(c.reason for c in cells if c.reason))
    weightings = list(dict.fromkeys(c.weighting for c in cells))
    rows = []
    for key in dict.fromkeys((c.loss, c.structure, c.data) for c in cells):
        row = [c for c in cells if (c.loss, c.structure, c.data) == key]
        marks = ["yes" if c.supported else f"no ({reasons.index(c.reason) + 1})" for c in row]
        rows.append([*key, *marks])
    notes = [f"{number}. {reason}" for number, reason in enumerate(reasons, start=1)]
    return _table(["loss", "structure", "data", *weightings], rows) + "\n" + "\n".join(notes) + "\n"


def solvers() -> str:
    """Return a sentence on the passes of two solvers on the same problems."""
    result = _read("solvers")["hals_beside_mu"]
    slow, fast = np.median(np.array(result["iterations"]), axis=0)
    return (
        f"On {len(result['ratios'])} random problems (`benchmarks/solvers.py`), `hals` stops "
        f"after {fast:.0f} iterations and `mu` after {slow:,.0f} (medians). The final objective of "
        f"`hals` is no larger than that of `mu` in {result['no_worse']:.0%} of the problems, and "
        f"it increased {result['rises']} times.\n"
    )


def extrapolation() -> str:
    """Return the table of objectives with extrapolation over those without, by loss."""
    rows = [
        [f"`{row['loss']}`", row["iterations"], _spread(row["ratios"])]
        for row in _read("solvers")["extrapolated_beside_plain"]
    ]
    return _table(["loss", "iterations", "objective relative to plain updates"], rows)


def weights_cost() -> str:
    """Return the table of the time of an iteration over that of plain NMF, by method."""
    seconds = _read("cost")["seconds_per_iteration"]
    plain = np.array(seconds["EucNMF"])
    rows = [[f"`{name}`", _spread(np.array(times) / plain)] for name, times in seconds.items()]
    return _table(["method", "time of an iteration relative to `EucNMF`"], rows)


def sparse() -> str:
    """Return the table of seconds and memory with sparse X, beside scikit-learn's."""
    result = _read("sparse")
    shape = result["shape"]
    rows = []
    for row in result["rows"]:
        seconds = [run["seconds_per_pass"] for run in row["runs"]]
        peak = np.median([run["peak_mb"] for run in row["runs"]])
        rows.append([row["contender"], _spread(seconds), f"{peak:.0f}"])
    head = ["method", "seconds per iteration", "additional memory, MB"]
    size = f"{shape['n']:,} x {shape['m']:,}, {shape['stored']:,} entries stored"
    return f"{size} ({shape['stored_mb']:.0f} MB), k = {shape['k']}:\n\n" + _table(head, rows)


def missing() -> str:
    """Return the table of the time of a pass with missing values over that without."""
    results, rows = _read("missing")["rows"], []
    for row in results:
        seconds = np.median(np.array(row["seconds"]), axis=0)
        n, m, k = row["shape"]
        ratios = [f"{value:.2g}" for value in seconds[1:] / seconds[0]]
        rows.append([f"{n:,} x {m:,}, k = {k}, {row['dtype']}", *ratios])
    head = ["table", *(f"{share:.0%} missing" for share in results[0]["shares"][1:])]
    return _table(head, rows)


def defaults() -> str:
    """Return the table of the default call beside plain NMF and scikit-learn's."""
    result, rows = _read("defaults"), []
    for row in result["rows"]:
        cells = [f"{row['table']}, k = {row['rank']}"]
        for title in (
            "scikit-learn over default", "scikit-learn over plain with the same error",
            "default over plain",
        ):  # fmt: skip
            if title in row:
                low, high = row[f"{title}, range"]
                cells.append(f"{row[title]:.2f} ({low:.2f} to {high:.2f})")
            else:
                cells.append("not reached")
        rows.append([*cells, f"{row['error, plain over scikit-learn']:.3f}"])
    head = [
        "table", "scikit-learn over default", "scikit-learn over plain, same error",
        "default over plain", "error: plain over scikit-learn",
    ]  # fmt: skip
    reads = result["file"]["reads of X"]
    return (
        _table(head, rows) + f"\nFrom a file of 60,000 x 80, the default reads X {reads:g} times.\n"
    )


def defaults_gpu() -> str:
    """Return the table of the default call on a GPU."""
    result, rows = _read("defaults_gpu"), []
    for row in result["rows"]:
        cells = [f"{row['table']}, k = {row['rank']}", f"{row['passes']}"]
        for title in ("fit, s", "transform, s"):
            low, high = row[f"{title}, range"]
            cells.append(f"{row[title]:.3f} ({low:.3f} to {high:.3f})")
        time = f"{row['pass, ms']:g}" if row["pass, ms"] > 0 else "too short to measure"
        rows.append([*cells, time])
    head = [
        "float32 on an " + result["gpu"],
        "iterations",
        "fit, s",
        "`transform`, s",
        "iteration, ms",
    ]
    return _table(head, rows)


def provenance() -> str:
    """Return the table of result files: command, machine and versions of each."""
    rows = []
    for path in sorted(RESULTS.glob("*.json")):
        result = _read(path.stem)
        versions = result.get("versions") or {"torch": result["torch"]}
        machine = result.get("gpu") or result["machine"]["processor"]
        packages = ", ".join(f"{name} {version}" for name, version in versions.items())
        rows.append([f"`{path.name}`", f"`{result['command']}`", machine, packages])
    return _table(["file", "command", "machine", "versions"], rows)


def _read(name: str) -> dict:
    return json.loads((RESULTS / f"{name}.json").read_text())


def _spread(values: Sequence[float]) -> str:
    values = np.asarray(values)
    return f"{np.median(values):.3g} ({values.min():.3g} to {values.max():.3g})"


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines) + "\n"
