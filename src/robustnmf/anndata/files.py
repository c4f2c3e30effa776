"""AnnData files: recognise them, and write results into a copy of them."""

from __future__ import annotations

import shutil
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from robustnmf.archive import path_beside

if TYPE_CHECKING:
    import h5py

    from robustnmf.tables import Table


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
