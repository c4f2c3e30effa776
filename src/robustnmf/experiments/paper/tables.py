"""Tables of the paper compared with ours: datasets (1), scores of methods (2 and 3)."""

from __future__ import annotations

from dataclasses import dataclass

from robustnmf.datasets import DATASETS, DataDir, load_dataset
from robustnmf.experiments.outcome import Cell, Grid, Outcome
from robustnmf.experiments.paper._base import MEASURES, Item, Results, Scope, ValueSummary
from robustnmf.experiments.protocol import METHODS, PROPOSED
from robustnmf.experiments.trial import Task
from robustnmf.metrics import largest_cluster_share

SIZES = {
    "yale": (165, "32x32", 15),
    "orl": (400, "32x32", 40),
    "gtfd": (750, "32x32", 50),
    "winequality_red": (4898, "12", 11),
    "page_blocks": (5473, "10", 5),
    "balance": (625, "4", 3),
    "thyroid": (7200, "21", 3),
    "wdbc": (569, "32", 2),
    "dimdata": (4192, "14", 2),
}
"""Samples, dimensions and classes of the datasets in Table 1 of the paper."""

SCORES = {
    "accuracy": {
        "yale": (39.82, 30.76, 40.91, 41.06, 41.91, 41.61),
        "orl": (66.07, 26.06, 66.35, 67.99, 69.02, 67.92),
        "gtfd": (62.56, 49.32, 63.76, 64.73, 66.85, 64.17),
        "winequality_red": (30.29, 28.99, 29.66, 30.44, 42.40, 42.40),
        "page_blocks": (34.17, 34.99, 38.71, 36.67, 89.71, 89.71),
        "balance": (51.70, 51.34, 50.78, 51.93, 51.66, 54.55),
        "thyroid": (54.04, 55.83, 54.65, 54.19, 92.56, 92.56),
        "wdbc": (87.69, 83.68, 87.70, 88.58, 89.01, 89.69),
        "dimdata": (52.45, 54.26, 52.32, 52.45, 69.74, 67.42),
    },
    "information": {
        "yale": (45.23, 38.04, 46.20, 46.31, 47.05, 47.15),
        "orl": (83.48, 50.87, 83.66, 84.40, 84.84, 84.34),
        "gtfd": (85.48, 73.93, 85.60, 86.05, 86.71, 85.90),
        "winequality_red": (10.56, 8.47, 10.53, 10.63, 9.88, 10.79),
        "page_blocks": (12.16, 6.78, 13.27, 12.57, 15.33, 12.55),
        "balance": (10.78, 13.01, 10.11, 11.73, 12.84, 17.48),
        "thyroid": (1.60, 1.55, 1.76, 1.61, 3.61, 2.41),
        "wdbc": (51.18, 34.76, 51.20, 54.32, 54.54, 54.57),
        "dimdata": (0.18, 0.84, 0.16, 0.18, 16.54, 14.33),
    },
}
"""Tables 2 and 3 of the paper in percent: a row for each dataset, methods as in ``METHODS``."""

PUBLISHED: dict[str, dict[tuple[str, str], float]] = {
    measure: {
        (dataset, method): score
        for dataset, scores in rows.items()
        for method, score in zip(METHODS, scores, strict=True)
    }
    for measure, rows in SCORES.items()
}
"""The same scores by measure; then by dataset and method."""

LARGEST_CLASS = 0.005
"""An accuracy is marked if it differs less from the share of the largest class."""

MARKS = {
    "one": "¹ one cluster contains over 95% of the samples, from at least one start",
    "class": "² the accuracy is within half a point of the share of the largest class",
    "few": "³ the effective sample size is below the number of components, from at least one "
    "start: a few samples dominate the fit",
}
"""Reasons why the score of a cell can be meaningless, each after its symbol."""

Selections = dict[tuple[str, str], ValueSummary]
"""The value that is shown, by dataset and method."""


class SizesTable(Item):
    """The sizes of the datasets in the paper and of our copies."""

    def build(self, results: Results) -> Outcome:
        rows = []
        for name in results.scope.datasets:
            dataset = DATASETS[name]
            share = 100 * largest_class(name, results.scope.data_dir)
            counts = (dataset.samples, dataset.features, dataset.classes)
            rows.append(
                [
                    Cell(dataset.title, hint=dataset.description),
                    *(Cell(str(number), number) for number in counts),
                    Cell(f"{share:.2f}%", share),
                    *(Cell(str(size)) for size in SIZES.get(name, ("-", "-", "-"))),
                    Cell(dataset.remark),
                ]
            )
        header = (
            "dataset", "samples", "features", "classes", "largest class", "samples in the paper",
            "dimensions in the paper", "classes in the paper", "remark",
        )  # fmt: skip
        missing = [f"{name}: not here. {DATASETS[name].source}" for name in results.scope.missing]
        grid = Grid("Datasets", header, rows, missing)
        return Outcome(self.key, self.title, self.caption, grids=[grid])


@dataclass(eq=False)
class ScoresTable(Item):
    """One measure of all methods on all datasets, with and without labels for the choice."""

    measure: str

    def tasks(self, scope: Scope) -> list[Task]:
        return [scope.task(dataset, method) for dataset in scope.datasets for method in METHODS]

    def build(self, results: Results) -> Outcome:
        by_labels, without = (
            {
                (task.dataset, task.method): results.selection(task, self.measure, by_labels=choice)
                for task in self.tasks(results.scope)
            }
            for choice in (True, False)
        )
        titles = (
            "Hyperparameters chosen by the labels, as in the paper",
            "Hyperparameters estimated from the data, without labels",
        )
        grids = [
            self._grid(results.scope, by_labels, titles[0], ""),
            self._grid(results.scope, without, titles[1], "_without_labels"),
        ]
        notes = [
            *self._agreement(by_labels),
            self._wins(results.scope, by_labels, "chosen by the labels"),
            self._wins(results.scope, without, "estimated without labels"),
        ]
        return Outcome(self.key, self.title, self.caption, grids=grids, notes=notes)

    def _grid(self, scope: Scope, selections: Selections, title: str, suffix: str) -> Grid:
        """Return the table of all cells, with our and the paper's scores."""
        rows = []
        for dataset in scope.datasets:
            share = largest_class(dataset, scope.data_dir)
            cells = [self._cell(selections, dataset, method, share) for method in METHODS]
            largest = Cell(f"{100 * share:.2f}", share)
            rows.append([Cell(DATASETS[dataset].title), *cells, largest])
        used = {mark for row in rows for cell in row for mark in cell.marks}
        notes = [text for mark, text in MARKS.items() if mark in used]
        return Grid(title, ("dataset", *METHODS, "largest class"), rows, notes, suffix)

    def _cell(self, selections: Selections, dataset: str, method: str, share: float) -> Cell:
        """Return our and the paper's score, and the marks; ``share`` is of the largest class."""
        selection, rank = selections[dataset, method], DATASETS[dataset].classes
        cell_marks = marks(selection, self.measure, share, rank)
        text = f"{100 * selection.mean:.2f} ± {100 * selection.deviation:.2f}"
        text += "".join(MARKS[mark][0] for mark in cell_marks)
        published = PUBLISHED[self.measure].get((dataset, method))
        if published is not None:
            text += f"\n({published:.2f}, {100 * selection.mean - published:+.2f})"
        starts = len(selection.largest_clusters)
        hint = [
            *([f"chosen: {selection.value}"] if selection.value is not None else []),
            f"effective sample size {selection.effective_sample_size:.1f}",
            f"largest cluster {100 * selection.largest_cluster:.1f}%",
            f"one cluster over 95% from {selection.one_cluster_starts} of {starts} starts",
            "effective sample size below the number of components from "
            f"{selection.collapsed_starts(rank)} of {starts} starts",
        ]
        if selection.mean == max(selections[dataset, other].mean for other in METHODS):
            cell_marks = (*cell_marks, "best")
        return Cell(text, 100 * selection.mean, cell_marks, "; ".join(hint))

    def _agreement(self, selections: Selections) -> list[str]:
        """Describe how many cells agree with the paper."""
        published, name = PUBLISHED[self.measure], MEASURES[self.measure]
        cells = [cell for cell in selections if cell in published]
        if not cells:
            return []
        apart = {cell: abs(100 * selections[cell].mean - published[cell]) for cell in cells}
        near = [cell for cell in cells if apart[cell] <= 2 * 100 * selections[cell].deviation]
        plain = [cell for cell in cells if cell[1] == "EucNMF"]
        close = [cell for cell in plain if apart[cell] <= 3]
        return [
            f"{name}: {len(near)} of {len(cells)} cells lie within two standard deviations "
            "(over the starts) of the paper's value.",
            f"{name}: EucNMF is within 3 points on {len(close)} of {len(plain)} datasets.",
        ]

    def _wins(self, scope: Scope, selections: Selections, how: str) -> str:
        """Describe where the paper's methods are best, and how often with collapsed fits."""
        wins, losses, doubtful = 0, [], 0
        for dataset in scope.datasets:
            best_other = max(selections[dataset, m].mean for m in METHODS if m not in PROPOSED)
            proposed = (selections[dataset, method] for method in PROPOSED)
            winners = [selection for selection in proposed if selection.mean > best_other]
            if not winners:
                losses.append(DATASETS[dataset].title)
                continue
            wins += 1
            rank = DATASETS[dataset].classes
            doubtful += all(winner.collapsed_starts(rank) for winner in winners)
        exceptions = f"; not on {', '.join(losses)}" if losses else ""
        return (
            f"{MEASURES[self.measure]}: FWRNMF or EWRNMF is best on {wins} of "
            f"{len(scope.datasets)} datasets with hyperparameters {how}{exceptions}. In {doubtful} "
            "of these cases, the winning method collapsed from at least one start."
        )


def marks(summary: ValueSummary, measure: str, largest_class: float, rank: int) -> tuple[str, ...]:
    """Return the names of the ``MARKS`` that apply."""
    applies = {
        "one": summary.one_cluster_starts > 0,
        "class": measure == "accuracy" and abs(summary.mean - largest_class) <= LARGEST_CLASS,
        "few": summary.collapsed_starts(rank) > 0,
    }
    return tuple(name for name, is_marked in applies.items() if is_marked)


def largest_class(dataset: str, data_dir: DataDir = None) -> float:
    """Return the share of the samples in the largest class."""
    return largest_cluster_share(load_dataset(dataset, data_dir).target)


def _scores_caption(measure: str) -> str:
    return (
        f"{measure} in percent: our mean ± standard deviation over the starts, the "
        "paper's value in parentheses, and the difference. The first table uses the hyperparameter "
        "with the best score, which requires the classes. The second table does not use the "
        "classes: cutoff, p and gamma are estimated from the data."
    )


TABLES: tuple[Item, ...] = (
    SizesTable(
        "table1", "Table 1: datasets", "Our copies of the datasets, compared with the paper."
    ),
    ScoresTable("table2", "Table 2: clustering accuracy", _scores_caption("ACC"), "accuracy"),
    ScoresTable(
        "table3", "Table 3: normalised mutual information", _scores_caption("NMI"), "information"
    ),
)
