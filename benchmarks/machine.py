"""What benchmarks share: timing, memory, and result files with the machine beside the numbers."""

from __future__ import annotations

import json
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn

from robustnmf import __version__

RESULTS = Path(__file__).resolve().parent / "results"

# Scripts that compare with transcriptions of the paper import them from the tests.
sys.path.insert(0, str(RESULTS.parent.parent))


def seconds(run: Callable[..., Any], *arguments: Any) -> float:
    """Return the wall time of one call."""
    begin = time.perf_counter()
    run(*arguments)
    return time.perf_counter() - begin


def seconds_per_pass(run: Callable[[int], Any], short: int, long: int) -> float:
    """Return the seconds of a pass: a long fit less a short one, so that set-up does not count."""
    few, many = (seconds(run, passes) for passes in (short, long))
    return (many - few) / (long - short)


def memory(what: str) -> float:
    """Return the memory of this process in MB, now (VmRSS) or its peak (VmHWM); Linux only."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(what)) / 1024


def reset_peak() -> None:
    """Reset the peak memory of this process (VmHWM) to what it holds now."""
    Path("/proc/self/clear_refs").write_text("5")


def describe_run() -> dict:
    """Describe the command, versions and machine of this run."""
    return {
        "command": f"make bench (or: python benchmarks/{Path(sys.argv[0]).name})",
        "versions": {
            "robustnmf": __version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
            "scipy": scipy.__version__,
            "scikit-learn": sklearn.__version__,
        },
        "machine": {"system": platform.platform(), "processor": _processor()},
    }


def write_result(name: str, content: dict) -> None:
    """Write a result file as JSON, with a description of this run, and print its path."""
    path = RESULTS / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(describe_run() | content, indent=1) + "\n")
    print(f"written: {path.relative_to(RESULTS.parent.parent)}")


def _processor() -> str:
    """Return the model name and number of the processors."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return f"{names[0]} x {len(names)}" if names else platform.processor()
