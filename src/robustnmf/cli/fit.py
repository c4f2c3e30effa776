"""``robustnmf fit``: read a table, fit, write components, codes, outliers, model and page."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from robustnmf.cli._shared import (
    Commands,
    add_force,
    add_reading,
    command,
    positive_integer,
)

DESCRIPTION = """Split a table in a file into parts. Samples that follow none of them are found,
and have less or no weight in the fit. Written to the folder that -o names:

  report.html   one page to read: parts, samples, outliers and what makes them so
  basis.csv     the parts, in the units of the file
  codes.csv     how much of each part every sample has
  samples.csv   weight and energy of every sample, and whether it is an outlier
  model.rnmf    the model, for robustnmf transform and robustnmf.load
  run.json      command, version, parameters, and what of the file was left out
"""
EXAMPLES = """examples:
  robustnmf fit spectra.csv -k 6 -o out/             6 parts; open out/report.html
  robustnmf fit wine.csv -k auto --color-by class -o out/
  robustnmf fit german.csv -k 5 --sep ";" --decimal , -o out/
  robustnmf fit faces.npy -k 25 --image-shape 32x32 -o out/
  robustnmf fit filtered_feature_bc_matrix/ -k 12 --loss kullback-leibler -o out/
  robustnmf fit counts.h5ad --layer counts -k 12 --loss kullback-leibler --write-h5ad out.h5ad
  robustnmf fit table.tsv -k 8 --id patient --json -o out/ | jq .outliers
"""
MAX_RANKS = 15
LOSSES = (
    "frobenius", "kullback-leibler", "itakura-saito", "beta", "alpha", "huber", "biweight",
)  # fmt: skip
WEIGHTINGS = ("uniform", "l21", "huber", "fuzzy", "entropy", "cauchy", "trimmed")
INITS = ("random", "nndsvd", "nndsvda", "nndsvdar", "robust")
"""Names of the registries, which take a second to import; a test compares."""

SCALES = ("auto", "none", "max", "std", "robust")


def add(commands: Commands) -> None:
    """Add the command and its options."""
    parser = command(commands, "fit", "split a table in a file into parts, and find outliers",
                     EXAMPLES, DESCRIPTION)  # fmt: skip
    add_reading(parser)
    parser.add_argument("--color-by", metavar="COLUMN",
                        help="column to colour samples by; it is no feature")  # fmt: skip
    parser.add_argument("-k", "--components", required=True, type=_components, metavar="K",
                        help='number of parts, or "auto": chosen from the data')  # fmt: skip
    parser.add_argument("-o", "--output", type=Path, metavar="FOLDER",
                        help="where the results go")  # fmt: skip
    parser.add_argument("--write-h5ad", type=Path, metavar="FILE",
                        help="AnnData file to write: that which is read, with the results in it; "
                        "-o is not needed then")  # fmt: skip
    add_force(parser)
    model = parser.add_argument_group("model")
    model.add_argument("--loss", default="frobenius", choices=LOSSES, metavar="LOSS",
                       help=f"{', '.join(LOSSES)} (default frobenius; kullback-leibler for "
                       "counts, biweight where single entries are bad)")  # fmt: skip
    model.add_argument("--weighting", default="trimmed", choices=WEIGHTINGS, metavar="WEIGHTING",
                       help=f"weights of samples: {', '.join(WEIGHTINGS)} (default "
                       "trimmed; uniform is plain NMF)")  # fmt: skip
    model.add_argument("--scale", default="auto", choices=SCALES, metavar="SCALE",
                       help="divide every feature by its scale first: none, max, std, robust (its "
                       "interquartile range), auto (default: robust if the sizes of features "
                       "differ a hundredfold, else none); parts are written in the units of the "
                       "file")  # fmt: skip
    model.add_argument("--init", default="robust", choices=INITS, metavar="INIT",
                       help=f"start: {', '.join(INITS)} (default robust)")  # fmt: skip
    model.add_argument("--n-init", type=positive_integer, default=1, metavar="N",
                       help="starts, of which the best is taken (default 1)")  # fmt: skip
    model.add_argument("--max-iter", type=positive_integer, default=1000, metavar="N",
                       help="most iterations (default 1000)")  # fmt: skip
    model.add_argument("--tol", type=_tolerance, default=1e-4, metavar="T",
                       help="relative decrease to stop at (default 1e-4)")  # fmt: skip
    model.add_argument("--max-ranks", type=positive_integer, default=MAX_RANKS, metavar="N",
                       help=f"how many parts -k auto tries (default {MAX_RANKS})")  # fmt: skip
    model.add_argument("--seed", type=_seed, default=0)
    parser.add_argument("--image-shape", metavar="HxW", type=_image_shape,
                        help="samples are images of this shape")  # fmt: skip
    parser.add_argument(
        "--quiet", action="store_true", help="print nothing but warnings and errors"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Read the table, fit, write all files, print a summary."""
    from robustnmf.cli._fitting import run_fit

    return run_fit(options)


def _components(text: str) -> int | str:
    """Parse -k."""
    if text == "auto":
        return text
    try:
        return positive_integer(text)
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(f'{error}, nor is it "auto"') from error


def _tolerance(text: str) -> float:
    """Parse --tol."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of zero or more")
    return number


def _seed(text: str) -> int:
    """Parse --seed."""
    if not re.fullmatch("[0-9]{1,10}", text) or int(text) >= 2**32:
        raise argparse.ArgumentTypeError(f"{text!r} is no integer from 0 to 2**32 - 1")
    return int(text)


def _image_shape(text: str) -> tuple[int, int]:
    """Parse --image-shape."""
    shape = re.fullmatch(r"([1-9]\d*)[x,]([1-9]\d*)", text, re.ASCII)
    if not shape:
        raise argparse.ArgumentTypeError(f"{text!r} is no HEIGHTxWIDTH")
    return int(shape[1]), int(shape[2])
