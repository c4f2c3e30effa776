r"""Random start: uniform factors whose product has the mean of X.

With both factors uniform on :math:`(0, 2\sqrt{\bar x / k}]`, an entry of the product has
expectation :math:`\bar x`. The paper starts from random positive factors.

The codes of a row are a hash of its content: the fractional parts of random projections, which
are multiplied by a large number first. So a row that is repeated, permuted or in another
block starts from the same codes, and a sample weight of two is the same as the row twice.
"""

from __future__ import annotations

from robustnmf.arrays import Array
from robustnmf.engine import Engine
from robustnmf.inits._uniform import draw_factors


def random(engine: Engine, k: int, seed: int) -> tuple[list[Array], Array]:
    """Draw codes (rows, k) of every block and basis (k, m), in the units of the engine."""
    return draw_factors(engine, k, seed)
