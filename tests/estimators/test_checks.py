"""scikit-learn's own checks, for every estimator and every weighting and structure."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from robustnmf import RobustNMF
from robustnmf.estimators import ESTIMATORS
from robustnmf.losses import LOSSES
from robustnmf.structures import STRUCTURES
from robustnmf.weightings import WEIGHTINGS

PARTS = (
    [RobustNMF(weighting=name) for name in WEIGHTINGS]
    + [RobustNMF(structure=name) for name in STRUCTURES]
    + [RobustNMF(loss=name) for name, loss in LOSSES.items() if loss().takes_zeros]
)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::robustnmf.exceptions.WeightCollapseWarning")
@parametrize_with_checks([cls() for cls in ESTIMATORS.values()] + PARTS)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
