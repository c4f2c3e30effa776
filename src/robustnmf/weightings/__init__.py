"""Weightings by name; a new one is a file beside these and a line in the dict."""

from robustnmf.weightings._base import (
    ObjectiveSums,
    Separable,
    SoftMin,
    Weighed,
    Weighting,
    effective_sample_size,
)
from robustnmf.weightings._batch import Batch
from robustnmf.weightings._profile import (
    EnergyHistogram,
    LogHistogram,
    counted,
    counts_beyond,
    counts_of,
)
from robustnmf.weightings.cauchy import Cauchy
from robustnmf.weightings.entropy import Entropy
from robustnmf.weightings.fuzzy import Fuzzy
from robustnmf.weightings.huber import Huber
from robustnmf.weightings.l21 import L21
from robustnmf.weightings.trimmed import Trimmed, WarmupWeights
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
    "L21",
    "WEIGHTINGS",
    "Batch",
    "Cauchy",
    "EnergyHistogram",
    "Entropy",
    "Fuzzy",
    "Huber",
    "LogHistogram",
    "ObjectiveSums",
    "Separable",
    "SoftMin",
    "Trimmed",
    "Uniform",
    "WarmupWeights",
    "Weighed",
    "Weighting",
    "counted",
    "counts_beyond",
    "counts_of",
    "effective_sample_size",
]
