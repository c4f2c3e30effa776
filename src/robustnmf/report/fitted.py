"""A fit as files: tables of its components, codes and samples, the model, and one page to read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import IO, Any

import numpy as np

from robustnmf.report.files import output_file, output_paths, write_whole
from robustnmf.report.fitted_data import Fit
from robustnmf.report.fitted_page import contents
from robustnmf.report.names import display_name
from robustnmf.report.page import page
from robustnmf.report.tables import write_comma_separated
from robustnmf.tables import Table, is_number

CSV_ROWS = 4096
"""Rows of an array that are converted to numbers of Python at a time."""


def summary(fit: Fit) -> dict[str, Any]:
    """Return the numbers of a fit that ``robustnmf fit --json`` prints."""
    model, (samples, features) = fit.model, fit.table.data.shape
    return {
        "samples": int(samples),
        "features": int(features),
        "components": int(model.components_.shape[0]),
        "iterations": int(model.n_iter_),
        "objective": float(model.objective_history_[-1]),
        "effective_sample_size": float(model.effective_sample_size_),
        "blank": int(fit.blank.sum()),
        "missing_values": int(fit.missing.sum()),
        "outliers": [fit.table.ids[i] for i in fit.order[fit.outliers[fit.order]]],
        "seconds": round(fit.seconds, 3),
        **read_summary(fit.table),
    }


def read_summary(table: Table) -> dict[str, Any]:
    """Return what ``--json`` prints about how a table was read."""
    return {
        "columns_left_out": table.left_out,
        "cells_made_missing": table.made_missing,
        "short_lines": len(table.short_lines),
        "text_format": table.text_format,
    }


def write(fit: Fit, folder: Path, run_record: dict[str, Any] | None = None) -> dict[str, Path]:
    """Write all files of a fit, the record of its run among them; return their paths by name."""
    names = part_names(fit.model.components_.shape[0])
    table, model = fit.table, fit.model
    ids = [escape_formula(name) for name in table.ids]
    numbers = np.column_stack([model.sample_importances_, model.energies_])
    samples = (
        [*row, int(is_outlier)]
        for row, is_outlier in zip(_csv_rows(ids, numbers), fit.outliers.tolist(), strict=True)
    )
    folder.mkdir(parents=True, exist_ok=True)
    paths = output_paths(folder)
    tables: dict[str, tuple[list[str], Iterable[Sequence[object]]]] = {
        "basis.csv": (
            ["part", *map(escape_formula, table.features)],
            _csv_rows(names, fit.components),
        ),
        "codes.csv": (["id", *names], _csv_rows(ids, fit.codes)),
        "samples.csv": (["id", "importance", "energy", "outlier"], samples),
    }
    for name, (header, rows) in tables.items():
        with output_file(paths[name]) as file:
            write_comma_separated(file, header, rows)
    model.save(paths["model.rnmf"])
    title = f"robustnmf: {display_name(fit.name)}"
    write_whole(paths["report.html"], page(title, contents(fit)).encode())
    text = json.dumps(run_record or {}, indent=1, default=str)
    write_whole(paths["run.json"], f"{text}\n".encode())
    return paths


def _csv_rows(names: Iterable[str], array: np.ndarray) -> Iterator[list[str | float]]:
    """Yield the rows of a CSV file: a name and the numbers of a row of the array (n, m).

    They have as many digits as their precision needs, and are converted in blocks.
    """
    array = np.asarray(array)
    blocks = (array[start : start + CSV_ROWS] for start in range(0, len(array), CSV_ROWS))
    rows = chain.from_iterable(block.tolist() for block in blocks)
    for name, row in zip(names, rows, strict=True):
        yield [name, *(f"{x:.9g}" for x in row)] if array.dtype == np.float32 else [name, *row]


def part_names(count: int) -> list[str]:
    """Return what the components are called in files."""
    return [f"part{j + 1}" for j in range(count)]


def escape_formula(text: str) -> str:
    """Return a name for a cell of a CSV file that no spreadsheet takes for a formula."""
    is_risky = bool(text) and text[0] in "=+-@\t\r\n"
    return f"'{text}" if is_risky and not is_number(text) else text


def check_image_shape(shape: tuple[int, int], features: int) -> tuple[int, int]:
    """Return the shape; refuse it unless images of it have as many pixels as there are features."""
    height, width = shape
    if height * width != features:
        raise ValueError(
            f"--image-shape is {height}x{width}, but HEIGHTxWIDTH of {features} pixels is needed."
        )
    return shape


def write_codes(
    file: IO[bytes],
    ids: Sequence[str],
    codes: np.ndarray,
    energies: np.ndarray,
    outliers: np.ndarray,
) -> None:
    """Write codes (n, k), energies and outliers (n,) of new samples as CSV to a binary file."""
    names = part_names(codes.shape[1])
    numbers = _csv_rows(map(escape_formula, ids), np.column_stack([codes, energies]))
    rows = ([*row, int(flag)] for row, flag in zip(numbers, outliers, strict=True))
    write_comma_separated(file, ["id", *names, "energy", "outlier"], rows)
