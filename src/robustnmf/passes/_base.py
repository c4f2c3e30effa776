"""What all passes have in common: the order of a visit, and weights of rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

from robustnmf.arrays import Array, active_components, namespace, to_device_of
from robustnmf.losses import Loss
from robustnmf.passes._statistics import BlockState, Statistics
from robustnmf.solvers import Penalty, Update
from robustnmf.weightings import Batch


@dataclass(frozen=True)
class Pass(ABC):
    """The visits of a pass to a block, for one basis per member (members, k, features).

    ``previous`` is the basis of the pass before, ``update`` the step of the codes,
    ``penalty`` what codes pay beside their loss, ``multiplies`` says that the step is the plain
    multiplicative one. ``bounded`` asks for Gram matrices that bound
    second derivatives where they are not those of the loss itself.
    """

    loss: Loss
    update: Update
    basis: Array
    previous: Array
    penalty: Penalty
    bounded: bool = False
    multiplies: bool = False

    quadratic: ClassVar[bool] = False
    """Whether Gram matrices stand for the approximation, which then is never formed."""

    fill_value: ClassVar[float] = 1.0
    """What must stand in the place of an entry that is not known, in units of scale."""

    def to_device_of(self, block: Any) -> Pass:
        """The same pass where the rows of a block are."""
        if type(block.row_weight) is type(self.basis):
            return self
        basis, previous = (
            to_device_of(block.row_weight, factor) for factor in (self.basis, self.previous)
        )
        return replace(
            self,
            basis=basis,
            previous=previous,
            penalty=self.penalty.to_device_of(block.row_weight),
        )

    @cached_property
    def gram(self) -> Array:
        """Gram matrix of the basis (members, k, k), the same for all blocks."""
        return self.basis @ namespace(self.basis).matrix_transpose(self.basis)

    @cached_property
    def bound(self) -> Array | None:
        """Bound of the second derivative with respect to the codes, where it is asked for."""
        if not self.bounded:
            return None
        return self.gram + self.penalty.gram(self.gram) if self.penalty else self.gram

    @cached_property
    def present(self) -> Array:
        """Of which components (members, k) there is anything."""
        return active_components(self.gram)

    @abstractmethod
    def evaluate(self, block: Any, codes: Array) -> tuple[Array, Any]:
        """The codes as they are, and what this pass sees of the block with them."""

    @abstractmethod
    def update_codes(self, block: Any, codes: Array, weighting: Batch) -> tuple[Array, Any]:
        """Updated codes, and what this pass sees of the block with them."""

    @abstractmethod
    def encode(self, block: Any, weighting: Batch) -> tuple[Array, Any]:
        """Best codes for this basis, every row for itself, and what is seen with them."""

    @abstractmethod
    def energies(self, block: Any, codes: Array, cache: Any) -> Array:
        """Energy of every row (members, rows), never below rounding."""

    @abstractmethod
    def sums(self, block: Any, codes: Array, weights: Array, cache: Any) -> tuple[Array, Array]:
        """Weighted sums over the rows that the update of the basis needs."""

    def row_values(self, block: Any, codes: Array, cache: Any, weighting: Batch) -> Array:
        """What every row would minimise by itself (members, rows)."""
        return self.penalised(block, codes, self.energies(block, codes, cache))

    def penalised(self, block: Any, codes: Array, energies: Array) -> Array:
        """Energies with what the codes pay, for a whole row as they are."""
        if not self.penalty:
            return energies
        return energies + block.as_whole(self.penalty.energies(block, codes))

    def measure(
        self, block: Any, local: BlockState, weighting: Batch, cache: Any
    ) -> tuple[BlockState, Statistics]:
        """Energies of a block and their tally, without the sums for the basis."""
        local, statistics, _ = self.weigh(block, local, weighting, cache)
        return local, statistics

    def gather(
        self, block: Any, local: BlockState, weighting: Batch, cache: Any
    ) -> tuple[BlockState, Statistics]:
        """Energies of a block, and the weighted sums that the basis update needs."""
        local, statistics, weights = self.weigh(block, local, weighting, cache)
        sums: tuple[Array, ...] = self.sums(block, local.codes, weights, cache)
        if (self.bounded or self.penalty.overlap_penalty is not None) and not self.quadratic:
            sums = (*sums, self._codes_gram(block, local.codes, weights))
        return local, replace(statistics, sums=sums)

    def _codes_gram(self, block: Any, codes: Array, weights: Array) -> Array:
        """Weighted Gram matrix of the codes, every row with its share in the penalty."""
        xp = namespace(codes)
        shares = xp.astype(self.penalty.shares(block), codes.dtype)[:, None]
        return xp.matrix_transpose(codes * self.row_weights(block, weights) * shares) @ codes

    def row_weights(self, block: Any, weights: Array) -> Array:
        """Weights of rows, from those that ``weigh`` returns."""
        return weights

    def weigh(
        self, block: Any, local: BlockState, weighting: Batch, cache: Any
    ) -> tuple[BlockState, Statistics, Array]:
        """Energies of a block, their tally, and weights that broadcast over its codes."""
        losses = self.energies(block, local.codes, cache)
        energies = self.penalised(block, local.codes, losses)
        sizes = block.row_sizes(self.loss.degree) if weighting.uses_row_sizes else None
        weighed = weighting.weigh(energies, block.row_weight, sizes)
        weights = block.as_whole(weighed.weights)
        weights = namespace(weights).astype(weights, local.codes.dtype)[:, :, None]
        statistics = Statistics(weighed.objective_sums, weighed.log_scale, quadratic=self.quadratic)
        return self.noted(local, losses, energies), statistics, weights

    def noted(self, local: BlockState, losses: Array, energies: Array, **more: Array) -> BlockState:
        """The local state with what has been measured."""
        apart = losses if self.penalty else None
        return replace(local, energies=energies, losses=apart, **more)
