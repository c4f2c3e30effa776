"""Base class of all passes: the sequence of steps for a block, and weights of rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

from robustnmf.arrays import Array, Block, active_components, namespace, to_device_of
from robustnmf.engine import BlockState, Threads
from robustnmf.loop.passes._statistics import Statistics
from robustnmf.losses import Loss
from robustnmf.solvers import Penalty, Update
from robustnmf.weightings import Batch


@dataclass(frozen=True)
class Pass(ABC):
    """The steps of a pass for a block, for one basis per member (members, k, features).

    ``previous`` is the basis of the pass before, ``update`` the step of the codes, ``penalty`` the
    penalty of the codes; ``multiplies`` is true if the step is the plain multiplicative update.
    With ``bounded``, Gram matrices that bound the second derivatives of the loss are also computed
    if the loss does not have Gram matrices of its own. ``threads`` encode parts of a block, if the
    data have a single block.
    """

    loss: Loss
    update: Update
    basis: Array
    previous: Array
    penalty: Penalty
    bounded: bool = False
    multiplies: bool = False
    threads: Threads | None = None

    quadratic: ClassVar[bool] = False
    """Whether Gram matrices are used and the approximation is never formed."""

    fill_value: ClassVar[float] = 1.0
    """Value of missing entries, in units of scale."""

    def to_device_of(self, block: Block) -> Pass:
        """Return the pass with its arrays on the device of a block."""
        if type(block.row_weight) is type(self.basis):
            return self
        like = block.row_weight
        return replace(
            self,
            basis=to_device_of(like, self.basis),
            previous=to_device_of(like, self.previous),
            penalty=self.penalty.to_device_of(like),
        )

    @cached_property
    def gram(self) -> Array:
        """Gram matrix of the basis (members, k, k), the same for all blocks."""
        return self.basis @ namespace(self.basis).matrix_transpose(self.basis)

    @cached_property
    def bound(self) -> Array | None:
        """Bound (members, k, k) of the second derivative for the codes, if requested."""
        if not self.bounded:
            return None
        return self.gram + self.penalty.gram(self.gram) if self.penalty else self.gram

    @cached_property
    def present(self) -> Array:
        """Mask of the components (members, k) that are not zero."""
        return active_components(self.gram)

    @abstractmethod
    def evaluate(self, block: Block, codes: Array) -> tuple[Array, Any]:
        """Return the codes (members, rows, k) unchanged, and the cache of the block for them."""

    @abstractmethod
    def update_codes(self, block: Block, codes: Array, weighting: Batch) -> tuple[Array, Any]:
        """Return updated codes (members, rows, k), and the cache of the block for them."""

    @abstractmethod
    def encode(self, block: Block, weighting: Batch) -> tuple[Array, Any]:
        """Return the best codes (members, rows, k) for this basis, and the cache for them.

        Every row is solved independently of the others.
        """

    @abstractmethod
    def energies(self, block: Block, codes: Array, cache: Any) -> Array:
        """Compute the energy of every row (members, rows), at least its rounding error."""

    @abstractmethod
    def sums(self, block: Block, codes: Array, weights: Array, cache: Any) -> tuple[Array, Array]:
        """Compute the weighted sums over rows that the update of the basis needs."""

    def row_values(self, block: Block, codes: Array, cache: Any, weighting: Batch) -> Array:
        """Compute the objective of every row by itself (members, rows)."""
        return self.penalised(block, codes, self.energies(block, codes, cache))

    def penalised(self, block: Block, codes: Array, energies: Array) -> Array:
        """Add the penalty of the codes to energies (members, rows)."""
        if not self.penalty:
            return energies
        return energies + block.as_whole(self.penalty.energies(block, codes))

    def measure(
        self, block: Block, local: BlockState, weighting: Batch, cache: Any
    ) -> tuple[BlockState, Statistics]:
        """Compute energies and objective sums of a block, without the sums for the basis."""
        local, statistics, _ = self.weigh(block, local, weighting, cache)
        return local, statistics

    def gather(
        self, block: Block, local: BlockState, weighting: Batch, cache: Any
    ) -> tuple[BlockState, Statistics]:
        """Compute energies and objective sums of a block, and the sums for the basis."""
        local, statistics, weights = self.weigh(block, local, weighting, cache)
        sums: tuple[Array, ...] = self.sums(block, local.codes, weights, cache)
        if (self.bounded or self.penalty.overlap_penalty is not None) and not self.quadratic:
            sums = (*sums, self._codes_gram(block, local.codes, weights))
        return local, replace(statistics, sums=sums)

    def _codes_gram(self, block: Block, codes: Array, weights: Array) -> Array:
        """Compute the weighted Gram matrix of the codes (members, k, k), with row factors."""
        xp = namespace(codes)
        factors = xp.astype(self.penalty.row_factors(block), codes.dtype)[:, None]
        return xp.matrix_transpose(codes * self.row_weights(block, weights) * factors) @ codes

    def row_weights(self, block: Block, weights: Array) -> Array:
        """Return weights of rows from the weights that ``weigh`` returns."""
        return weights

    def weigh(
        self, block: Block, local: BlockState, weighting: Batch, cache: Any
    ) -> tuple[BlockState, Statistics, Array]:
        """Compute energies and objective sums of a block, and weights (members, rows, 1)."""
        losses = self.energies(block, local.codes, cache)
        energies = self.penalised(block, local.codes, losses)
        sizes = block.row_sizes(self.loss.degree) if weighting.uses_row_sizes else None
        weights, log_scale, objective_sums = weighting.weigh(energies, block.row_weight, sizes)
        weights = block.as_whole(weights)
        weights = namespace(weights).astype(weights, local.codes.dtype, copy=False)[:, :, None]
        statistics = Statistics(objective_sums, log_scale, quadratic=self.quadratic)
        return self.with_energies(local, losses, energies), statistics, weights

    def with_energies(
        self, local: BlockState, losses: Array, energies: Array, **more: Array
    ) -> BlockState:
        """Return the block state with energies, and with losses if codes have a penalty."""
        kept_losses = losses if self.penalty else None
        return replace(local, energies=energies, losses=kept_losses, **more)
