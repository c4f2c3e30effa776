"""What a structure must say: what the basis is made of, and how it moves."""

from __future__ import annotations

from abc import ABC
from typing import Any, ClassVar

from sklearn.base import BaseEstimator

from robustnmf.arrays import Array, namespace
from robustnmf.solvers import Terms, Update


class Structure(BaseEstimator, ABC):
    """How the factors may look; any nonnegative ones unless a subclass says otherwise.

    Class attributes
    ----------------
    exponent : power to which multiplicative updates of both factors are taken.
    mixes_samples : whether the basis is a mixture of samples, so that every row has
        a share in it (``local.mixing``) beside its codes.
    """

    exponent: ClassVar[float] = 1.0
    mixes_samples: ClassVar[bool] = False
    _parameter_constraints: ClassVar[dict[str, list]] = {}

    def start(
        self, engine: Any, codes: list[Array], basis: Array
    ) -> tuple[list[Array], Array, list[Array] | None]:
        """Codes, basis and mixing of this structure from a plain start; members first."""
        return codes, basis, None

    penalises_overlap: ClassVar[bool] = False
    """Whether components pay for being used together."""

    def overlap_penalty(self, basis: Array) -> Array | None:
        """For which factors (members, k) components pay together; None where they do not."""
        return None

    def ridge(self, basis: Array, codes_gram: Array) -> Array:
        """What the squares of each component (members, k) pay, where they do."""
        raise NotImplementedError

    def step(
        self, engine: Any, block_states: Any, basis: Array, terms: Terms, update: Update
    ) -> tuple[Any, Array]:
        """New local states and basis (members, k, features) from the terms of a pass."""
        transpose = namespace(basis).matrix_transpose
        factor = transpose(basis)
        members, features, k = factor.shape

        def update_features(chosen: slice) -> Array:
            return transpose(update(factor[:, chosen, :], terms.rows(chosen)))

        return block_states, engine.map_columns(
            update_features, features, members * features * k**2
        )
