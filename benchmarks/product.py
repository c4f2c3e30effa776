"""Every loss with every weighting, structure and kind of data: what goes, and descends.

    make bench        (or: python benchmarks/product.py)

Each supported cell is fitted from three random starts with its hyperparameter at three values,
60 iterations, float64; every step of every history is checked against what rounding can do.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from machine import described, written
from tests.problems import KINDS, noisy_low_rank, positive_start, run, variants
from tests.test_fit_laws import rounding

from robustnmf import combinations
from robustnmf.losses import LOSSES

N, M, K, ITERATIONS, TYPICAL = 40, 12, 3, 60, 5.0


def checked(loss: str, weighting: str, structure: str, table: np.ndarray, given) -> Counter:
    """How many steps were checked, and how many went up."""
    members = [
        (part, *positive_start(N, M, K, seed))
        for part in variants(weighting, TYPICAL, (0.5, 1.0, 3.0))
        for seed in (1, 2, 3)
    ]
    parts, codes, basis = zip(*members, strict=True)
    fitted = run(
        given, list(parts), np.stack(codes), np.stack(basis), loss=loss, structure=structure,
        max_iter=ITERATIONS,
    )  # fmt: skip
    found: Counter = Counter()
    for part, member in zip(parts, fitted, strict=True):
        slack = rounding(part, member.energies, "float64", LOSSES[loss]().degree, table)
        steps = np.diff(member.history)
        found += Counter(steps=len(steps), rises=int(np.sum(steps > slack)))
    return found


def main() -> None:
    """Print the table by loss and structure, weightings in columns, and write all cells."""
    warnings.simplefilter("ignore")
    X = noisy_low_rank(N, M, K, outliers=4)
    tables = {kind: make(X) for kind, make in KINDS.items()}
    cells, reasons, total = [], Counter(), Counter()
    for cell in combinations():
        entry = cell._asdict()
        if cell.supported:
            given = sp.csr_array(tables["sparse"]) if cell.data == "sparse" else tables[cell.data]
            entry |= checked(cell.loss, cell.weighting, cell.structure, tables[cell.data], given)
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
    written("product.json", {**described(__file__), "total": total, "cells": cells})


def _mark(cell: dict, reasons: list[str]) -> str:
    """Steps checked and rises, or the number of the reason."""
    if cell["reason"] is not None:
        return f"[{reasons.index(cell['reason']) + 1}]"
    return f"{cell['steps']}, {cell.get('rises', 0)} rose"


if __name__ == "__main__":
    main()
