"""Descent of the objective for every supported loss, weighting, structure and kind of data.

    make bench        (or: python benchmarks/product.py)

Each supported cell is fitted from three random starts with its hyperparameter at three values,
60 iterations, float64; every step of every history is checked against what rounding can do.
"""

from __future__ import annotations

import warnings
from collections import Counter

import numpy as np
import scipy.sparse as sp
from machine import write_result
from tests.problems import KINDS, noisy_low_rank, positive_start, run, variants
from tests.test_fit_laws import rounding

from robustnmf import combinations
from robustnmf.losses import LOSSES

N, M, K, ITERATIONS, TYPICAL = 40, 12, 3, 60, 5.0


def count_rises(loss: str, weighting: str, structure: str, table: np.ndarray, X) -> Counter:
    """Fit X (``table``, or its sparse form); count the steps and those on which phi rose."""
    members = [
        (part, *positive_start(N, M, K, seed))
        for part in variants(weighting, TYPICAL, (0.5, 1.0, 3.0))
        for seed in (1, 2, 3)
    ]
    parts, codes, basis = zip(*members, strict=True)
    fits = run(
        X, list(parts), np.stack(codes), np.stack(basis), loss=loss, structure=structure,
        max_iter=ITERATIONS,
    )  # fmt: skip
    counts: Counter = Counter()
    for part, member in zip(parts, fits, strict=True):
        slack = rounding(part, member.energies, "float64", LOSSES[loss]().degree, table)
        steps = np.diff(member.history)
        counts += Counter(steps=len(steps), rises=int(np.sum(steps > slack)))
    return counts


def main() -> None:
    """Print the table by loss and structure, weightings in columns, and write all cells."""
    warnings.simplefilter("ignore")
    complete = noisy_low_rank(N, M, K, outliers=4)
    tables = {kind: make(complete) for kind, make in KINDS.items()}
    cells, reasons, total = [], Counter(), Counter()
    for cell in combinations():
        entry = cell._asdict()
        if cell.supported:
            table = tables[cell.data]
            X = sp.csr_array(table) if cell.data == "sparse" else table
            entry |= count_rises(cell.loss, cell.weighting, cell.structure, table, X)
            total += Counter(cells=1, steps=entry["steps"], rises=entry.get("rises", 0))
        else:
            reasons[cell.reason] += 1
        cells.append(entry)
    weightings = list(dict.fromkeys(c["weighting"] for c in cells))
    print("| loss | structure | data | " + " | ".join(weightings) + " |")
    print("|---" * (3 + len(weightings)) + "|")
    for key in dict.fromkeys((c["loss"], c["structure"], c["data"]) for c in cells):
        row = [c for c in cells if (c["loss"], c["structure"], c["data"]) == key]
        marks = [_mark(c, list(reasons)) for c in row]
        print(f"| {' | '.join(key)} | {' | '.join(marks)} |")
    print()
    for number, (reason, count) in enumerate(reasons.items(), start=1):
        print(f"[{number}] ({count} cells) {reason}")
    print(
        f"\n{len(cells)} cells, {total['cells']} supported; objective checked in "
        f"{total['cells']} cells at {total['steps']} steps, {total['rises']} rose"
    )
    write_result("product.json", {"total": total, "cells": cells})


def _mark(cell: dict, reasons: list[str]) -> str:
    """Return the numbers of steps and rises, or the number of the reason."""
    if cell["reason"] is not None:
        return f"[{reasons.index(cell['reason']) + 1}]"
    return f"{cell['steps']}, {cell.get('rises', 0)} rose"


if __name__ == "__main__":
    main()
