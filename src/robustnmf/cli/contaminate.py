"""``robustnmf contaminate``: judge what every method learns from spoiled samples."""

from __future__ import annotations

import argparse
import os
import time
from datetime import UTC, datetime
from pathlib import Path

from robustnmf.cli._shared import Commands, command, positive_integer, progress_bar, surroundings

EXAMPLES = """examples:
  robustnmf contaminate --quick               a first look, no files needed
  robustnmf contaminate                       everything that ROBUSTNMF_DATA holds data for
  robustnmf contaminate --datasets orl --corruptions occluded --seeds 3
  robustnmf contaminate --groups methods two_step    without the paper's methods and detectors
"""


def add(commands: Commands) -> None:
    """Add the command and its options."""
    summary = "what every method learns from data of which some samples are spoiled"
    parser = command(commands, "contaminate", summary, EXAMPLES)
    parser.add_argument("--datasets", nargs="+", default=[], metavar="NAME", help="only these")
    parser.add_argument("--corruptions", nargs="+", default=[], metavar="NAME", help="only these")
    parser.add_argument("--seeds", type=positive_integer, metavar="N",
                        help="the first N of ten")  # fmt: skip
    parser.add_argument("--quick", action="store_true", help="small data, two seeds, minutes")
    parser.add_argument(
        "--groups", nargs="+", default=[], metavar="NAME",
        help="groups of methods, all by default: methods two_step paper grids detectors",
    )  # fmt: skip
    parser.add_argument(
        "--without-grids", action="store_true", help="without the paper's grids, most of the time"
    )
    parser.add_argument(
        "--jobs", type=positive_integer, default=os.cpu_count() or 1, help="processes"
    )
    parser.add_argument(
        "--device", help="where PyTorch fits weights of entries, for example cuda; NumPy by default"
    )
    parser.add_argument("--data-dir", help="folder of the npz files (or set ROBUSTNMF_DATA)")
    parser.add_argument(
        "--out", type=Path, help="folder to write to (contamination, contamination-quick)"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Plan the benchmark, run the scenarios that have no result yet, write all results."""
    from rich.console import Console

    from robustnmf.estimators.path import check_device
    from robustnmf.experiments.contamination.benchmark import plan
    from robustnmf.experiments.contamination.benchmark import run as judge_all
    from robustnmf.experiments.contamination.cells import rows_of
    from robustnmf.experiments.contamination.store import ScenarioStore
    from robustnmf.report.contamination import write

    benchmark = plan(
        options.datasets, options.corruptions, options.seeds,
        quick=options.quick, grids=not options.without_grids, groups=options.groups,
        data_dir=options.data_dir,
    )  # fmt: skip
    if options.device is not None:
        check_device(options.device)
    out = options.out or Path("contamination-quick" if options.quick else "contamination")
    store = ScenarioStore(out / "scenarios.sqlite")
    console = Console()
    for name in benchmark.missing:
        console.print(f"left out, no data here: {name}", markup=False)
    begin = time.perf_counter()
    with progress_bar(console, "scenarios", len(benchmark.scenarios)) as progress:
        judge_all(
            benchmark, store, jobs=options.jobs, data_dir=options.data_dir,
            device=options.device, progress=progress,
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
    notes, paths = write(rows_of(benchmark, store), run_record, out)
    console.print("\n".join(notes), markup=False)
    print(f"{len(benchmark.scenarios)} scenarios\nreport: {paths[0]}")
    return 0
