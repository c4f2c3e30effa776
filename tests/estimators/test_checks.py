"""scikit-learn's own checks: in make test for RobustNMF and the detector, in make test-all for the
others, and with weightings and losses that are not the default of an estimator.

Of a given rank: the default reads it off the shape of X, so that weighted and repeated samples
could be fitted with different ranks.
"""

import pytest
import sklearn
from sklearn.base import clone
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.fixes import parse_version

from robustnmf import ConsensusNMF, RobustNMF, RobustNMFDetector
from robustnmf.estimators import ESTIMATORS
from robustnmf.losses import LOSSES
from robustnmf.structures import STRUCTURES
from robustnmf.weightings import WEIGHTINGS

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::robustnmf.exceptions.WeightCollapseWarning"),
]

# Fits take up to a thousand passes, which a check does not need; scikit-learn lowers max_iter of
# its own estimators for these checks, too.
PAPER = [cls(2, max_iter=20) for cls in ESTIMATORS.values() if cls is not RobustNMF]
ALWAYS = [RobustNMF(2), RobustNMFDetector(2)]
CONSENSUS = ConsensusNMF(RobustNMF(2, weighting="l21", max_iter=10), n_runs=3, random_state=0)

OF_PAPER = {"uniform", "l21", "huber", "fuzzy", "entropy", "convex"}
"""Weightings and structures of these estimators, which are not checked again."""

# Those of the default weighting, structure and loss are the estimator itself. Other structures and
# losses have a weighting that does not screen samples first: the default is checked above.
DEFAULT = RobustNMF(2)
VARIANTS = (
    [
        RobustNMF(2, weighting=name, max_iter=20)
        for name in WEIGHTINGS
        if name not in OF_PAPER and name != DEFAULT.weighting
    ]
    + [
        RobustNMF(2, structure=name, weighting="l21", max_iter=20)
        for name in STRUCTURES
        if name not in OF_PAPER and name != DEFAULT.structure
    ]
    + [
        RobustNMF(2, loss=name, weighting="l21", max_iter=20)
        for name, loss in LOSSES.items()
        if loss().takes_zeros and name != DEFAULT.loss
    ]
)
VARIANTS.append(RobustNMFDetector(2, contamination=0.1))


def expected_failures(estimator):
    """Checks that ask for what scikit-learn 1.6 had wrong."""
    found = {}
    if parse_version(sklearn.__version__) < parse_version("1.7"):
        found["check_array_api_input"] = "asks for the standard of 2023, without Python's numbers"
        if not get_tags(estimator).input_tags.sparse:
            found["check_sample_weight_equivalence_on_sparse_data"] = "asked whatever the tags say"
    return found


def run_check(estimator, check):
    if "array_api" in check.func.__name__ and "tol" in estimator.get_params():
        # Rounding decides after how many passes a fit stops, and how long its history is.
        estimator = clone(estimator).set_params(max_iter=20, tol=0)
    check(estimator)


@parametrize_with_checks(
    [RobustNMF(2), RobustNMFDetector(2)], expected_failed_checks=expected_failures
)
def test_scikit_learn_checks(estimator, check):
    run_check(estimator, check)


@pytest.mark.extra
@parametrize_with_checks([CONSENSUS, *PAPER, *VARIANTS], expected_failed_checks=expected_failures)
def test_scikit_learn_checks_of_other_estimators_and_combinations(estimator, check):
    run_check(estimator, check)
