"""The paper's six methods, exactly and under their names in the paper."""

from __future__ import annotations

from dataclasses import dataclass

from robustnmf.estimators.base import BaseRobustNMF, documented
from robustnmf.loop.compatibility import ModelSpec
from robustnmf.losses import Frobenius
from robustnmf.structures import Convex, Free
from robustnmf.weightings import L21, Entropy, Fuzzy, Huber, Uniform


@dataclass(repr=False, eq=False, kw_only=True)
class PaperNMF(BaseRobustNMF):
    """Squared error, random start and multiplicative updates, as in the paper."""

    solver: str = "mu"
    init: str | None = "random"

    def _spec(self) -> ModelSpec:
        return ModelSpec(Frobenius(), Uniform(), Free())


@documented
class EucNMF(PaperNMF):
    r"""Plain NMF with the squared error; not robust. EucNMF of the paper.

    .. math:: \min_{A, C \ge 0} \|X - A C\|_F^2

    <parameters>
    <others>

    References
    ----------
    Lee and Seung, *Learning the parts of objects by non-negative matrix
    factorization*, Nature 401, 1999.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from robustnmf import EucNMF
    >>> X, _ = load_digits(return_X_y=True)
    >>> EucNMF(10, random_state=0).fit_transform(X).shape
    (1797, 10)
    """


@documented
class ConvexNMF(PaperNMF):
    r"""NMF whose components are mixtures of samples; not robust.

    .. math:: \min_{A, P \ge 0} \|X - A P X\|_F^2

    <parameters>
    <others>

    References
    ----------
    Ding, Li and Jordan, *Convex and semi-nonnegative matrix factorizations*, IEEE TPAMI
    32(1), 2010.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from robustnmf import ConvexNMF
    >>> X, _ = load_iris(return_X_y=True)
    >>> model = ConvexNMF(3, random_state=0, tol=1e-3).fit(X)
    >>> np.allclose(model.components_, model.mixing_ @ X)
    True
    """

    def _spec(self) -> ModelSpec:
        return ModelSpec(Frobenius(), Uniform(), Convex())


@documented
class NMFL2(PaperNMF):
    r"""NMF with the L2,1 norm, which down-weights samples with a large residual.

    .. math:: \min_{A, C \ge 0} \sum_i \|x_i - a_i C\|_2

    <parameters>
    <others>

    References
    ----------
    Kong, Ding and Huang, *Robust nonnegative matrix factorization using L21-norm*, CIKM
    2011.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from robustnmf import NMFL2
    >>> X, _ = load_digits(return_X_y=True)
    >>> model = NMFL2(10, random_state=0).fit(X)
    >>> model.effective_sample_size_ > 1600
    True
    """

    def _spec(self) -> ModelSpec:
        return ModelSpec(Frobenius(), L21(), Free())


@documented
@dataclass(repr=False, eq=False, kw_only=True)
class HuberRNMF(PaperNMF):
    r"""NMF with the Huber loss of every entry, which down-weights entries with a large residual.

    .. math:: \min_{A, C \ge 0} \sum_{ij} h_c\big(x_{ij} - (A C)_{ij}\big), \qquad
        h_c(r) = \begin{cases} r^2 & |r| \le c \\ 2 c |r| - c^2 & |r| > c \end{cases}

    <parameters>
    cutoff : float > 0 or "auto", default=1.0
        Residual, in the units of X, above which the loss of an entry is linear. "auto" is 1.345
        times the root mean square residual of the median sample, fixed after the first iterations.
    <others>

    Notes
    -----
    Each entry has a weight. The importance of a sample is the mean weight of its entries,
    normalised to sum to one over the samples.

    References
    ----------
    Du, Li and Shen, *Robust nonnegative matrix factorization via half-quadratic
    minimization*, ICDM 2012.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from robustnmf import HuberRNMF
    >>> X, _ = load_iris(return_X_y=True)
    >>> HuberRNMF(3, cutoff=0.1, random_state=0, tol=1e-3).fit_transform(X).shape
    (150, 3)
    """

    cutoff: float | str = 1.0

    _parameter_constraints = PaperNMF._parameter_constraints | Huber._parameter_constraints

    def _spec(self) -> ModelSpec:
        return ModelSpec(Frobenius(), Huber(self.cutoff), Free())


@documented
@dataclass(repr=False, eq=False, kw_only=True)
class FWRNMF(PaperNMF):
    r"""Fuzzier weighted robust NMF, with learned sample weights: algorithm 1 of the paper.

    .. math:: \min_{A, C \ge 0,\, Q \ge 0} \sum_i Q_i^p \|x_i - a_i C\|_2^2, \qquad
        \sum_i Q_i = 1

    <parameters>
    p : float > 1 or "auto", default=11.0
        Fuzziness: weights are more equal if p is larger. If p is small, a sample that is fitted
        exactly can get all the weight; on small or nearly noise-free data this happens at 11 as
        well (with a warning). The paper searches 1.5 to 11. "auto" estimates p from the
        reconstruction errors, after adding three times their median to all of them, so that no
        sample can get all the weight.
    <others>

    References
    ----------
    Shen et al., *Adaptive weighted nonnegative matrix factorization for robust feature
    representation*, Neurocomputing.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from robustnmf import FWRNMF
    >>> X, _ = load_digits(return_X_y=True)
    >>> model = FWRNMF(10, p=6, random_state=0).fit(X)
    >>> model.sample_importances_.sum().round(6)
    np.float64(1.0)
    """

    p: float | str = 11.0

    _parameter_constraints = PaperNMF._parameter_constraints | Fuzzy._parameter_constraints

    def _spec(self) -> ModelSpec:
        return ModelSpec(Frobenius(), Fuzzy(self.p), Free())


@documented
@dataclass(repr=False, eq=False, kw_only=True)
class EWRNMF(PaperNMF):
    r"""Entropy weighted robust NMF, with learned sample weights: algorithm 2 of the paper.

    .. math:: \min_{A, C \ge 0,\, Q \ge 0} \sum_i Q_i \|x_i - a_i C\|_2^2
        + \gamma \sum_i Q_i \ln Q_i, \qquad \sum_i Q_i = 1

    <parameters>
    gamma : float > 0 or "auto", default="auto"
        Increase of the reconstruction error, in the squared units of X, that lowers a weight by a
        factor e. The paper searches 1e-4 to 1e4; "auto" is set in proportion to the median error
        and fixed after the first iterations.
    <others>

    References
    ----------
    Shen et al., *Adaptive weighted nonnegative matrix factorization for robust feature
    representation*, Neurocomputing.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from robustnmf import EWRNMF
    >>> X, _ = load_digits(return_X_y=True)
    >>> model = EWRNMF(10, random_state=0).fit(X)
    >>> model.effective_sample_size_ > 800
    True
    """

    gamma: float | str = "auto"

    _parameter_constraints = PaperNMF._parameter_constraints | Entropy._parameter_constraints

    def _spec(self) -> ModelSpec:
        return ModelSpec(Frobenius(), Entropy(self.gamma), Free())
