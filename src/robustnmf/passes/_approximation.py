r"""Passes that form the approximation :math:`A C` of a block, for any loss.

What has been seen of a block is its approximation. Codes for a basis that stays come from
Newton's method: the loss is replaced by its quadratic model, the model is minimised exactly
under the nonnegativity, and the step is halved until the loss falls. For the squared error
the model is the loss itself, and for weights of entries this is iterative reweighting.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from robustnmf.arrays import Array, namespace, noise, put, wide
from robustnmf.passes._base import Pass
from robustnmf.solvers import CHUNK_NUMBERS, nonnegative_least_squares
from robustnmf.weightings import Batch

MAX_STEPS = 200
MAX_HALVINGS = 12
STEP_TOLERANCE = 1e-10
VALUE_ROUNDING = 1e-14


class ApproximationPass(Pass):
    """A pass that sees the approximation of a block (members, rows, features)."""

    @abstractmethod
    def contributions(self, weighting: Batch, entries: Array) -> tuple[Array, Array]:
        """What entries add to the objective of their row, and the slope of that."""

    def stay(self, block: Any, codes: Array) -> tuple[Array, Array]:
        return codes, codes @ self.basis

    def energies(self, block: Any, codes: Array, seen: Array) -> Array:
        xp = namespace(codes)
        energies = xp.sum(wide(self.loss.entries(block.values(), seen)), axis=-1)
        return xp.maximum(energies, noise(codes) * block.sq_norms)

    def row_values(self, block: Any, codes: Array, seen: Array, weighting: Batch) -> Array:
        entries = self.loss.entries(block.values(), seen)
        return namespace(codes).sum(wide(self.contributions(weighting, entries)[0]), axis=-1)

    def encode(self, block: Any, weighting: Batch) -> tuple[Array, Array]:
        xp = namespace(self.basis)
        data = block.wide_values()  # rounding must not tell a row what company it is in
        members, k, _ = self.basis.shape
        step = max(1, CHUNK_NUMBERS // k**2)
        codes = [
            xp.concat(
                [
                    self._newton(
                        data[at : min(at + step, len(block)), :],
                        wide(self.basis[j, ...]),
                        weighting.keep([j]),
                    )
                    for at in range(0, len(block), step)
                ]
            )
            for j in range(members)
        ]
        return self.stay(block, xp.astype(xp.stack(codes), self.basis.dtype, copy=False))

    def _newton(self, data: Array, basis: Array, weighting: Batch) -> Array:
        """Codes (rows, k) by Newton's method; every row has its own Gram matrix.

        All Gram matrices come out of one product with the table of products of pairs of
        components.
        """
        xp = namespace(data)
        k, features = basis.shape
        pairs = xp.reshape(basis[:, None, :] * basis[None, :, :], (k * k, features)).T
        total = xp.sum(basis)
        codes = xp.sum(data, axis=1, keepdims=True) / xp.where(total > 0, total, 1 + 0 * total)
        codes = codes + xp.zeros((1, k), dtype=data.dtype)
        values, slopes = self._values(data, codes, basis, weighting)
        # What rounding leaves in a value: its entries are differences of terms of this size.
        some = xp.where(data > 0, data, xp.ones_like(data))
        slack = VALUE_ROUNDING * xp.sum(some**self.loss.degree, axis=1)
        solved, present = codes.T, values >= 0
        for _ in range(MAX_STEPS):
            approximation = codes @ basis
            negative, positive = self.loss.split(data, approximation)
            gradient = (1.0 if positive is None else positive) - (
                1.0 if negative is None else negative
            )
            curvature = slopes * self.loss.curvature(data, approximation)
            grams = xp.reshape(curvature @ pairs, (-1, k, k))
            linear = xp.squeeze(codes[:, None, :] @ grams, axis=1)
            linear = linear - (slopes * gradient) @ basis.T
            target = nonnegative_least_squares(linear, grams, guess=codes)
            moved = self._descend(data, codes, target, basis, weighting, values + slack)
            # The step, not the value, tells when to stop: near a minimum values are flat.
            change = xp.max(xp.abs(moved - codes), axis=1)
            codes = moved
            values, slopes = self._values(data, codes, basis, weighting)
            solved = put(solved, present, codes.T)
            open_rows = change > STEP_TOLERANCE * xp.max(codes, axis=1)
            if not xp.any(open_rows):
                break
            present = put(present, present, open_rows)
            (rows,) = xp.nonzero(open_rows)
            data, codes, slopes = (xp.take(a, rows, axis=0) for a in (data, codes, slopes))
            values, slack = xp.take(values, rows), xp.take(slack, rows)
        return xp.asarray(solved.T, copy=True)

    def _descend(
        self,
        data: Array,
        codes: Array,
        target: Array,
        basis: Array,
        weighting: Batch,
        bound: Array,
    ) -> Array:
        """As far towards the target as the objective of every row stays within its bound."""
        xp = namespace(codes)
        step = xp.ones_like(bound)
        rises = bound < bound
        for _ in range(MAX_HALVINGS):
            trial = codes + step[:, None] * (target - codes)
            reached, _ = self._values(data, trial, basis, weighting)
            rises = ~(reached <= bound)  # also where it is not a number
            if not xp.any(rises):
                break
            step = xp.where(rises, 0.5 * step, step)
        step = xp.where(rises, 0 * step, step)
        return codes + step[:, None] * (target - codes)

    def _values(
        self, data: Array, codes: Array, basis: Array, weighting: Batch
    ) -> tuple[Array, Array]:
        """Objective of every row, and the slope of every entry in it."""
        xp = namespace(data)
        entries = self.loss.entries(data, codes @ basis)[None, ...]
        values, slopes = self.contributions(weighting, entries)
        return xp.sum(values[0, ...], axis=-1), slopes[0, ...]
