"""``robustnmf benchmark``: judge what every method learns from spoiled samples or entries."""

from __future__ import annotations

import argparse
import time
from datetime import UTC, datetime
from pathlib import Path

from robustnmf.cli._shared import (
    Commands,
    add_experiment,
    check_writable,
    command,
    positive_integer,
    progress_bar,
    surroundings,
)

EXAMPLES = """examples:
  robustnmf benchmark --quick               a first look, no files needed
  robustnmf benchmark                       everything that ROBUSTNMF_DATA holds data for
  robustnmf benchmark --datasets orl --corruptions occluded --seeds 3
  robustnmf benchmark --groups methods two_step    without the paper's methods and detectors
  robustnmf benchmark --entries --without-grids    bad entries instead of bad samples
"""


def add(commands: Commands) -> None:
    """Add the command and its options."""
    summary = "what every method learns from data of which some samples or entries are spoiled"
    parser = command(commands, "benchmark", summary, EXAMPLES, aliases=["contaminate"])
    parser.add_argument("--entries", action="store_true",
                        help="spoil entries of a table instead of whole samples")  # fmt: skip
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
    folders = "contamination, contamination-entries; -quick after it"
    add_experiment(parser, folders, quick="small data, two seeds, minutes")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Plan the benchmark, run the scenarios that have no result yet, write all results."""
    from rich.console import Console

    from robustnmf.estimators.path import check_device
    from robustnmf.experiments.contamination import benchmark as samples
    from robustnmf.experiments.contamination.cells import rows_of
    from robustnmf.experiments.contamination.entries import benchmark as entries
    from robustnmf.experiments.contamination.entries.methods import score_groups
    from robustnmf.experiments.contamination.methods import score_groups as score_samples
    from robustnmf.experiments.contamination.store import ScenarioStore
    from robustnmf.report.contamination import ENTRIES, SAMPLES, write

    make_plan = entries.plan if options.entries else samples.plan
    benchmark = make_plan(
        options.datasets, options.corruptions, options.seeds,
        quick=options.quick, grids=not options.without_grids, groups=options.groups,
        data_dir=options.data_dir,
    )  # fmt: skip
    if options.device is not None:
        check_device(options.device)
    name = "contamination-entries" if options.entries else "contamination"
    out = options.output or Path(f"{name}-quick" if options.quick else name)
    make_store = entries.open_store if options.entries else ScenarioStore
    check_writable("--output", out, [out / "scenarios.sqlite"])
    store = make_store(out / "scenarios.sqlite")
    console = Console()
    for name in benchmark.missing:
        console.print(f"left out, no data here: {name}", markup=False)
    begin = time.perf_counter()
    with progress_bar(console, "scenarios", len(benchmark.scenarios)) as progress:
        samples.run(
            benchmark, store, jobs=options.jobs, data_dir=options.data_dir,
            device=options.device, progress=progress,
            score=score_groups if options.entries else score_samples,
        )  # fmt: skip
    run_record = {
        "date": datetime.now(UTC).date().isoformat(),
        "code": store.code_version(),
        "scenarios": len(benchmark.scenarios),
        "groups": list(benchmark.groups),
        "quick": benchmark.quick,
        "seconds_of_this_run": round(time.perf_counter() - begin, 1),
        "fitted_on": store.machines(),
        **surroundings(options.device),
    }
    report = ENTRIES if options.entries else SAMPLES
    notes, paths = write(rows_of(benchmark, store), run_record, out, report)
    console.print("\n".join(notes), markup=False)
    print(f"{len(benchmark.scenarios)} scenarios\nreport: {paths[0]}")
    return 0
