"""Dictionary of starts by name. To add one, add a file here and an entry to the dictionary.

A start is a function of the engine, the number of components and a seed. It returns codes (rows, k)
for every block and a basis (k, m), in the units of the engine.
"""

from collections.abc import Callable
from typing import Any

from robustnmf.arrays import Array
from robustnmf.inits.plain import nndsvd, nndsvda, nndsvdar, random
from robustnmf.inits.robust import robust

Init = Callable[[Any, int, int], tuple[list[Array], Array]]

INITS: dict[str, Init] = {
    "random": random,
    "nndsvd": nndsvd,
    "nndsvda": nndsvda,
    "nndsvdar": nndsvdar,
    "robust": robust,
}

DETERMINISTIC = frozenset({"nndsvd", "nndsvda", "robust"})
FROM_SVD = DETERMINISTIC | {"nndsvdar"}
"""Starts that do not accept missing values."""
