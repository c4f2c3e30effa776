"""Table 2: clustering accuracy of six methods on nine datasets."""

from __future__ import annotations

from robustnmf.experiments.outcome import Outcome
from robustnmf.experiments.paper._base import Item, Results
from robustnmf.experiments.paper._scores import build as build_scores
from robustnmf.experiments.paper._scores import tasks

TITLE = "Table 2: clustering accuracy"


def build(results: Results) -> Outcome:
    """Build the table with hyperparameters by the labels and without."""
    return build_scores(results, "table2", TITLE, "accuracy")


ITEM = Item("table2", TITLE, tasks, build)
