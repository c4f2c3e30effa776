"""Tables of the pages, made from the library and from the committed result files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from robustnmf import combinations

RESULTS = Path(__file__).resolve().parents[1] / "benchmarks" / "results"


def write_tables(folder: Path) -> None:
    """All of them, each in a file of its own that a page includes."""
    folder.mkdir(exist_ok=True)
    for make in (together, solvers, extrapolation, weights_cost, sparse, missing, provenance):
        (folder / f"{make.__name__}.md").write_text(make())


def together() -> str:
    """What goes together, and why the rest does not."""
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
    """Passes of two solvers on the same problems."""
    found = _read("solvers")["hals_beside_mu"]
    slow, fast = np.median(np.array(found["iterations"]), axis=0)
    return (
        f"On {len(found['ratios'])} random problems (`benchmarks/solvers.py`) `hals` stops after "
        f"{fast:.0f} passes (median) where `mu` takes {slow:,.0f}, ends no worse in "
        f"{found['no_worse']:.0%} of them, and the objective rose {found['rises']} times.\n"
    )


def extrapolation() -> str:
    """What extrapolation gains for the other losses."""
    rows = [
        [f"`{row['loss']}`", row["iterations"], _spread(row["ratios"])]
        for row in _read("solvers")["extrapolated_beside_plain"]
    ]
    return _table(["loss", "iterations", "objective over that of plain updates"], rows)


def weights_cost() -> str:
    """An iteration of each method over one of plain NMF."""
    found = _read("cost")
    seconds = found["seconds_per_iteration"]
    plain = np.array(seconds["EucNMF"])
    rows = [[f"`{name}`", _spread(np.array(times) / plain)] for name, times in seconds.items()]
    return _table(["method", "time of an iteration over that of `EucNMF`"], rows)


def sparse() -> str:
    """Sparse X beside scikit-learn."""
    found = _read("sparse")
    shape = found["shape"]
    rows = []
    for row in found["rows"]:
        seconds = [run["seconds_per_pass"] for run in row["runs"]]
        peak = np.median([run["peak_mb"] for run in row["runs"]])
        rows.append([row["contender"], _spread(seconds), f"{peak:.0f}"])
    head = ["contender", "seconds a pass", "MB beyond the program"]
    told = f"{shape['n']:,} x {shape['m']:,}, {shape['stored']:,} entries stored"
    return f"{told} ({shape['stored_mb']:.0f} MB), k = {shape['k']}:\n\n" + _table(head, rows)


def missing() -> str:
    """What holes cost."""
    found, rows = _read("missing")["rows"], []
    for row in found:
        seconds = np.median(np.array(row["seconds"]), axis=0)
        n, m, k = row["shape"]
        shares = [f"{value:.2g}" for value in seconds[1:] / seconds[0]]
        rows.append([f"{n:,} x {m:,}, k = {k}, {row['dtype']}", *shares])
    head = ["table", *(f"{share:.0%} missing" for share in found[0]["shares"][1:])]
    return _table(head, rows)


def provenance() -> str:
    """Which file came from what."""
    rows = []
    for path in sorted(RESULTS.glob("*.json")):
        found = _read(path.stem)
        versions = found.get("versions") or {"torch": found["torch"]}
        machine = found.get("gpu") or found["machine"]["processor"]
        told = ", ".join(f"{name} {version}" for name, version in versions.items())
        rows.append([f"`{path.name}`", f"`{found['command']}`", machine, told])
    return _table(["file", "command", "machine", "versions"], rows)


def _read(name: str) -> dict:
    return json.loads((RESULTS / f"{name}.json").read_text())


def _spread(values: Sequence[float]) -> str:
    values = np.asarray(values)
    return f"{np.median(values):.3g} ({values.min():.3g} to {values.max():.3g})"


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines) + "\n"
