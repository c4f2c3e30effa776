"""Tables of six methods by nine datasets under one measure (Tables 2 and 3)."""

from __future__ import annotations

from robustnmf.datasets import DATASETS
from robustnmf.experiments.methods import METHODS, PROPOSED
from robustnmf.experiments.outcome import Cell, Grid, Outcome
from robustnmf.experiments.paper._base import Results, Scope, format_percent, largest_class
from robustnmf.experiments.paper.published import ACCURACY, INFORMATION
from robustnmf.experiments.summary import MARKS, MEASURES, ValueSummary, marks
from robustnmf.experiments.trial import Task

PUBLISHED = {"accuracy": ACCURACY, "information": INFORMATION}
SYMBOLS = {"one": "¹", "class": "²", "few": "³"}

Selections = dict[tuple[str, str], ValueSummary]
"""The value that is shown, by dataset and method."""


def tasks(scope: Scope) -> list[Task]:
    """Return the tasks of all methods on all datasets."""
    return [scope.task(dataset, method) for dataset in scope.datasets for method in METHODS]


def build(results: Results, key: str, title: str, measure: str) -> Outcome:
    """Build the table with hyperparameters by the labels and without, and notes that sum it up."""
    selections = {
        by_labels: {
            (dataset, method): results.selection(
                results.scope.task(dataset, method), measure, by_labels=by_labels
            )
            for dataset in results.scope.datasets
            for method in METHODS
        }
        for by_labels in (True, False)
    }
    grids = [
        _grid(results, measure, selections[by_labels], title, suffix)
        for by_labels, title, suffix in (
            (True, "Hyperparameters by the labels, as in the paper", ""),
            (False, "Hyperparameters without labels: read off the data", "_without_labels"),
        )
    ]
    caption = (
        f"{MEASURES[measure]} in percent: our mean ± standard deviation over the starts, the "
        "paper's value in brackets, the difference. The first table takes the value of the "
        "hyperparameter that scores best, for which one must know the classes; the second knows "
        "none: cutoff, p and gamma are read off the data."
    )
    return Outcome(
        key, title, caption, grids=grids, notes=conclusions(results, measure, selections)
    )


def _grid(results: Results, measure: str, selections: Selections, title: str, suffix: str) -> Grid:
    rows = []
    all_marks: set[str] = set()
    for dataset in results.scope.datasets:
        row = [Cell(DATASETS[dataset].title)]
        share = largest_class(dataset, results.scope.data_dir)
        best_mean = max(selections[dataset, method].mean for method in METHODS)
        for method in METHODS:
            selection = selections[dataset, method]
            rank = DATASETS[dataset].classes
            cell_marks = marks(selection, measure, share, rank)
            all_marks |= set(cell_marks)
            published = PUBLISHED[measure].get((dataset, method))
            row.append(_cell(selection, published, cell_marks, best_mean, rank))
        rows.append([*row, Cell(f"{100 * share:.2f}", share)])
    notes = [f"{SYMBOLS[name]} {text}" for name, text in MARKS.items() if name in all_marks]
    return Grid(title, ("dataset", *METHODS, "largest class"), rows, notes, suffix)


def _cell(
    selection: ValueSummary,
    published: float | None,
    cell_marks: tuple[str, ...],
    best_mean: float,
    rank: int,
) -> Cell:
    text = format_percent(selection) + "".join(SYMBOLS[name] for name in cell_marks)
    hint = [f"chosen: {selection.value}"] if selection.value is not None else []
    if published is not None:
        text += f"\n({published:.2f}, {100 * selection.mean - published:+.2f})"
    starts = selection.starts
    hint += [
        f"effective sample size {selection.effective_sample_size:.1f}",
        f"largest cluster {100 * selection.largest_cluster:.1f}%",
        f"one cluster over 95% from {selection.one_cluster_starts} of {starts} starts",
        f"effective sample size below the rank from {selection.collapsed_starts(rank)} of {starts}",
    ]
    if selection.mean == best_mean:
        cell_marks = (*cell_marks, "best")
    return Cell(text, 100 * selection.mean, cell_marks, "; ".join(hint))


def conclusions(results: Results, measure: str, selections: dict[bool, Selections]) -> list[str]:
    """Say how many cells agree with the paper, and whether its methods are the best."""
    published = PUBLISHED[measure]
    name = MEASURES[measure]
    by_labels = selections[True]
    cells = [cell for cell in by_labels if cell in published]
    agreeing = [cell for cell in cells if _agrees(by_labels[cell], published[cell])]
    lines = []
    if cells:
        lines.append(
            f"{name}: {len(agreeing)} of {len(cells)} cells lie within two standard deviations "
            "(over the starts) of the paper's value."
        )
        plain = [cell for cell in cells if cell[1] == "EucNMF"]
        close = [c for c in plain if abs(100 * by_labels[c].mean - published[c]) <= 3]
        lines.append(f"{name}: EucNMF is within 3 points on {len(close)} of {len(plain)} datasets.")
    for choice, how in ((selections[True], "by the labels"), (selections[False], "without labels")):
        wins = [d for d in results.scope.datasets if _proposed_win(choice, d)]
        losses = [DATASETS[d].title for d in results.scope.datasets if d not in wins]
        exceptions = f"; not on {', '.join(losses)}" if losses else ""
        doubtful = [d for d in wins if _rests_on_collapse(choice, d)]
        lines.append(
            f"{name}: FWRNMF or EWRNMF is best on {len(wins)} of {len(results.scope.datasets)} "
            f"datasets with hyperparameters {how}{exceptions}. {len(doubtful)} of these wins "
            "rest on fits some of which have collapsed."
        )
    return lines


def _agrees(selection: ValueSummary, published: float) -> bool:
    """Return whether the mean is within two standard deviations of the published value."""
    return abs(100 * selection.mean - published) <= 2 * 100 * selection.deviation


def _rests_on_collapse(selections: Selections, dataset: str) -> bool:
    """Return whether every proposed method that beats all others has collapsed fits."""
    best_other = max(selections[dataset, m].mean for m in METHODS if m not in PROPOSED)
    proposed = [selections[dataset, m] for m in PROPOSED]
    winners = [selection for selection in proposed if selection.mean > best_other]
    return all(winner.collapsed_starts(DATASETS[dataset].classes) for winner in winners)


def _proposed_win(selections: Selections, dataset: str) -> bool:
    """Return whether a proposed method has a higher mean than all others."""
    others = [m for m in METHODS if m not in PROPOSED]
    return max(selections[dataset, m].mean for m in PROPOSED) > max(
        selections[dataset, m].mean for m in others
    )
