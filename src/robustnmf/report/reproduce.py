"""Write the reproduction to files: one page, tables, figures, trials."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

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
    outcomes: Sequence[Outcome],
    plan: Plan,
    store: Store,
    run_record: dict[str, Any],
    folder: Path,
) -> list[Path]:
    """Write all files; return their paths, the page first."""
    rows = list(store.rows(plan.tasks))
    trials = trials_csv(rows)
    record = _run_record(plan, {**run_record, "fitting": fitting(rows)})
    more = {"trials.csv": trials, "run.json": json.dumps(record, indent=1).encode()}
    section = origin(record, BEHIND, "trials.csv", trials)
    return write_outcomes(TITLE, LEAD, outcomes, section, more, folder)


def fitting(rows: Sequence[tuple[Task, Scores]]) -> dict[str, dict[str, float]]:
    """Count the fits of each machine, and their seconds."""
    machines: dict[str, dict[str, float]] = {}
    for _, scores in rows:
        sums = machines.setdefault(scores.machine, {"fits": 0, "seconds": 0.0})
        sums["fits"] += 1
        sums["seconds"] = round(sums["seconds"] + scores.seconds, 6)
    return machines


def _run_record(plan: Plan, record: dict[str, Any]) -> dict[str, Any]:
    """Add the protocol and the number of fits to the record of a run."""
    protocol = asdict(plan.scope.protocol) | {"scaling": dict(plan.scope.protocol.scaling)}
    return {**record, "quick": plan.scope.quick, "fits": plan.fits, "protocol": protocol}
