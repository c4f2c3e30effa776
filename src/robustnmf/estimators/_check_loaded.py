"""Check a model that was read from a file."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from robustnmf import archive
from robustnmf.fitting import RankSelection
from robustnmf.problem import Problem
from robustnmf.weightings import Weighting


def check_loaded(model: Any) -> None:
    """Refuse a model whose fitted attributes contradict each other or cannot be used."""
    check_is_fitted(model)
    features = model.n_features_in_
    if type(features) is not int or features < 1:
        raise archive.Broken(f"it has {features!r} features")
    inner = getattr(model, "estimator_", model)
    if inner is not model and hasattr(model, "predict"):
        check_loaded(inner)
        model.predict(np.ones((1, features)))
        return
    components, features = model.components_, model.n_features_in_
    is_table = isinstance(components, np.ndarray) and components.ndim == 2
    if not is_table or components.dtype not in (np.float32, np.float64):
        raise archive.Broken("its components are no table of floats")
    if components.shape[1] != features:
        raise archive.Broken(f"its components have {components.shape[1]} features, not {features}")
    if not (np.isfinite(components).all() and (components >= 0).all()):
        raise archive.Broken("its components are not finite and nonnegative")
    names = getattr(model, "feature_names_in_", None)
    if names is not None and (not isinstance(names, np.ndarray) or names.shape != (features,)):
        raise archive.Broken(f"it does not name {features} features")
    if not (isinstance(model._scale, float) and 1e-310 < model._scale < 1e305):
        raise archive.Broken("its units are no positive number")
    if not isinstance(model._problem, Problem) or not isinstance(model.weighting_, Weighting):
        raise archive.Broken("it does not say what it has solved")
    _check_selection(getattr(model, "rank_selection_", None))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about names of features
        model.transform(np.ones((1, features), dtype=components.dtype))


def _check_selection(selection: Any) -> None:
    """Refuse a comparison of numbers of components whose arrays do not belong together."""
    if selection is None:
        return
    if not isinstance(selection, RankSelection):
        raise archive.Broken("its comparison of numbers of components is none")
    ranks, errors, silhouette = selection.ranks, selection.errors, selection.silhouette
    arrays = [a for a in (ranks, errors, silhouette) if a is not None]
    are_numbers = all(isinstance(a, np.ndarray) and a.dtype.kind in "if" for a in arrays)
    if not are_numbers or ranks.ndim != 1 or len(ranks) < 1 or ranks.dtype.kind != "i":
        raise archive.Broken("its comparison of numbers of components holds no numbers")
    if errors.ndim != 2 or len(errors) < 2 or any(a.shape[-1:] != ranks.shape for a in arrays):
        raise archive.Broken("its comparison of numbers of components has arrays of other shapes")
