"""Every table and figure of the paper, with the numbers of the paper."""

from __future__ import annotations

from robustnmf.experiments.paper._base import Item, Results, Scope
from robustnmf.experiments.paper.figures import FIGURES
from robustnmf.experiments.paper.tables import TABLES

ITEMS: dict[str, Item] = {item.key: item for item in (*TABLES, *FIGURES)}

__all__ = ["ITEMS", "Item", "Results", "Scope"]
