"""Functions that several commands use: options, reading, checks of outputs, messages."""

from __future__ import annotations

import argparse
import csv
import os
import platform
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from robustnmf._version import __version__

if TYPE_CHECKING:
    import numpy as np

    from robustnmf.tables import Table

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

PLACE = re.compile(
    r"\bfirst at \[(?P<row>\d+), (?P<column>\d+)\](?: = (?P<value>[-+.\de]+))?"
    r"|\bfirst (?P<axis>sample|feature) (?P<index>\d+)"
)
"""How messages name the first wrong entry of X (with its value), sample or feature."""


class UsageError(ValueError):
    """Raised for options that contradict each other; the exit code is that of argparse."""


def add_reading(parser: argparse.ArgumentParser) -> None:
    """Add the options of the table and of how it is read."""
    parser.add_argument("data", type=Path, help="CSV, TSV, Parquet, NPY, NPZ, MTX, H5AD or HDF5 "
                        "(texts and MTX also .gz), or a folder of Cell Ranger")  # fmt: skip
    parser.add_argument("--id", metavar="COLUMN", help="column with the names of samples")
    parser.add_argument("--dataset", metavar="NAME", help="which array of an NPZ or HDF5 file")
    parser.add_argument("--header", action=argparse.BooleanOptionalAction,
                        help="whether the first line of a text names the columns")  # fmt: skip
    parser.add_argument("--sep", type=_separator, metavar="CHARACTER",
                        help='separator of a text file, or "tab" (default: detected)')  # fmt: skip
    parser.add_argument("--decimal", choices=[".", ","],
                        help="decimal mark of numbers in a text (default: detected)")  # fmt: skip
    parser.add_argument("--layer", metavar="NAME", help="layer of an H5AD file (default: X)")
    parser.add_argument("--raw", action="store_true",
                        help="values of .raw of an H5AD file, with its own variables")  # fmt: skip
    parser.add_argument(
        "--columns",
        type=_names,
        metavar="NAMES",
        help='features to use, separated by commas; "mz_*" chooses all that begin with mz_',
    )
    parser.add_argument("--transpose", action=argparse.BooleanOptionalAction,
                        help="whether rows of the file are features (default: no, unless MTX files "
                        "are genes x cells)")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print a summary for scripts")
    parser.add_argument("--force", action="store_true", help="overwrite existing results")


def positive_integer(text: str) -> int:
    """Parse an option that is an integer of one or more."""
    if not re.fullmatch("[0-9]{1,9}", text) or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not an integer of 1 or more")
    return int(text)


def _separator(text: str) -> str:
    """Parse an option that is one character; "tab" stands for a tab."""
    character = {"tab": "\t", "\\t": "\t"}.get(text, text)
    if len(character) != 1 or character in '"\r\n':
        raise argparse.ArgumentTypeError(f'{text!r} is not one character, nor "tab"')
    return character


def _names(text: str) -> list[str]:
    """Parse an option that is a list of names with commas between them; they may be quoted."""
    names = [name.strip() for name in next(csv.reader([text]), []) if name.strip()]
    if not names:
        raise argparse.ArgumentTypeError(f"{text!r} names no columns")
    return names


def read(options: argparse.Namespace, say: Callable[[str], None]) -> Table:
    """Read the table that the options name; print its notes by ``say``, its losses to stderr."""
    from robustnmf.tables import read_table

    table = read_table(
        options.data, id_column=options.id, dataset=options.dataset, header=options.header,
        separator=options.sep, decimal=options.decimal, layer=options.layer, raw=options.raw,
        mask_var=getattr(options, "mask_var", None), columns=options.columns,
        transpose=options.transpose,
        color_by=getattr(options, "color_by", None), scratch=_scratch_folder(options),
        fitted_decimal=getattr(options, "fitted_decimal", None),
        needed=getattr(options, "needed", ()),
    )  # fmt: skip
    if table.place is not None:
        from robustnmf.anndata.files import refuse_negative

        refuse_negative(options.data, table)
    for note in table.notes:
        say(f"  {note}")
    for loss in table.losses:
        warn(loss)
    return table


def _scratch_folder(options: argparse.Namespace) -> Path | None:
    """Return the folder for temporary files: where the output goes, as there is room."""
    output = options.output or getattr(options, "write_h5ad", None)
    if output is None or is_stdout(output):
        return None
    return next((folder for folder in (output, *output.parents) if folder.is_dir()), None)


def warn(text: str) -> None:
    """Print a note for the user to stderr."""
    print(f"robustnmf: note: {text}", file=sys.stderr)


def name_places(text: str, table: Table, scale: np.ndarray | None = None) -> str:
    """Return a message about X with the names of samples and features instead of their indices.

    If the features were divided by a ``scale`` (features,), values are converted to their units.
    """

    def name(match: re.Match[str]) -> str:
        if match["row"]:
            sample, feature = table.ids[int(match["row"])], table.features[int(match["column"])]
            value = match["value"] or ""
            if value and scale is not None:
                value = f"{float(value) * scale[int(match['column'])]:.5g}"
            return f"first in sample {sample!r}, feature {feature!r}{value and f' = {value}'}"
        names = table.ids if match["axis"] == "sample" else table.features
        return f"first {match['axis']} {names[int(match['index'])]!r}"

    return PLACE.sub(name, text)


@contextmanager
def places_named(table: Table | None, scale: np.ndarray | None = None) -> Iterator[None]:
    """Name samples and features in the errors of an estimator, if all of a table is given to it."""
    try:
        yield
    except ValueError as error:
        if table is None:
            raise
        raise ValueError(name_places(str(error), table, scale)) from error


def is_stdout(path: Path) -> bool:
    """Whether a path is standard output: ``-``, ``/dev/stdout`` and the like."""
    from robustnmf.files.archive import is_stream

    if str(path) == "-":
        return True
    try:
        return is_stream(path) and os.path.samestat(path.stat(), os.fstat(sys.stdout.fileno()))
    except (OSError, ValueError):  # standard output is not a file
        return False


def check_output(
    option: str,
    value: Path,
    paths: Iterable[Path],
    inputs: Iterable[Path] = (),
    *,
    force: bool = True,
    streams: bool = True,
) -> None:
    """Refuse outputs that cannot be written, or would replace something, before the work begins.

    ``value`` is the value of the option, and ``paths`` are the files that will be written. FIFOs
    and devices are written to if ``streams``.
    """
    from robustnmf.files.archive import is_stream
    from robustnmf.files.output import unwritable_reason

    existing = []
    for path in paths:
        reason = unwritable_reason(path)
        if reason is None and is_stream(path) and not streams:
            reason = "it is a FIFO or a device, and a file is needed"
        if reason is not None:
            raise ValueError(f"{option} is {value}, but {reason}. Name another output.")
        if path.is_file() and any(item.exists() and path.samefile(item) for item in inputs):
            raise ValueError(f"{option} is {path}, which is read; another file is needed.")
        if path.exists() and not is_stream(path):
            existing.append(path)
    if existing and not force:
        more = f" and {len(existing) - 1} more" if len(existing) > 1 else ""
        raise ValueError(
            f"{existing[0]}{more} already exists; name another output, or overwrite with --force."
        )


def surroundings(device: str | None) -> dict[str, Any]:
    """Return the machine and the versions of libraries, for the record of a run."""
    import numpy
    import scipy
    import sklearn

    modules = (numpy, scipy, sklearn)
    versions = {"python": platform.python_version(), "robustnmf": __version__}
    versions |= {module.__name__: module.__version__ for module in modules}
    machine = f"{platform.machine()}, {os.cpu_count()} cores"
    if device is not None:
        import torch

        versions["torch"] = torch.__version__
        if device.startswith("cuda"):
            machine = f"{torch.cuda.get_device_name(device)}; {machine}"
    return {"machine": machine, "versions": versions}
