"""Plain NMF: any nonnegative basis."""

from __future__ import annotations

from robustnmf.structures._base import Structure


class Free(Structure):
    r"""Any nonnegative factors, :math:`X \approx A C` with :math:`A, C \ge 0`.

    Examples
    --------
    >>> from robustnmf import Free, RobustNMF
    >>> RobustNMF(structure=Free())
    RobustNMF(structure=Free())
    """
