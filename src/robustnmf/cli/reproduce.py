"""``robustnmf reproduce``: reproduce every table and figure of the paper."""

from __future__ import annotations

import argparse
import time
from datetime import UTC, datetime
from pathlib import Path

from robustnmf.cli._shared import (
    Commands,
    UsageError,
    add_experiment,
    check_writable,
    command,
    progress_bar,
    surroundings,
)

EXAMPLES = """examples:
  robustnmf reproduce --quick                 a first look, no files needed
  robustnmf reproduce                         everything that ROBUSTNMF_DATA holds data for
  robustnmf reproduce --tables 2 3 --datasets wdbc balance
  robustnmf reproduce --figures 1 2 --jobs 4 --device cuda
"""


def add(commands: Commands) -> None:
    """Add the command and its options."""
    summary = "every table and figure of the paper, beside the paper's own numbers"
    parser = command(commands, "reproduce", summary, EXAMPLES)
    parser.add_argument("--tables", type=int, nargs="*", metavar="N", help="only these tables")
    parser.add_argument("--figures", type=int, nargs="*", metavar="N", help="only these figures")
    add_experiment(
        parser, "reproduction, reproduction-quick", quick="small data, few starts, minutes"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Plan the trials, run those that have no result yet, write all tables and figures."""
    from rich.console import Console

    from robustnmf.estimators.path import check_device
    from robustnmf.experiments.reproduce import plan, reproduce, scope_of
    from robustnmf.experiments.store import Store, code_version
    from robustnmf.report.reproduce import write

    scope = scope_of(options.datasets, quick=options.quick, data_dir=options.data_dir)
    reproduction = plan(_keys(options), scope)
    are_named = options.tables is not None or options.figures is not None
    if are_named and reproduction.left_out:
        raise ValueError(
            f"{reproduction.left_out[0].title} needs data that are not here or not among "
            "--datasets. robustnmf datasets lists what is here and where to get the rest."
        )
    if options.device is not None:
        check_device(options.device)
    out = options.output or Path("reproduction-quick" if options.quick else "reproduction")
    check_writable("--output", out, [out / "trials.sqlite"])
    store = Store(out / "trials.sqlite")
    console = Console()
    for name in (*scope.missing, *(item.title for item in reproduction.left_out)):
        console.print(f"left out, no data here: {name}", markup=False)
    begin = time.perf_counter()
    with progress_bar(console, "fits", reproduction.fits) as progress:
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
    paths = write(outcomes, reproduction, store, run_record, out)
    for outcome in outcomes:
        if outcome.grids and outcome.notes:
            console.print("\n".join(outcome.notes), markup=False)
    print(f"{reproduction.fits} fits behind it, {seconds:.0f} s in this run\nreport: {paths[0]}")
    return 0


def _keys(options: argparse.Namespace) -> list[str]:
    """Return the keys of the tables and figures that the options name; all if they name none."""
    from robustnmf.experiments.paper import ITEMS

    if options.tables is None and options.figures is None:
        return list(ITEMS)
    keys = [f"table{n}" for n in options.tables or []]
    keys += [f"figure{n}" for n in options.figures or []]
    known = [key for key in ITEMS if key in keys]
    unknown = [key for key in keys if key not in ITEMS]
    if unknown or not known:
        raise UsageError(
            f"the paper has tables 1 to 3 and figures 1 to 9, but not {', '.join(unknown)}"
            if unknown
            else "no table or figure was named; leave both options out for all of them"
        )
    return known
