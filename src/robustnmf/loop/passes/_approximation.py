r"""Passes that form the approximation :math:`A C` of a block, for any loss.

Their cache is the approximation. The best codes for a fixed basis are computed by
Newton's method: the loss is replaced by its quadratic model, the model is minimised exactly
under nonnegativity, and the step is halved until the loss falls. For the squared error
the model is the loss itself, and with weights of entries this is iterative reweighting.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace

from robustnmf.arrays import (
    Array,
    Block,
    SparseBlock,
    arange_like,
    as_float64,
    energy_rounding,
    masked_scatter,
    namespace,
    quotient,
)
from robustnmf.loop.passes._base import Pass
from robustnmf.solvers import CHUNK_NUMBERS, Ratio, by_coordinates, nonnegative_least_squares
from robustnmf.weightings import Batch

MAX_STEPS = 200
QUADRATIC_STEPS = 3
"""Steps for a quadratic loss: one solves it, the others add digits for ill-conditioned rows."""

STORED_ENTRIES = 2**17
"""Number of stored entries of sparse rows that are encoded at a time, in several float64 arrays."""

WORTH_A_THREAD = 50_000
"""Least number of entries for which a thread of its own encodes rows."""

APPROACHES = 10
"""Multiplicative steps before Newton's method."""

MAX_HALVINGS = 12
STEP_TOLERANCE = 1e-12
SHRINK = 0.1
VALUE_ROUNDING = 1e-14
DEAD = 1e-60


class ApproximationPass(Pass):
    """A pass whose cache is the approximation of a block (members, *values)."""

    def row_objective(
        self, block: Block, codes: Array, weighting: Batch, cache: Array
    ) -> tuple[Array, Array | None]:
        """Compute the objective of every row (members, rows), and the weights of its entries.

        None means weights of one.
        """
        values = self.losses(block, codes, cache)
        return values + self.penalty.energies(block, codes) if self.penalty else values, None

    def evaluate(self, block: Block, codes: Array) -> tuple[Array, Array]:
        return codes, block.approximation(codes, self.basis)

    def losses(self, block: Block, codes: Array, cache: Array) -> Array:
        """Compute the loss of the known entries of every row (members, rows), float64."""
        stored = self.loss.row_losses(block, cache)
        if not block.zeros_apart:
            return stored
        assert isinstance(block, SparseBlock)
        return stored + self.loss.slope_at_zero * block.unstored(codes, self.basis, cache, stored)

    def energies(self, block: Block, codes: Array, cache: Array) -> Array:
        energies = block.as_whole(self.losses(block, codes, cache))
        least = energy_rounding(codes) * block.row_sizes(self.loss.degree)
        return namespace(codes).maximum(energies, least)

    def row_values(self, block: Block, codes: Array, cache: Array, weighting: Batch) -> Array:
        return self.row_objective(block, codes, weighting, cache)[0]

    def step(self, block: Block, codes: Array, negative: Array, positive: Array) -> Array:
        """Update codes (members, rows, k) by the two parts of the gradient of the loss."""
        if self.penalty:
            positive = positive + self.penalty.gradient(block, codes)
        present = self.present if self.bounded else None
        return self.update(codes, Ratio(negative, positive, self.bound, present=present))

    def encode(self, block: Block, weighting: Batch) -> tuple[Array, Array]:
        xp = namespace(self.basis)
        members, k, _ = self.basis.shape
        step = max(1, CHUNK_NUMBERS // k**2)
        if block.zeros_apart:
            step = max(1, min(step, STORED_ENTRIES * len(block) // max(1, block.rows.nnz)))
        each: Callable[..., Iterable[Array]] = map
        entries = block.rows.nnz if block.zeros_apart else math.prod(block.rows.shape)
        if self.threads is not None and entries >= 2 * WORTH_A_THREAD:
            pieces = min(self.threads.count, entries // WORTH_A_THREAD)
            step, each = min(step, -(-len(block) // pieces)), self.threads.each
        codes = []
        for j in range(members):
            # In float64, so that rounding does not depend on the other rows of the block.
            basis = _without_vanished(as_float64(self.basis[j : j + 1, ...]))
            member = replace(self, basis=basis, previous=basis, penalty=self.penalty.of(j))
            of_member = weighting.keep([j])

            def encode_from(
                at: int, member: ApproximationPass = member, of_member: Batch = of_member
            ) -> Array:
                rows = arange_like(min(at + step, len(block)), self.basis, at)
                return member._encode(block.part(rows), of_member)

            codes.append(xp.concat(list(each(encode_from, range(0, len(block), step)))))
        return self.evaluate(block, xp.astype(xp.stack(codes), self.basis.dtype, copy=False))

    def _encode(self, block: Block, weighting: Batch) -> Array:
        """Compute codes (rows, k) of the only member by Newton's method.

        With an overlap penalty there are several minima; the better of two starts is returned.
        """
        xp = namespace(self.basis)
        total = xp.sum(self.basis)
        codes = block.row_sizes(1.0)[:, None] / xp.where(total > 0, total, 1 + 0 * total)
        codes = codes + xp.zeros_like(self.basis[0, None, :, 0])
        for loss in self.loss.encoding_path():
            of_loss = replace(self, loss=loss)
            codes = of_loss._newton(block, weighting, of_loss.approach(block, codes, weighting))
        from_all = codes
        if self.penalty.overlap_penalty is None:
            return from_all
        # Each single component is a minimum, because overlap of components is penalised.
        from_single = self._newton(block, weighting, self._best_single(block, weighting))
        values = [self._at(block, codes, weighting)[1] for codes in (from_all, from_single)]
        return xp.where((values[0] < values[1])[:, None], from_all, from_single)

    def _best_single(self, block: Block, weighting: Batch) -> Array:
        """Compute codes (rows, k) that use the best single component of each row."""
        xp = namespace(self.basis)
        k = self.basis.shape[1]
        if self.loss.quadratic:
            onto = block.project_part(block.values()[None, ...], self.basis)[0, ...]
            ones = xp.ones_like(block.approximation(0 * onto[None, ...], self.basis))
            known = xp.linalg.diagonal(block.grams(ones, self.basis))
        else:
            known = block.project_part(None, self.basis)[0, ...]
            onto = block.of_known(block.row_sizes(1.0))[:, None] + 0 * self.basis[0, None, :, 0]
        sizes = quotient(onto, known)  # a component can be zero
        singles = [xp.where(arange_like(k, sizes) == j, sizes, 0 * sizes) for j in range(k)]
        values = xp.stack([self._at(block, codes, weighting)[1] for codes in singles], axis=1)
        best = xp.argmin(values, axis=1)
        return xp.where(arange_like(k, sizes) == best[:, None], sizes, 0 * sizes)

    def _newton(self, block: Block, weighting: Batch, codes: Array) -> Array:
        """Improve codes (rows, k) by Newton's method; every row has its own Gram matrix."""
        xp = namespace(self.basis)
        cache, values, slopes = self._at(block, codes, weighting)
        solved, present = codes.T, values >= 0
        # Further steps on a quadratic would only add rounding errors, and never become small.
        is_quadratic = self.loss.quadratic and slopes is None
        is_solved_exactly = is_quadratic and self.penalty.overlap_penalty is None
        for _ in range(QUADRATIC_STEPS if is_solved_exactly else MAX_STEPS):
            # Rounding error of a value: its entries are differences of terms of this size.
            bound = values + VALUE_ROUNDING * (block.row_sizes(self.loss.degree) + values)
            linear, grams = self._model(block, codes, cache, slopes)
            if self.penalty.overlap_penalty is None:
                target = nonnegative_least_squares(linear, grams, guess=codes)
            else:
                target = by_coordinates(linear, grams, codes)
            updated, cache, values, slopes = self._descend(
                block, codes, cache, target, weighting, bound
            )
            # The step is the stopping criterion, because the value is flat near a minimum.
            change = xp.max(xp.abs(updated - codes), axis=1)
            codes = updated
            solved = masked_scatter(solved, present, codes.T)
            open_rows = change > STEP_TOLERANCE * xp.max(codes, axis=1)
            if not xp.any(open_rows):
                break
            if xp.all(open_rows):
                continue
            present = masked_scatter(present, present, open_rows)
            (rows,) = xp.nonzero(open_rows)
            block, codes = block.part(rows), xp.take(codes, rows, axis=0)
            cache, values, slopes = self._at(block, codes, weighting)
        return xp.asarray(solved.T, copy=True)

    def approach(self, block: Block, codes: Array, weighting: Batch) -> Array:
        """Improve codes (rows, k) by cheap steps before Newton's method, if there are any."""
        return codes

    def _model(
        self, block: Block, codes: Array, cache: Array, slopes: Array | None
    ) -> tuple[Array, Array]:
        """Compute linear term (rows, k) and Gram matrix (rows, k, k) of the quadratic models."""
        xp = namespace(codes)
        curvature = self.loss.curvature(block.values(), cache)
        parts = self.loss.split(block.values(), cache)
        if slopes is not None:
            curvature = slopes * curvature
            parts = weigh_parts(slopes, parts)
        grams = block.grams(curvature, self.basis)
        negative, positive = (block.project_part(part, self.basis) for part in parts)
        if self.penalty:
            positive = positive + self.penalty.gradient(block, codes[None, ...])
            grams = grams + self.penalty.gram(codes, block)
        linear = xp.squeeze(codes[:, None, :] @ grams, axis=1)
        return linear + (negative - positive)[0, ...], grams

    def _descend(
        self,
        block: Block,
        codes: Array,
        cache: Array,
        target: Array,
        weighting: Batch,
        bound: Array,
    ) -> tuple[Array, Array, Array, Array | None]:
        """Move codes (rows, k) towards a target; halve steps until objectives are within a bound.

        Returns the codes and, as ``_at`` does, their approximation, objectives and entry weights.
        If the loss goes to infinity as the approximation goes to zero, a step divides the
        approximation of a positive entry by at most ten: from much smaller values, Newton's method
        increases it so slowly that it seems to have converged.
        """
        xp = namespace(codes)
        step = xp.ones_like(bound)
        rises = bound < bound
        positive = block.values() > 0
        lowest = SHRINK * cache
        for _ in range(MAX_HALVINGS):
            trial = codes + step[:, None] * (target - codes)
            cache, values, slopes = self._at(block, trial, weighting)
            rises = ~(values <= bound)  # also true for NaN
            if not (self.loss.quadratic or self.loss.weighs_entries):
                shrunk = positive & (cache < lowest)
                rises = rises | (block.row_sums(shrunk)[0, ...] > 0)
            if not xp.any(rises):
                return trial, cache, values, slopes
            step = xp.where(rises, 0.5 * step, step)
        step = xp.where(rises, 0 * step, step)
        moved = codes + step[:, None] * (target - codes)
        return moved, *self._at(block, moved, weighting)

    def _at(
        self, block: Block, codes: Array, weighting: Batch
    ) -> tuple[Array, Array, Array | None]:
        """Compute approximation, objectives (rows,) and entry weights for codes (rows, k)."""
        cache = block.approximation(codes[None, ...], self.basis)
        values, slopes = self.row_objective(block, codes[None, ...], weighting, cache)
        return cache, values[0, ...], slopes


class DivergencePass(ApproximationPass):
    r"""Pass for any loss with one weight per row.

    With N and P the negative and positive part of the gradient with respect to the approximation,

    .. math::

        C \leftarrow C \odot \left(\frac{A^T w N}{A^T w P}\right)^e, \qquad
        A \leftarrow A \odot \left(\frac{N C^T}{P C^T}\right)^e

    The weights of rows cancel in the update of the codes, as they do for the squared error.
    """

    def update_codes(self, block: Block, codes: Array, weighting: Batch) -> tuple[Array, Array]:
        parts = self.loss.split_block(block, block.approximation(codes, self.basis))
        negative, positive = (block.project_part(part, self.basis) for part in parts)
        return self.evaluate(block, self.step(block, codes, negative, positive))

    def approach(self, block: Block, codes: Array, weighting: Batch) -> Array:
        # Far from the minimum a multiplicative step gains as much as one of Newton's steps, which
        # takes ten times as long.
        if self.loss.quadratic:
            return codes
        for _ in range(APPROACHES):
            codes = self.update_codes(block, codes[None, ...], weighting)[0][0, ...]
        return codes

    def sums(self, block: Block, codes: Array, weights: Array, cache: Array) -> tuple[Array, Array]:
        negative, positive = self.loss.split_block(block, cache)
        weighted = codes * weights
        return block.cross_part(weighted, negative), block.cross_part(weighted, positive)


def weigh_parts(weights: Array, parts: tuple[Array | None, ...]) -> tuple[Array, ...]:
    """Multiply parts of the gradient by weights of entries; None means ones."""
    return tuple(weights if part is None else weights * part for part in parts)


def _without_vanished(basis: Array) -> Array:
    """Set components of the basis (1, k, features) to zero that are smaller by 60 orders.

    Their codes would be larger by as many orders, and only rounding errors.
    """
    xp = namespace(basis)
    sizes = xp.max(basis, axis=-1, keepdims=True)
    return xp.where(sizes > DEAD * xp.max(sizes), basis, xp.zeros_like(basis))
