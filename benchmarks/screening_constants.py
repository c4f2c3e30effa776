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
from robustnmf.experiments.contamination import REAL
from robustnmf.experiments.contamination.judge import Judge
from robustnmf.experiments.contamination.real_tables import MAIN
from robustnmf.experiments.contamination.scenario import Scenario

OUT = Path(__file__).parents[1] / "results" / "real" / "constants.csv"

CONSTANTS = {
    "neighbourhood.REFERENCES": "maximum number of rows to which distances are measured",
    "neighbourhood.NEIGHBOUR": "the isolation is the distance to this nearest row",
    "neighbourhood.LARGE": "quantile of the isolation of usual samples (1 - quantile is varied)",
    "decision.FACTORS": "multiples of this quantile that are limits of the candidates",
    "decision.GAIN": "relative gain that is needed to leave samples out",
    "decision.SPLITS": "number of splits of the rows into halves",
    "decision.PASSES": "iterations of the fits of the halves",
    "neighbourhood.COHESIVE": "isolation over distance to usual samples that makes a group close",
    "decision.DESCRIBED": "error over that of other samples above which samples are left out",
    "decision.SMALLEST": "rows that all candidates keep, at least; isolation needs twice as many",
    "decision.EXACT": "error that is ignored, as a share of the size of a row",
    "groups.ROUNDS": "number of times that rejected samples are split",
    "groups.PASSES": "iterations of the fits of rejected samples",
    "groups.MOSTLY": "share of a half above which only errors relative to sizes count",
    "groups.CANDIDATES": "rows that are tried as the direction of a new component",
    "majority.SAMPLES_PER_COMPONENT": "samples per component of the majority",
    "majority.FEATURES_PER_COMPONENT": "features per component of the majority",
    "majority.AFTER_WARMUP": "iterations of the fit of the majority after its warm-up",
    "samples.STRICTER": "standard deviations by which members of groups stay below the cutoffs",
    "samples.PASSES": "maximum number of iterations of the fit of the accepted samples",
}


def changed(name: str, value: Any, factor: float) -> Any:
    """Return the value of a constant times a factor."""
    if name == "neighbourhood.LARGE":
        return 1.0 - (1.0 - value) * factor
    if isinstance(value, tuple):
        return tuple(factor * part for part in value)
    return max(1, round(factor * value)) if isinstance(value, int) else factor * value


def errors(scenario: Scenario, setting: tuple[str, float] | None) -> float:
    """Score the default on a scenario with one constant changed."""
    data = REAL.draw(scenario, None)
    if setting is not None:
        module_name, attribute = setting[0].split(".")
        module = importlib.import_module(f"robustnmf.screening.{module_name}")
        before = getattr(module, attribute)
        setattr(module, attribute, changed(setting[0], before, setting[1]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = RobustNMF(data.rank, random_state=0).fit(data.dirty)
        score = Judge(data, REAL.floor).basis("", model.components_)
    if setting is not None:
        setattr(module, attribute, before)
    return score.relative_error


def main() -> None:
    """Score all settings, and write the table."""
    kinds = set(MAIN)
    scenarios = [s for s in REAL.plan(quick=True).scenarios if (s.corruption, s.share) in kinds]
    settings = [None, *((name, factor) for name in CONSTANTS for factor in (0.5, 2.0))]
    jobs = [delayed(errors)(s, setting) for setting in settings for s in scenarios]
    scores = np.log(Parallel(n_jobs=-1, batch_size=20)(jobs)).reshape(len(settings), len(scenarios))
    of_kind = [np.array([(s.corruption, s.share) == kind for s in scenarios]) for kind in MAIN]
    texts = []
    for row in scores:
        means = [np.exp(row[chosen].mean()) for chosen in of_kind]
        texts.append(f"{np.mean(means):.3f} ({means[0]:.3f})")
    rows = []
    for i, (name, what) in enumerate(CONSTANTS.items()):
        module, key = name.split(".")
        value = getattr(importlib.import_module(f"robustnmf.screening.{module}"), key)
        shown = f"{value:.3g}" if isinstance(value, float) else str(value)
        rows.append([f"`{name}`", what, shown, *texts[1 + 2 * i : 3 + 2 * i]])
    with OUT.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["constant", "what it is", f"value (error {texts[0]})", "half", "twice"])
        writer.writerows(rows)
    print(OUT.read_text())


if __name__ == "__main__":
    main()
