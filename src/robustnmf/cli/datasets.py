"""``robustnmf datasets``: what there is, and whether it is here."""

from __future__ import annotations

import argparse
import json
from typing import Any


def add(commands: Any) -> None:
    """The command and its options."""
    parser = commands.add_parser("datasets", help="list the datasets, and whether they are here")
    parser.add_argument("--data-dir", help="folder of the npz files")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the list."""
    rows = [_row(name, options.data_dir) for name in _names()]
    if options.json:
        print(json.dumps(rows, indent=1))
        return 0
    from rich.console import Console
    from rich.table import Table

    table = Table(show_lines=True)
    for title in rows[0]:
        number = title in ("samples", "features", "classes")
        table.add_column(title, justify="right" if number else "left", overflow="fold")
    for row in rows:
        table.add_row(*(str(value) for value in row.values()))
    Console().print(table)
    return 0


def _names() -> list[str]:
    from robustnmf.datasets import DATASETS

    return list(DATASETS)


def _row(name: str, data_dir: str | None) -> dict[str, Any]:
    from robustnmf.datasets import DATASETS, DatasetError, DatasetNotFoundError, load_dataset
    from robustnmf.metrics import largest_cluster_share

    dataset = DATASETS[name]
    share, here = "", "no"
    try:
        found = load_dataset(name, data_dir, download=False)
        share, here = f"{100 * largest_cluster_share(found.target):.1f}%", found.origin
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
