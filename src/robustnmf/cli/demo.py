"""``robustnmf demo``: fit figures and digits of which a fifth is spoiled."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from robustnmf.cli._shared import Commands, add_output_folder, check_writable


def add(commands: Commands) -> None:
    """Add the command and its options."""
    parser = commands.add_parser(
        "demo",
        help="figures with known parts and handwritten digits, a fifth of the samples spoiled",
    )
    add_output_folder(parser, "folder for the picture and the page (demo)", Path("demo"))
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Fit all methods, print the table of results, write the picture and the page."""
    from rich.console import Console
    from rich.progress import track
    from rich.table import Table

    from robustnmf.experiments.demo import fit_figures
    from robustnmf.experiments.demo import run as fit_all
    from robustnmf.report import demo as report

    console = Console()
    folder: Path = options.output
    check_writable("--output", folder, [folder / "report.html"])
    folder.mkdir(parents=True, exist_ok=True)

    def progress(names: list[str]) -> Iterator[str]:
        return iter(track(names, description="Fitting all methods", console=console))

    def show(header: tuple[str, ...], rows: list[tuple[str, ...]], explanation: str) -> None:
        table = Table()
        for i, title in enumerate(header):
            table.add_column(title, justify="left" if i == 0 else "right")
        for row in rows:
            table.add_row(*row)
        console.print(table)
        console.print(explanation)

    figures, learned = fit_figures()
    found = [report.swimmer_cells(figures, method) for method in learned]
    show(report.SWIMMER_HEADER, found, report.SWIMMER_EXPLANATION)
    demo = fit_all(progress)
    picture, page = report.write(demo, figures, learned, folder)
    show(report.HEADER, [report.cells(row) for row in demo.rows], report.EXPLANATION)
    for row in demo.rows:
        for text in row.warnings:
            console.print(f"{row.method}: {text}", markup=False)
    print(f"picture: {picture}\nreport:  {page}")
    return 0
