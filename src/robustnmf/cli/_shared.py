"""What commands that run for minutes have in common."""

from __future__ import annotations

import argparse
import os
import platform
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


class UsageError(ValueError):
    """Options that do not go together; the exit code is that of argparse."""


def command(commands: Any, name: str, told: str, examples: str) -> argparse.ArgumentParser:
    """The parser of a command, with examples below its help."""
    return commands.add_parser(
        name,
        help=told,
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def add_reading(parser: argparse.ArgumentParser) -> None:
    """Which table to read, and how."""
    parser.add_argument("data", type=Path, help="CSV, TSV, Parquet, NPY, NPZ, MTX, H5AD or HDF5")
    parser.add_argument("--id", metavar="COLUMN", help="column with the names of samples")
    parser.add_argument("--dataset", metavar="NAME", help="which array of an NPZ or HDF5 file")
    parser.add_argument("--header", action=argparse.BooleanOptionalAction,
                        help="whether the first line of a text names the columns")  # fmt: skip
    parser.add_argument("--sep", type=_separator, metavar="CHARACTER",
                        help='between fields of a text; "tab" (default: detected)')  # fmt: skip
    parser.add_argument("--decimal", choices=[".", ","],
                        help="decimal mark of numbers in a text (default: detected)")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print a summary for scripts")


def positive_integer(text: str) -> int:
    """An integer of one or more, as an option has it."""
    if not re.fullmatch("[0-9]{1,9}", text) or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no integer of 1 or more")
    return int(text)


def one_of(text: str, names: Iterable[str]) -> str:
    """One of some names, as an option has it."""
    if text not in names:
        raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(names)}")
    return text


def _separator(text: str) -> str:
    """A separator as users write it."""
    character = {"tab": "\t", "\\t": "\t"}.get(text, text)
    if len(character) != 1 or character in '"\r\n':
        raise argparse.ArgumentTypeError(f'{text!r} is not one character, nor "tab"')
    return character


def read(options: argparse.Namespace, say: Callable[[str], None]) -> Any:
    """Read the table that the options name; say how, and on stderr what is not in the data."""
    from robustnmf.tables import read_table

    table = read_table(
        options.data, id_column=options.id, dataset=options.dataset, header=options.header,
        separator=options.sep, decimal=options.decimal,
    )  # fmt: skip
    for note in table.notes:
        say(f"  {note}")
    for loss in table.losses:
        warn(loss)
    return table


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
def open_output(path: Path) -> Iterator[Any]:
    """Open a binary file to write to, or standard output."""
    from robustnmf.report.files import output_file

    if is_stdout(path):
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.flush()
        return
    with output_file(path) as file:
        yield file


def check_not_input(output: Path, *inputs: Path) -> None:
    """Refuse to write over a file that is read."""
    for path in inputs:
        if output.is_file() and path.exists() and output.samefile(path):
            raise ValueError(f"--output is {output}, which is read; another file is needed.")


@contextmanager
def progress_bar(console: Any, unit: str, total: int) -> Iterator[Callable[[str, int, int], None]]:
    """A bar with the time left, and what to tell it: what is worked on, and how much is done."""
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

        def progress(what: str, done: int, total: int) -> None:
            bar.update(task, description=what, completed=done, total=total)

        yield progress
        bar.update(task, description="done")


def surroundings(device: str | None) -> dict[str, Any]:
    """Versions and machine, for the record."""
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
