"""Dictionary of weightings by name. To add one, add a file, its import and an entry here."""

from robustnmf.arrays import EnergyHistogram, LogHistogram
from robustnmf.weightings._base import (
    BlockWeights,
    ObjectiveSums,
    Separable,
    SoftMin,
    Weighting,
    effective_sample_size,
)
from robustnmf.weightings._batch import Batch
from robustnmf.weightings.separable import L21, Cauchy, Huber, Uniform
from robustnmf.weightings.softmin import Entropy, Fuzzy
from robustnmf.weightings.trimmed import Trimmed, WarmupWeights

WEIGHTINGS: dict[str, type[Weighting]] = {
    "uniform": Uniform,
    "l21": L21,
    "huber": Huber,
    "fuzzy": Fuzzy,
    "entropy": Entropy,
    "cauchy": Cauchy,
    "trimmed": Trimmed,
}

__all__ = [
    "WEIGHTINGS", "Batch", "BlockWeights", "EnergyHistogram", "LogHistogram", "ObjectiveSums",
    "Separable", "SoftMin", "WarmupWeights", "Weighting", "effective_sample_size",
]  # fmt: skip
__all__ += [kind.__name__ for kind in WEIGHTINGS.values()]
