"""``robustnmf demo``: fit all methods to spoiled digits."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from robustnmf.cli._shared import Commands, add_output_folder


def add(commands: Commands) -> None:
    """Add the command and its options."""
    parser = commands.add_parser(
        "demo", help="all methods on handwritten digits with a fifth of the samples spoiled"
    )
    add_output_folder(parser, "folder for the picture and the page (demo)", Path("demo"))
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Fit all methods, print the table of results, write the picture and the page."""
    from rich.console import Console
    from rich.progress import track
    from rich.table import Table

    from robustnmf.experiments.demo import run as fit_all
    from robustnmf.report.demo import EXPLANATION, HEADER, cells, write

    console = Console()
    folder: Path = options.output
    folder.mkdir(parents=True, exist_ok=True)  # fail before the fits, not after

    def progress(names: list[str]) -> Iterator[str]:
        return iter(track(names, description="Fitting all methods", console=console))

    demo = fit_all(progress)
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
