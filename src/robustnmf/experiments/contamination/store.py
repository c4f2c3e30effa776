"""Store of the scores of scenarios, one row for each group of methods."""

from __future__ import annotations

import json
from dataclasses import asdict, astuple
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from robustnmf.experiments import database
from robustnmf.experiments.contamination.judge import Score
from robustnmf.experiments.contamination.scenario import Scenario
from robustnmf.experiments.database import Database, digest_of

CODE = (
    "protocol.py",
    "contamination/detection.py",
    "contamination/generated.py",
    "contamination/judge.py",
    "contamination/methods.py",
    "contamination/scenario.py",
    "contamination/two_step.py",
)


class ScenarioStore(Database):
    """Store of the scores of finished scenarios.

    Parameters
    ----------
    path : path
    code : tuple of str
        Files of experiments that scores depend on.
    """

    schema = """
    CREATE TABLE IF NOT EXISTS scenarios (
        key TEXT PRIMARY KEY, code TEXT NOT NULL, specification TEXT NOT NULL,
        scores TEXT NOT NULL, machine TEXT NOT NULL, created TEXT NOT NULL);
    """

    def __init__(self, path: str | Path, code: tuple[str, ...] = CODE):
        super().__init__(path)
        self._code = code

    def code_version(self) -> str:
        """Return the version of the package with a digest of the code that scores depend on."""
        return database.code_version(*(f"experiments/{name}" for name in self._code))

    def key_of(self, scenario: Scenario, group: str) -> str:
        """Return the digest of all that the scores of a group depend on."""
        return digest_of(json.dumps(asdict(scenario), sort_keys=True), group, self.code_version())

    def finished_keys(self) -> set[str]:
        """Return the keys of all finished groups of scenarios."""
        with self.open() as connection:
            return {key for (key,) in connection.execute("SELECT key FROM scenarios")}

    def scores(self, scenario: Scenario, group: str) -> list[Score]:
        """Return the scores of a group of methods; an empty list where it is not finished."""
        with self.open() as connection:
            row = connection.execute(
                "SELECT scores FROM scenarios WHERE key = ?", (self.key_of(scenario, group),)
            ).fetchone()
        return [] if row is None else _from_json(row[0])

    def add(self, scenario: Scenario, scores: dict[str, list[Score]], machine: str) -> None:
        """Write the scores of all groups of a scenario in one transaction."""
        created = datetime.now(UTC).isoformat(timespec="seconds")
        specification = json.dumps(asdict(scenario), sort_keys=True)
        rows = []
        for group, group_scores in scores.items():
            key, text = self.key_of(scenario, group), _to_json(group_scores)
            rows.append((key, self.code_version(), specification, text, machine, created))
        self.write("INSERT OR REPLACE INTO scenarios VALUES (?, ?, ?, ?, ?, ?)", rows)

    def machines(self) -> list[str]:
        """Return the machines that computed scores with the current code."""
        with self.open() as connection:
            rows = connection.execute(
                "SELECT DISTINCT machine FROM scenarios WHERE code = ?", (self.code_version(),)
            )
            return sorted(machine for (machine,) in rows)


def _to_json(scores: list[Score]) -> str:
    """Encode scores as JSON, with null for NaN."""
    rows = ([v if isinstance(v, str) or np.isfinite(v) else None for v in astuple(s)]
            for s in scores)  # fmt: skip
    return json.dumps(list(rows))


def _from_json(text: str) -> list[Score]:
    """Decode the scores that `_to_json` has encoded."""
    return [_score_of(row) for row in json.loads(text)]


def _score_of(row: list[Any]) -> Score:
    values: list[Any] = [np.nan if value is None else value for value in row]
    return Score(*values)
