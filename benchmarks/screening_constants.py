"""Each constant of the screening at half and at twice its value, on real tables of the tuning half.

    python benchmarks/screening_constants.py    # needs the extra real

It writes `results/real/constants.csv`.

The error is the mean over the five main scenarios of the geometric mean over tables, as in
`robustnmf benchmark --real --quick`; the clean scenario is shown apart.
"""

from __future__ import annotations

import csv
import importlib
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from robustnmf import RobustNMF
from robustnmf.experiments.contamination import real

OUT = Path(__file__).parents[1] / "results" / "real" / "constants.csv"

CONSTANTS = {
    "neighbourhood.REFERENCES": "most rows that distances are measured to",
    "neighbourhood.NEIGHBOUR": "which neighbour the isolation is the distance to",
    "neighbourhood.LARGE": "quantile of the isolation of usual samples, the limit (1 less it)",
    "decision.FACTORS": "factors of the limit of the candidates",
    "decision.GAIN": "gain that leaving samples out needs",
    "decision.SPLITS": "splits of the reference rows",
    "decision.PASSES": "passes of the fits of the halves",
    "neighbourhood.COHESIVE": "isolation over the distance to usual samples of a close group",
    "decision.DESCRIBED": "error of rejected samples over that of others up to which all are kept",
    "decision.SMALLEST": "fewest rows that decide, and that are a group",
    "decision.EXACT": "error that does not matter, as a share of the size",
    "groups.ROUNDS": "how many times rejected samples are split",
    "groups.PASSES": "passes of the fits of rejected samples",
    "groups.CANDIDATES": "rows that are tried as the direction of a new component",
    "majority.SAMPLES_A_PART": "samples for every component of the majority",
    "majority.FEATURES_A_PART": "features for every component of the majority",
    "majority.AFTER_WARMUP": "passes of the fit of the majority after its warm-up",
    "samples.STRICTER": "standard deviations by which members of groups stay below the cutoffs",
    "samples.PASSES": "most passes of the fit of the accepted samples",
}


def changed(name: str, value: Any, factor: float) -> Any:
    """Return the value of a constant times a factor."""
    if name == "neighbourhood.LARGE":
        return 1.0 - (1.0 - value) * factor
    if isinstance(value, tuple):
        return tuple(factor * part for part in value)
    return max(1, round(factor * value)) if isinstance(value, int) else factor * value


def errors(scenario: real.RealScenario, setting: tuple[str, float] | None) -> float:
    """Score the default on a scenario with one constant changed."""
    data = scenario.data()
    if setting is not None:
        module_name, attribute = setting[0].split(".")
        module = importlib.import_module(f"robustnmf.screening.{module_name}")
        before = getattr(module, attribute)
        setattr(module, attribute, changed(setting[0], before, setting[1]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = RobustNMF(data.rank, random_state=0).fit(data.dirty)
        score = real.RealJudge(data).score("", model.components_, model.outliers_)
    if setting is not None:
        setattr(module, attribute, before)
    return score.relative_error


def main() -> None:
    """Score all settings, and write the table."""
    kinds = set(real.MAIN)
    scenarios = [s for s in real.plan(quick=True).scenarios if (s.corruption, s.share) in kinds]
    settings = [None, *((name, factor) for name in CONSTANTS for factor in (0.5, 2.0))]
    jobs = [delayed(errors)(s, setting) for setting in settings for s in scenarios]
    scores = np.log(Parallel(n_jobs=-1, batch_size=20)(jobs)).reshape(len(settings), len(scenarios))
    of_kind = [np.array([(s.corruption, s.share) == kind for s in scenarios]) for kind in real.MAIN]
    texts = []
    for row in scores:
        means = [np.exp(row[chosen].mean()) for chosen in of_kind]
        texts.append(f"{np.mean(means):.3f} ({means[0]:.3f})")
    rows = []
    for i, (name, what) in enumerate(CONSTANTS.items()):
        module, key = name.split(".")
        value = getattr(importlib.import_module(f"robustnmf.screening.{module}"), key)
        rows.append([f"`{name}`", what, str(value), *texts[1 + 2 * i : 3 + 2 * i]])
    with OUT.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["constant", "what it is", f"value (error {texts[0]})", "half", "twice"])
        writer.writerows(rows)
    print(OUT.read_text())


if __name__ == "__main__":
    main()
