"""Weightings by name; a new one is a file beside these, its import and a line in the dict."""

from robustnmf.weightings._base import Separable, Weighting, effective_sample_size
from robustnmf.weightings._batch import Batch
from robustnmf.weightings._histogram import (
    EnergyHistogram,
    LogHistogram,
    energy_counts,
    excess_counts,
    node_counts,
    sample_count,
)
from robustnmf.weightings._softmin import SoftMin
from robustnmf.weightings._sums import BlockWeights, ObjectiveSums
from robustnmf.weightings._warmup import WarmupWeights
from robustnmf.weightings.cauchy import Cauchy
from robustnmf.weightings.entropy import Entropy
from robustnmf.weightings.fuzzy import Fuzzy
from robustnmf.weightings.huber import Huber
from robustnmf.weightings.l21 import L21
from robustnmf.weightings.trimmed import Trimmed
from robustnmf.weightings.uniform import Uniform

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
    "WEIGHTINGS",
    "Batch",
    "BlockWeights",
    "EnergyHistogram",
    "LogHistogram",
    "ObjectiveSums",
    "Separable",
    "SoftMin",
    "WarmupWeights",
    "Weighting",
    "effective_sample_size",
    "energy_counts",
    "excess_counts",
    "node_counts",
    "sample_count",
]
__all__ += [kind.__name__ for kind in WEIGHTINGS.values()]
