"""Checks on X: dense, sparse or with missing values; nonnegative; fit for the loss."""

from __future__ import annotations

from copy import copy
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import scipy.sparse
from array_api_compat import is_dask_array, is_torch_array
from sklearn.utils import check_array
from sklearn.utils.validation import _get_feature_names

from robustnmf.arrays import has_holes, is_foreign, namespace, to_numpy
from robustnmf.compatibility import ModelSpec, unsupported_reason
from robustnmf.engine import DataSummary, Source, check_nonempty, look_at, one_of_many, source_of
from robustnmf.estimators._warn import warn
from robustnmf.losses import Loss
from robustnmf.structures import Structure

try:
    from sklearn.utils._array_api import check_same_namespace
except ImportError:  # came with scikit-learn 1.9

    def check_same_namespace(X: Any, estimator: Any, *, attribute: str, method: str) -> None:
        """Nothing to agree on."""


FLOATS = [np.float64, np.float32]
LEAST, MOST = 1e-150, 1e150
"""Largest values of X whose squares stay in the range of float64."""

LEAST_SINGLE, MOST_SINGLE = 1e-32, 1e32
"""Of float32: sums over many samples stay in its range, and small entries keep their digits."""

WHAT_IS_NEEDED = (
    "NMF needs X >= 0. Clip small negative noise at zero, or shift every feature by its minimum."
)
ZEROS_COST = "its loss is infinite there. Add a small constant to X, or use KullbackLeibler."
ACCEPTED = {
    "dtype": FLOATS,
    "accept_sparse": "csr",
    "ensure_all_finite": "allow-nan",
}


def check_table(X: Any, name: str, parts: ModelSpec) -> Any:
    """X as a nonnegative float table, not copied where it is one already, or its source.

    What is stored elsewhere is looked at when an engine reads it first (``check_look``).
    """
    check_container(X)
    source = source_of(X)
    if source is not None:
        return _worth_reading(source, name)
    if is_foreign(X):
        X = floats_of(X, name)
        check_look(name, parts, look_at(X))
        return X
    if is_dask_array(X):
        from robustnmf.engine.dask import check_chunks, refuse_sparse_chunks

        refuse_sparse_chunks(X._meta, name)
        if type(parts.structure).start is not Structure.start:
            raise ValueError(
                f"{name} cannot read a Dask array with {parts.structure!r}: its start compares "
                "samples that are on different workers. Use structure='free'."
            )
        return check_chunks(X, name)
    _get_feature_names(X)  # refuses names of mixed types, before the work rather than after
    X = check_array(native(X), estimator=name, input_name="X", **ACCEPTED)
    return usable(X, name, parts, learning=True)


def native(X: Any) -> Any:
    """X in the byte order of this machine, in which scikit-learn knows float32 from other types."""
    if isinstance(X, np.ndarray) and X.dtype.kind == "f" and not X.dtype.isnative:
        return X.astype(X.dtype.newbyteorder("="))
    return X


def _worth_reading(source: Source, name: str) -> Source:
    """The source, if it has samples, features and numbers."""
    check_nonempty(source.shape, name)
    if source.dtype.kind not in "fiub":
        raise ValueError(f"X holds {source.dtype}, but {name} needs real numbers.")
    return source


def check_container(X: Any) -> None:
    """Refuse groups of Zarr and HDF5, which hold arrays, and datasets whose file is closed."""
    module = type(X).__module__.partition(".")[0]
    if module not in {"zarr", "h5py"}:
        return
    if module == "h5py" and not X:
        raise ValueError(
            "X is a dataset of an HDF5 file that is closed. Keep the file open while X is read."
        )
    if not hasattr(X, "shape"):
        names = ", ".join(repr(str(key)) for key in islice(X, 5)) or "nothing"
        raise TypeError(
            f"X is a group of arrays, a {type(X).__name__} of {module} that holds {names}. Pass "
            "one of its arrays, for example X['name']."
        )


def as_lazy(X: Any) -> Any:
    """X as a source or a Dask array, which have a shape; None where its rows are in memory."""
    check_container(X)
    return X if is_dask_array(X) or isinstance(X, Source) else source_of(X)


def header_of(X: Any) -> Any:
    """What scikit-learn reads the number and the names of features from."""
    away = X if is_foreign(X) else as_lazy(X)
    return X if away is None else np.empty((0, away.shape[1]))


def floats_of(X: Any, name: str) -> Any:
    """A table of another library as one of floats, wherever it is."""
    xp = namespace(X)
    if X.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {X.ndim}D array instead (shape={tuple(X.shape)}). Reshape "
            "your data: samples in rows, features in columns."
        )
    check_nonempty(X.shape, name)
    if not xp.isdtype(X.dtype, ("real floating", "integral", "bool")):
        raise ValueError(f"X holds {X.dtype}, but {name} needs real numbers.")
    if is_torch_array(X):
        if "strided" not in str(X.layout):
            raise TypeError(
                f"X has the layout {X.layout}; {name} needs a dense tensor, X.to_dense()."
            )
        X = X.detach()  # gradients of a fit are nobody's
    known = X.dtype == xp.float32 or X.dtype == xp.float64
    return X if known else xp.astype(X, xp.float64)


def mapped(model: Any, method: str, X: Any, width: tuple[int, ...]) -> Any:
    """A method of a fitted estimator for every block of a Dask array, when it is asked for."""
    from robustnmf.engine.dask import check_chunks

    X = check_chunks(X, type(model).__name__)
    single = X.dtype.newbyteorder("=") == np.float32
    dtype = np.float32 if width and single else np.float64
    # What is known of every sample of the fit need not travel.
    light = copy(model)
    for name in ("energies_", "sample_importances_", "outliers_", "mixing_", "_stream"):
        vars(light).pop(name, None)
    # Numbers of samples as columns: Dask joins the arrays of an axis that is dropped, by NumPy.
    chunks = (X.chunks[0], width or (1,))
    found = X.map_blocks(partial(_called, light, method), dtype=dtype, chunks=chunks)
    return found if width else found[:, 0]


def _called(model: Any, method: str, rows: Any) -> Any:
    """Computed where the rows are; results are arrays of NumPy, as Dask expects them."""
    with one_of_many():
        found = to_numpy(getattr(model, method)(rows))
    return found if found.ndim == 2 else found[:, None]


def check_look(name: str, parts: ModelSpec, look: DataSummary) -> None:
    """Refuse stored X that these parts cannot read."""
    data = "missing" if look.has_missing else "dense"
    reason = unsupported_reason(*parts, data)
    if reason is not None:
        what = "X with missing values" if look.has_missing else "X"
        raise ValueError(f"{name} cannot read {what}: {reason}")
    if not look.known:
        raise ValueError(f"Input X contains NaN and nothing else; {name} needs known values.")
    if look.has_inf:
        raise ValueError(f"Input X contains infinity; {name} needs finite values.")
    if look.first_negative is not None:
        row, column, value = look.first_negative
        raise ValueError(
            f"Negative values in data passed to {name}: X holds some, first at "
            f"[{row}, {column}] = {value:.6g}; {WHAT_IS_NEEDED}"
        )
    _refuse_sizes(look.largest, name, look.single)
    if not parts.loss.takes_zeros and look.least == 0:
        raise ValueError(f"{parts.loss!r} needs X > 0, but X holds zeros: {ZEROS_COST}")


def usable(X: Any, name: str, parts: ModelSpec, *, learning: bool = False) -> Any:
    """The same X, once it is known that these parts can read it."""
    if scipy.sparse.issparse(X):
        X = _canonical(X, name)
        data = "sparse"
    else:
        data = "missing" if has_holes(X) else "dense"
    reason = unsupported_reason(*parts, data)
    if reason is not None:
        what = {"sparse": "sparse X", "missing": "X with missing values", "dense": "X"}[data]
        raise ValueError(f"{name} cannot read {what}: {reason}")
    if data == "missing":
        if np.isnan(X).all():
            raise ValueError(f"Input X contains NaN and nothing else; {name} needs known values.")
        _warn_of_empty(X, "sample", "have no say, and codes of zero")
        if learning:
            _warn_of_empty(X, "feature", "are zero in all that is learned and imputed")
    _refuse_unfit(X, name, parts.loss)
    return X


def _canonical(X: Any, name: str) -> scipy.sparse.csr_array:
    """Every entry stored once; sparse X has no way to say that an entry is missing."""
    if np.isnan(X.data).any():
        raise ValueError(
            f"Input X contains NaN. {name} takes missing values in dense X only: what sparse X "
            "leaves out are zeros. Pass X.toarray(), with NaN for what is missing."
        )
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return scipy.sparse.csr_array(X)


def _warn_of_empty(X: np.ndarray, what: str, outcome: str) -> None:
    """Warn of samples or features of which nothing is known."""
    (empty,) = np.nonzero(np.isnan(X).all(axis=1 if what == "sample" else 0))
    if len(empty):
        warn(
            f"no value is known of {len(empty)} {what}{'s' * (len(empty) > 1)} of X, first "
            f"{what} {empty[0]}: they {outcome}. Leave them out.",
            UserWarning,
        )


def _refuse_unfit(X: Any, name: str, loss: Loss) -> None:
    """Refuse negative values, sizes whose squares overflow, and zeros the loss cannot take."""
    values = X.data if scipy.sparse.issparse(X) else X
    if not values.size:
        return
    least, largest = (_extreme(values, f) for f in (np.fmin, np.fmax))
    if largest == np.inf:
        raise ValueError(
            f"X leaves the range of {values.dtype}, in which this {name} was fitted. Fit it on "
            "float64 data, or scale X."
        )
    if least < 0:
        count, row, column = _found(X, values < 0, "negative value")
        raise ValueError(
            f"Negative values in data passed to {name}: X holds {count}, first at "
            f"[{row}, {column}] = {X[row, column]:.6g}; {WHAT_IS_NEEDED}"
        )
    _refuse_sizes(largest, name, values.dtype == np.float32)
    if not loss.takes_zeros and least == 0:
        count, row, column = _found(X, values == 0, "zero")
        raise ValueError(
            f"{loss!r} needs X > 0, but X holds {count}, first at [{row}, {column}]: {ZEROS_COST}"
        )


def _refuse_sizes(largest: float, name: str, single: bool) -> None:
    """Refuse sizes that leave the range of the dtype that X is computed with in."""
    least, most = (LEAST_SINGLE, MOST_SINGLE) if single else (LEAST, MOST)
    if largest == 0 or least <= largest <= most:
        return
    how = "adds up products with it in float32" if single else "squares it"
    inside = single and LEAST <= largest <= MOST
    raise ValueError(
        f"the largest value of X is {largest:.3g}; {name} {how}, so it needs to lie between "
        f"{least:g} and {most:g}. Divide X by {largest:.1g} first"
        f"{', or give it as float64' if inside else ''}."
    )


def _extreme(values: np.ndarray, either: np.ufunc) -> float:
    """Smallest or largest known value; NaN costs a second, slower look."""
    quick = values.min() if either is np.fmin else values.max()
    return float(either.reduce(values, axis=None) if np.isnan(quick) else quick)


def _found(X: Any, mask: np.ndarray, what: str) -> tuple[str, int, int]:
    """How many there are, in words, and where the first is."""
    places = np.flatnonzero(mask)
    if scipy.sparse.issparse(X):
        row = int(np.searchsorted(X.indptr, places[0], side="right")) - 1
        column = int(X.indices[places[0]])
    else:
        row, column = (int(i) for i in np.unravel_index(places[0], mask.shape))
    return f"1 {what}" if len(places) == 1 else f"{len(places)} {what}s", row, column
