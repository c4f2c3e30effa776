"""Uniform random factors whose codes depend on the content of a row."""

from __future__ import annotations

import numpy as np

from robustnmf.arrays import Array, Block, namespace, on_device_of
from robustnmf.engine import Engine

STRETCH = 1e4


def draw_factors(engine: Engine, k: int, seed: int) -> tuple[list[Array], Array]:
    """Draw codes (rows, k) of every block and basis (k, m), in the units of the engine."""
    xp = namespace(engine.like)
    rng = np.random.default_rng(seed)
    mean, features = engine.mean(), engine.shape[1]
    size = 2.0 * (mean / k) ** 0.5
    uniform = 1.0 - rng.random((k, features))
    stretch = STRETCH / ((mean if mean > 0 else 1.0) * features**0.5)
    normal = stretch * rng.standard_normal((features, k))
    directions = on_device_of(engine.like, normal, xp.float64)

    dtype = engine.like.dtype

    def draw(block: Block, _: None) -> tuple[Array, None]:
        place = block.wide_project(directions)
        return xp.astype(size * (1.0 - (place - xp.floor(place))), dtype, copy=False), None

    return engine.map_blocks(draw)[0], on_device_of(engine.like, size * uniform, dtype)
