"""A fit as an AnnData file: the file that was read, with the results in it."""

from __future__ import annotations

import shutil
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from robustnmf.anndata import result_slots
from robustnmf.archive import is_stream, path_beside
from robustnmf.report.fitted_data import Fit
from robustnmf.tables import StoredRows, Table

if TYPE_CHECKING:
    import h5py

KEY = "nmf"
"""Name of the results in the file."""


def is_anndata(path: Path) -> bool:
    """Whether a file is an AnnData file, whatever it is called."""
    import h5py

    if not path.is_file() or not h5py.is_hdf5(path):
        return False
    with h5py.File(path, "r") as file:
        return "obs" in file and "var" in file


def writes_data(path: Path | None, source: Path) -> bool:
    """Whether the data of a table are written, as there is no AnnData file to be copied."""
    return path is not None and not is_anndata(source)


def check_h5ad(path: Path, source: Path, dataset: str | None) -> None:
    """Refuse a path that no AnnData file can be written to, before the fit."""
    for module in ("anndata", "h5py"):  # imported after the fit, as they take memory
        if find_spec(module) is None:
            raise ModuleNotFoundError(f"AnnData files need {module}", name=module)
    if path.is_dir() or is_stream(path):
        raise ValueError(f"--write-h5ad is {path}; the path of a file is needed.")
    if path.exists() and source.exists() and path.samefile(source):
        raise ValueError(f"--write-h5ad is {path}, which is read; another file is needed.")
    if dataset is not None and is_anndata(source):
        raise ValueError(
            "--write-h5ad keeps the observations and variables of an AnnData file, which --dataset "
            "leaves out. Leave --dataset out, or --write-h5ad."
        )


def check_table(table: Table, source: Path) -> None:
    """Refuse a table that cannot be written to an AnnData file, before the fit."""
    is_copy = is_anndata(source)
    if is_copy and table.turned:
        raise ValueError(
            "--write-h5ad keeps observations as samples. Leave --transpose out, or --write-h5ad."
        )
    if not is_copy and isinstance(table.data, StoredRows):
        raise ValueError(
            "--write-h5ad needs the table in memory, and this one is too large. Write it as H5AD "
            "and fit that."
        )


def write_h5ad(fit: Fit, path: Path, source: Path, layer: str | None) -> None:
    """Write a fit to an AnnData file, which is replaced as a whole.

    It is a copy of ``source`` if that is an AnnData file, with all that is in it, and else has X
    and the names of samples and features alone.
    """
    import h5py

    components = fit.components
    check_table(fit.table, source)
    is_copy = is_anndata(source)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path_beside(path) as beside:
        if is_copy:
            _copy(source, beside)
        else:
            _write_table(fit, beside)
        with h5py.File(beside, "r+") as file:
            if is_copy and fit.table.positions is not None:
                components = _spread(components, fit.table.positions, _count(file["var"]))
            results = result_slots(fit.model, fit.codes, components, KEY, layer)
            if fit.scale is not None:
                results["uns"][KEY]["feature_scale"] = fit.scale
            _add(file, results)


def _copy(source: Path, target: Path) -> None:
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


def _write_table(fit: Fit, target: Path) -> None:
    """Write the table of a fit with the names of its samples and features."""
    import anndata
    import pandas

    table = fit.table
    data = table.data if fit.unscaled is None else fit.unscaled
    assert not isinstance(data, StoredRows)  # check_table refuses them
    obs, var = (pandas.DataFrame(index=list(names)) for names in (table.ids, table.features))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names that several samples have
        anndata.AnnData(X=data, obs=obs, var=var).write_h5ad(target)


def _count(axis: h5py.Group) -> int:
    """Return how many variables var has."""
    index = axis[axis.attrs["_index"]]
    return int((index if hasattr(index, "shape") else index["codes"]).shape[0])


def _spread(components: np.ndarray, positions: np.ndarray, count: int) -> np.ndarray:
    """Return components (k, count) with zeros for the features that were not chosen."""
    spread = np.zeros((len(components), count), dtype=components.dtype)
    spread[:, positions] = components
    return spread


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
