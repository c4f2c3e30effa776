r"""Minibatches: their weighted sums add up, and old ones are discounted.

A minibatch gives the same weighted sums as a block of a pass, :math:`A^T w X` and
:math:`A^T w A`, with the best codes for the present basis. The stored sums are

.. math::

    S_t = f S_{t-1} + A_t^T w_t [X_t, A_t]

with the forgetting factor f. The basis is moved towards the minimum of the quadratic function with
these sums. Automatic weights are estimated from a histogram of energies, discounted likewise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from robustnmf.arrays import Array, Block, host_dtype, namespace
from robustnmf.engine import Engine
from robustnmf.fitting.plan import FitPlan, plan_fit
from robustnmf.fitting.settings import FitSettings, on_host
from robustnmf.loop.passes import BlockState, Statistics
from robustnmf.loop.problem import Problem
from robustnmf.loop.state import Fitted
from robustnmf.solvers import SOLVERS
from robustnmf.sources import Source
from robustnmf.weightings import Batch, Weighting

STEPS = 3
"""Updates of the basis for each minibatch."""

FIXED_PARAMETERS = ("alpha_W", "alpha_H", "l1_ratio", "fixed_components")
"""Parameters that cannot change between minibatches, besides the model."""

FIRST_PASSES = 100
"""Maximum number of iterations for the first minibatch."""


@dataclass(frozen=True)
class Stream:
    """The state between minibatches, in the units of their engine.

    ``requested_weighting`` is the weighting as given, ``unit`` the size of a typical sample of
    the first minibatch, and ``parameters`` the values of `FIXED_PARAMETERS`; models that older
    versions have saved have none.
    """

    problem: Problem
    requested_weighting: Weighting
    unit: float
    statistics: Statistics | None = None
    counts: np.ndarray | None = None
    parameters: tuple[Any, ...] = ()

    def after(
        self, engine: Engine, basis: Array, weighting: Weighting, forget: float
    ) -> tuple[Stream, Array, Weighting]:
        """Return the stream after one more minibatch, its basis (k, m) and its weighting."""
        bases = basis[None, ...]
        batch = Batch([weighting], bases)
        data_pass = self.problem.make_pass(engine, batch, bases, bases)

        def encode_block(block: Block, _: None) -> tuple[BlockState, None]:
            codes, cache = data_pass.encode(block, batch)
            return BlockState(codes, energies=data_pass.energies(block, codes, cache)), None

        block_states = engine.map_blocks(encode_block)[0]
        counts, weighting = self._resolve_weighting(engine, block_states, weighting, forget)
        resolved_batch = Batch([weighting], bases)

        def gather_block(block: Block, local: BlockState) -> tuple[None, Statistics]:
            codes, cache = data_pass.evaluate(block, local.codes)
            return None, data_pass.gather(block, BlockState(codes), resolved_batch, cache)[1]

        with np.errstate(over="ignore", invalid="ignore"):  # _check_finite raises an error
            statistics: Statistics = engine.map_blocks(gather_block, block_states)[1]
        _check_finite(statistics)
        if self.statistics is not None:
            statistics = self.statistics.discount(forget).merge(statistics)
        for _ in range(STEPS):
            _, bases = self.problem.basis_step(engine, None, bases, resolved_batch, statistics)
        return replace(self, statistics=statistics, counts=counts), bases[0, ...], weighting

    def _resolve_weighting(
        self, engine: Engine, block_states: list[BlockState], weighting: Weighting, forget: float
    ) -> tuple[np.ndarray | None, Weighting]:
        """Add these energies to the histogram, and estimate the weighting from it."""
        if not self.requested_weighting.has_auto:
            return None, weighting
        (histogram,) = engine.histograms(
            block_states, self.problem.loss.degree, lambda local: local.energies,
            unit=self.unit, earlier=0.0 if self.counts is None else forget * self.counts,
        )  # fmt: skip
        counts = np.stack([histogram.energies.counts, histogram.relative_energies.counts])
        return counts[:, None, :], self.requested_weighting.resolve_auto(histogram)


def begin_stream(
    settings: FitSettings, source: Source, W: Any, H: Any, sample_weight: Any
) -> tuple[FitPlan, Fitted, Stream]:
    """Fit the first minibatch, checked X, and return a stream without its sums.

    The solver is always "hals": the sums of a stream are quadratic.
    """
    settings = replace(settings, max_iter=min(settings.max_iter, FIRST_PASSES))
    plan = plan_fit(settings, source, W=W, H=H, sample_weight=sample_weight)
    check_complete(plan.engine)
    plan = replace(plan, problem=replace(plan.problem, solver=SOLVERS["hals"]()))
    member = plan.best(plan.run())
    # Later minibatches have no custom start that factors are balanced for.
    balance, fixed = plan.balance, plan.problem.fixed
    fixed = None if fixed is None else fixed / balance
    codes_penalty, basis_penalty = plan.penalties
    problem = replace(
        plan.problem, fixed=fixed, codes_penalty=codes_penalty, basis_penalty=basis_penalty
    )
    plan = replace(plan, problem=problem, balance=1.0)
    requested_weighting = settings.spec.weighting.rescaled(1.0 / plan.unit)
    size = plan.engine.typical_size(plan.problem.loss.degree)
    stream = Stream(problem, requested_weighting, size, parameters=fixed_parameters(settings))
    return plan, replace(member, basis=member.basis / balance), stream


def fixed_parameters(settings: FitSettings) -> tuple[Any, ...]:
    """Return the values of `FIXED_PARAMETERS`; arrays are copied."""
    values = (getattr(settings, name) for name in FIXED_PARAMETERS)
    return tuple(v if v is None or np.isscalar(v) else np.array(on_host(v)) for v in values)


def check_complete(engine: Engine) -> None:
    """Refuse a minibatch with missing values."""
    if not engine.complete:
        raise ValueError(
            "X contains NaN, but partial_fit needs complete samples, because sums over rows with "
            "missing values do not add up. Leave out rows with NaN, or impute the values."
        )


def _check_finite(statistics: Statistics) -> None:
    """Refuse a minibatch whose sums exceed the range of its dtype."""
    for array in statistics.sums:
        if not bool(namespace(array).all(namespace(array).isfinite(array))):
            raise ValueError(
                f"X is too large compared with the first minibatch: sums of squares exceed the "
                f"range of {host_dtype(array)}. Convert X to the units of the first minibatch, or "
                "start again with float64 data."
            )
