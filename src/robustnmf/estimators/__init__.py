"""The estimators: RobustNMF, the paper's six methods, a consensus and an outlier detector."""

from robustnmf.estimators.consensus import ConsensusNMF
from robustnmf.estimators.detector import RobustNMFDetector
from robustnmf.estimators.functions import (
    TopFeature,
    non_negative_factorization,
    select_rank,
    top_features,
)
from robustnmf.estimators.paper import EWRNMF, FWRNMF, NMFL2, ConvexNMF, EucNMF, HuberRNMF
from robustnmf.estimators.path import PathMember, fit_path
from robustnmf.estimators.robust import RobustNMF
from robustnmf.estimators.saving import load
from robustnmf.fitting import RankSelection

ESTIMATORS: dict[str, type] = {
    cls.__name__: cls for cls in (RobustNMF, EucNMF, ConvexNMF, NMFL2, HuberRNMF, FWRNMF, EWRNMF)
}
