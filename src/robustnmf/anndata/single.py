"""One factorisation of an AnnData object."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from robustnmf.anndata.slots import (
    check_object,
    chosen_features,
    result_slots,
    spread_over,
    values_of,
    write_results,
)

if TYPE_CHECKING:
    from anndata import AnnData


def nmf(
    adata: AnnData,
    n_components: int | str | None,
    *,
    layer: str | None = None,
    use_raw: bool = False,
    mask_var: Any = None,
    loss: str = "kullback-leibler",
    key_added: str = "nmf",
    copy: bool = False,
    **parameters: Any,
) -> AnnData | None:
    """Find gene programs in an AnnData object, and mark cells that do not fit.

    Use it for one quick fit; :func:`robustnmf.anndata.consensus` also shows which programs are
    stable.

    Parameters
    ----------
    adata : AnnData (n_obs, n_vars)
        With nonnegative values, best counts. Sparse values stay sparse. A backed object is read
        from its file: sparse X by pieces into memory, dense X block by block in every iteration.
    n_components : int, "auto" or None
        Number of programs, as in :class:`robustnmf.RobustNMF`: "auto" chooses it from the data.
    layer : str, optional
        Layer with the values, for example ``"counts"``; X by default.
    use_raw : bool, default=False
        Use ``adata.raw``, if it has the same variables as ``adata``.
    mask_var : str or array of bool (n_vars,), optional
        Variables to use: a column of ``var``, for example ``"highly_variable"``, or a mask. The
        components are zero for the others.
    loss : str or Loss, default="kullback-leibler"
        Loss of :class:`robustnmf.RobustNMF`; the default is for counts.
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
            Codes of the cells (n_obs, n_components).
        ``varm["nmf_components"]``
            The components (n_vars, n_components).
        ``obs["nmf_importance"]``
            Weight of every cell in the fit; they sum to one.
        ``obs["nmf_outlier"]``
            Whether a cell is an outlier.
        ``uns["nmf"]``
            ``params``, ``version``, ``error`` (the reconstruction error), ``n_iter``.
    """
    from robustnmf.estimators import RobustNMF

    check_object(adata, copy)
    values = values_of(adata, layer, use_raw)
    mask = chosen_features(adata, mask_var, use_raw)
    model = RobustNMF(n_components, loss=loss, **{"random_state": 0, **parameters})
    codes = model.fit_transform(values if mask is None else values[:, mask])
    if copy:
        adata = adata.copy()
    given = {"layer": layer, "use_raw": use_raw or None, "mask_var": mask_var}
    results = result_slots(model, codes, model.components_, key_added, given)
    results["varm"] = {name: spread_over(a, mask) for name, a in results["varm"].items()}
    write_results(adata, results)
    return adata if copy else None
