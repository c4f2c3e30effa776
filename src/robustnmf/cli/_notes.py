"""What a user should know about a table or a choice, in words, and what to do about it."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from robustnmf.estimators import RankSelection

NOTEWORTHY_RATIO = 100
"""How many times the median feature the largest one is, for a note to be printed."""


def units_note(rows: Any) -> str:
    """Say in words that features (rows, features) have very different units, if they have."""
    import numpy as np

    if not isinstance(rows, np.ndarray):
        return ""  # counts, as a rule, which have one unit
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of columns without a value
        typical = np.nanmedian(rows, axis=0)
    positive = typical[typical > 0]
    if len(positive) < 2 or positive.max() < NOTEWORTHY_RATIO * np.median(positive):
        return ""
    return (
        f"the largest feature is {positive.max() / np.median(positive):,.0f} times the median one "
        "and will rule the parts; if features should count alike, use --scale robust"
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
