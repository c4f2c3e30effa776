"""The reproduction as files: one page, tables, figures, trials."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from robustnmf.experiments.outcome import Outcome
from robustnmf.experiments.reproduce import Plan
from robustnmf.experiments.store import Store
from robustnmf.experiments.trial import Scores, Task
from robustnmf.report.outcomes import origin, write_outcomes
from robustnmf.report.tables import trials_csv

TITLE = "Adaptive weighted NMF: the paper's tables and figures, reproduced"
LEAD = (
    "Every number of the paper beside ours. The paper chooses hyperparameters by the labels, which "
    "nobody has who needs clusters; a second table beside each of its own does without. Marks tell "
    "where an accuracy says no more than how large the largest class is."
)
BEHIND = "Every trial behind these numbers:"


def write(
    outcomes: Sequence[Outcome], wanted: Plan, store: Store, made: dict, folder: Path
) -> list[Path]:
    """Write everything; the page is the first of the paths."""
    rows = list(store.rows(wanted.tasks))
    trials, made = trials_csv(rows), {**made, "fitting": fitting(rows)}
    about = _about(wanted, made)
    more = {"trials.csv": trials, "run.json": json.dumps(about, indent=1).encode()}
    behind = origin(about, BEHIND, "trials.csv", trials)
    return write_outcomes(TITLE, LEAD, outcomes, behind, more, folder)


def fitting(rows: Sequence[tuple[Task, Scores]]) -> dict[str, dict[str, float]]:
    """How many fits each machine did, and in how many seconds."""
    found: dict[str, dict[str, float]] = {}
    for _, scores in rows:
        done = found.setdefault(scores.machine, {"fits": 0, "seconds": 0.0})
        done["fits"] += 1
        done["seconds"] = round(done["seconds"] + scores.seconds, 6)
    return found


def _about(wanted: Plan, made: dict) -> dict:
    protocol = wanted.scope.protocol
    told = asdict(protocol) | {"scaling": dict(protocol.scaling)}
    return {**made, "quick": wanted.scope.quick, "fits": wanted.fits, "protocol": told}
