"""``robustnmf datasets``: list the datasets, and which of them are on this machine."""

from __future__ import annotations

import argparse
import json

from robustnmf.cli._shared import Commands


def add(commands: Commands) -> None:
    """Add the command and its options."""
    parser = commands.add_parser("datasets", help="list the datasets, and whether they are here")
    parser.add_argument("--data-dir", help="folder of the npz files")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the datasets as a table or as JSON."""
    rows = [_row(name, options.data_dir) for name in _names()]
    if options.json:
        print(json.dumps(rows, indent=1))
        return 0
    from rich.console import Console
    from rich.table import Table

    table = Table(show_lines=True)
    for title in rows[0]:
        is_number = title in ("samples", "features", "classes")
        table.add_column(title, justify="right" if is_number else "left", overflow="fold")
    for row in rows:
        table.add_row(*(str(value) for value in row.values()))
    Console().print(table)
    return 0


def _names() -> list[str]:
    """Return the names of all datasets."""
    from robustnmf.datasets import DATASETS

    return list(DATASETS)


def _row(name: str, data_dir: str | None) -> dict[str, str | int]:
    """Return the facts about a dataset by the title of their column."""
    from robustnmf.datasets import DATASETS, DatasetError, DatasetNotFoundError, load_dataset
    from robustnmf.metrics import largest_cluster_share

    dataset = DATASETS[name]
    share = ""
    try:
        data = load_dataset(name, data_dir, download=False)
        share, here = f"{100 * largest_cluster_share(data.target):.1f}%", data.origin
    except DatasetNotFoundError:
        here = "no, but can be downloaded" if dataset.fetched else "no"
    except DatasetError as error:
        here = f"unusable: {error}"
    return {
        "name": name,
        "samples": dataset.samples,
        "features": dataset.features,
        "classes": dataset.classes,
        "largest class": share,
        "licence": dataset.licence,
        "source": dataset.source,
        "here": here,
    }
