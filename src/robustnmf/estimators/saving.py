"""Write models to files and read them: ``model.save(path)`` and ``robustnmf.load(path)``.

A file holds arrays, and as JSON the estimator's name, its parameters and fitted attributes. Losses,
structures and weightings are stored by name and built from the classes of this library alone;
nothing else in a file can become an object, and all of it is validated as if a user had given it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from array_api_compat import is_dask_array
from sklearn.utils.validation import check_is_fitted

from robustnmf import archive
from robustnmf._version import __version__
from robustnmf._warn import warn
from robustnmf.arrays import is_foreign, to_numpy
from robustnmf.estimators._check_loaded import check_loaded
from robustnmf.fitting import RankSelection
from robustnmf.fitting.stream import Stream
from robustnmf.losses import LOSSES
from robustnmf.passes import Statistics
from robustnmf.problem import ElasticNet, Problem
from robustnmf.screening import Neighbourhood
from robustnmf.solvers import SOLVERS
from robustnmf.structures import STRUCTURES
from robustnmf.weightings import WEIGHTINGS, ObjectiveSums

FORMAT = "robustnmf model 2"
FORMAT_1 = "robustnmf model 1"
RENAMED_IN_2 = {
    "Paid": "ElasticNet", "Tally": "ObjectiveSums", "codes_pay": "codes_penalty",
    "basis_pays": "basis_penalty", "asked": "requested_weighting", "tally": "objective_sums",
}  # fmt: skip
"""Names of records and of their fields in files of format 1, with those of format 2."""

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


ESTIMATORS: dict[str, type] = {}
"""Classes of estimators that a file may hold, by name."""


class SaveMixin:
    """The method ``save`` of estimators; those of this library register themselves for it."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.__module__.rpartition(".")[0] == __package__:
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
        record = _Writer(arrays).to_json(self)
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
        if record.get("format") not in (FORMAT, FORMAT_1):
            raise archive.Broken(f"its format is {record.get('format')!r}, not {FORMAT!r}")
        renamed = RENAMED_IN_2 if record["format"] == FORMAT_1 else {}
        model = _Reader(arrays, renamed).build(record["model"])
        if not isinstance(model, SaveMixin):
            raise archive.Broken("it holds no estimator")
        check_loaded(model)
    except Exception as error:
        raise ValueError(
            f"{target} is no model that can be read ({error}). Models are written by "
            "model.save(path)."
        ) from error
    return model


class _Writer:
    """Convert objects to records as JSON keeps them; collect their arrays."""

    def __init__(self, arrays: dict[str, np.ndarray]):
        self.arrays = arrays

    def to_json(self, value: Any) -> Any:
        """Convert an object to its record; its arrays are added to ``arrays``."""
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if isinstance(value, np.generic):
            return value.item()
        if isinstance(value, np.random.RandomState):
            warn(
                "random_state is a RandomState, which a file does not keep; it is None in there.",
                UserWarning,
            )
            return None
        name = type(value).__name__
        if isinstance(value, SaveMixin):
            if ESTIMATORS.get(name) is not type(value):
                raise TypeError(
                    f"a model of your own class {name} cannot be saved: files keep estimators of "
                    "this library alone. Use joblib.dump."
                )
            parameters = value.get_params(deep=False)  # type: ignore[attr-defined]
            learned = {
                n: attribute for n, attribute in vars(value).items()
                if n not in parameters and not n.startswith(OF_SKLEARN)
            }  # fmt: skip
            output = getattr(value, "_sklearn_output_config", {}).get("transform")
            record = {"learned": self._each(learned), "output": output}
            return _record_of("estimator", name, self._each(parameters), **record)
        if PARTS.get(name) is type(value):
            parameters = value.get_params(deep=False)  # type: ignore[attr-defined]
            return _record_of("part", name, self._each(parameters))
        if RECORDS.get(name) is type(value):
            return _record_of("record", name, self._each(_fields_of(value)))
        for solver, kind in SOLVERS.items():
            if type(value) is kind:
                return _record_of("solver", solver, {})
        if isinstance(value, tuple):
            return {"is": "tuple", "items": [self.to_json(item) for item in value]}
        if is_foreign(value) or is_dask_array(value):
            return self._array(to_numpy(value))
        if hasattr(value, "shape") or isinstance(value, list):
            return self._array(np.asarray(value))
        raise TypeError(
            f"a model with {value!r} cannot be saved: files keep parts of this library alone. "
            "Use joblib.dump, and load such files only from whom you trust."
        )

    def _each(self, values: dict[str, Any]) -> dict[str, Any]:
        return {name: self.to_json(value) for name, value in values.items()}

    def _array(self, array: np.ndarray) -> dict[str, Any]:
        if array.dtype == object:
            if array.ndim != 1 or not all(isinstance(item, str) for item in array):
                raise TypeError("a model with an array of Python objects cannot be saved.")
            return {"is": "texts", "items": array.tolist()}
        name = f"array{len(self.arrays)}"
        self.arrays[name] = array
        return {"is": "array", "name": name}


def _record_of(kind: str, name: str, values: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return the record of a named object and its fields."""
    return {"is": kind, "name": name, "fields": values, **more}


def _fields_of(record: Any) -> dict[str, Any]:
    """Return the fields of a named tuple or a dataclass by name."""
    if isinstance(record, tuple):
        return dict(record._asdict())  # type: ignore[attr-defined]
    return {f.name: getattr(record, f.name) for f in fields(record)}


class _Reader:
    """Build objects from the records of a writer.

    ``renamed`` maps names of records and fields in the file to those of this version.
    """

    def __init__(self, arrays: dict[str, np.ndarray], renamed: dict[str, str]):
        self.arrays = arrays
        self.renamed = renamed

    def build(self, record: Any) -> Any:
        """Build the object that a record describes."""
        if not isinstance(record, dict):
            if isinstance(record, list):
                raise archive.Broken("it holds a list where none belongs")
            return record
        builders: dict[str, Callable[[dict[str, Any]], Any]] = {
            "array": lambda record: self.arrays[record["name"]],
            "texts": self._texts,
            "tuple": lambda record: tuple(self.build(item) for item in record["items"]),
            "solver": lambda record: SOLVERS[record["name"]](),
            "part": self._part,
            "record": self._record,
            "estimator": self._estimator,
        }
        if record.get("is") not in builders:
            raise archive.Broken(f"it holds {record.get('is')!r}, which this version does not know")
        return builders[record["is"]](record)

    def _each(self, record: dict[str, Any]) -> dict[str, Any]:
        return {name: self.build(value) for name, value in record.items()}

    def _texts(self, record: dict[str, Any]) -> np.ndarray:
        if not all(isinstance(item, str) for item in record["items"]):
            raise archive.Broken("names of features are no texts")
        return np.array(record["items"], dtype=object)

    def _record(self, record: dict[str, Any]) -> Any:
        kind = RECORDS[self.renamed.get(record["name"], record["name"])]
        fields = self._each(record["fields"])
        return kind(**{self.renamed.get(name, name): value for name, value in fields.items()})

    def _part(self, record: dict[str, Any]) -> Any:
        part = PARTS[record["name"]](**self._each(record["fields"]))
        part._validate_params()
        return part

    def _estimator(self, record: dict[str, Any]) -> Any:
        kind = ESTIMATORS[record["name"]]
        model = kind(**self._each(record["fields"]))
        model._validate_params()
        if record.get("output") is not None:
            model.set_output(transform=record["output"])
        learned = self._each(record["learned"])
        for name, value in learned.items():
            is_reserved = hasattr(kind, name) or name.startswith(OF_SKLEARN)
            if not LEARNED.fullmatch(name) or is_reserved:
                raise archive.Broken(f"{record['name']} learns nothing that is called {name!r}")
            setattr(model, name, value)
        return model
