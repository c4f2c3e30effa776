"""Passes over the data: pure functions of a block, its state and the basis.

Every pass has the methods ``update_codes`` (codes from the basis), ``evaluate`` (codes unchanged),
``measure`` (energies and the objective), ``gather`` (the same, with the sums for the basis) and
``encode`` (best codes for a fixed basis). Results for a block that the next method also needs are
returned as ``cache``.
"""

from robustnmf.engine import BlockState
from robustnmf.loop.passes._approximation import DivergencePass
from robustnmf.loop.passes._base import Pass
from robustnmf.loop.passes._statistics import Statistics
from robustnmf.loop.passes.entries import EntryPass
from robustnmf.loop.passes.gram import GramPass
from robustnmf.loop.passes.masked import MaskedPass
from robustnmf.loop.passes.reweighted import ReweightedPass
