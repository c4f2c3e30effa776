"""Documentation that all estimators share, so that no text stands twice."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import TypeVar

from robustnmf.losses import LOSSES
from robustnmf.structures import STRUCTURES
from robustnmf.weightings import WEIGHTINGS

Class = TypeVar("Class", bound=type)

REGISTRIES: dict[str, Mapping[str, type]] = {
    "losses": LOSSES,
    "structures": STRUCTURES,
    "weightings": WEIGHTINGS,
}
"""Registries whose names fill placeholders in docstrings."""

PARTS = {
    "parameters": """\
Parameters
----------
<n_components>""",
    "others": """\
<common>

<attributes>""",
    "n_components": """\
n_components : int, "auto" or None, default=None
    Rank k: number of parts; more than there are features are allowed. None: ten, or one for
    every three features where these are few, and no more than samples; scikit-learn's NMF
    takes all features, but then outliers have parts of their own. "auto": chosen from X, as
    ``select_rank(X, range(1, 16), stability=True, n_runs=10)`` recommends it, on at most 2,000
    samples; this takes as long as some dozen fits, and X needs to be large enough to hide some
    entries of it. Either takes it from a custom start, if there is one.""",
    "common": """\
solver : {"auto", "hals", "cd", "mu-extrapolated", "mu"}, default=<solver>
    "mu": multiplicative updates, the paper's. "hals": coordinate descent with extrapolation,
    for the squared error with free structure; by far the fastest; "cd" is scikit-learn's name
    for it. "mu-extrapolated": multiplicative updates with extrapolation, for the other losses.
    "auto" picks the fastest that applies. The objective never rises under any of them.
init : {"robust", "nndsvda", "nndsvdar", "nndsvd", "random", "custom"} or None, default=<init>
    Start; None is the default. "random": uniform positive factors whose product has the mean of X.
    "nndsvd": from a truncated SVD; its zeros can never change under "mu".
    "nndsvda": the same with zeros filled. "nndsvdar": the same with small random numbers in
    their place. "robust": as "nndsvda", with no row counting
    for more than one of median norm, so that a few huge ones do not take all components.
    Components beyond the number of singular vectors, of which X has no more than samples or
    features, start at random ("nndsvd" refuses them). "custom": W and H given to ``fit``; zeros
    in them stay zero under "mu".
n_init : int, default=1
    Number of random starts, run as one batch; the best objective is kept.
max_iter : int, default=<max_iter>
    Most iterations of a fit.
tol : float, default=1e-4
    A fit stops when the last ten iterations have each lowered the objective by no more
    than ``tol`` of itself, on average, and ends on the best codes for its basis. 0
    runs exactly ``max_iter`` iterations of the algorithm and nothing else.
random_state : int, RandomState or None, default=None
    Seed of the start.
verbose : int, default=0
    Print the objective every ``10 / verbose`` iterations.""",
    "attributes": """\
Attributes
----------
components_ : ndarray (n_components, n_features)
    Basis, the learned parts.
n_components_ : int
    Number of components.
sample_importances_ : ndarray (n_samples,)
    Importance every sample had when the basis was learned; sums to one. Rows of
    zeros have none. For fuzzy weights these are the paper's Q; what the losses of the samples
    were multiplied by is ``Q**p``.
energies_ : ndarray (n_samples,), float64
    Loss between each sample and its approximation. Bad samples stand out here.
outliers_ : ndarray of bool (n_samples,)
    Samples that were left out: their energy is beyond the cutoffs of trimmed weights, or, for
    other weightings, their weight is below a tenth of an equal share. An
    :class:`~robustnmf.exceptions.OutlierWarning` is issued if they are more than a fifth of
    all samples, if they resemble each other, or if others are hardly predicted better without
    them; it says by how much.
effective_sample_size_ : float
    ``sum(w)**2 / sum(w**2)`` of the weights w that the losses of the samples were multiplied
    by: ``1 / sum(sample_importances_**2)``, but for fuzzy weights, which are ``Q**p``. A sample
    of weight m stands for m equal ones. A
    :class:`~robustnmf.exceptions.WeightCollapseWarning` is issued when it is
    below the rank.
codes_overlap_ : float
    Mean cosine between different columns of the codes: zero where they are orthogonal, so
    that no sample uses two components, one where they are alike.
objective_history_ : ndarray
    Objective phi at the start and after every iteration; with ``tol > 0`` a last entry
    for the final codes. Automatic hyperparameters change phi while they settle; the
    history then starts when they are frozen.
reconstruction_err_ : float
    Frobenius norm of the residual, all samples counted alike; for other losses the
    square root of twice their sum.
n_iter_ : int
    Iterations run.
weighting_ : Weighting
    The weighting with its automatic hyperparameters as settled.
rank_selection_ : RankSelection
    How numbers of components compare, where ``n_components="auto"`` has chosen one.
mixing_ : ndarray (n_components, n_samples)
    With a convex structure, ``components_ = mixing_ @ X`` (with sample weights,
    ``(mixing_ * sample_weight) @ X``; with missing values, X has a guess in their place).
n_features_in_, feature_names_in_
    Number and names of the features seen in ``fit``.""",
}


def documented(cls: Class) -> Class:
    """Fill the placeholders ``<name>`` in the docstring of an estimator; defaults are its own."""
    text = inspect.cleandoc(cls.__doc__ or "")
    for name, part in PARTS.items():
        text = text.replace(f"<{name}>", part)
    for name, registry in REGISTRIES.items():
        text = text.replace(f"<{name}>", ", ".join(f'"{key}"' for key in registry))
    for name in ("solver", "init", "max_iter"):
        text = text.replace(f"<{name}>", repr(getattr(cls, name)).replace("'", '"'))
    cls.__doc__ = text
    return cls
