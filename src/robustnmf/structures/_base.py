"""What a structure must say: what the basis is made of, and how it moves."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from sklearn.base import BaseEstimator

from robustnmf.arrays import Array
from robustnmf.solvers import Terms, Update


class Structure(BaseEstimator, ABC):
    """How the basis may look.

    Class attributes
    ----------------
    exponent : power to which multiplicative updates of both factors are taken.
    mixes_samples : whether the basis is a mixture of samples, so that every row has
        a share in it (``local.mixing``) beside its codes.
    """

    exponent: ClassVar[float] = 1.0
    mixes_samples: ClassVar[bool] = False
    _parameter_constraints: ClassVar[dict[str, list]] = {}

    @abstractmethod
    def start(self, engine: Any, codes: Array, basis: Array) -> tuple[Array, Array, Array | None]:
        """Codes, basis and mixing of this structure from a plain start; members first."""

    @abstractmethod
    def step(
        self, engine: Any, locals_: Any, basis: Array, terms: Terms, update: Update
    ) -> tuple[Any, Array]:
        """New local states and basis (members, k, features) from the terms of a pass."""
