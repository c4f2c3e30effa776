"""What a user should know about a table or a choice, in words, and what to do about it."""

from __future__ import annotations

import argparse
import shlex
import warnings
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from robustnmf.estimators import RankSelection
    from robustnmf.tables import Table

NOTEWORTHY_RATIO = 100
"""How many times the median feature the largest one is, for features to have several units."""

SQUARED_LOSSES = {"frobenius", "huber", "biweight"}
"""Losses that the features of the largest numbers dominate."""

CLASS_NAMES = {"class", "classes", "label", "labels", "target", "cluster", "group", "category", "y"}
"""Names of columns that hold the classes of samples."""


def units_ratio(rows: Any) -> float:
    """Return how many times the median feature of rows the largest one is; 1 for sparse rows."""
    import numpy as np

    if not isinstance(rows, np.ndarray):
        return 1.0  # counts, as a rule, which have one unit
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of columns without a value
        typical = np.nanmedian(rows, axis=0)
    positive = typical[typical > 0]
    return float(positive.max() / np.median(positive)) if len(positive) > 1 else 1.0


def choose_scale(
    rows: Any, table: Table, options: argparse.Namespace
) -> tuple[Literal["none", "robust"], str]:
    """Return the scale for ``--scale auto``, and the reason or a note; empty without either.

    Features of several units are scaled. Pixels, points of spectra and counts have one unit.
    """
    import numpy as np

    from robustnmf.report.fitted_page import feature_axis

    ratio = units_ratio(rows)
    if ratio < NOTEWORTHY_RATIO or options.loss not in SQUARED_LOSSES:
        return "none", ""
    text = f"the largest feature is {ratio:,.0f} times the median one"
    known = rows[np.isfinite(rows)]
    is_ordered = options.image_shape is not None or feature_axis(table) is not None
    if is_ordered or (known == np.floor(known)).all():
        return "none", (
            f"{text} and will dominate the parts; if features have different units, use --scale "
            "robust"
        )
    return "robust", f"{text} (--scale none keeps the units): "


def class_note(rows: Any, table: Table) -> str:
    """Ask whether a feature is a class: one of few integers, by its name or alone of its kind."""
    import numpy as np

    from robustnmf.report.fitted_map import MAX_CATEGORIES

    if not isinstance(rows, np.ndarray) or not table.named or table.turned:
        return ""
    counts = {}
    for name, values in zip(table.features, rows.T, strict=True):
        levels = np.unique(values[np.isfinite(values)])
        is_integer = bool((levels == np.floor(levels)).all())
        if is_integer and 2 <= len(levels) <= min(MAX_CATEGORIES, len(rows) // 4):
            counts[name] = len(levels)
    names = [name for name in counts if name.lower() in CLASS_NAMES] or list(counts)
    if len(names) != 1 or len(table.features) < 2:
        return ""
    (name,) = names
    return (
        f"the column {name!r} holds {counts[name]} different integers and is a feature; if it is "
        f"the class of the samples, use --color-by {shlex.quote(name)}"
    )


def edge_note(selection: RankSelection, max_ranks: int) -> str:
    """Say in words that the number of parts is at the edge of those that were tried, if it is."""
    rank, largest = selection.recommended, int(selection.ranks[-1])
    if rank == largest > 1 and largest == max_ranks:
        return (
            f"-k auto chose {rank} parts, the most that it tried; more may be better, raise "
            "--max-ranks"
        )
    if rank == largest > 1:
        return (
            f"-k auto chose {rank} parts, the most that a table of this shape allows: it may have "
            "no fewer parts than features, or too few samples"
        )
    if rank == 1 < largest:
        return (
            "-k auto chose 1 part, the least there is: samples differ in amount alone, or their "
            "parts are hidden by noise or by features of large units (--scale robust)"
        )
    return ""
