"""Robust nonnegative matrix factorisation: outliers lose their say."""

from robustnmf.combinations import combinations
from robustnmf.estimators import (
    EWRNMF,
    FWRNMF,
    NMFL2,
    ConvexNMF,
    EucNMF,
    HuberRNMF,
    PathMember,
    RankSelection,
    RobustNMF,
    RobustNMFDetector,
    fit_path,
    load,
    select_rank,
)
from robustnmf.exceptions import WeightCollapseWarning
from robustnmf.losses import Alpha, Beta, Frobenius, ItakuraSaito, KullbackLeibler
from robustnmf.structures import Convex, Free, Orthogonal
from robustnmf.weightings import L21, Cauchy, Entropy, Fuzzy, Huber, Trimmed, Uniform

__version__ = "0.1.0"

__all__ = [
    "EWRNMF",
    "FWRNMF",
    "L21",
    "NMFL2",
    "Alpha",
    "Beta",
    "Cauchy",
    "Convex",
    "ConvexNMF",
    "Entropy",
    "EucNMF",
    "Free",
    "Frobenius",
    "Fuzzy",
    "Huber",
    "HuberRNMF",
    "ItakuraSaito",
    "KullbackLeibler",
    "Orthogonal",
    "PathMember",
    "RankSelection",
    "RobustNMF",
    "RobustNMFDetector",
    "Trimmed",
    "Uniform",
    "WeightCollapseWarning",
    "combinations",
    "fit_path",
    "load",
    "select_rank",
]
