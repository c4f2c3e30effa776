"""Table 3: normalised mutual information of six methods on nine datasets."""

from __future__ import annotations

from robustnmf.experiments.outcome import Outcome
from robustnmf.experiments.paper._base import Item, Results
from robustnmf.experiments.paper._scores import build as build_scores
from robustnmf.experiments.paper._scores import tasks

TITLE = "Table 3: normalised mutual information"


def build(results: Results) -> Outcome:
    """Build the table with hyperparameters by the labels and without."""
    return build_scores(results, "table3", TITLE, "information")


ITEM = Item("table3", TITLE, tasks, build)
