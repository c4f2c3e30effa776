"""Finished scenarios, group of methods by group of methods."""

from __future__ import annotations

import json
from dataclasses import asdict, astuple
from datetime import UTC, datetime

import numpy as np

from robustnmf.experiments import database
from robustnmf.experiments.contamination.judge import Score
from robustnmf.experiments.contamination.scenario import Scenario
from robustnmf.experiments.database import Database, digest_of

CODE = (
    "methods.py",
    "protocol.py",
    "residuals.py",
    "contamination/detection.py",
    "contamination/generated.py",
    "contamination/judge.py",
    "contamination/methods.py",
    "contamination/scenario.py",
    "contamination/two_step.py",
)


def code_version() -> str:
    """Version of the package and a digest of the code that scores come from."""
    return database.code_version(*(f"experiments/{name}" for name in CODE))


class ScenarioStore(Database):
    """Scores of scenarios that are finished."""

    schema = """
    CREATE TABLE IF NOT EXISTS scenarios (
        key TEXT PRIMARY KEY, code TEXT NOT NULL, specification TEXT NOT NULL,
        scores TEXT NOT NULL, machine TEXT NOT NULL, created TEXT NOT NULL);
    """

    def known(self) -> set[str]:
        """Keys of what is finished."""
        with self.open() as connection:
            return {key for (key,) in connection.execute("SELECT key FROM scenarios")}

    def scores(self, scenario: Scenario, group: str) -> list[Score]:
        """Return the scores of a group; none where it is not finished."""
        with self.open() as connection:
            row = connection.execute(
                "SELECT scores FROM scenarios WHERE key = ?", (key_of(scenario, group),)
            ).fetchone()
        return [] if row is None else _read(row[0])

    def add(self, scenario: Scenario, scores: dict[str, list[Score]], machine: str) -> None:
        """Write the scores of a scenario, all groups or none."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        specification = json.dumps(asdict(scenario), sort_keys=True)
        rows = [
            (key_of(scenario, group), code_version(), specification, _written(s), machine, now)
            for group, s in scores.items()
        ]
        self.write("INSERT OR REPLACE INTO scenarios VALUES (?, ?, ?, ?, ?, ?)", rows)

    def machines(self) -> list[str]:
        """What computed the scores of this code."""
        with self.open() as connection:
            rows = connection.execute(
                "SELECT DISTINCT machine FROM scenarios WHERE code = ?", (code_version(),)
            )
            return sorted(machine for (machine,) in rows)


def key_of(scenario: Scenario, group: str) -> str:
    """Digest of all that the scores of a group depend on."""
    return digest_of(json.dumps(asdict(scenario), sort_keys=True), group, code_version())


def _written(scores: list[Score]) -> str:
    """JSON has no NaN; null stands for it."""
    numbers = ([v if isinstance(v, str) or np.isfinite(v) else None for v in astuple(s)]
               for s in scores)  # fmt: skip
    return json.dumps(list(numbers))


def _read(text: str) -> list[Score]:
    return [Score(*(np.nan if v is None else v for v in row)) for row in json.loads(text)]
