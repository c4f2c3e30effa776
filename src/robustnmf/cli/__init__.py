"""The command line: parse, call, print."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from robustnmf import __version__


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code."""
    parser = argparse.ArgumentParser(
        prog="robustnmf", description="Robust nonnegative matrix factorisation."
    )
    parser.add_argument("--version", action="version", version=f"robustnmf {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    demo = commands.add_parser(
        "demo", help="all methods on handwritten digits with a fifth of the samples spoiled"
    )
    demo.add_argument(
        "--out", type=Path, default=Path("demo"), help="folder for the picture and the page"
    )
    options = parser.parse_args(arguments)
    try:
        return _demo(options.out)
    except ModuleNotFoundError as error:
        missing = error.name
    except OSError as error:
        print(f"robustnmf: {error}", file=sys.stderr)
        return 1
    print(
        f"robustnmf: the command line needs {missing}; install it with "
        "pip install 'robustnmf[cli]'",
        file=sys.stderr,
    )
    return 1


def _demo(folder: Path) -> int:
    from rich.console import Console
    from rich.progress import track
    from rich.table import Table

    from robustnmf.experiments.demo import run
    from robustnmf.report.demo import EXPLANATION, HEADER, cells, write

    console = Console()
    folder.mkdir(parents=True, exist_ok=True)  # a folder that cannot be is said at once
    demo = run(lambda names: track(names, description="Fitting all methods", console=console))
    table = Table()
    for i, title in enumerate(HEADER):
        table.add_column(title, justify="left" if i == 0 else "right")
    for row in demo.rows:
        table.add_row(*cells(row))
    picture, page = write(demo, folder)
    console.print(table)
    console.print(EXPLANATION)
    for row in demo.rows:
        for text in row.warnings:
            console.print(f"{row.method}: {text}", markup=False)
    print(f"picture: {picture}\nreport:  {page}")
    return 0
