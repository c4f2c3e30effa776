"""Write models to files and read them: ``model.save(path)`` and ``robustnmf.load(path)``.

A file holds arrays, and as JSON the estimator's name, its parameters and fitted attributes. Losses,
structures and weightings are stored by name and built from the classes of this library alone;
nothing else in a file can become an object, and all of it is validated as if a user had given it.
"""

from __future__ import annotations

import os
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from robustnmf import archive
from robustnmf._warn import warn
from robustnmf.estimators._stream import Stream
from robustnmf.estimators.rank_selection import RankSelection
from robustnmf.losses import LOSSES
from robustnmf.passes import Statistics
from robustnmf.problem import ElasticNet, Problem
from robustnmf.screening import Neighbourhood
from robustnmf.solvers import SOLVERS
from robustnmf.structures import STRUCTURES
from robustnmf.weightings import WEIGHTINGS, ObjectiveSums, Weighting

FORMAT = "robustnmf model 2"

OF_SKLEARN = ("_skl", "_metadata_request")
"""Prefixes of attributes of scikit-learn that belong to this process, or are set again."""

LEARNED = re.compile(r"_?[a-z][a-z_]*_?")
PARTS: dict[str, type] = {
    kind.__name__: kind
    for registry in (LOSSES, STRUCTURES, WEIGHTINGS)
    for kind in registry.values()
}
RECORDS: dict[str, type] = {
    kind.__name__: kind
    for kind in (
        ElasticNet,
        Neighbourhood,
        ObjectiveSums,
        Problem,
        RankSelection,
        Statistics,
        Stream,
    )
}


ESTIMATORS: dict[str, Any] = {}
"""Estimators of this library by name, the only ones that a file may hold."""


class SaveMixin:
    """The method ``save`` of estimators."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.__module__.startswith("robustnmf.") and "._" not in cls.__module__:
            ESTIMATORS[cls.__name__] = cls

    def save(self, path: str | os.PathLike) -> None:
        """Write the fitted estimator to a file that :func:`robustnmf.load` reads.

        The file holds arrays and JSON, no pickle: reading one runs no code. It is written
        beside ``path`` and renamed.

        Parameters
        ----------
        path : path
            File to write; a usual suffix is ``.rnmf``.

        Examples
        --------
        >>> import os, tempfile
        >>> import robustnmf
        >>> from sklearn.datasets import load_digits
        >>> X = load_digits().data[:200]
        >>> model = robustnmf.RobustNMF(5, random_state=0, tol=1e-2).fit(X)
        >>> path = os.path.join(tempfile.mkdtemp(), "digits.rnmf")
        >>> model.save(path)
        >>> again = robustnmf.load(path)
        >>> bool((again.transform(X) == model.transform(X)).all())
        True
        """
        check_is_fitted(self)
        target = Path(os.path.expanduser(path))
        if target.is_dir() or not target.parent.is_dir():
            raise FileNotFoundError(f"cannot write {target}: a file in a folder is needed.")
        arrays: dict[str, np.ndarray] = {}
        record = _ModelCodec(arrays).to_json(self)
        from robustnmf import __version__

        archive.write(target, arrays, {"format": FORMAT, "version": __version__, "model": record})


def load(path: str | os.PathLike) -> Any:
    """Read an estimator from a file that ``save`` has written.

    Files of other programs, damaged, changed or oversized ones are refused; no file is ever
    executed.

    Parameters
    ----------
    path : path

    Returns
    -------
    model : the fitted estimator, with its arrays as arrays of NumPy
    """
    target = Path(os.path.expanduser(path))
    if not target.is_file():
        raise FileNotFoundError(f"there is no file {target}.")
    try:
        arrays, record = archive.read(target)
        if record.get("format") != FORMAT:
            raise archive.Broken(f"its format is {record.get('format')!r}, not {FORMAT!r}")
        model = _ModelCodec(arrays).build(record["model"])
        if not isinstance(model, SaveMixin):
            raise archive.Broken("it holds no estimator")
        _check_loaded(model)
    except Exception as error:
        raise ValueError(
            f"{target} is no model that can be read ({error}). Models are written by "
            "model.save(path)."
        ) from error
    return model


class _ModelCodec(archive.Codec):
    """Records of estimators and what they are made of; all of it is validated when it is built."""

    def __init__(self, arrays: dict[str, np.ndarray]):
        super().__init__(arrays, PARTS, RECORDS)
        self.builders |= {
            "texts": _texts,
            "solver": lambda record: SOLVERS[record["name"]](),
            "estimator": self._build_estimator,
        }

    def to_json(self, value: Any) -> Any:
        if isinstance(value, np.random.RandomState):
            warn(
                "random_state is a RandomState, which a file does not keep; it is None in there.",
                UserWarning,
            )
            return None
        if isinstance(value, SaveMixin):
            return self._estimator_to_json(value)
        for solver, kind in SOLVERS.items():
            if type(value) is kind:
                return self.record("solver", solver, {})
        return super().to_json(np.asarray(value) if isinstance(value, list) else value)

    def _estimator_to_json(self, model: Any) -> dict[str, Any]:
        name = type(model).__name__
        if ESTIMATORS.get(name) is not type(model):
            raise TypeError(
                f"a model of your own class {name} cannot be saved: files keep estimators of "
                "this library alone. Use joblib.dump."
            )
        parameters = model.get_params(deep=False)
        learned = {
            n: self.to_json(attribute) for n, attribute in vars(model).items()
            if n not in parameters and not n.startswith(OF_SKLEARN)
        }  # fmt: skip
        output = getattr(model, "_sklearn_output_config", {}).get("transform")
        return self.record("estimator", name, parameters, learned=learned, output=output)

    def array(self, array: np.ndarray) -> dict[str, Any]:
        if array.dtype != object:
            return super().array(array)
        if array.ndim != 1 or not all(isinstance(item, str) for item in array):
            raise TypeError("a model with an array of Python objects cannot be saved.")
        return {"is": "texts", "items": array.tolist()}

    def build_part(self, record: dict[str, Any]) -> Any:
        part = super().build_part(record)
        part._validate_params()
        return part

    def _build_estimator(self, record: dict[str, Any]) -> Any:
        kind = ESTIMATORS[record["name"]]
        model = kind(**self.fields_of(record))
        model._validate_params()
        if record.get("output") is not None:
            model.set_output(transform=record["output"])
        for name, value in self.fields_of(record, "learned").items():
            is_reserved = hasattr(kind, name) or name.startswith(OF_SKLEARN)
            if not LEARNED.fullmatch(name) or is_reserved:
                raise archive.Broken(f"{record['name']} learns nothing that is called {name!r}")
            setattr(model, name, value)
        return model


def _texts(record: dict[str, Any]) -> np.ndarray:
    """Build an array of texts, such as names of features."""
    if not all(isinstance(item, str) for item in record["items"]):
        raise archive.Broken("names of features are no texts")
    return np.array(record["items"], dtype=object)


def _check_loaded(model: Any) -> None:
    """Refuse a model whose fitted attributes contradict each other or cannot be used."""
    check_is_fitted(model)
    features = model.n_features_in_
    if type(features) is not int or features < 1:
        raise archive.Broken(f"it has {features!r} features")
    inner = getattr(model, "estimator_", model)
    if inner is not model and hasattr(model, "predict"):
        _check_loaded(inner)
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
