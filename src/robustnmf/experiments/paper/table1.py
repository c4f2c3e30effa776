"""Table 1: the datasets, as the paper counts them and as they are."""

from __future__ import annotations

from robustnmf.datasets import DATASETS
from robustnmf.experiments.outcome import Cell, Grid, Outcome
from robustnmf.experiments.paper._base import Item, Results, Scope, largest_class
from robustnmf.experiments.paper.published import SIZES
from robustnmf.experiments.trial import Task


def tasks(scope: Scope) -> list[Task]:
    """Return no tasks: nothing is fitted."""
    return []


def build(results: Results) -> Outcome:
    """Build the table of sizes, ours and the paper's."""
    rows = []
    for name in results.scope.datasets:
        dataset = DATASETS[name]
        share = 100 * largest_class(name, results.scope.data_dir)
        samples, dimensions, classes = SIZES.get(name, ("-", "-", "-"))
        counts = (dataset.samples, dataset.features, dataset.classes)
        rows.append(
            [
                Cell(dataset.title, hint=dataset.description),
                *(Cell(str(number), number) for number in counts),
                Cell(f"{share:.2f}%", share),
                *(Cell(str(size)) for size in (samples, dimensions, classes)),
                Cell(dataset.remark),
            ]
        )
    header = (
        "dataset", "samples", "features", "classes", "largest class", "samples in the paper",
        "dimensions in the paper", "classes in the paper", "remark",
    )  # fmt: skip
    missing = [f"{name}: not here. {DATASETS[name].source}" for name in results.scope.missing]
    return Outcome(
        "table1",
        "Table 1: datasets",
        "What was read, beside what the paper says.",
        grids=[Grid("Datasets", header, rows, missing)],
    )


ITEM = Item("table1", "Table 1: datasets", tasks, build)
