r"""Random start: uniform factors whose product has the mean of X.

With both factors uniform on :math:`(0, 2\sqrt{\bar x / k}]`, an entry of the product has
expectation :math:`\bar x`. The paper starts from random positive factors.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from robustnmf.arrays import Array, on_device_of


def random(engine: Any, k: int, seed: int) -> tuple[Array, Array]:
    """Codes (n, k) and basis (k, m) in the units of the engine."""
    rng = np.random.default_rng(seed)
    size = 2.0 * np.sqrt(engine.mean() / k)
    return tuple(positive_uniform(rng, shape, size, engine.like) for shape in _shapes(engine, k))


def positive_uniform(
    rng: np.random.Generator, shape: tuple[int, ...], size: float, like: Array
) -> Array:
    """Uniform numbers from (0, size]; multiplicative updates cannot leave a zero."""
    return on_device_of(like, size * (1.0 - rng.random(shape)), like.dtype)


def _shapes(engine: Any, k: int) -> tuple[tuple[int, int], tuple[int, int]]:
    n, m = engine.shape
    return (n, k), (k, m)
