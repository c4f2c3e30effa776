"""What the paper leaves open, searched for by its EucNMF column alone.

    python benchmarks/protocol.py [--out results/paper] [--device cuda] [--only-scalings]

How tables are scaled, before or after the noise, how many iterations, whether codes are brought to
norm one, and how k-means starts: the paper does not say. Two steps, which look at the EucNMF
columns of Tables 2 and 3 (noise level 0.05) and at no other:

1. Every combination from ten starts (protocol.csv). The scaling is a choice for each dataset, all
   else is one for all: the choice with the smallest mean distance, accuracy and information
   together, each dataset at its closest scaling.
2. Under that choice, every scaling again from other starts, as many as bring standard errors to
   half a point (scalings.csv). Scalings that differ by less than two standard errors are tied;
   ties go to the scaling that other datasets of the same kind have
   (``scalings.py``).

The outcome is what ``robustnmf.experiments.protocol`` freezes. ``--only-scalings`` reads the first
step from protocol.csv. Needs the nine files (ROBUSTNMF_DATA).
"""

from __future__ import annotations

import csv
import itertools
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
from harness import parse
from joblib import Parallel, delayed
from scalings import (
    FIRST_STARTS,
    MOST_STARTS,
    STANDARD_ERROR,
    ScalingScores,
    choose_scalings,
    standard_error,
    starts_needed,
    tied_scalings,
)

from robustnmf.datasets import dataset_called
from robustnmf.experiments.paper.tables import PUBLISHED, SIZES
from robustnmf.experiments.protocol import SCALINGS, Protocol
from robustnmf.experiments.trial import Task, cluster_codes, fit_points, score_members
from robustnmf.files.output import comma_separated, write_whole
from robustnmf.metrics import clustering_accuracy, normalized_mutual_info

NOISE = ("scaled", "raw")
ITERATIONS = (200, 500, 1000)
CODES = ("raw", "unit")
KMEANS = (("random", 1), ("k-means++", 1), ("k-means++", 10))
OTHER_SEED = 1000
"""Of the starts of the second step; the first step has chosen by those from seed 0."""
HEADER = (
    "dataset", "scaling", "noise_on", "iterations", "codes", "kmeans_init", "kmeans_starts",
    "accuracy", "information", "accuracy_in_paper", "information_in_paper",
)  # fmt: skip


SCALINGS_HEADER = (
    "dataset", "scaling", "starts", "accuracy", "accuracy_error", "information",
    "information_error", "accuracy_in_paper", "information_in_paper", "distance", "distance_error",
    "tied", "chosen",
)  # fmt: skip


def measured(
    dataset: str, scaling: str, noise_on: str, iterations: int, device: str | None
) -> list[tuple]:
    """EucNMF under every choice of codes and k-means."""
    protocol = Protocol(((dataset, scaling),), noise_on=noise_on, iterations=iterations)
    task = Task(dataset, "EucNMF", protocol.noise, protocol=protocol)
    X, y = task.table()
    members = fit_points([(task, None)], X, int(y.max()) + 1, device=device)
    rows = []
    for codes, (init, starts) in itertools.product(CODES, KMEANS):
        variant = replace(protocol, codes=codes, kmeans_init=init, kmeans_starts=starts)
        labels = Parallel(n_jobs=os.cpu_count())(
            delayed(cluster_codes)(m.codes, int(y.max()) + 1, variant, m.start) for m in members
        )
        scores = (
            100 * float(np.mean([measure(y, found) for found in labels]))
            for measure in (clustering_accuracy, normalized_mutual_info)
        )
        in_paper = (PUBLISHED[measure][dataset, "EucNMF"] for measure in PUBLISHED)
        rows.append(
            (dataset, scaling, noise_on, iterations, codes, init, starts, *scores, *in_paper)
        )
    return rows


def distance(row: tuple) -> float:
    """How far from the paper, in points, both measures together."""
    accuracy, information, *published = row[7:]
    return abs(accuracy - published[0]) + abs(information - published[1])


def chosen(rows: list[tuple]) -> tuple[tuple, list[tuple]]:
    """The shared choice and, under it, the row of every dataset."""
    best: dict[tuple, dict[str, tuple]] = {}
    for row in rows:
        under = best.setdefault(row[2:7], {})
        if row[0] not in under or distance(row) < distance(under[row[0]]):
            under[row[0]] = row
    shared = min(best, key=lambda key: sum(map(distance, best[key].values())))
    return shared, list(best[shared].values())


def score_scaling(
    dataset: str, scaling: str, shared: tuple, starts: int, device: str | None
) -> ScalingScores:
    """EucNMF under a scaling and the shared choice, from other starts than the first step's."""
    noise_on, iterations, codes, init, kmeans_starts = shared
    protocol = Protocol(
        ((dataset, scaling),), noise_on=noise_on, iterations=iterations, codes=codes,
        kmeans_init=init, kmeans_starts=kmeans_starts, seed=OTHER_SEED,
    )  # fmt: skip
    task = Task(dataset, "EucNMF", protocol.noise, starts=starts, protocol=protocol)
    X, y = task.table()
    members = fit_points([(task, None)], X, int(y.max()) + 1, device=device)
    found = score_members(protocol, members, y)
    return ScalingScores(
        dataset,
        scaling,
        tuple(100 * one.accuracy for one in found),
        tuple(100 * one.information for one in found),
        PUBLISHED["accuracy"][dataset, "EucNMF"],
        PUBLISHED["information"][dataset, "EucNMF"],
    )


def score_scalings(dataset: str, shared: tuple, device: str | None) -> list[ScalingScores]:
    """All scalings of a dataset, from as many starts as the one that varies most needs."""
    starts = FIRST_STARTS
    for _ in range(2):
        scores = [score_scaling(dataset, name, shared, starts, device) for name in SCALINGS]
        if starts >= (needed := max(map(starts_needed, scores))):
            break
        starts = needed
    for one in scores:
        print(dataset, one.scaling, f"{one.starts} starts, ACC {one.accuracy:.2f} "
              f"({one.accuracy_in_paper:.2f})  NMI {one.information:.2f} "
              f"({one.information_in_paper:.2f}), distance {one.distance:.2f} "
              f"+- {one.standard_error:.2f}", flush=True)  # fmt: skip
    return scores


def kind_of(dataset: str) -> str:
    """Datasets of one kind share a scaling where starts do not tell scalings apart."""
    return "table" if dataset_called(dataset).image_shape is None else "image"


def scaling_rows(scores: list[ScalingScores]) -> list[tuple]:
    """Rows of scalings.csv."""
    choice = choose_scalings(scores, kind_of)
    tied = {
        dataset: tied_scalings(one for one in scores if one.dataset == dataset)
        for dataset in choice
    }
    return [
        (one.dataset, one.scaling, one.starts, one.accuracy, standard_error(one.accuracies),
         one.information, standard_error(one.informations), one.accuracy_in_paper,
         one.information_in_paper, one.distance, one.standard_error,
         one.scaling in tied[one.dataset], choice[one.dataset] == one.scaling)
        for one in scores
    ]  # fmt: skip


def in_markdown(rows: list[tuple], scalings: list[tuple]) -> str:
    """Both steps."""
    noise_on, iterations, codes, init, starts = chosen(rows)[0]
    lines = [
        "# The protocol, chosen by the EucNMF column alone\n",
        f"`python benchmarks/protocol.py`: {len(rows)} combinations from ten starts, all in "
        "protocol.csv; then the scalings from more starts, all in scalings.csv.\n",
        f"For all datasets: noise on the {noise_on} data, {iterations} iterations, {codes} codes, "
        f'k-means from {starts} start(s) by "{init}". Every dataset has a scaling of its own, '
        f"chosen from {FIRST_STARTS} to {MOST_STARTS} other starts, until the standard errors of "
        f"ACC and NMI are at most {STANDARD_ERROR:g} points. A scaling is tied with the closest "
        "one if their distances from the paper differ by less than two standard errors. Of tied "
        "scalings, we take the one that is tied for most datasets of the same kind (images, "
        "tables).\n",
        "| dataset | scaling | starts | ACC | in the paper | NMI | in the paper | tied with |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in scalings:
        if not row[12]:
            continue
        tied = [other[1] for other in scalings if other[0] == row[0] and other[11]]
        tied.remove(row[1])
        lines.append(
            f"| {row[0]} | {row[1]} | {row[2]} | {row[3]:.2f} ± {row[4]:.2f} | {row[7]:.2f} | "
            f"{row[5]:.2f} ± {row[6]:.2f} | {row[8]:.2f} | {', '.join(tied)} |"
        )
    lines += [
        "\n± is the standard error of the mean.",
        "\nThe shared choices, each with its best scalings, by mean distance in points:\n",
        "| noise on | iterations | codes | k-means | ACC and NMI together |",
        "|---|---|---|---|---|",
    ]
    totals = {}
    for key in {row[2:7] for row in rows}:
        part = chosen([row for row in rows if row[2:7] == key])[1]
        totals[key] = sum(map(distance, part)) / len(part)
    for key, total in sorted(totals.items(), key=lambda item: item[1]):
        lines.append(f"| {key[0]} | {key[1]} | {key[2]} | {key[4]} x {key[3]} | {total:.2f} |")
    return "\n".join(lines) + "\n"


def read_rows(path: Path) -> list[tuple]:
    """The first step of an earlier search."""
    with path.open(newline="") as file:
        _, *rows = csv.reader(file)
    return [
        (*row[:3], int(row[3]), *row[4:6], int(row[6]), *map(float, row[7:])) for row in rows
    ]  # fmt: skip


def search_all(device: str | None) -> list[tuple]:
    """The first step: every combination."""
    rows = []
    for choice in itertools.product(SIZES, SCALINGS, NOISE, ITERATIONS):
        rows += measured(*choice, device)
        best = min(rows[-6:], key=distance)
        print(*choice, f"ACC {best[7]:.2f} ({best[9]:.2f})  NMI {best[8]:.2f} ({best[10]:.2f})",
              flush=True)  # fmt: skip
    return rows


def main() -> None:
    """Search, print and write."""
    options = parse(
        __doc__,
        out={"type": Path, "default": Path("results/paper")},
        device={"help": "where PyTorch fits; NumPy by default"},
        only_scalings={"action": "store_true", "help": "the first step from protocol.csv"},
    )
    out = options.out
    rows = read_rows(out / "protocol.csv") if options.only_scalings else search_all(options.device)
    shared, _ = chosen(rows)
    jobs = os.cpu_count() if options.device is None else 1
    found = Parallel(n_jobs=jobs)(
        delayed(score_scalings)(dataset, shared, options.device) for dataset in SIZES
    )
    scalings = scaling_rows([scores for group in found for scores in group])
    text = in_markdown(rows, scalings)
    print(text)
    write_whole(out / "protocol.csv", comma_separated(HEADER, rows))
    write_whole(out / "scalings.csv", comma_separated(SCALINGS_HEADER, scalings))
    write_whole(out / "protocol.md", text.encode())


if __name__ == "__main__":
    main()
