"""Tables 2 and 3 share their shape: six methods by nine datasets, under one measure."""

from __future__ import annotations

from robustnmf.datasets import DATASETS
from robustnmf.experiments.methods import METHODS, PROPOSED
from robustnmf.experiments.outcome import Cell, Grid, Outcome
from robustnmf.experiments.paper._base import Results, Scope, largest_class, percent
from robustnmf.experiments.paper.published import ACCURACY, INFORMATION
from robustnmf.experiments.summary import MARKS, MEASURES, Level, marks
from robustnmf.experiments.trial import Task

PUBLISHED = {"accuracy": ACCURACY, "information": INFORMATION}
SYMBOLS = {"one": "¹", "class": "²", "few": "³"}


def tasks(scope: Scope) -> list[Task]:
    """All methods on all datasets."""
    return [scope.task(dataset, method) for dataset in scope.datasets for method in METHODS]


def build(results: Results, key: str, title: str, measure: str) -> Outcome:
    """The table twice, by either way to choose the hyperparameter, and what it amounts to."""
    chosen = {
        by_labels: {
            (dataset, method): results.chosen(
                results.scope.task(dataset, method), measure, by_labels=by_labels
            )
            for dataset in results.scope.datasets
            for method in METHODS
        }
        for by_labels in (True, False)
    }
    grids = [
        _grid(results, measure, chosen[by_labels], title, suffix)
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
    return Outcome(key, title, caption, grids=grids, notes=summary(results, measure, chosen))


def _grid(results: Results, measure: str, chosen: dict, title: str, suffix: str) -> Grid:
    rows = []
    used: set[str] = set()
    for dataset in results.scope.datasets:
        row = [Cell(DATASETS[dataset].title)]
        share = largest_class(dataset, results.scope.data_dir)
        top = max(chosen[dataset, method].mean for method in METHODS)
        for method in METHODS:
            level = chosen[dataset, method]
            told = marks(level, measure, share, DATASETS[dataset].classes)
            used |= set(told)
            published = PUBLISHED[measure].get((dataset, method))
            row.append(_cell(level, published, told, top, DATASETS[dataset].classes))
        rows.append([*row, Cell(f"{100 * share:.2f}", share)])
    notes = [f"{SYMBOLS[name]} {text}" for name, text in MARKS.items() if name in used]
    return Grid(title, ("dataset", *METHODS, "largest class"), rows, notes, suffix)


def _cell(
    level: Level, published: float | None, told: tuple[str, ...], top: float, rank: int
) -> Cell:
    text = percent(level) + "".join(SYMBOLS[name] for name in told)
    hint = [f"chosen: {level.value}"] if level.value is not None else []
    if published is not None:
        text += f"\n({published:.2f}, {100 * level.mean - published:+.2f})"
    hint += [
        f"effective sample size {level.effective_sample_size:.1f}",
        f"largest cluster {100 * level.largest_cluster:.1f}%",
        f"one cluster over 95% from {level.in_one_cluster} of {level.starts} starts",
        f"effective sample size below the rank from {level.collapsed(rank)} of {level.starts}",
    ]
    shown = (*told, "best") if level.mean == top else told
    return Cell(text, 100 * level.mean, shown, "; ".join(hint))


def summary(results: Results, measure: str, chosen: dict[bool, dict]) -> list[str]:
    """How many cells agree with the paper, and whether its claim holds."""
    published = PUBLISHED[measure]
    name = MEASURES[measure]
    compared = [cell for cell in chosen[True] if cell in published]
    near = [cell for cell in compared if _agrees(chosen[True][cell], published[cell])]
    lines = []
    if compared:
        lines.append(
            f"{name}: {len(near)} of {len(compared)} cells lie within two standard deviations "
            "(over the starts) of the paper's value."
        )
        plain = [cell for cell in compared if cell[1] == "EucNMF"]
        close = [c for c in plain if abs(100 * chosen[True][c].mean - published[c]) <= 3]
        lines.append(f"{name}: EucNMF is within 3 points on {len(close)} of {len(plain)} datasets.")
    for by_labels, how in ((True, "by the labels"), (False, "without labels")):
        wins = [d for d in results.scope.datasets if _proposed_win(chosen[by_labels], d)]
        lost = [DATASETS[d].title for d in results.scope.datasets if d not in wins]
        tail = f"; not on {', '.join(lost)}" if lost else ""
        doubtful = [d for d in wins if _rests_on_collapse(chosen[by_labels], d)]
        lines.append(
            f"{name}: FWRNMF or EWRNMF is best on {len(wins)} of {len(results.scope.datasets)} "
            f"datasets with hyperparameters {how}{tail}. {len(doubtful)} of these wins rest on "
            "fits some of which have collapsed."
        )
    return lines


def _agrees(level: Level, published: float) -> bool:
    return abs(100 * level.mean - published) <= 2 * 100 * level.deviation


def _rests_on_collapse(chosen: dict, dataset: str) -> bool:
    """Whether every proposed method that beats all others does so with collapsed fits."""
    bar = max(chosen[dataset, m].mean for m in METHODS if m not in PROPOSED)
    winners = [chosen[dataset, m] for m in PROPOSED if chosen[dataset, m].mean > bar]
    return all(level.collapsed(DATASETS[dataset].classes) for level in winners)


def _proposed_win(chosen: dict, dataset: str) -> bool:
    others = [m for m in METHODS if m not in PROPOSED]
    return max(chosen[dataset, m].mean for m in PROPOSED) > max(
        chosen[dataset, m].mean for m in others
    )
