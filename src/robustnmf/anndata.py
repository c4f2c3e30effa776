"""Factorise AnnData objects as scanpy's tools do: results are written into the object or file."""

from __future__ import annotations

import shutil
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from robustnmf._version import __version__
from robustnmf.archive import path_beside

if TYPE_CHECKING:
    import h5py
    from anndata import AnnData

    from robustnmf.estimators import RobustNMF
    from robustnmf.tables import Table

__all__ = ["nmf", "result_slots"]


def nmf(
    adata: AnnData,
    n_components: int | str | None,
    *,
    layer: str | None = None,
    loss: str = "kullback-leibler",
    key_added: str = "nmf",
    copy: bool = False,
    **parameters: Any,
) -> AnnData | None:
    """Split an AnnData object into parts (gene programs); cells that follow none are marked.

    Parameters
    ----------
    adata : AnnData (n_obs, n_vars)
        With nonnegative values, best counts. Sparse values stay sparse; X of a backed object is
        read from its file, sparse X by pieces into memory, dense X block by block in every pass.
    n_components : int, "auto" or None
        Number of parts, as in :class:`robustnmf.RobustNMF`: "auto" chooses it from the data.
    layer : str, optional
        Layer with the values, for example ``"counts"``; X by default.
    loss : str or Loss, default="kullback-leibler"
        Loss of :class:`robustnmf.RobustNMF`; the default is that of counts.
    key_added : str, default="nmf"
        Name of the results in the object.
    copy : bool, default=False
        Whether to return a copy with the results instead of writing to ``adata``.
    **parameters
        Further parameters of :class:`robustnmf.RobustNMF`. ``random_state`` is zero by default.

    Returns
    -------
    adata : AnnData, or None
        None unless ``copy``. These are set, where ``nmf`` is ``key_added``:

        ``obsm["X_nmf"]``
            How much of each part every cell has (n_obs, n_components).
        ``varm["nmf_components"]``
            The parts (n_vars, n_components).
        ``obs["nmf_importance"]``
            Weight of every cell in the fit; they sum to one.
        ``obs["nmf_outlier"]``
            Whether a cell follows none of the parts.
        ``uns["nmf"]``
            ``params``, ``version``, ``error`` (the reconstruction error), ``n_iter``.
    """
    from robustnmf.estimators import RobustNMF

    if not all(hasattr(adata, name) for name in ("obs", "obsm", "varm", "uns", "layers")):
        raise TypeError(f"adata is a {type(adata).__name__}; an AnnData object is needed.")
    if copy and getattr(adata, "isbacked", False):
        raise ValueError(
            "copy=True needs an object in memory, but this one is backed by a file. Use "
            "adata.to_memory(), or copy=False, which leaves the file as it is until it is written."
        )
    if getattr(adata, "isbacked", False) and getattr(adata, "is_view", False):
        raise ValueError(
            "adata is a view of an object that is backed by a file, and has no place for results. "
            "Use adata.to_memory()."
        )
    model = RobustNMF(n_components, loss=loss, **{"random_state": 0, **parameters})
    codes = model.fit_transform(_values_of(adata, layer))
    if copy:
        adata = adata.copy()
    results = result_slots(model, codes, model.components_, key_added, layer)
    for slot, values in results.items():
        for name, value in values.items():
            getattr(adata, slot)[name] = value
    return adata if copy else None


def result_slots(
    model: RobustNMF, codes: Any, components: np.ndarray, key: str, layer: str | None
) -> dict[str, dict[str, Any]]:
    """Return the results of a fit by the slot of an AnnData object and the name in it.

    Codes are (samples, k), components (k, features).
    """
    given = {"layer": layer, **model.get_params(deep=False)}
    kept = {name: _as_plain(value) for name, value in given.items() if value is not None}
    record = {
        "params": kept,
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


def _as_plain(value: Any) -> Any:
    """Return a parameter as a file keeps it: a number, a text, an array, or its description."""
    if isinstance(value, np.generic):
        value = value.item()
    return value if isinstance(value, (bool, int, float, str, np.ndarray)) else repr(value)


def _values_of(adata: AnnData, layer: str | None) -> Any:
    """Return X or a layer as an estimator takes it (n_obs, n_vars)."""
    if layer is not None and layer not in adata.layers:
        names = ", ".join(repr(name) for name in adata.layers) or "none"
        raise ValueError(f"layer is {layer!r}, but the layers of adata are {names}.")
    values = adata.X if layer is None else adata.layers[layer]
    if values is None:
        raise ValueError("adata has no X; name a layer, for example layer='counts'.")
    if hasattr(values, "group") and hasattr(values, "to_memory"):  # sparse, in a file
        from robustnmf.tables import read_sparse

        return read_sparse(values.group)
    return values


def is_anndata_file(path: Path) -> bool:
    """Whether a file is an AnnData file, whatever it is called."""
    import h5py

    if not path.is_file() or not h5py.is_hdf5(path):
        return False
    with h5py.File(path, "r") as file:
        return "obs" in file and "var" in file


def write_h5ad(
    path: Path, source: Path, table: Table, data: Any, results: dict[str, dict[str, Any]]
) -> None:
    """Write results by slot and name to an AnnData file, which is replaced as a whole.

    It is a copy of ``source``, which the table was read from, if that is an AnnData file, with all
    that is in it; else it has ``data`` as X, and the names of samples and features of the table.
    """
    import h5py
    from anndata.io import read_elem

    is_copy = is_anndata_file(source)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path_beside(path) as beside:
        if is_copy:
            _copy_file(source, beside)
        else:
            _write_table(table, data, beside)
        with h5py.File(beside, "r+") as file:
            if is_copy and table.positions is not None:  # zeros for features that were not chosen
                for name, values in results["varm"].items():
                    spread = np.zeros((len(read_elem(file["var"])), values.shape[1]), values.dtype)
                    spread[table.positions] = values
                    results["varm"][name] = spread
            _add(file, results)


def _copy_file(source: Path, target: Path) -> None:
    """Copy an AnnData file; one of before release 0.7 is written again as files are now."""
    import anndata
    import h5py

    with h5py.File(source, "r") as file:
        is_old = not all(isinstance(file[axis], h5py.Group) for axis in ("obs", "var"))
    if not is_old:
        shutil.copyfile(source, target)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the old format
        anndata.read_h5ad(source).write_h5ad(target)


def _write_table(table: Table, data: Any, target: Path) -> None:
    """Write data (samples, features) with the names of samples and features."""
    import anndata
    import pandas

    obs, var = (pandas.DataFrame(index=list(names)) for names in (table.ids, table.features))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names that several samples have
        anndata.AnnData(X=data, obs=obs, var=var).write_h5ad(target)


def _add(file: h5py.File, results: dict[str, dict[str, Any]]) -> None:
    """Write results by slot and name into an open AnnData file."""
    from anndata.io import write_elem

    for slot, values in results.items():
        if slot not in file:
            write_elem(file, slot, {})
        group = file[slot]
        for name, value in values.items():
            write_elem(group, name, value)
        if slot == "obs":
            order = [str(name) for name in group.attrs.get("column-order", [])]
            order += [name for name in values if name not in order]
            group.attrs["column-order"] = np.array(order, dtype=object)
