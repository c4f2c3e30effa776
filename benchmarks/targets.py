"""Table of all figures with targets, from the result files: measured, range, met or not.

make bench        (or, after the others: python benchmarks/targets.py)
"""

from __future__ import annotations

import json

import numpy as np
from machine import RESULTS


def lines() -> list[tuple[str, str, np.ndarray, float]]:
    """Return every figure with its target, the measured values and their median or best."""
    figures = []
    for name in ("speed.json", "batch.json"):
        path = RESULTS / name
        if not path.is_file():
            continue
        for figure in json.loads(path.read_text())["figures"]:
            values = np.array(figure.get("ratios", figure.get("values")))
            measured = figure.get("best", float(np.median(values)))
            figures.append((figure["figure"], figure["target"], values, measured))
    path = RESULTS / "growth.json"
    if path.is_file():
        for name in ("samples", "stored entries"):
            power = json.loads(path.read_text())["growth"][name]["slope"]
            what = f"slope of seconds per pass against {name}"
            figures.append((what, "0.95 to 1.05", np.array([power]), power))
    path = RESULTS / "solvers.json"
    if path.is_file():
        share = json.loads(path.read_text())["hals_beside_mu"]["no_worse"]
        what = "share of problems in which hals ends no worse than mu"
        figures.append((what, ">= 0.95", np.array([share]), share))
    return figures


def met(target: str, value: float) -> bool:
    """Return whether a value meets a target such as ">= 3" or "0.95 to 1.05"."""
    words = target.split()
    if words[0] == ">=":
        return value >= float(words[1])
    if words[0] == "<=":
        return value <= float(words[1])
    return float(words[0]) <= value <= float(words[2])


def table() -> str:
    """Return the table in Markdown."""
    rows = ["| figure | target | measured (median) | range | |", "|---|---|---|---|---|"]
    for what, target, values, measured in lines():
        spread = f"{values.min():.2f} to {values.max():.2f}" if len(values) > 1 else ""
        verdict = "met" if met(target, measured) else "**missed**"
        rows.append(f"| {what} | {target} | {measured:.2f} | {spread} | {verdict} |")
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    print(table())
    (RESULTS / "targets.md").write_text(table())
    print("written: benchmarks/results/targets.md")
