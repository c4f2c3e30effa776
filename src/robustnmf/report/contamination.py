"""Write the results of the contamination benchmark to files."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from robustnmf.experiments.contamination import real
from robustnmf.experiments.contamination import tables as sample_tables
from robustnmf.experiments.contamination.cells import Row
from robustnmf.experiments.contamination.entries import real as real_entries
from robustnmf.experiments.contamination.entries import tables as entry_tables
from robustnmf.experiments.contamination.judge import Score
from robustnmf.experiments.contamination.scenario import Scenario
from robustnmf.experiments.outcome import Outcome
from robustnmf.report.outcomes import lines, origin, write_outcomes
from robustnmf.report.tables import comma_separated, short


@dataclass(frozen=True)
class Report:
    """Title and first paragraph of the page of a benchmark, and how to build its tables."""

    title: str
    lead: str
    outcomes: Callable[[Sequence[Row]], list[Outcome]]


SAMPLES = Report(
    "Spoiled samples: what each method learns from them",
    "Every method learns parts from data of which some samples are spoiled, and is judged by how "
    "well these describe clean samples that it has not seen. One means: as well as plain NMF "
    "that has seen the clean samples only.",
    sample_tables.outcomes,
)
ENTRIES = Report(
    "Bad entries: what each method learns from a table that has some",
    "Every method learns parts from a table of which some entries are wrong, and is judged by how "
    "well these describe clean samples that it has not seen. One means: as well as plain NMF "
    "that has seen the table before entries were spoiled.",
    entry_tables.outcomes,
)
REAL = Report(
    "Real tables: what each method learns from them, clean and with bad samples",
    "Every method learns components from a real table of which some samples are bad, and is judged "
    "by how well these describe good samples that it has not seen. One means: as well as plain "
    "NMF of the good samples.",
    real.outcomes,
)
REAL_ENTRIES = Report(
    "Real tables: what each method learns from them, clean and with bad entries",
    "Every method learns components from a real table of which some entries are bad, and is judged "
    "by how well these describe samples that it has not seen. One means: as well as plain NMF of "
    "the table before entries were spoiled.",
    real_entries.outcomes,
)
BEHIND = "Every score behind these numbers:"


def write(
    rows: Sequence[Row], run_record: dict[str, Any], folder: Path, report: Report = SAMPLES
) -> tuple[list[str], list[Path]]:
    """Write all files; return the notes of the tables, and the paths, the page first."""
    scores = scores_csv(rows)
    results = report.outcomes(rows)
    more = {"scores.csv": scores, "run.json": json.dumps(run_record, indent=1).encode()}
    record = origin(run_record, BEHIND, "scores.csv", scores)
    return lines(results), write_outcomes(report.title, report.lead, results, record, more, folder)


def scores_csv(rows: Sequence[Row]) -> bytes:
    """Return every score of every scenario as CSV; empty where it does not apply."""
    header = [field.name for kind in (Scenario, Score) for field in fields(kind)]
    texts = [
        ["" if isinstance(v, float) and np.isnan(v) else short(v)
         for v in (*astuple(scenario), *astuple(score))]
        for scenario, score in rows
    ]  # fmt: skip
    return comma_separated(header, texts)
