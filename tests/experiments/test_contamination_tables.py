"""Tables of the contamination benchmark: parts, bands, goals and notes."""

from dataclasses import replace

from robustnmf.experiments.contamination.cells import Place, means
from robustnmf.experiments.contamination.judge import Score
from robustnmf.experiments.contamination.sample_methods import (
    CEILING,
    FOREST_FIRST,
    ORACLE_FIRST,
    TWO_STEP,
)
from robustnmf.experiments.contamination.samples import LAYOUT, MINORITY, error, outcomes
from robustnmf.experiments.contamination.scenario import Scenario


def rows_with(relative, auroc=0.99, lost=0.0, baseline=1.5):
    """Rows in which every cell has these numbers, for ours and for the others."""
    rows = []
    scenarios = [
        Scenario(dataset, "noise", share, seed)
        for dataset in ("digits", "thyroid") for share in (0.0, 0.2, 0.4) for seed in (0, 7)
    ]  # fmt: skip
    scenarios += [replace(scenario, rank=5) for scenario in scenarios if not scenario.share]
    for scenario in scenarios:
        ours = Score("RobustNMF", relative, relative, lost)
        rows += [(scenario, score) for score in (ours, Score("EucNMF", 2.0, 2.0, 0.0))]
        rows += [(scenario, Score(name, baseline, baseline, 0.1)) for name in TWO_STEP]
        rows.append((scenario, Score(ORACLE_FIRST, 1.0, 1.0, 0.0)))
        areas = {"RobustNMFDetector": auroc, "IsolationForest": 0.97, "LocalOutlierFactor": 0.5,
                 "EllipticEnvelope": 0.5, "PCA error": 0.5, CEILING: 0.99}  # fmt: skip
        if not scenario.rank:
            rows += [(scenario, Score(name, auroc=v, lost=lost)) for name, v in areas.items()]
    return rows


def outcomes_by_key(rows):
    return {outcome.key: outcome for outcome in outcomes(rows)}


def test_parts_are_tuned_other_draws_and_held_out():
    assert [
        list(LAYOUT.parts([(Scenario(name, "noise", 0.1, seed), Score(""))]))
        for name, seed in (("iris", 4), ("iris", 5), ("yale", 0), ("yale", 9))
    ] == [["tuned"], ["other draws"], ["held out"], ["held out"]]


def test_tables_separate_the_parts_and_list_missed_goals():
    by_key = outcomes_by_key(rows_with(1.2, 0.9, lost=0.1))
    grids = by_key["errors"].grids
    titles = [grid.title.split(":")[0] for grid in grids]
    assert titles == ["tuned", "other draws", "held out"]
    assert "digits; 1 seeds" in grids[0].title
    verdicts = [note for note in by_key["errors"].notes if note.startswith("RobustNMF")]
    assert len(verdicts) == 9
    assert all("missed" in note and "met" not in note for note in verdicts)
    assert all("missed" in note for note in by_key["lost"].notes)
    assert "does in 0 of these" in by_key["detection"].notes[0]
    assert "missed" in by_key["detection"].notes[1]
    by_key = outcomes_by_key(rows_with(1.0))
    for key in ("errors", "lost", "detection"):
        assert not any("missed" in note for note in by_key[key].notes)
    assert "does in 2 of these." in by_key["detection"].notes[0]


def test_a_cell_shows_mean_percentile_and_worst():
    rows = [
        (Scenario("yale", "noise", 0.1, seed), Score("RobustNMF", error))
        for seed, error in ((0, 1.0), (1, 2.0))
    ]
    rows.append((Scenario("yale", "shuffled", 0.1, 0), Score("RobustNMF", 2.5)))
    assert means(rows, "RobustNMF", error) == {
        Place("yale", "noise", 0.1): 1.5, Place("yale", "shuffled", 0.1): 2.5,
    }  # fmt: skip
    (row,) = outcomes(rows)[0].grids[0].rows
    assert [cell.text for cell in row] == ["RobustNMF", "", "2.000 / 2.450 / 2.500", ""]
    assert row[2].hint == "worst: yale, shuffled, 10%"
    (note,) = [note for note in outcomes(rows)[0].notes if "5 to 20%" in note]
    assert "mean 2.000 (goal 1.04, missed), 95th percentile 2.450 (goal 1.15, missed)" in note


def test_two_step_baselines_that_are_ahead_are_named():
    notes = [n for n in outcomes_by_key(rows_with(1.2))["errors"].notes if n.startswith("Ahead")]
    assert len(notes) == 9
    assert all(": met." in note and "Behind the oracle: mean 1.200" in note for note in notes)
    by_key = outcomes_by_key(rows_with(1.2, baseline=1.1))
    notes = [note for note in by_key["errors"].notes if note.startswith("Ahead")]
    assert all(f"missed: behind {FOREST_FIRST} (mean 1.200 against 1.100" in n for n in notes)
    assert "in 8 of 8 cells" in by_key["cells"].notes[0]


def test_page_blocks_is_judged_by_the_geometric_mean():
    rows = [(Scenario("page_blocks", "noise", 0.0, 0), Score("RobustNMF", 3.0, 0.7))]
    outcome = outcomes(rows)[0]
    assert outcome.grids[0].rows[0][1].text == "0.700 / 0.700 / 0.700"
    assert "page_blocks is judged by the geometric mean" in outcome.caption
    assert any("by squared error too: clean mean 3.000" in note for note in outcome.notes)


def test_clean_tables_are_shown_by_rank():
    grid = outcomes_by_key(rows_with(1.2, lost=0.1))["ranks"].grids[0]
    texts = [[cell.text for cell in row] for row in grid.rows]
    assert texts[0] == ["digits", "own", "1.200", "1.200", "10.0%", "1.500", "1.500", "10.0%"]
    assert [row[1] for row in texts] == ["own", "5", "own", "5"]


def test_a_small_cluster_has_to_survive_noise_in_every_draw():
    for errors, expected in (((1.0, 1.1), "met"), ((1.0, 500.0), "missed")):
        rows = [(Scenario(*MINORITY, seed), Score("RobustNMF", error))
                for seed, error in enumerate(errors)]  # fmt: skip
        (note,) = [n for n in outcomes(rows)[0].notes if "small_cluster (15%" in n]
        assert f"({expected})" in note
