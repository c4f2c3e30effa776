"""Every table and figure of the paper, numbered as the paper does; a new one is a line here."""

from __future__ import annotations

from robustnmf.experiments.paper import figure7, figure8, figure9, table1, table2, table3
from robustnmf.experiments.paper._base import Item, Results, Scope
from robustnmf.experiments.paper.line_figures import FIGURES

ITEMS: dict[str, Item] = {
    item.key: item
    for item in (
        table1.ITEM, table2.ITEM, table3.ITEM, *FIGURES, figure7.ITEM, figure8.ITEM, figure9.ITEM,
    )
}  # fmt: skip

__all__ = ["ITEMS", "Item", "Results", "Scope"]
