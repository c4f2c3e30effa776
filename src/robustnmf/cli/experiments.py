"""Commands that run experiments, ``demo``, ``reproduce`` and ``benchmark``, and ``datasets``."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from robustnmf.cli._shared import (
    Commands,
    UsageError,
    check_output,
    positive_integer,
    surroundings,
)

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

REPRODUCE_EXAMPLES = """examples:
  robustnmf reproduce --quick                 a first look, no files needed
  robustnmf reproduce                         everything that ROBUSTNMF_DATA holds data for
  robustnmf reproduce --tables 2 3 --datasets wdbc balance
  robustnmf reproduce --figures 1 2 --jobs 4 --device cuda
"""
BENCHMARK_EXAMPLES = """examples:
  robustnmf benchmark --quick               a first look, no files needed
  robustnmf benchmark                       everything that ROBUSTNMF_DATA holds data for
  robustnmf benchmark --datasets orl --corruptions occluded --seeds 3
  robustnmf benchmark --groups methods two_step    without the paper's methods and detectors
  robustnmf benchmark --entries --without-grids    corrupted entries instead of samples
  robustnmf benchmark --real --quick        corrupted samples in real tables (extra: real)
  robustnmf benchmark --real --entries      corrupted entries in real tables
"""

DATASETS_EXAMPLES = """examples:
  robustnmf datasets                                       all datasets, and which are available
  robustnmf datasets convert wdbc wdbc.data -o data/
  robustnmf datasets convert thyroid ann-train.data ann-test.data -o data/
  robustnmf datasets convert orl ORL_32x32.mat -o data/
"""


def add_demo(commands: Commands) -> None:
    """Add the command and its options."""
    parser = commands.add_parser(
        "demo", help="figures with known components, and digits; a fifth of the samples corrupted"
    )
    parser.add_argument("-o", "--output", "--out", type=Path, metavar="FOLDER",
                        default=Path("demo"),
                        help="folder for the picture and the page (demo)")  # fmt: skip
    parser.set_defaults(run=run_demo)


def run_demo(options: argparse.Namespace) -> int:
    """Fit all methods, print the table of results, write the picture and the page."""
    from rich.console import Console
    from rich.progress import track

    from robustnmf.experiments import demo_page
    from robustnmf.experiments.demo import fit_figures
    from robustnmf.experiments.demo import run as fit_all

    console = Console()
    folder: Path = options.output
    check_output("--output", folder, [folder / "report.html"])

    def show(header: tuple[str, ...], rows: list[tuple[str, ...]], explanation: str) -> None:
        console.print(_table(header, rows, right=header[1:]), explanation, sep="\n")

    figures, learned = fit_figures()
    found = [demo_page.swimmer_cells(figures, method) for method in learned]
    show(demo_page.SWIMMER_HEADER, found, demo_page.SWIMMER_EXPLANATION)
    demo = fit_all(partial(track, description="Fitting all methods", console=console))
    picture, page = demo_page.write(demo, figures, learned, folder)
    show(demo_page.HEADER, [demo_page.cells(row) for row in demo.rows], demo_page.EXPLANATION)
    for row in demo.rows:
        for text in row.warnings:
            console.print(f"{row.method}: {text}", markup=False)
    print(f"picture: {picture}\nreport:  {page}")
    return 0


def add_reproduce(commands: Commands) -> None:
    """Add the command and its options."""
    summary = "every table and figure of the paper, next to the published numbers"
    parser = commands.add_parser("reproduce", help=summary, epilog=REPRODUCE_EXAMPLES,
                                 description=f"{summary.capitalize()}.")  # fmt: skip
    for name, count in (("tables", 3), ("figures", 9)):
        parser.add_argument(f"--{name}", type=int, nargs="+", default=[], metavar="N",
                            choices=range(1, count + 1), help=f"only these {name}")  # fmt: skip
    _add_experiment(
        parser, "reproduction, reproduction-quick", quick="small data, few starts, minutes"
    )
    parser.set_defaults(run=run_reproduce)


def run_reproduce(options: argparse.Namespace) -> int:
    """Plan the trials, run those that have no result yet, write all tables and figures."""
    from rich.console import Console

    from robustnmf.estimators.path import check_device
    from robustnmf.experiments.pages import write_reproduction
    from robustnmf.experiments.paper import ITEMS
    from robustnmf.experiments.reproduce import plan, reproduce, scope_of
    from robustnmf.experiments.store import Store, code_version

    scope = scope_of(options.datasets, quick=options.quick, data_dir=options.data_dir)
    named = [f"table{n}" for n in options.tables] + [f"figure{n}" for n in options.figures]
    reproduction = plan([key for key in ITEMS if not named or key in named], scope)
    if named and reproduction.left_out:
        raise ValueError(
            f"{reproduction.left_out[0].title} needs data that are not here or not among "
            "--datasets. robustnmf datasets lists what is here and where to get the rest."
        )
    if options.device is not None:
        check_device(options.device)
    out = options.output or Path("reproduction-quick" if options.quick else "reproduction")
    check_output("--output", out, [out / "trials.sqlite"])
    store = Store(out / "trials.sqlite")
    console = Console()
    for name in (*scope.missing, *(item.title for item in reproduction.left_out)):
        console.print(f"skipped, as its data are not here: {name}", markup=False)
    begin = time.perf_counter()
    with _progress_bar(console, "fits", reproduction.fits) as progress:
        outcomes = reproduce(
            reproduction, store, jobs=options.jobs, device=options.device, progress=progress
        )
    seconds = time.perf_counter() - begin
    run_record = {
        "date": datetime.now(UTC).date().isoformat(),
        "code": code_version(),
        "seconds_of_this_run": round(seconds, 1),
        **surroundings(options.device),
    }
    paths = write_reproduction(outcomes, reproduction, store, run_record, out)
    for outcome in outcomes:
        if outcome.grids and outcome.notes:
            console.print("\n".join(outcome.notes), markup=False)
    print(f"{reproduction.fits} fits behind it, {seconds:.0f} s in this run\nreport: {paths[0]}")
    return 0


def add_benchmark(commands: Commands) -> None:
    """Add the command and its options."""
    summary = "accuracy of every method on data with corrupted samples or entries"
    parser = commands.add_parser("benchmark", help=summary, epilog=BENCHMARK_EXAMPLES,
                                 description=f"{summary.capitalize()}.",
                                 aliases=["contaminate"])  # fmt: skip
    parser.add_argument("--entries", action="store_true",
                        help="corrupt entries of a table instead of whole samples")  # fmt: skip
    parser.add_argument("--real", action="store_true",
                        help="corrupt all suitable tables of R")  # fmt: skip
    parser.add_argument(
        "--half", choices=["even", "odd"],
        help="with --real: tables at even positions, for tuning (default), or at odd ones, which "
        "are for final results alone",
    )  # fmt: skip
    parser.add_argument("--corruptions", nargs="+", default=[], metavar="NAME", help="only these")
    parser.add_argument("--seeds", type=positive_integer, metavar="N",
                        help="the first N of ten; of six with --entries")  # fmt: skip
    parser.add_argument(
        "--groups", nargs="+", default=[], metavar="NAME",
        help="groups of methods, all by default: methods two_step paper grids detectors; with "
        "--entries: methods two_step peers grids",
    )  # fmt: skip
    parser.add_argument(
        "--without-grids", action="store_true", help="without the paper's grids, most of the time"
    )
    folders = (
        "contamination, contamination-entries, contamination-real-even, "
        "contamination-real-entries-even; -quick after it"
    )
    quick = "small data, two seeds, minutes; every eighth table with --real"
    _add_experiment(parser, folders, quick=quick)
    parser.set_defaults(run=run_benchmark)


def run_benchmark(options: argparse.Namespace) -> int:
    """Plan the benchmark, run the scenarios that have no result yet, write all results."""
    from rich.console import Console

    from robustnmf.estimators.path import check_device
    from robustnmf.experiments.contamination import STUDIES
    from robustnmf.experiments.pages import notes_of, write_benchmark

    _check_options(options)
    half = options.half or "even"
    study = STUDIES["contamination" + "-real" * options.real + "-entries" * options.entries]
    name = f"{study.name}-{half}" if options.real else study.name
    out = options.output or Path(f"{name}-quick" if options.quick else name)
    check_output("--output", out, [out / "scenarios.sqlite"])
    console = Console()
    if options.real:
        with console.status("preparing the tables of R"):
            benchmark = study.plan(half, quick=options.quick, data_dir=options.data_dir)
    else:
        benchmark = study.plan(
            options.datasets, options.corruptions, options.seeds,
            quick=options.quick, grids=not options.without_grids, groups=options.groups,
            data_dir=options.data_dir,
        )  # fmt: skip
    if options.device is not None:
        check_device(options.device)
    store = study.open_store(out / "scenarios.sqlite")
    for name in benchmark.missing:
        console.print(f"skipped, as its data are not here: {name}", markup=False)
    begin = time.perf_counter()
    with _progress_bar(console, "scenarios", len(benchmark.scenarios)) as progress:
        study.run(
            benchmark, store, jobs=options.jobs, data_dir=options.data_dir,
            device=options.device, progress=progress,
        )  # fmt: skip
    run_record = {
        "command": shlex.join(["robustnmf", *options.arguments]),
        "date": datetime.now(UTC).date().isoformat(),
        "code": store.code,
        "scenarios": len(benchmark.scenarios),
        "groups": list(benchmark.groups),
        "quick": options.quick,
        "seconds_of_this_run": round(time.perf_counter() - begin, 1),
        "fitted_on": store.machines(),
        **surroundings(options.device),
    }
    rows = store.rows(benchmark)
    outcomes = study.outcomes(rows)
    paths = write_benchmark(rows, outcomes, run_record, out, study)
    if options.real:
        for outcome in outcomes:
            for grid in outcome.grids:
                texts = [[cell.text for cell in row] for row in grid.rows]
                console.print(_table(grid.header, texts, title=grid.title))
    console.print("\n".join(notes_of(outcomes)), markup=False)
    print(f"{len(benchmark.scenarios)} scenarios\nreport: {paths[0]}")
    return 0


def _check_options(options: argparse.Namespace) -> None:
    """Refuse options that have no effect."""
    if options.half and not options.real:
        raise UsageError("--half is for --real only. Leave it out, or add --real.")
    for name in ("datasets", "corruptions", "seeds", "groups", "without_grids", "device"):
        if options.real and getattr(options, name):
            raise UsageError(
                f"--{name.replace('_', '-')} has no effect with --real, which has its own tables, "
                "scenarios and methods. Leave it out."
            )


def add_datasets(commands: Commands) -> None:
    """Add the command and its options."""
    summary = "list the datasets and which files are available; convert: create the files"
    parser = commands.add_parser("datasets", help=summary, epilog=DATASETS_EXAMPLES,
                                 description=summary.capitalize())  # fmt: skip
    parser.add_argument("--data-dir", help="folder of the npz files")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run_datasets)
    actions = parser.add_subparsers(metavar="convert")
    summary = "make the .npz file of a dataset from the files of its publisher"
    action = actions.add_parser("convert", help=summary, description=summary.capitalize())
    action.add_argument("name", metavar="NAME", help="of the dataset")
    action.add_argument("files", nargs="+", type=Path, metavar="FILES",
                        help="as the publisher distributes them, unpacked")  # fmt: skip
    action.add_argument("-o", "--out", type=Path, help="folder to write to (ROBUSTNMF_DATA, or .)")
    action.set_defaults(run=convert_dataset)


def convert_dataset(options: argparse.Namespace) -> int:
    """Make the file of a dataset and print its path."""
    from robustnmf.datasets import VARIABLE, dataset_called

    folder = options.out or Path(os.environ.get(VARIABLE) or ".")
    dataset = dataset_called(options.name)
    check_output("--out", folder, [folder / dataset.file])
    print(dataset.convert(options.files, folder))
    return 0


def run_datasets(options: argparse.Namespace) -> int:
    """Print the datasets as a table or as JSON."""
    from robustnmf.datasets import DATASETS

    rows = [_facts(name, options.data_dir) for name in DATASETS]
    if options.json:
        print(json.dumps(rows, indent=1))
        return 0
    from rich.console import Console

    texts = [[str(value) for value in row.values()] for row in rows]
    numbers = ("samples", "features", "classes")
    Console().print(_table(list(rows[0]), texts, right=numbers, show_lines=True))
    return 0


def _facts(name: str, data_dir: str | None) -> dict[str, str | int]:
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
        "name": name, "samples": dataset.samples, "features": dataset.features,
        "classes": dataset.classes, "largest class": share, "licence": dataset.licence,
        "source": dataset.source, "here": here,
    }  # fmt: skip


def _add_experiment(parser: argparse.ArgumentParser, folders: str, *, quick: str) -> None:
    """Add the options of commands that run experiments: on which data, how, and where to."""
    parser.add_argument("--datasets", nargs="+", default=[], metavar="NAME", help="only these")
    parser.add_argument("--quick", action="store_true", help=quick)
    parser.add_argument("--jobs", type=positive_integer, default=os.cpu_count() or 1, metavar="N",
                        help="processes (default: as many as there are cores)")  # fmt: skip
    parser.add_argument("--device", help="where PyTorch fits, for example cuda; NumPy by default")
    parser.add_argument("--data-dir", help="folder of the npz files (or set ROBUSTNMF_DATA)")
    parser.add_argument("-o", "--output", "--out", type=Path, metavar="FOLDER",
                        help=f"folder to write to ({folders})")  # fmt: skip


def _table(
    header: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[str] = (), **options: Any
) -> Table:
    """Return a table for the terminal; the columns ``right`` are aligned to the right."""
    from rich.table import Table

    table = Table(**options)
    for name in header:
        table.add_column(name, justify="right" if name in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table


@contextmanager
def _progress_bar(
    console: Console, unit: str, total: int
) -> Iterator[Callable[[str, int, int], None]]:
    """Show a progress bar; yield the function that updates it.

    Its arguments are a description, how many units are done, and how many there are.
    """
    from rich import progress as bars

    columns = (
        bars.TextColumn("{task.description}"), bars.BarColumn(), bars.MofNCompleteColumn(),
        bars.TextColumn(unit), bars.TimeElapsedColumn(), bars.TimeRemainingColumn(),
    )  # fmt: skip
    with bars.Progress(*columns, console=console) as bar:
        task = bar.add_task("", total=total)

        def progress(description: str, completed: int, total: int) -> None:
            bar.update(task, description=description, completed=completed, total=total)

        yield progress
        bar.update(task, description="done")
