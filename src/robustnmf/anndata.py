"""Factorise AnnData objects as scanpy's tools do: results are written into the object."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from anndata import AnnData

    from robustnmf.estimators import RobustNMF

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
    from robustnmf import __version__

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
