"""The one pass: pure functions of a block, its local state and the basis.

Every pass has the same visits: ``move`` (codes from the basis), ``measure``
(energies and the objective), ``gather`` (the same, with the sums for the basis) and
``encode`` (best codes for a basis that stays). What one visit has already computed
of a block is handed to the next as ``seen``.
"""

from robustnmf.passes._base import Pass
from robustnmf.passes._statistics import BlockState, Statistics
from robustnmf.passes.divergence import DivergencePass
from robustnmf.passes.entries import EntryPass
from robustnmf.passes.gram import GramPass
from robustnmf.passes.masked import MaskedPass

__all__ = [
    "BlockState",
    "DivergencePass",
    "EntryPass",
    "GramPass",
    "MaskedPass",
    "Pass",
    "Statistics",
]
