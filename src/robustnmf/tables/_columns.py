"""Choose features of a table by their names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from robustnmf.tables._stored import StoredRows
from robustnmf.tables._table import Table, join_first


def choose_columns(table: Table, columns: Sequence[str]) -> Table:
    """Return the table with the features of these names or patterns alone, in their own order."""
    positions = {name: i for i, name in enumerate(table.features)}
    chosen = np.zeros(len(table.features), dtype=bool)
    for column in columns:
        if column in positions:
            chosen[positions[column]] = True
            continue
        pattern = _compile(column)
        matches = [i for name, i in positions.items() if pattern.fullmatch(name)]
        if not matches:
            left_out = [name for name in table.left_out if pattern.fullmatch(name)]
            raise ValueError(
                f"--columns names {column[:40]!r}, which holds no numbers."
                if left_out
                else f"--columns names {column[:40]!r}, but the features are "
                f"{join_first((repr(name[:40]) for name in table.features), 20)}."
            )
        chosen[matches] = True
    indices = np.flatnonzero(chosen)
    features = [table.features[int(i)] for i in indices]
    note = f"{len(features)} of {len(table.features)} features, by --columns"
    made_missing = {n: count for n, count in table.made_missing.items() if n in set(features)}
    data = table.data
    chosen_data = data.choose(indices) if isinstance(data, StoredRows) else data[:, indices]
    return replace(
        table, data=chosen_data, features=features, notes=[*table.notes, note],
        left_out=[], made_missing=made_missing, positions=indices,
    )  # fmt: skip


def _compile(pattern: str) -> re.Pattern[str]:
    """Return a pattern with ``*`` and ``?`` as a regular expression."""
    parts = {"*": ".*", "?": "."}
    return re.compile("".join(parts.get(c, re.escape(c)) for c in pattern), re.DOTALL)
