"""Plain NMF: any nonnegative basis."""

from __future__ import annotations

from typing import Any

from robustnmf.arrays import Array, namespace
from robustnmf.solvers import Terms, Update
from robustnmf.structures._base import Structure


class Free(Structure):
    r"""Any nonnegative basis, :math:`X \approx A C` with :math:`A, C \ge 0`.

    Examples
    --------
    >>> from robustnmf import Free, RobustNMF
    >>> RobustNMF(structure=Free())
    RobustNMF(structure=Free())
    """

    def start(self, engine: Any, codes: Array, basis: Array) -> tuple[Array, Array, None]:
        return codes, basis, None

    def step(
        self, engine: Any, locals_: Any, basis: Array, terms: Terms, update: Update
    ) -> tuple[Any, Array]:
        transpose = namespace(basis).matrix_transpose
        return locals_, transpose(update(transpose(basis), terms))
