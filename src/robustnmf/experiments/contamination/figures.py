"""Detection, true components, and errors by share of bad samples, at the default rank."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from robustnmf.experiments.contamination.cells import Row, cells_in, number_cell
from robustnmf.experiments.contamination.detection import DETECTORS, FLAGGING, OUR_DETECTOR
from robustnmf.experiments.contamination.generated import SYNTHETIC
from robustnmf.experiments.contamination.goals import CLEAN, flagged_verdict, means, parts_of
from robustnmf.experiments.contamination.methods import CEILING
from robustnmf.experiments.outcome import Cell, Chart, Grid, Line, Outcome

GOOD = 0.95
DETECTION_SHARE = 0.2


def over_shares(rows: Sequence[Row], methods: Sequence[str]) -> Outcome:
    """Draw the error of each method against the share of bad samples."""
    charts = []
    selection = [row for row in _own_rank(rows) if row[0].dataset != SYNTHETIC]
    for part, part_rows in parts_of(selection).items():
        lines = []
        for method in methods:
            cells = means(part_rows, method, "error")
            shares = sorted({place.share for place in cells})
            errors = [np.mean([v for p, v in cells.items() if p.share == s]) for s in shares]
            if shares:
                lines.append(Line(method, [100 * s for s in shares], [float(v) for v in errors]))
        charts.append(Chart(part, "bad samples in percent", "relative error", lines))
    return Outcome(
        "shares",
        "Error against the share of bad samples",
        "Mean over datasets (without the synthetic one) and corruptions, each at its own rank.",
        charts=charts,
    )


def detection(rows: Sequence[Row]) -> Outcome | None:
    """Tabulate how well detectors rank bad samples, and what share of clean tables they flag."""
    rows = _own_rank(rows)
    shares = {scenario.share for scenario, _ in rows if scenario.share}
    if not shares:
        return None
    nearest = min(shares, key=lambda share: abs(share - DETECTION_SHARE))
    at_share = [row for row in rows if row[0].share == nearest]
    names = tuple(DETECTORS)
    auroc = {name: means(at_share, name, "auroc") for name in (*names, CEILING)}
    places = sorted(auroc[OUR_DETECTOR])
    if not places:
        return None
    ours, ceiling = auroc[OUR_DETECTOR], auroc[CEILING]
    detectable = [p for p in places
                  if max(auroc[name].get(p, 0.0) for name in names[1:]) >= GOOD]  # fmt: skip
    misses = [place for place in detectable if ours[place] < GOOD]
    table = []
    for place in places:
        values = [auroc[name].get(place, np.nan) for name in names]
        best = np.nanmax(values)
        cells = [number_cell(v, ".3f", ("best",) if v == best else ()) for v in values]
        names_of_place = (Cell(place.dataset), Cell(place.corruption))
        table.append([*names_of_place, *cells, number_cell(ceiling[place], ".3f")])
    listing = ", ".join(
        f"{p.dataset} {p.corruption} {ours[p]:.2f} (ceiling {ceiling[p]:.2f})" for p in misses
    )
    share = f"{nearest:.0%}"
    note = (
        f"At {share} bad samples a detector of scikit-learn reaches an AUROC of {GOOD} in "
        f"{len(detectable)} of {len(places)} cells; {OUR_DETECTOR} does in "
        f"{len(detectable) - len(misses)} of these{f', not in: {listing}' if misses else ''}."
    )
    grid = Grid("AUROC", ("dataset", "corruption", *names, CEILING), table)
    return Outcome(
        "detection",
        "Finding the bad samples",
        f"Area under the ROC curve with {share} bad samples, mean over all seeds. EllipticEnvelope "
        "sees principal components where features are many. The last column is a ceiling: the "
        "errors of a plain NMF that knows which samples are good, and learns from these alone. "
        "The second table is the share of the samples of clean tables that each detector flags.",
        [grid, *_flags_of_clean_tables(rows)],
        notes=[text for text in (note, flagged_verdict(rows)) if text],
    )


def _flags_of_clean_tables(rows: Sequence[Row]) -> list[Grid]:
    """Tabulate the share of the samples of clean tables that each detector flags, if any."""
    flagged = {name: cells_in(means(rows, name, "lost"), CLEAN) for name in FLAGGING}
    places = sorted(flagged[OUR_DETECTOR])
    if not places:
        return []
    table = [
        [Cell(p.dataset), *(number_cell(flagged[name].get(p, np.nan), ".1%") for name in FLAGGING)]
        for p in places
    ]
    return [Grid("flagged samples of clean tables", ("dataset", *FLAGGING), table, suffix="_clean")]


def known_parts(rows: Sequence[Row], methods: Sequence[str]) -> Outcome | None:
    """Tabulate the distance from the true components of the synthetic table."""
    selection = [row for row in _own_rank(rows) if row[0].dataset == SYNTHETIC]
    shares = sorted({scenario.share for scenario, _ in selection})
    table = []
    for method in methods:
        cells = means(selection, method, "parts_distance")
        distances = [[v for p, v in cells.items() if p.share == s] for s in shares]
        numbers = [float(np.mean(values)) if values else np.nan for values in distances]
        if cells:
            table.append([Cell(method), *(number_cell(v, ".4f") for v in numbers)])
    if not table:
        return None
    header = ("method", *(f"{share:.0%}" for share in shares))
    return Outcome(
        "parts",
        "Known parts",
        "Data made of ten known parts: one less the cosine between learned and true parts, mean "
        "over corruptions and seeds, by the share of bad samples.",
        [Grid("distance from the true parts", header, table)],
    )


def _own_rank(rows: Sequence[Row]) -> list[Row]:
    """Return the rows of scenarios at the default rank of the table."""
    return [row for row in rows if not row[0].rank]
