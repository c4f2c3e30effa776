"""``robustnmf benchmark``: judge what every method learns from spoiled samples or entries."""

from __future__ import annotations

import argparse
import shlex
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from robustnmf.cli._shared import (
    Commands,
    UsageError,
    add_experiment,
    check_writable,
    command,
    positive_integer,
    progress_bar,
    surroundings,
)

if TYPE_CHECKING:
    from rich.table import Table

    from robustnmf.experiments.outcome import Grid

EXAMPLES = """examples:
  robustnmf benchmark --quick               a first look, no files needed
  robustnmf benchmark                       everything that ROBUSTNMF_DATA holds data for
  robustnmf benchmark --datasets orl --corruptions occluded --seeds 3
  robustnmf benchmark --groups methods two_step    without the paper's methods and detectors
  robustnmf benchmark --entries --without-grids    bad entries instead of bad samples
  robustnmf benchmark --real --quick        bad samples in real tables, needs the extra real
  robustnmf benchmark --real --entries      bad entries in real tables
"""

NOT_REAL = ("datasets", "corruptions", "seeds", "groups", "without_grids", "device")
"""Options that ``--real`` does not have: its tables, scenarios and methods are fixed."""


def add(commands: Commands) -> None:
    """Add the command and its options."""
    summary = "what every method learns from data of which some samples or entries are spoiled"
    parser = command(commands, "benchmark", summary, EXAMPLES, aliases=["contaminate"])
    parser.add_argument("--entries", action="store_true",
                        help="spoil entries of a table instead of whole samples")  # fmt: skip
    parser.add_argument("--real", action="store_true",
                        help="spoil all suitable tables of R")  # fmt: skip
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
    add_experiment(parser, folders, quick=quick)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Plan the benchmark, run the scenarios that have no result yet, write all results."""
    from rich.console import Console

    from robustnmf.estimators.path import check_device
    from robustnmf.experiments.contamination import benchmark as samples
    from robustnmf.experiments.contamination import real
    from robustnmf.experiments.contamination.cells import rows_of
    from robustnmf.experiments.contamination.entries import benchmark as entries
    from robustnmf.experiments.contamination.entries import real as real_entries
    from robustnmf.experiments.contamination.entries.methods import score_groups
    from robustnmf.experiments.contamination.methods import score_groups as score_samples
    from robustnmf.experiments.contamination.store import ScenarioStore
    from robustnmf.report.contamination import ENTRIES, REAL, REAL_ENTRIES, SAMPLES, write

    _check_options(options)
    half = options.half or "even"
    make_store: Callable[[Path], ScenarioStore] = ScenarioStore
    score: samples.ScoreGroups = score_samples
    name, report = "contamination", SAMPLES
    make_real_plan = real_entries.plan if options.entries else real.plan
    if options.real and options.entries:
        name, report = f"contamination-real-entries-{half}", REAL_ENTRIES
        make_store, score = real_entries.open_store, real_entries.score_groups
    elif options.real:
        name, report = f"contamination-real-{half}", REAL
        make_store, score = real.open_store, real.score_groups
    elif options.entries:
        name, report = "contamination-entries", ENTRIES
        make_store, score = entries.open_store, score_groups
    out = options.output or Path(f"{name}-quick" if options.quick else name)
    check_writable("--output", out, [out / "scenarios.sqlite"])
    console = Console()
    if options.real:
        with console.status("preparing the tables of R"):
            benchmark = make_real_plan(half, quick=options.quick, data_dir=options.data_dir)
    else:
        make_plan = entries.plan if options.entries else samples.plan
        benchmark = make_plan(
            options.datasets, options.corruptions, options.seeds,
            quick=options.quick, grids=not options.without_grids, groups=options.groups,
            data_dir=options.data_dir,
        )  # fmt: skip
    if options.device is not None:
        check_device(options.device)
    store = make_store(out / "scenarios.sqlite")
    for name in benchmark.missing:
        console.print(f"left out, no data here: {name}", markup=False)
    begin = time.perf_counter()
    with progress_bar(console, "scenarios", len(benchmark.scenarios)) as progress:
        samples.run(
            benchmark, store, jobs=options.jobs, data_dir=options.data_dir,
            device=options.device, progress=progress,
            score=score,
        )  # fmt: skip
    run_record = {
        "command": shlex.join(["robustnmf", *options.arguments]),
        "date": datetime.now(UTC).date().isoformat(),
        "code": store.code_version(),
        "scenarios": len(benchmark.scenarios),
        "groups": list(benchmark.groups),
        "quick": benchmark.quick,
        "seconds_of_this_run": round(time.perf_counter() - begin, 1),
        "fitted_on": store.machines(),
        **surroundings(options.device),
    }
    rows = rows_of(benchmark, store)
    notes, paths = write(rows, run_record, out, report)
    if options.real:
        for outcome in report.outcomes(rows):
            console.print(*map(_table, outcome.grids))
    console.print("\n".join(notes), markup=False)
    print(f"{len(benchmark.scenarios)} scenarios\nreport: {paths[0]}")
    return 0


def _check_options(options: argparse.Namespace) -> None:
    """Refuse options that have no effect."""
    if options.half and not options.real:
        raise UsageError("--half is for --real only. Leave it out, or add --real.")
    for name in NOT_REAL:
        if options.real and getattr(options, name):
            raise UsageError(
                f"--{name.replace('_', '-')} has no effect with --real, which has its own tables, "
                "scenarios and methods. Leave it out."
            )


def _table(grid: Grid) -> Table:
    """Return a table of results for the terminal."""
    from rich.table import Table

    table = Table(title=grid.title)
    for name in grid.header:
        table.add_column(name, overflow="fold")
    for row in grid.rows:
        table.add_row(*(cell.text for cell in row))
    return table
