"""Every table and figure of the paper, one file each, numbered as the paper does."""

from __future__ import annotations

from robustnmf.experiments.paper import (
    figure1,
    figure2,
    figure3,
    figure4,
    figure5,
    figure6,
    figure7,
    figure8,
    figure9,
    table1,
    table2,
    table3,
)
from robustnmf.experiments.paper._base import Item, Results, Scope

ITEMS: dict[str, Item] = {
    module.ITEM.key: module.ITEM
    for module in (
        table1, table2, table3, figure1, figure2, figure3, figure4, figure5, figure6, figure7,
        figure8, figure9,
    )
}  # fmt: skip

__all__ = ["ITEMS", "Item", "Results", "Scope"]
