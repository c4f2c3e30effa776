"""AnnData files: recognise them, and write results into a copy of them."""

from __future__ import annotations

import shutil
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from robustnmf.anndata.slots import LOOKED_AT, has_negative, is_counts, spread_over, where_to_look
from robustnmf.files.archive import path_beside
from robustnmf.tables import StoredRows, Table, axis_names, draw_rows, value_places, var_of

if TYPE_CHECKING:
    import h5py

ENTRIES = 1000 * LOOKED_AT
"""Stored entries by which values of a sparse array in a file are judged."""


def is_anndata_file(path: Path) -> bool:
    """Whether a file is an AnnData file, whatever it is called."""
    import h5py

    if not path.is_file() or not h5py.is_hdf5(path):
        return False
    with h5py.File(path, "r") as file:
        return "obs" in file and "var" in file


def refuse_negative(path: Path, table: Table) -> None:
    """Raise an error if values of an AnnData file are negative; it names options to use instead."""
    import h5py

    rows = draw_rows(table.data, LOOKED_AT, 0) if isinstance(table.data, StoredRows) else table.data
    numbers = np.asarray(rows.data if hasattr(rows, "indptr") else rows)
    if not numbers.size or not np.nanmin(numbers) < 0:
        return
    counts: dict[str, bool] = {}
    with h5py.File(path, "r") as file:
        for option, place in value_places(file).items():
            item = file[place]
            first = item[:LOOKED_AT] if hasattr(item, "shape") else item["data"][:ENTRIES][None]
            if place != table.place and not has_negative(first):
                counts[option] = is_counts(first)
    raise ValueError(
        f"{table.place} of {path} has negative values, as after scaling, but NMF needs nonnegative "
        f"ones. {where_to_look(counts)}"
    )


def check_raw_variables(path: Path) -> None:
    """Refuse an AnnData file whose ``.raw`` has other variables than the file itself."""
    import h5py

    with h5py.File(path, "r") as file:
        raw = value_places(file).get("--raw")
        if raw is None:
            return
        names, others = axis_names(file["var"]), axis_names(file[var_of(raw)])
    if names != others:
        raise ValueError(
            f".raw of {path} has {len(others)} variables, which are not the {len(names)} of the "
            "file, so --write-h5ad cannot store components. Write adata.raw.to_adata() as a file "
            "and fit that, or use -o instead of --write-h5ad."
        )


def write_h5ad(
    path: Path, source: Path, table: Table, data: Any, results: dict[str, dict[str, Any]]
) -> None:
    """Write results by slot and name to an AnnData file, which is replaced as a whole.

    It is a copy of ``source``, which the table was read from, if that is an AnnData file, with all
    that is in it; else it has ``data`` as X, and the names of samples and features of the table.
    """
    import anndata
    import h5py
    import pandas

    is_copy = is_anndata_file(source)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path_beside(path) as beside:
        with warnings.catch_warnings(action="ignore"):  # of repeated names, and of old files
            if not is_copy:
                axes = (pandas.DataFrame(index=list(ids)) for ids in (table.ids, table.features))
                anndata.AnnData(data, *axes).write_h5ad(beside)
            elif _is_old(source):
                anndata.read_h5ad(source).write_h5ad(beside)  # as files are written now
            else:
                shutil.copyfile(source, beside)
        with h5py.File(beside, "r+") as file:
            if is_copy and table.positions is not None:  # zeros for features that were not chosen
                mask = np.isin(np.arange(len(axis_names(file["var"]))), table.positions)
                varm = results["varm"]
                results["varm"] = {name: spread_over(varm[name], mask) for name in varm}
            _add(file, results)


def _is_old(path: Path) -> bool:
    """Whether an AnnData file is of before release 0.7, when obs and var were no groups."""
    import h5py

    with h5py.File(path, "r") as file:
        return not all(isinstance(file[axis], h5py.Group) for axis in ("obs", "var"))


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
