"""Functions that several commands use: options, reading, writing, progress."""

from __future__ import annotations

import argparse
import csv
import os
import platform
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from rich.console import Console

    from robustnmf.tables import Table

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


class UsageError(ValueError):
    """Raised for options that contradict each other; the exit code is that of argparse."""


def command(
    commands: Commands,
    name: str,
    summary: str,
    examples: str,
    description: str | None = None,
    aliases: Sequence[str] = (),
) -> argparse.ArgumentParser:
    """Add a command; return its parser, with examples below its help."""
    return commands.add_parser(
        name,
        aliases=aliases,
        help=summary,
        description=description or f"{summary[0].upper()}{summary[1:]}.",
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def add_reading(parser: argparse.ArgumentParser) -> None:
    """Add the options that say which table to read, and how."""
    parser.add_argument("data", type=Path, help="CSV, TSV, Parquet, NPY, NPZ, MTX, H5AD or HDF5 "
                        "(texts and MTX also .gz), or a folder of Cell Ranger")  # fmt: skip
    parser.add_argument("--id", metavar="COLUMN", help="column with the names of samples")
    parser.add_argument("--dataset", metavar="NAME", help="which array of an NPZ or HDF5 file")
    parser.add_argument("--header", action=argparse.BooleanOptionalAction,
                        help="whether the first line of a text names the columns")  # fmt: skip
    parser.add_argument("--sep", type=_separator, metavar="CHARACTER",
                        help='between fields of a text; "tab" (default: detected)')  # fmt: skip
    parser.add_argument("--decimal", choices=[".", ","],
                        help="decimal mark of numbers in a text (default: detected)")  # fmt: skip
    parser.add_argument("--layer", metavar="NAME", help="layer of an H5AD file (default: X)")
    parser.add_argument(
        "--columns",
        type=_names,
        metavar="NAMES",
        help='features to use, with commas between; "mz_*" takes all that begin so',
    )
    parser.add_argument("--transpose", action=argparse.BooleanOptionalAction,
                        help="whether rows of the file are features (default: only where MTX "
                        "files are genes x cells)")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print a summary for scripts")


def add_force(parser: argparse.ArgumentParser) -> None:
    """Add the option to replace files that are there."""
    parser.add_argument("--force", action="store_true", help="replace results that are there")


def add_experiment(parser: argparse.ArgumentParser, folders: str, *, quick: str) -> None:
    """Add the options of commands that run experiments: on which data, how, and where to."""
    parser.add_argument("--datasets", nargs="+", default=[], metavar="NAME", help="only these")
    parser.add_argument("--quick", action="store_true", help=quick)
    parser.add_argument("--jobs", type=positive_integer, default=os.cpu_count() or 1, metavar="N",
                        help="processes (default: as many as there are cores)")  # fmt: skip
    parser.add_argument("--device", help="where PyTorch fits, for example cuda; NumPy by default")
    parser.add_argument("--data-dir", help="folder of the npz files (or set ROBUSTNMF_DATA)")
    add_output_folder(parser, f"folder to write to ({folders})", None)


def add_output_folder(parser: argparse.ArgumentParser, meaning: str, default: Path | None) -> None:
    """Add the option of the folder to write to; ``--out`` is its earlier name."""
    parser.add_argument(
        "-o", "--output", "--out", type=Path, metavar="FOLDER", default=default, help=meaning
    )


def positive_integer(text: str) -> int:
    """Parse an option that is an integer of one or more."""
    if not re.fullmatch("[0-9]{1,9}", text) or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no integer of 1 or more")
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
        separator=options.sep, decimal=options.decimal, layer=options.layer,
        columns=options.columns, transpose=options.transpose,
        color_by=getattr(options, "color_by", None), scratch=_scratch_folder(options),
    )  # fmt: skip
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
    """Print what a user should know to stderr."""
    print(f"robustnmf: note: {text}", file=sys.stderr)


def is_stdout(path: Path) -> bool:
    """Whether a path is standard output: ``-``, ``/dev/stdout`` and the like."""
    from robustnmf.archive import is_stream

    if str(path) == "-":
        return True
    try:
        return is_stream(path) and os.path.samestat(path.stat(), os.fstat(sys.stdout.fileno()))
    except (OSError, ValueError):  # standard output is no file
        return False


@contextmanager
def open_output(path: Path) -> Iterator[IO[bytes]]:
    """Open a binary file to write to, or standard output."""
    from robustnmf.report.files import output_file

    if is_stdout(path):
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.flush()
        return
    with output_file(path) as file:
        yield file


def check_writable(option: str, value: Path, outputs: Iterable[Path]) -> None:
    """Refuse outputs that cannot be written, before anything is computed.

    ``value`` is what the option was given, and ``outputs`` are the files that follow from it.
    """
    from robustnmf.report.files import unwritable_reason

    for path in outputs:
        reason = unwritable_reason(path)
        if reason is not None:
            raise ValueError(f"{option} is {value}, but {reason}. Name another output.")


def check_not_input(output: Path, *inputs: Path) -> None:
    """Refuse to write over a file that is read."""
    for path in inputs:
        if output.is_file() and path.exists() and output.samefile(path):
            raise ValueError(f"--output is {output}, which is read; another file is needed.")


def check_new(outputs: Iterable[Path], *, force: bool) -> None:
    """Refuse to replace files that are there, unless it is forced; streams are no such files."""
    from robustnmf.archive import is_stream

    existing = [path for path in outputs if path.exists() and not is_stream(path)]
    if existing and not force:
        more = f" and {len(existing) - 1} more" if len(existing) > 1 else ""
        raise ValueError(
            f"there is {existing[0]}{more} already; name another output, or replace with --force."
        )


@contextmanager
def progress_bar(
    console: Console, unit: str, total: int
) -> Iterator[Callable[[str, int, int], None]]:
    """Show a progress bar; yield the function that updates it.

    Its arguments are a description, how many units are done, and how many there are.
    """
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn(unit),
        TimeElapsedColumn(), TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("", total=total)

        def progress(description: str, completed: int, total: int) -> None:
            bar.update(task, description=description, completed=completed, total=total)

        yield progress
        bar.update(task, description="done")


def surroundings(device: str | None) -> dict[str, Any]:
    """Return the machine and the versions of libraries, for the record of a run."""
    import numpy
    import scipy
    import sklearn

    import robustnmf

    modules = (robustnmf, numpy, scipy, sklearn)
    versions = {"python": platform.python_version()}
    versions |= {module.__name__: module.__version__ for module in modules}
    machine = f"{platform.machine()}, {os.cpu_count()} cores"
    if device is not None:
        import torch

        versions["torch"] = torch.__version__
        if device.startswith("cuda"):
            machine = f"{torch.cuda.get_device_name(device)}; {machine}"
    return {"machine": machine, "versions": versions}
