r"""Passes that form the approximation :math:`A C` of a block, for any loss.

What has been seen of a block is its approximation. Codes for a basis that stays come from
Newton's method: the loss is replaced by its quadratic model, the model is minimised exactly
under the nonnegativity, and the step is halved until the loss falls. For the squared error
the model is the loss itself, and for weights of entries this is iterative reweighting.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from robustnmf.arrays import (
    Array,
    arange_like,
    as_float64,
    energy_rounding,
    masked_scatter,
    namespace,
)
from robustnmf.passes._base import Pass
from robustnmf.solvers import CHUNK_NUMBERS, by_coordinates, nonnegative_least_squares
from robustnmf.weightings import Batch

MAX_STEPS = 200
MAX_HALVINGS = 12
STEP_TOLERANCE = 1e-12
SHRINK = 0.1
VALUE_ROUNDING = 1e-14
DEAD = 1e-60


class ApproximationPass(Pass):
    """A pass that sees the approximation of a block (members, *values)."""

    def row_objective(
        self, block: Any, codes: Array, weighting: Batch, cache: Array
    ) -> tuple[Array, Array | None]:
        """What every row minimises (members, rows), and the slope of each entry; None is ones."""
        values = self.losses(block, codes, cache)
        return values + self.penalty.energies(block, codes) if self.penalty else values, None

    def evaluate(self, block: Any, codes: Array) -> tuple[Array, Array]:
        return codes, block.approximation(codes, self.basis)

    def losses(self, block: Any, codes: Array, cache: Array) -> Array:
        """Loss of the known entries of every row (members, rows), float64."""
        stored = block.row_sums(self.loss.entries(block.values(), cache))
        if not block.zeros_apart:
            return stored
        return stored + self.loss.slope_at_zero * block.unstored(codes, self.basis, cache, stored)

    def energies(self, block: Any, codes: Array, cache: Array) -> Array:
        energies = block.as_whole(self.losses(block, codes, cache))
        least = energy_rounding(codes) * block.row_sizes(self.loss.degree)
        return namespace(codes).maximum(energies, least)

    def row_values(self, block: Any, codes: Array, cache: Array, weighting: Batch) -> Array:
        return self.row_objective(block, codes, weighting, cache)[0]

    def paid(self, block: Any, codes: Array, positive: Array) -> Array:
        """The positive part of the gradient with that of the penalty."""
        return positive + self.penalty.gradient(block, codes) if self.penalty else positive

    def encode(self, block: Any, weighting: Batch) -> tuple[Array, Array]:
        xp = namespace(self.basis)
        members, k, _ = self.basis.shape
        step = max(1, CHUNK_NUMBERS // k**2)
        codes = []
        for j in range(members):
            # In float64: rounding must not tell a row what company it is in.
            basis = _alive(as_float64(self.basis[j : j + 1, ...]))
            alone = replace(self, basis=basis, previous=basis, penalty=self.penalty.of(j))
            chunks = [
                alone._encode(
                    block.part(arange_like(min(at + step, len(block)), self.basis, at)),
                    weighting.keep([j]),
                )
                for at in range(0, len(block), step)
            ]
            codes.append(xp.concat(chunks))
        return self.evaluate(block, xp.astype(xp.stack(codes), self.basis.dtype, copy=False))

    def _encode(self, block: Any, weighting: Batch) -> Array:
        """Codes (rows, k) of the only member, from one side or, where that matters, from two."""
        xp = namespace(self.basis)
        total = xp.sum(self.basis)
        codes = block.row_sizes(1.0)[:, None] / xp.where(total > 0, total, 1 + 0 * total)
        codes = codes + xp.zeros_like(self.basis[0, None, :, 0])
        together = self._newton(block, weighting, codes)
        if self.penalty.overlap_penalty is None:
            return together
        # Components pay for company: single ones are minima, each for itself.
        single = self._newton(block, weighting, self._best_single(block, weighting))
        ends = [self._at(block, codes, weighting)[0] for codes in (together, single)]
        return xp.where((ends[0] < ends[1])[:, None], together, single)

    def _best_single(self, block: Any, weighting: Batch) -> Array:
        """Codes (rows, k) with the one component that alone is best, sized for that."""
        xp = namespace(self.basis)
        k = self.basis.shape[1]
        if self.loss.quadratic:
            onto = block.project_part(block.values()[None, ...], self.basis)[0, ...]
            ones = xp.ones_like(block.approximation(0 * onto[None, ...], self.basis))
            known = xp.linalg.diagonal(block.grams(ones, self.basis))
        else:
            known = block.project_part(None, self.basis)[0, ...]
            onto = block.of_known(block.row_sizes(1.0))[:, None] + xp.zeros_like(
                self.basis[0, None, :, 0]
            )
        some = known > 0  # a component may have died down
        sizes = xp.where(some, onto / xp.where(some, known, 1 + 0 * known), 0 * onto)
        alone = [xp.where(arange_like(k, sizes) == j, sizes, 0 * sizes) for j in range(k)]
        values = xp.stack([self._at(block, codes, weighting)[0] for codes in alone], axis=1)
        best = xp.argmin(values, axis=1)
        return xp.where(arange_like(k, sizes) == best[:, None], sizes, 0 * sizes)

    def _newton(self, block: Any, weighting: Batch, codes: Array) -> Array:
        """Codes (rows, k) by Newton's method; every row has its own Gram matrix."""
        xp = namespace(self.basis)
        values, slopes = self._at(block, codes, weighting)
        solved, present = codes.T, values >= 0
        for _ in range(MAX_STEPS):
            # What rounding leaves in a value: its entries are differences of such terms.
            bound = values + VALUE_ROUNDING * (block.row_sizes(self.loss.degree) + values)
            linear, grams = self._model(block, codes, slopes)
            if self.penalty.overlap_penalty is None:
                target = nonnegative_least_squares(linear, grams, guess=codes)
            else:
                target = by_coordinates(linear, grams, codes)
            moved = self._descend(block, codes, target, weighting, bound)
            # The step, not the value, tells when to stop: near a minimum values are flat.
            change = xp.max(xp.abs(moved - codes), axis=1)
            codes = moved
            solved = masked_scatter(solved, present, codes.T)
            open_rows = change > STEP_TOLERANCE * xp.max(codes, axis=1)
            if not xp.any(open_rows):
                break
            present = masked_scatter(present, present, open_rows)
            (rows,) = xp.nonzero(open_rows)
            block, codes = block.part(rows), xp.take(codes, rows, axis=0)
            values, slopes = self._at(block, codes, weighting)
        return xp.asarray(solved.T, copy=True)

    def _model(self, block: Any, codes: Array, slopes: Array | None) -> tuple[Array, Array]:
        """Linear term and Gram matrix of the quadratic model of every row."""
        xp = namespace(codes)
        cache = block.approximation(codes[None, ...], self.basis)
        curvature = self.loss.curvature(block.values(), cache)
        parts = self.loss.split(block.values(), cache)
        if slopes is not None:
            curvature = slopes * curvature
            parts = tuple(slopes if part is None else slopes * part for part in parts)
        grams = block.grams(curvature, self.basis)
        negative, positive = (block.project_part(part, self.basis) for part in parts)
        if self.penalty:
            positive = self.paid(block, codes[None, ...], positive)
            grams = grams + self.penalty.grams(block, codes)
        linear = xp.squeeze(codes[:, None, :] @ grams, axis=1)
        return linear + (negative - positive)[0, ...], grams

    def _descend(
        self, block: Any, codes: Array, target: Array, weighting: Batch, bound: Array
    ) -> Array:
        """As far towards the target as the objective of every row stays within its bound.

        Where the loss goes to infinity as an approximation goes to zero, no step takes the
        approximation of a positive entry nearly there: from such a place Newton's method
        returns so slowly that it seems to rest.
        """
        xp = namespace(codes)
        step = xp.ones_like(bound)
        rises = bound < bound
        positive = block.values() > 0
        lowest = SHRINK * block.approximation(codes[None, ...], self.basis)
        for _ in range(MAX_HALVINGS):
            trial = (codes + step[:, None] * (target - codes))[None, ...]
            cache = block.approximation(trial, self.basis)
            reached = self.row_objective(block, trial, weighting, cache)[0][0, ...]
            rises = ~(reached <= bound)  # also where it is not a number
            if not self.loss.quadratic:
                shrunk = positive & (cache < lowest)
                rises = rises | (block.row_sums(shrunk)[0, ...] > 0)
            if not xp.any(rises):
                break
            step = xp.where(rises, 0.5 * step, step)
        step = xp.where(rises, 0 * step, step)
        return codes + step[:, None] * (target - codes)

    def _at(self, block: Any, codes: Array, weighting: Batch) -> tuple[Array, Array | None]:
        """Objective of every row (rows,) with these codes, and the slope of each entry."""
        cache = block.approximation(codes[None, ...], self.basis)
        values, slopes = self.row_objective(block, codes[None, ...], weighting, cache)
        return values[0, ...], slopes


def _alive(basis: Array) -> Array:
    """The basis (1, k, features) without components that have died down to almost nothing.

    Their codes would have to be as many orders larger than the others, and rounding rules.
    """
    xp = namespace(basis)
    sizes = xp.max(basis, axis=-1, keepdims=True)
    return xp.where(sizes > DEAD * xp.max(sizes), basis, xp.zeros_like(basis))
