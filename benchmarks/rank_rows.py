"""How many samples ``n_components="auto"`` needs: chosen ranks and times by the number of rows.

    python benchmarks/rank_rows.py [--jobs N]

Tables of 5,000 x 200 of the kinds in ``rank_selection.py``, and one in which the last of the parts
is in 2% of the samples only, with 3, 6 and 10 parts. The rank is chosen as ``RobustNMF("auto")``
does, on 1,000, 2,000 and all rows.
"""

from __future__ import annotations

import argparse
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from typing import Any

import numpy as np
from machine import write_result
from rank_selection import KINDS, planted_table

from robustnmf import RobustNMF
from robustnmf.fitting.rank import choose_rank

SHAPE, PARTS, ROWS = (5000, 200), (3, 6, 10), (1000, 2000, 5000)
SEEDS = {5: "chosen on", 6: "held out"}
"""2,000 rows were chosen by tables of the first seed; those of the second were drawn later."""

RARE, SHARE = "rare", 0.02


def table_of(kind: str, k: int, seed: int) -> Any:
    """Draw a table (5000, 200) with k parts."""
    if kind != RARE:
        return planted_table(kind, k, seed, SHAPE)
    rng = np.random.default_rng([k, seed])
    n, m = SHAPE
    part = rng.integers(k - 1, size=n)
    part[rng.random(n) < SHARE] = k - 1
    codes = 0.05 * rng.gamma(0.5, size=(n, k)) * (np.arange(k) < k - 1)
    codes[np.arange(n), part] += rng.gamma(4.0, 0.25, size=n)
    X = codes @ rng.gamma(0.5, size=(k, m))
    return np.maximum(X + 0.1 * X.mean() * rng.standard_normal(X.shape), 0.0)


def choose(case: tuple[int, str, int, int]) -> dict[str, Any]:
    """Choose the rank of a table on some of its rows."""
    warnings.simplefilter("ignore")
    seed, kind, k, count = case
    X = table_of(kind, k, seed)
    rows = X[np.sort(np.random.default_rng(0).permutation(SHAPE[0])[:count])]
    begin = time.process_time()
    found = choose_rank(RobustNMF(random_state=0)._settings(), rows).recommended
    seconds = round(time.process_time() - begin, 1)
    row = {"seed": seed, "table": kind, "parts": k, "rows": count}
    return row | {"found": found, "seconds": seconds}


def main() -> None:
    """Print and write the rank of every table by the number of rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=1)
    cases = list(product(SEEDS, (*KINDS, RARE), PARTS, ROWS[::-1]))
    with ProcessPoolExecutor(parser.parse_args().jobs) as pool:
        rows = list(pool.map(choose, cases))
    print("| tables | rows | right | within one | mean processor seconds |\n|---|---|---|---|---|")
    for (seed, told), count in product(SEEDS.items(), ROWS):
        chosen = [row for row in rows if (row["seed"], row["rows"]) == (seed, count)]
        off = np.abs([row["found"] - row["parts"] for row in chosen])
        seconds = np.mean([row["seconds"] for row in chosen])
        print(f"| {told} | {count:,} | {(off == 0).sum()} of {len(off)} | {(off <= 1).sum()} "
              f"| {seconds:.0f} |")  # fmt: skip
    write_result("rank_rows.json", {"rows": rows})


if __name__ == "__main__":
    main()
