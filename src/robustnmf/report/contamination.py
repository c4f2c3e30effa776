"""The contamination benchmark as files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import astuple, fields
from pathlib import Path

import numpy as np

from robustnmf.experiments.contamination.methods import Score
from robustnmf.experiments.contamination.scenario import Scenario
from robustnmf.experiments.contamination.tables import Row, outcomes
from robustnmf.report.outcomes import lines, origin, write_outcomes
from robustnmf.report.tables import comma_separated, short

TITLE = "Spoiled samples: what each method learns from them"
LEAD = (
    "Every method learns parts from data of which some samples are spoiled, and is judged by how "
    "well these describe clean samples that it has not seen. One means: as well as plain NMF "
    "that has seen the clean samples only."
)
BEHIND = "Every score behind these numbers:"


def write(rows: Sequence[Row], made: dict, folder: Path) -> tuple[list[str], list[Path]]:
    """Write everything; what it amounts to, and the paths, the page first."""
    scores = scores_csv(rows)
    found = outcomes(rows)
    more = {"scores.csv": scores, "run.json": json.dumps(made, indent=1).encode()}
    return lines(found), write_outcomes(
        TITLE, LEAD, found, origin(made, BEHIND, "scores.csv", scores), more, folder
    )


def scores_csv(rows: Sequence[Row]) -> bytes:
    """Every score of every scenario; nothing where it does not apply."""
    header = [field.name for kind in (Scenario, Score) for field in fields(kind)]
    told = [
        ["" if isinstance(v, float) and np.isnan(v) else short(v)
         for v in (*astuple(scenario), *astuple(score))]
        for scenario, score in rows
    ]  # fmt: skip
    return comma_separated(header, told)
