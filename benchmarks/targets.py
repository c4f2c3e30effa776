"""Table of all figures with targets, from the result files: measured, range, met or not.

make bench        (or, after the others: python benchmarks/targets.py)
"""

from __future__ import annotations

from typing import Any

from harness import RESULTS, read_result, table


def figures() -> list[dict[str, Any]]:
    """Return every figure of the result files that are there, with its target and values."""
    found = [
        figure | {"values": figure.get("ratios", figure.get("values"))}
        for name in ("speed.json", "batch.json")
        for figure in read_result(name).get("figures", [])
    ]
    growth = read_result("growth.json").get("growth", {})
    for name in ("samples", "stored entries"):
        if name in growth:
            what = f"slope of seconds per pass against {name}"
            values = [growth[name]["slope"]]
            found.append({"figure": what, "target": "0.95 to 1.05", "values": values})
    solvers = read_result("solvers.json").get("hals_beside_mu")
    if solvers:
        what = "share of problems in which hals ends no worse than mu"
        found.append({"figure": what, "target": ">= 0.95", "values": [solvers["no_worse"]]})
    return found


if __name__ == "__main__":
    text = table(figures())
    print(text)
    (RESULTS / "targets.md").write_text(text)
    print("written: benchmarks/results/targets.md")
