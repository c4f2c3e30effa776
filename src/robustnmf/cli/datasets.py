"""``robustnmf datasets``: list the datasets, or make a file of what a publisher distributes."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

from robustnmf.cli._shared import Commands, check_writable

EXAMPLES = """examples:
  robustnmf datasets                                             what there is, and what is here
  robustnmf datasets convert wdbc wdbc.data -o data/
  robustnmf datasets convert thyroid ann-train.data ann-test.data -o data/
  robustnmf datasets convert orl ORL_32x32.mat -o data/
"""


def add(commands: Commands) -> None:
    """Add the command and its options."""
    summary = "list the datasets, and whether they are here; convert: make their files"
    parser = commands.add_parser(
        "datasets", help=summary, description=summary.capitalize(), epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--data-dir", help="folder of the npz files")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)
    actions = parser.add_subparsers(metavar="convert")
    summary = "make the .npz file of a dataset from the files of its publisher"
    action = actions.add_parser("convert", help=summary, description=summary.capitalize())
    action.add_argument("name", metavar="NAME", help="of the dataset")
    action.add_argument("files", nargs="+", type=Path, metavar="FILES",
                        help="as the publisher distributes them, unpacked")  # fmt: skip
    action.add_argument("-o", "--out", type=Path, help="folder to write to (ROBUSTNMF_DATA, or .)")
    action.set_defaults(run=convert)


def convert(options: argparse.Namespace) -> int:
    """Make the file of a dataset and print its path."""
    from robustnmf.datasets import VARIABLE, dataset_called

    folder = options.out or Path(os.environ.get(VARIABLE) or ".")
    dataset = dataset_called(options.name)
    check_writable("--out", folder, [folder / dataset.file])
    print(dataset.convert(options.files, folder))
    return 0


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
