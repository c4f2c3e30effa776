"""The scaling of a dataset is not chosen by chance."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from benchmarks.scalings import (
    FIRST_STARTS,
    MOST_STARTS,
    STANDARD_ERROR,
    ScalingScores,
    choose_scalings,
    standard_error,
    starts_needed,
    tied_scalings,
)

from robustnmf.experiments.paper.tables import SIZES
from robustnmf.experiments.protocol import PROTOCOL

ROOT = Path(__file__).resolve().parents[2]
PAPER = 40.0


def scores(dataset, scaling, mean, deviation=2.0, starts=30):
    """Scores with this mean and deviation; information is the paper's own."""
    steps = np.linspace(-1, 1, starts)
    accuracies = mean + deviation * steps / np.std(steps, ddof=1)
    return ScalingScores(dataset, scaling, tuple(accuracies), (PAPER,) * starts, PAPER, PAPER)


def of_images(*more):
    """Two datasets for which one scaling is clearly closest, and others."""
    return [
        scores("one", "largest", 41.0), scores("one", "raw", 47.0),
        scores("two", "largest", 41.5), scores("two", "raw", 46.0), *more,
    ]  # fmt: skip


def test_a_tie_goes_to_the_scaling_of_the_other_datasets_of_the_kind():
    tied = [scores("yale", "raw", 40.1), scores("yale", "largest", 40.8)]
    assert min(tied, key=lambda one: one.distance).scaling == "raw"  # what chance would choose
    assert tied_scalings(tied) == ["raw", "largest"]
    assert choose_scalings(of_images(*tied), lambda name: "image")["yale"] == "largest"


def test_other_kinds_have_no_influence():
    tied = [scores("yale", "raw", 40.1), scores("yale", "largest", 40.8)]
    kinds = {"yale": "image"}
    found = choose_scalings(of_images(*tied), lambda name: kinds.get(name, "table"))
    assert found == {"one": "largest", "two": "largest", "yale": "raw"}


def test_scalings_that_starts_distinguish_are_not_tied():
    apart = [scores("yale", "raw", 40.1), scores("yale", "largest", 42.5)]
    assert tied_scalings(apart) == ["raw"]
    assert choose_scalings(of_images(*apart), lambda name: "image")["yale"] == "raw"
    few = [scores("yale", "raw", 40.1, starts=5), scores("yale", "largest", 42.5, starts=5)]
    assert tied_scalings(few) == ["raw", "largest"]


def test_the_number_of_starts_follows_from_the_standard_error():
    needed = starts_needed(scores("yale", "raw", 40.0, deviation=2.4, starts=FIRST_STARTS))
    assert needed == 24
    assert standard_error(scores("yale", "raw", 40.0, 2.4, needed).accuracies) <= STANDARD_ERROR
    assert starts_needed(scores("yale", "raw", 40.0, deviation=0.1)) == FIRST_STARTS
    assert starts_needed(scores("yale", "raw", 40.0, deviation=50.0)) == MOST_STARTS


def test_the_standard_error_of_a_distance_is_that_of_both_measures_together():
    rng = np.random.default_rng(0)
    draws = []
    for _ in range(400):
        accuracies = 45 + rng.normal(size=20)
        informations = 30 + 0.5 * (accuracies - 45) + rng.normal(size=20)
        draws.append(
            ScalingScores("any", "raw", tuple(accuracies), tuple(informations), 40.0, 35.0)
        )
    assert np.std([one.distance for one in draws]) == pytest.approx(
        np.mean([one.standard_error for one in draws]), rel=0.15
    )


def test_the_frozen_protocol_is_what_the_search_has_chosen():
    with (ROOT / "results/paper/scalings.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    chosen = [row for row in rows if row["chosen"] == "True"]
    assert {row["dataset"]: row["scaling"] for row in chosen} == {
        dataset: PROTOCOL.scaling_of(dataset) for dataset in SIZES
    }
    assert all(row["tied"] == "True" for row in chosen)
