"""``robustnmf demo``: all methods on spoiled digits."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any


def add(commands: Any) -> None:
    """The command and its options."""
    parser = commands.add_parser(
        "demo", help="all methods on handwritten digits with a fifth of the samples spoiled"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("demo"), help="folder for the picture and the page"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Fit, print, write."""
    from rich.console import Console
    from rich.progress import track
    from rich.table import Table

    from robustnmf.experiments.demo import run as fit_all
    from robustnmf.report.demo import EXPLANATION, HEADER, cells, write

    console = Console()
    folder: Path = options.out
    folder.mkdir(parents=True, exist_ok=True)  # a folder that cannot be is said at once
    demo = fit_all(lambda names: track(names, description="Fitting all methods", console=console))
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
