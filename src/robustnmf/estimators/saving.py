"""Save models to files and load them: ``model.save(path)`` and ``robustnmf.load(path)``.

A file contains arrays, and the estimator's name, parameters and fitted attributes as JSON. Losses,
structures and weightings are stored by name and only built from the classes of this library. No
other objects can be created from a file, and all values are validated like those of a user.
"""

from __future__ import annotations

import os
import re
import warnings
from pathlib import Path
from typing import IO, Any

import numpy as np
from array_api_compat import is_dask_array
from sklearn.utils.validation import check_is_fitted

from robustnmf._version import __version__
from robustnmf.arrays import is_foreign, to_numpy
from robustnmf.exceptions import warn
from robustnmf.files import archive
from robustnmf.fitting import RankSelection
from robustnmf.fitting.stream import Stream
from robustnmf.loop.passes import Statistics
from robustnmf.loop.problem import ElasticNet, Problem
from robustnmf.losses import LOSSES
from robustnmf.screening import Neighbourhood
from robustnmf.solvers import SOLVERS
from robustnmf.structures import STRUCTURES
from robustnmf.weightings import WEIGHTINGS, ObjectiveSums, Weighting

FORMAT = "robustnmf model 2"

OF_SKLEARN = ("_skl", "_metadata_request")
"""Prefixes of scikit-learn's attributes that are not saved."""

LEARNED = re.compile(r"_?[a-z][a-z_]*_?")
PARTS: dict[str, type] = {
    kind.__name__: kind
    for registry in (LOSSES, STRUCTURES, WEIGHTINGS)
    for kind in registry.values()
}
RECORDS: dict[str, type] = {
    kind.__name__: kind
    for kind in (ElasticNet, Neighbourhood, ObjectiveSums, Problem, RankSelection, Statistics,
                 Stream)
}  # fmt: skip

ESTIMATORS: dict[str, Any] = {}
"""Classes of estimators that can be saved, by name."""


class SaveMixin:
    """The method ``save`` of estimators; the estimators of this library register themselves."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.__module__.rpartition(".")[0] == __package__:
            ESTIMATORS[cls.__name__] = cls

    def save(self, path: str | os.PathLike) -> None:
        """Save the fitted estimator to a file; :func:`robustnmf.load` loads it.

        The file contains arrays and JSON instead of pickled objects, so that loading it does not
        run code. It is written under a temporary name and then renamed.

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
            raise FileNotFoundError(f"cannot write {target}: not a file in a folder that exists.")
        with archive.whole_file(target, stream=True) as file:
            self._write_to(file)

    def _write_to(self, file: IO[bytes]) -> None:
        """Write the fitted estimator to an open file."""
        arrays: dict[str, np.ndarray] = {}
        record = _ModelCodec(arrays).to_json(self)
        record = {"format": FORMAT, "version": __version__, "model": record}
        archive.write_to(file, arrays, record)


def load(path: str | os.PathLike) -> Any:
    """Load an estimator from a file that was written by ``save``.

    Damaged, modified or oversized files and files of other programs raise an error. Loading a file
    never runs code from it.

    Parameters
    ----------
    path : path

    Returns
    -------
    model : the fitted estimator, with NumPy arrays
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
            raise archive.Broken("it does not contain an estimator")
        _check_loaded(model)
    except Exception as error:
        raise ValueError(
            f"{target} is not a saved model ({error}). Use a file that was written by "
            "model.save(path)."
        ) from error
    return model


class _ModelCodec(archive.Codec):
    """Convert estimators and their parts to records and back; validate everything on loading."""

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
                "random_state is a RandomState, which cannot be saved; it is saved as None.",
                UserWarning,
            )
            return None
        if isinstance(value, SaveMixin):
            return self._estimator_to_json(value)
        for solver, kind in SOLVERS.items():
            if type(value) is kind:
                return self.record("solver", solver, {})
        if is_foreign(value) or is_dask_array(value):
            value = to_numpy(value)
        return super().to_json(np.asarray(value) if isinstance(value, list) else value)

    def _estimator_to_json(self, model: Any) -> dict[str, Any]:
        name = type(model).__name__
        if ESTIMATORS.get(name) is not type(model):
            raise TypeError(
                f"a model of your own class {name} cannot be saved: save is only for estimators of "
                "this library. Use joblib.dump."
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
                raise archive.Broken(f"{record['name']} has no fitted attribute {name!r}")
            setattr(model, name, value)
        return model


def _texts(record: dict[str, Any]) -> np.ndarray:
    """Build an array of texts, such as names of features."""
    if not all(isinstance(item, str) for item in record["items"]):
        raise archive.Broken("the names of its features are not strings")
    return np.array(record["items"], dtype=object)


def _check_loaded(model: Any) -> None:
    """Refuse a model whose fitted attributes contradict each other or cannot be used."""
    check_is_fitted(model)
    features = model.n_features_in_
    if type(features) is not int or features < 1:
        raise archive.Broken(f"it has {features!r} features")
    if hasattr(model, "predict"):  # a detector
        _check_loaded(model.estimator_)
        model.predict(np.ones((1, features)))
        return
    components = model.components_
    is_table = isinstance(components, np.ndarray) and components.ndim == 2
    if not is_table or components.dtype not in (np.float32, np.float64):
        raise archive.Broken("its components are not a matrix of floats")
    if components.shape[1] != features:
        raise archive.Broken(f"its components have {components.shape[1]} features, not {features}")
    if not (np.isfinite(components).all() and (components >= 0).all()):
        raise archive.Broken("its components are not finite and nonnegative")
    names = getattr(model, "feature_names_in_", None)
    if names is not None and (not isinstance(names, np.ndarray) or names.shape != (features,)):
        raise archive.Broken(f"it does not have {features} names of features")
    if not (isinstance(model._scale, float) and 1e-310 < model._scale < 1e305):
        raise archive.Broken("its scale is not a positive number")
    if not isinstance(model._problem, Problem) or not isinstance(model.weighting_, Weighting):
        raise archive.Broken("the field _problem or weighting_ is missing")
    _check_selection(getattr(model, "rank_selection_", None))
    with warnings.catch_warnings(action="ignore"):  # about names of features
        model.transform(np.ones((1, features), dtype=components.dtype))


def _check_selection(selection: Any) -> None:
    """Refuse a comparison of numbers of components whose arrays do not belong together."""
    if selection is None:
        return
    if not isinstance(selection, RankSelection):
        raise archive.Broken("its rank_selection_ is not a RankSelection")
    ranks, errors, silhouette = selection.ranks, selection.errors, selection.silhouette
    arrays = [a for a in (ranks, errors, silhouette) if a is not None]
    are_numbers = all(isinstance(a, np.ndarray) and a.dtype.kind in "if" for a in arrays)
    if not are_numbers or ranks.ndim != 1 or len(ranks) < 1 or ranks.dtype.kind != "i":
        raise archive.Broken("its rank_selection_ does not contain numbers")
    if errors.ndim != 2 or len(errors) < 2 or any(a.shape[-1:] != ranks.shape for a in arrays):
        raise archive.Broken("its rank_selection_ has arrays of inconsistent shapes")
