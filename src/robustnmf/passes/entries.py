r"""A pass with a weight for every entry, from the residual itself.

Half-quadratic minimisation: one set of weights :math:`\Omega`, taken at the factors
that a cycle starts from, serves the update of the basis and then of the codes,

.. math::

    C \leftarrow C \odot \frac{A^T (\Omega \odot X)}{A^T (\Omega \odot AC)}, \qquad
    A \leftarrow A \odot \frac{(\Omega \odot X) C^T}{(\Omega \odot AC) C^T}

Codes move in the pass after the basis has; their weights are found again from the
basis of the pass before rather than kept, which would take as much memory as X.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from robustnmf.arrays import Array, namespace, put, wide
from robustnmf.losses import Loss
from robustnmf.passes._statistics import Local, Statistics, total_per_member
from robustnmf.solvers import CHUNK_NUMBERS, Multiplicative, Ratio, nonnegative_least_squares
from robustnmf.weightings import Batch, Tally

MAX_REWEIGHTINGS = 200
REWEIGHTING_TOLERANCE = 1e-6


@dataclass(frozen=True)
class EntryPass:
    """The visits of a pass to a block, for one basis per member (members, k, features)."""

    loss: Loss
    solver: Multiplicative
    exponent: float
    basis: Array
    previous: Array

    @classmethod
    def prepare(
        cls, loss: Loss, solver: Multiplicative, exponent: float, basis: Array, previous: Array
    ) -> EntryPass:
        """What all blocks share: the basis of this pass and of the one before."""
        return cls(loss, solver, exponent, basis, previous)

    def stay(self, block: Any, codes: Array) -> tuple[Array, Array]:
        """The codes as they are, and the approximation they give."""
        return codes, codes @ self.basis

    def move(self, block: Any, codes: Array, weighting: Batch) -> tuple[Array, Array]:
        """Updated codes, and the approximation they give."""
        data = block.values()
        weights = weighting.slope(self.loss.entries(data, codes @ self.previous))
        negative, positive = self.loss.split(data, codes @ self.basis)
        back = namespace(data).matrix_transpose(self.basis)
        parts = Ratio((weights * negative) @ back, (weights * positive) @ back)
        return self.stay(block, self.solver.step(codes, parts, self.exponent))

    def encode(self, block: Any, weighting: Batch) -> tuple[Array, Array]:
        """Best codes for this basis, every row for itself, and the approximation."""
        xp = namespace(self.basis)
        data = block.wide_values()  # rounding must not tell a row what company it is in
        members, k, _ = self.basis.shape
        step = max(1, CHUNK_NUMBERS // k**2)
        codes = [
            xp.concat(
                [
                    self._encode(data[at : min(at + step, len(block)), :], j, weighting)
                    for at in range(0, len(block), step)
                ]
            )
            for j in range(members)
        ]
        return self.stay(block, xp.astype(xp.stack(codes), self.basis.dtype, copy=False))

    def _encode(self, data: Array, member: int, weighting: Batch) -> Array:
        basis = wide(self.basis[member, ...])
        return _reweighted_least_squares(self.loss, data, basis, weighting.keep([member]))

    def measure(
        self, block: Any, local: Local, weighting: Batch, seen: Array
    ) -> tuple[Local, Statistics]:
        """Energies of a block and their tally, without the sums for the basis."""
        local, statistics, _ = self._weigh(block, local, weighting, seen)
        return local, statistics

    def gather(
        self, block: Any, local: Local, weighting: Batch, seen: Array
    ) -> tuple[Local, Statistics]:
        """Energies of a block, and the weighted sums that the basis update needs."""
        local, statistics, weights = self._weigh(block, local, weighting, seen)
        negative, positive = self.loss.split(block.values(), seen)
        back = namespace(seen).matrix_transpose(local.codes)
        return local, replace(
            statistics, negative=back @ (weights * negative), positive=back @ (weights * positive)
        )

    def energies(self, block: Any, codes: Array, seen: Array) -> Array:
        """Energy of every row (members, rows)."""
        return namespace(codes).sum(wide(self.loss.entries(block.values(), seen)), axis=-1)

    def _weigh(
        self, block: Any, local: Local, weighting: Batch, seen: Array
    ) -> tuple[Local, Statistics, Array]:
        xp = namespace(seen)
        entries = self.loss.entries(block.values(), seen)
        mass = xp.astype(block.mass, seen.dtype)[:, None]
        weights = mass * weighting.slope(entries)
        total = total_per_member(mass * weighting.rho(entries))
        zero = xp.zeros_like(total)
        tally = Tally(zero, total, zero + xp.sum(block.mass) * seen.shape[-1])
        local = replace(
            local,
            energies=xp.sum(wide(entries), axis=-1),
            row_weights=xp.mean(wide(weights), axis=-1),
        )
        return local, Statistics(tally, zero, quadratic=False), weights


def _reweighted_least_squares(loss: Loss, data: Array, basis: Array, weighting: Batch) -> Array:
    """Codes (rows, k) that minimise the reweighted loss, by solving for fixed weights.

    Every row has its own weights and so its own Gram matrix; all of them come out of
    one product with the table of products of pairs of components.
    """
    xp = namespace(data)
    k, features = basis.shape
    pairs = xp.reshape(basis[:, None, :] * basis[None, :, :], (k * k, features)).T
    codes = nonnegative_least_squares(data @ basis.T, basis @ basis.T)
    entries = loss.entries(data, codes @ basis)
    values = xp.sum(wide(weighting.rho(entries[None, ...])[0, ...]), axis=-1)
    solved, present = codes.T, values >= 0
    for _ in range(MAX_REWEIGHTINGS):
        weights = weighting.slope(entries[None, ...])[0, ...]
        grams = xp.reshape(weights @ pairs, (-1, k, k))
        codes = nonnegative_least_squares((weights * data) @ basis.T, grams, guess=codes)
        entries = loss.entries(data, codes @ basis)
        before, values = values, xp.sum(wide(weighting.rho(entries[None, ...])[0, ...]), axis=-1)
        solved = put(solved, present, codes.T)
        open_rows = before - values > REWEIGHTING_TOLERANCE * before
        if not xp.any(open_rows):
            break
        present = put(present, present, open_rows)
        (rows,) = xp.nonzero(open_rows)
        data, codes = xp.take(data, rows, axis=0), xp.take(codes, rows, axis=0)
        entries, values = xp.take(entries, rows, axis=0), xp.take(values, rows)
    return xp.asarray(solved.T, copy=True)
