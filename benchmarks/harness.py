"""What benchmarks share: options, timing, memory, figures with targets, and result files."""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn

from robustnmf import __version__

RESULTS = Path(__file__).resolve().parent / "results"

# Scripts that compare with transcriptions of the paper import them from the tests.
sys.path.insert(0, str(RESULTS.parent.parent))


def parse(doc: str, *, quick: str = "", **options: dict[str, Any]) -> argparse.Namespace:
    """Parse the options of a script, given by their name with arguments of ``add_argument``.

    ``doc`` is the docstring of the script, and ``quick`` describes its option ``--quick``, if it
    has one. Warnings are ignored from now on: tables show what they are about.
    """
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    if quick:
        parser.add_argument("--quick", action="store_true", help=quick)
    for name, arguments in options.items():
        parser.add_argument(f"--{name.replace('_', '-')}", **arguments)
    warnings.simplefilter("ignore")
    return parser.parse_args()


def seconds(run: Callable[..., Any], *arguments: Any) -> float:
    """Return the wall time of one call."""
    begin = time.perf_counter()
    run(*arguments)
    return time.perf_counter() - begin


def seconds_per_pass(run: Callable[[int], Any], short: int, long: int) -> float:
    """Return the seconds of a pass: a long fit less a short one, so that set-up does not count."""
    few, many = (seconds(run, passes) for passes in (short, long))
    return (many - few) / (long - short)


def in_turns(
    runs: Mapping[Any, Callable[[], Any]],
    repeats: int,
    measure: Callable[..., float] = seconds,
) -> dict[Any, list[float]]:
    """Measure all runs, one after the other, and again: what disturbs them disturbs all."""
    times: dict[Any, list[float]] = {name: [] for name in runs}
    for _ in range(repeats):
        for name, run in runs.items():
            times[name].append(measure(run))
    return times


def spread(values: Iterable[float]) -> str:
    """Return the median and the range of values in words."""
    values = np.array(list(values))
    return f"{np.median(values):.2f} ({values.min():.2f} to {values.max():.2f})"


def memory(what: str) -> float:
    """Return the memory of this process in MB, now (VmRSS) or its peak (VmHWM); Linux only."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(what)) / 1024


def reset_peak() -> None:
    """Reset the peak memory of this process (VmHWM) to what it holds now."""
    Path("/proc/self/clear_refs").write_text("5")


def in_own_process(script: str, *arguments: Any) -> Any:
    """Run a script with ``--child`` and arguments; return what it prints last, which is JSON."""
    command = [sys.executable, script, "--child", *map(str, arguments)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def met(target: str, value: float) -> bool:
    """Return whether a value meets a target such as ">= 3" or "0.95 to 1.05"."""
    words = target.split()
    if words[0] == ">=":
        return value >= float(words[1])
    if words[0] == "<=":
        return value <= float(words[1])
    return float(words[0]) <= value <= float(words[2])


def table(figures: Iterable[dict[str, Any]], form: str = ".2f", range_form: str = ".2f") -> str:
    """Return figures as a table in Markdown, each with its target and whether it is met.

    A figure is shown by its best value, if it has one, else by the median of all values.
    """
    rows = ["| figure | target | measured (median) | range | |", "|---|---|---|---|---|"]
    for figure in figures:
        values, target = np.array(figure["values"]), figure["target"]
        measured = figure.get("best", float(np.median(values)))
        low, high = (format(value, range_form) for value in (values.min(), values.max()))
        verdict = ""
        if target != "reported":
            verdict = "met" if met(target, measured) else "**missed**"
        limits = f"{low} to {high}" if len(values) > 1 else ""
        cells = figure["figure"], target, format(measured, form), limits, verdict
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"


def describe_run() -> dict:
    """Describe the command, versions and machine of this run."""
    name = Path(sys.argv[0]).name
    return {
        "command": f"python benchmarks/{' '.join([name, *sys.argv[1:]])}",
        "versions": {
            "robustnmf": __version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
            "scipy": scipy.__version__,
            "scikit-learn": sklearn.__version__,
        },
        "machine": {"system": platform.platform(), "processor": _processor()},
    }


def read_result(name: str) -> dict[str, Any]:
    """Read a result file; an empty dict if it does not exist."""
    path = RESULTS / name
    return json.loads(path.read_text()) if path.is_file() else {}


def write_result(name: str, content: dict) -> None:
    """Write a result file as JSON, with a description of this run, and print its path."""
    path = RESULTS / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(describe_run() | content, indent=1) + "\n")
    print(f"written: {path.relative_to(RESULTS.parent.parent)}")


def write_plot(name: str, figure: Any) -> None:
    """Write a figure of Matplotlib beside the result files, and print its path."""
    figure.savefig(RESULTS / name, metadata={"Date": None})
    print(f"written: benchmarks/results/{name}")


def _processor() -> str:
    """Return the model name and number of the processors."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    usable = len(os.sched_getaffinity(0))  # fewer if the run is pinned to some of them
    return f"{names[0] if names else platform.machine()} x {usable}"
