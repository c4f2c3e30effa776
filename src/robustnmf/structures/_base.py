"""Base class of all structures (constraints on the factors), and the unconstrained structure."""

from __future__ import annotations

from abc import ABC
from typing import Any, ClassVar

from sklearn.base import BaseEstimator

from robustnmf.arrays import Array, namespace
from robustnmf.engine import Engine
from robustnmf.solvers import Terms, Update


class Structure(BaseEstimator, ABC):
    """Constraints on the factors; this base class requires only nonnegativity.

    Attributes
    ----------
    exponent : exponent of the multiplicative updates of both factors.
    mixes_samples : whether the basis is a mixture of samples, so that the state of a block
        contains the coefficients of its rows (``mixing``) in addition to their codes.
    penalises_overlap : whether samples that use several components are penalised.
    """

    exponent: ClassVar[float] = 1.0
    mixes_samples: ClassVar[bool] = False
    penalises_overlap: ClassVar[bool] = False
    _parameter_constraints: ClassVar[dict[str, list]] = {}

    def start(
        self, engine: Engine, codes: list[Array], basis: Array
    ) -> tuple[list[Array], Array, list[Array] | None]:
        """Return codes, basis and mixing of this structure from a plain start; members first."""
        return codes, basis, None

    def overlap_penalty(self, basis: Array) -> Array | None:
        """Compute the factors (members, k) of the overlap penalty; None if there is none."""
        return None

    def ridge(self, basis: Array, codes_gram: Array) -> Array:
        """Compute the ridge penalty of the basis (members, k) that majorises the overlap."""
        raise NotImplementedError

    def step(
        self, engine: Engine, block_states: Any, basis: Array, terms: Terms, update: Update
    ) -> tuple[Any, Array]:
        """Return new block states and basis (members, k, features) from the terms of a pass."""
        transpose = namespace(basis).matrix_transpose
        factor = transpose(basis)
        members, features, k = factor.shape

        def update_features(chosen: slice) -> Array:
            return transpose(update(factor[:, chosen, :], terms.rows(chosen)))

        return block_states, engine.map_columns(
            update_features, features, members * features * k**2
        )


class Free(Structure):
    r"""No constraint but nonnegativity: :math:`X \approx A C` with :math:`A, C \ge 0`.

    Examples
    --------
    >>> from robustnmf import Free, RobustNMF
    >>> RobustNMF(structure=Free())
    RobustNMF(structure=Free())
    """
