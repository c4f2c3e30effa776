"""What all passes have in common: the order of a visit, and weights of rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from robustnmf.arrays import Array, namespace
from robustnmf.losses import Loss
from robustnmf.passes._statistics import Local, Statistics
from robustnmf.solvers import Update
from robustnmf.weightings import Batch


@dataclass(frozen=True)
class Pass(ABC):
    """The visits of a pass to a block, for one basis per member (members, k, features).

    ``previous`` is the basis of the pass before, ``update`` the step of a factor.
    """

    loss: Loss
    update: Update
    basis: Array
    previous: Array

    quadratic: ClassVar[bool] = False
    """Whether Gram matrices stand for the approximation, which then is never formed."""

    hole: ClassVar[float] = 1.0
    """What must stand in the place of an entry that is not known, in units of scale."""

    @abstractmethod
    def stay(self, block: Any, codes: Array) -> tuple[Array, Any]:
        """The codes as they are, and what this pass sees of the block with them."""

    @abstractmethod
    def move(self, block: Any, codes: Array, weighting: Batch) -> tuple[Array, Any]:
        """Updated codes, and what this pass sees of the block with them."""

    @abstractmethod
    def encode(self, block: Any, weighting: Batch) -> tuple[Array, Any]:
        """Best codes for this basis, every row for itself, and what is seen with them."""

    @abstractmethod
    def energies(self, block: Any, codes: Array, seen: Any) -> Array:
        """Energy of every row (members, rows), never below rounding."""

    @abstractmethod
    def sums(self, block: Any, codes: Array, weights: Array, seen: Any) -> tuple[Array, Array]:
        """Weighted sums over the rows that the update of the basis needs."""

    def row_values(self, block: Any, codes: Array, seen: Any, weighting: Batch) -> Array:
        """What every row would minimise by itself (members, rows)."""
        return self.energies(block, codes, seen)

    def measure(
        self, block: Any, local: Local, weighting: Batch, seen: Any
    ) -> tuple[Local, Statistics]:
        """Energies of a block and their tally, without the sums for the basis."""
        local, statistics, _ = self.weigh(block, local, weighting, seen)
        return local, statistics

    def gather(
        self, block: Any, local: Local, weighting: Batch, seen: Any
    ) -> tuple[Local, Statistics]:
        """Energies of a block, and the weighted sums that the basis update needs."""
        local, statistics, weights = self.weigh(block, local, weighting, seen)
        negative, positive = self.sums(block, local.codes, weights, seen)
        return local, replace(statistics, negative=negative, positive=positive)

    def weigh(
        self, block: Any, local: Local, weighting: Batch, seen: Any
    ) -> tuple[Local, Statistics, Array]:
        """Energies of a block, their tally, and weights that broadcast over its codes."""
        energies = self.energies(block, local.codes, seen)
        weighed = weighting.weigh(energies, block.mass)
        weights = weighed.weights if block.whole is None else weighed.weights * block.whole
        weights = namespace(weights).astype(weights, local.codes.dtype)[:, :, None]
        statistics = Statistics(weighed.tally, weighed.log_scale, quadratic=self.quadratic)
        return replace(local, energies=energies), statistics, weights
