"""Where values are read from an AnnData object, and where results are written to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from robustnmf._version import __version__

if TYPE_CHECKING:
    from anndata import AnnData

    from robustnmf.estimators import RobustNMF

SLOTS = ("obs", "obsm", "varm", "uns", "layers")
"""Attributes of an AnnData object that are used."""

LOOKED_AT = 1000
"""Rows by which values of X, a layer or ``.raw`` are judged: negative ones, counts."""


def check_object(adata: AnnData, copy: bool) -> None:
    """Raise an error unless adata is an AnnData object that results can be written to."""
    if not all(hasattr(adata, name) for name in SLOTS):
        raise TypeError(f"adata is a {type(adata).__name__}; an AnnData object is needed.")
    if copy and adata.isbacked:
        raise ValueError(
            "copy=True needs an object in memory, but this one is backed by a file. Use "
            "adata.to_memory(), or copy=False, which leaves the file as it is until it is written."
        )
    if adata.isbacked and adata.is_view:
        raise ValueError(
            "adata is a view of an object that is backed by a file, and has no place for results. "
            "Use adata.to_memory()."
        )


def values_of(adata: AnnData, layer: str | None, use_raw: bool = False) -> Any:
    """Return X, a layer or ``.raw.X`` as an estimator takes it (n_obs, n_vars)."""
    if layer is not None and use_raw:
        raise ValueError(f"layer is {layer!r} and use_raw is True; choose one of them.")
    if use_raw and adata.raw is None:
        raise ValueError("use_raw is True, but adata.raw is None. Leave use_raw out.")
    if layer is not None and layer not in adata.layers:
        names = ", ".join(repr(name) for name in adata.layers) or "none"
        raise ValueError(f"layer is {layer!r}, but the layers of adata are {names}.")
    if use_raw and adata.raw.shape[1] != adata.n_vars:
        raise ValueError(
            f"adata.raw has {adata.raw.shape[1]} variables and adata {adata.n_vars}, so components "
            "cannot be stored. Use adata.raw.to_adata()."
        )
    if use_raw and not adata.raw.var_names.equals(adata.var_names):
        raise ValueError(
            "adata.raw has other variables than adata, or another order, so components cannot be "
            "stored. Use adata.raw.to_adata()."
        )
    values = adata.raw.X if use_raw else adata.X if layer is None else adata.layers[layer]
    if values is None:
        raise ValueError("adata has no X; name a layer, for example layer='counts'.")
    if layer is None and not use_raw and has_negative(values):
        raise ValueError(
            "adata.X has negative values, as after scaling, but NMF needs nonnegative ones. "
            f"{where_to_look(dict(_nonnegative_places(adata)))}"
        )
    if hasattr(values, "group") and hasattr(values, "to_memory"):  # sparse, in a file
        from robustnmf.tables import read_sparse

        return read_sparse(values.group)
    return values


def chosen_features(adata: AnnData, mask_var: Any, use_raw: bool = False) -> np.ndarray | None:
    """Return which variables (n_vars,) are used: a column of ``var``, a mask, or None for all."""
    if mask_var is None:
        return None
    var = adata.raw.var if use_raw else adata.var
    if isinstance(mask_var, str):
        if mask_var not in var.columns:
            names = ", ".join(repr(str(name)) for name in var.columns) or "none"
            raise ValueError(
                f"mask_var is {mask_var!r}, but the columns of "
                f"{'adata.raw.var' if use_raw else 'adata.var'} are {names}."
            )
        mask_var = var[mask_var]
    mask = np.asarray(mask_var)
    if mask.dtype != bool or mask.shape != (len(var),):
        raise ValueError(
            f"mask_var has type {mask.dtype} and shape {mask.shape}, but a boolean for each of the "
            f"{len(var)} variables is needed."
        )
    if not mask.any():
        raise ValueError("mask_var chooses no variable at all.")
    return mask


def is_counts(values: Any) -> bool:
    """Whether all values that are looked at are whole numbers of zero or more."""
    numbers = _first_numbers(values)
    return bool(numbers.size and (numbers >= 0).all() and (numbers == np.floor(numbers)).all())


def has_negative(values: Any) -> bool:
    """Whether some of the values that are looked at are negative."""
    numbers = _first_numbers(values)
    return bool(numbers.size and np.nanmin(numbers) < 0)


def where_to_look(places: dict[str, bool]) -> str:
    """Name places without negative values, given whether each of them has counts; those first."""
    if not places:
        return "It has no layer and no .raw without negative values; load the counts."
    ordered = sorted(places, key=lambda place: not places[place])
    words = [f"{place}{' (counts)' if places[place] else ''}" for place in ordered]
    return f"Nonnegative values are in: {', '.join(words)}."


def result_slots(
    model: RobustNMF, codes: Any, components: np.ndarray, key: str, given: dict[str, Any]
) -> dict[str, dict[str, Any]]:
    """Return the results of a fit by the slot of an AnnData object and the name in it.

    Codes are (samples, k), components (k, features); ``given`` are parameters beside those of the
    model, for the record.
    """
    record = {
        "params": plain_parameters({**given, **model.get_params(deep=False)}),
        "version": __version__,
        "error": float(model.reconstruction_err_),
        "n_iter": int(model.n_iter_),
    }
    return {
        "obsm": {f"X_{key}": np.asarray(codes)},
        "varm": {f"{key}_components": np.ascontiguousarray(np.asarray(components).T)},
        "obs": {
            f"{key}_importance": np.asarray(model.sample_importances_),
            f"{key}_outlier": np.asarray(model.outliers_, dtype=bool),
        },
        "uns": {key: record},
    }


def plain_parameters(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return parameters as a file keeps them: numbers, texts, arrays, or their descriptions."""
    return {name: _as_plain(value) for name, value in parameters.items() if value is not None}


def write_results(adata: AnnData, results: dict[str, dict[str, Any]]) -> None:
    """Write results by slot and name into an object."""
    for slot, values in results.items():
        for name, value in values.items():
            getattr(adata, slot)[name] = value


def spread_over(values: np.ndarray, mask: np.ndarray | None) -> np.ndarray:
    """Return values (chosen variables, k) as (n_vars, k), with zeros for the other variables."""
    if mask is None:
        return values
    spread = np.zeros((len(mask), values.shape[1]), dtype=values.dtype)
    spread[mask] = values
    return spread


def _as_plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    return value if isinstance(value, (bool, int, float, str, np.ndarray)) else repr(value)


def _first_numbers(values: Any) -> np.ndarray:
    """Stored numbers of the first rows."""
    rows = values[:LOOKED_AT]
    return np.asarray(rows.data if hasattr(rows, "indptr") else rows)


def _nonnegative_places(adata: AnnData) -> Iterator[tuple[str, bool]]:
    """Yield how to use every place without negative values, and whether it has counts."""
    for name, values in adata.layers.items():
        if not has_negative(values):
            yield f"layer={name!r}", is_counts(values)
    if adata.raw is not None and not has_negative(adata.raw.X):
        yield "use_raw=True", is_counts(adata.raw.X)
