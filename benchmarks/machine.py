"""Writing of result files, with versions, machine and command beside the numbers."""

from __future__ import annotations

import json
import platform
from pathlib import Path

import numpy as np
import scipy
import sklearn

from robustnmf import __version__

RESULTS = Path(__file__).resolve().parent / "results"


def describe_run(script: str) -> dict:
    """Describe the command, versions and machine of a run."""
    return {
        "command": f"make bench (or: python benchmarks/{Path(script).name})",
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
    """Write a result file as JSON and print its path."""
    path = RESULTS / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(content, indent=1) + "\n")
    print(f"written: {path.relative_to(RESULTS.parent.parent)}")


def _processor() -> str:
    """Return the model name and number of the processors."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return f"{names[0]} x {len(names)}" if names else platform.processor()
