"""Best codes for a fixed basis, and starts and objectives from them."""

from __future__ import annotations

from robustnmf.arrays import Array, Block, MaskedBlock, floored, namespace
from robustnmf.engine import Engine
from robustnmf.loop.passes import BlockState, Statistics
from robustnmf.loop.problem import Problem
from robustnmf.loop.state import Start
from robustnmf.losses import ReweightedLoss
from robustnmf.weightings import Batch, Uniform, Weighting

LEAST_CODE = 1e-6
"""Least codes of a start, relative to their sample: multiplicative updates cannot leave zero."""


def encode(
    engine: Engine, problem: Problem, weighting: Weighting, basis: Array
) -> tuple[Array, Array]:
    """Compute the best codes (n, k) for a fixed basis (k, m), and their energies (n,)."""
    batch = Batch([weighting], basis)
    data_pass = problem.make_pass(engine, batch, basis[None, ...], basis[None, ...])

    def visit(block: Block, local: None) -> tuple[BlockState, None]:
        codes, cache = data_pass.encode(block, batch)
        return BlockState(codes, energies=data_pass.energies(block, codes, cache)), None

    with engine.thread_pool():
        block_states, _ = engine.map_blocks(visit)
    codes, energies = (engine.collect(block_states, name) for name in ("codes", "energies"))
    return codes[0, ...], energies[0, ...]


def entry_weights(engine: Engine, problem: Problem, weighting: Weighting, basis: Array) -> Array:
    """Compute the weight of every entry (n, m) for the best codes; NaN for missing entries.

    These are the weights of the loss, or of a weighting of entries.
    """
    batch = Batch([weighting], basis)
    data_pass = problem.make_pass(engine, batch, basis[None, ...], basis[None, ...])
    loss = problem.loss

    def visit(block: Block, _: None) -> tuple[BlockState, None]:
        codes, _ = data_pass.encode(block, batch)
        approximation = block.approximation(codes, basis[None, ...])
        if isinstance(loss, ReweightedLoss):
            weights = loss.entry_weights(block.values(), approximation)
        else:
            weights = batch.weight(loss.entries(block.values(), approximation))
        if isinstance(block, MaskedBlock):
            xp = namespace(weights)
            weights = xp.where(block.known, weights, xp.full_like(weights, xp.nan))
        return BlockState(weights), None  # in place of codes: (members, rows, columns)

    with engine.thread_pool():
        block_states, _ = engine.map_blocks(visit)
    return engine.collect(block_states, "codes")[0, ...]


def encoded_start(engine: Engine, problem: Problem, basis: Array) -> Start:
    """Build a start from bases (members, k, m) and the best codes for them."""
    batch = Batch([Uniform()] * basis.shape[0], basis)
    data_pass = problem.make_pass(engine, batch, basis, basis)
    least = least_codes(problem, basis)

    def visit(block: Block, _: None) -> tuple[Array, None]:
        codes, _ = data_pass.encode(block, batch)
        sizes = namespace(codes).astype(block.sq_norms**0.5, codes.dtype)
        return namespace(codes).maximum(codes, sizes[None, :, None] * least), None

    with engine.thread_pool():
        return Start(engine.map_blocks(visit)[0], basis)


def least_codes(problem: Problem, basis: Array) -> Array:
    """Return the least codes (members, 1, k) of a start for samples of norm one.

    Their product with the basis is a small share of the sample. They are zero if the solver can
    leave zero.
    """
    xp = namespace(basis)
    if not problem.solver.keeps_zeros:
        return xp.zeros_like(basis[:, None, :, 0])
    norms = xp.sqrt(xp.sum(basis**2, axis=2))
    return (LEAST_CODE / (basis.shape[1] * floored(norms)))[:, None, :]


def objective(engine: Engine, problem: Problem, weighting: Weighting, basis: Array) -> float:
    """Compute the objective of the best codes for a fixed basis (k, m)."""
    batch = Batch([weighting], basis)
    data_pass = problem.make_pass(engine, batch, basis[None, ...], basis[None, ...])

    def visit(block: Block, local: None) -> tuple[BlockState, Statistics]:
        codes, cache = data_pass.encode(block, batch)
        return data_pass.measure(block, BlockState(codes), batch, cache)

    with engine.thread_pool():
        _, statistics = engine.map_blocks(visit)
    penalty, _ = problem.basis_penalty_value(batch, statistics.objective_sums, basis[None, ...])
    return float((batch.value_of(statistics.objective_sums) + penalty)[0, 0])
