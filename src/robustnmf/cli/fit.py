"""``robustnmf fit``: read a table, fit, write components, codes, outliers, model and page."""

from __future__ import annotations

import argparse
import json
import re
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from robustnmf.cli._shared import (
    Commands,
    add_reading,
    check_not_input,
    command,
    one_of,
    positive_integer,
    read,
    warn,
)

if TYPE_CHECKING:
    import numpy as np
    from scipy.sparse import csr_array

    from robustnmf.estimators import RobustNMF

EXAMPLES = """examples:
  robustnmf fit spectra.csv -k 6 -o out/             6 parts; open out/report.html
  robustnmf fit counts.h5ad -k auto --loss kullback-leibler -o out/
  robustnmf fit faces.npy -k 25 --image-shape 32x32 -o out/
  robustnmf fit table.tsv -k 8 --id patient --json -o out/ | jq .outliers
"""
MAX_RANKS, MAX_ROWS = 15, 5000
OPTIONS = {
    "n_components": "-k", "max_iter": "--max-iter", "tol": "--tol", "init": "--init",
    "random_state": "--seed",
}  # fmt: skip
"""Options of this command by the parameters they set."""

PARAMETER = re.compile(
    rf"\b(?P<name>{'|'.join(OPTIONS)})\b(?:=(?P<quote>'?)(?P<value>[\w.+-]*\w)(?P=quote))?"
)
NOTEWORTHY_RATIO = 100
"""How many times the median feature the largest one is, for a note to be printed."""


def add(commands: Commands) -> None:
    """Add the command and its options."""
    parser = command(commands, "fit", "split a table in a file into parts; outliers lose their say",
                     EXAMPLES)  # fmt: skip
    add_reading(parser)
    parser.add_argument("-k", "--components", required=True, type=_components, metavar="K",
                        help='number of parts, or "auto"')  # fmt: skip
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FOLDER",
                        help="where the results go")  # fmt: skip
    parser.add_argument("--loss", default="frobenius", type=_loss,
                        help="frobenius, kullback-leibler, ...")  # fmt: skip
    parser.add_argument("--init", default="robust", type=_init, help="start: robust, random, ...")
    parser.add_argument("--max-iter", type=positive_integer, default=1000, metavar="N",
                        help="most iterations (default 1000)")  # fmt: skip
    parser.add_argument("--tol", type=_tolerance, default=1e-4, metavar="T",
                        help="relative decrease of the objective to stop at")  # fmt: skip
    parser.add_argument("--image-shape", metavar="HxW", type=_image_shape,
                        help="samples are images of this shape")  # fmt: skip
    parser.add_argument("--max-ranks", type=positive_integer, default=MAX_RANKS, metavar="N",
                        help=f"how many parts -k auto tries (default {MAX_RANKS})")  # fmt: skip
    parser.add_argument("--seed", type=_seed, default=0)
    parser.add_argument(
        "--quiet", action="store_true", help="print nothing but warnings and errors"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Read the table, fit, write all files, print a summary; errors name options."""
    try:
        return _run(options)
    except ValueError as error:
        raise ValueError(in_options(str(error))) from error


def _run(options: argparse.Namespace) -> int:
    """Do what :func:`run` does, with errors that name parameters of the estimator."""
    import numpy as np

    from robustnmf.estimators import RobustNMF, select_rank
    from robustnmf.report.fitted import Fit, check_image_shape, output_paths, summary, write

    say = _say_nothing if options.json or options.quiet else _say
    if options.output.exists() and not options.output.is_dir():
        raise ValueError(f"--output is {options.output}, a file; a folder is needed.")
    for path in output_paths(options.output).values():
        check_not_input(path, options.data)
    table = read(options, say)
    hint = _units_note(table.data)
    if hint:
        say(f"  {hint}")
    shape = (
        None
        if options.image_shape is None
        else check_image_shape(options.image_shape, table.data.shape[1])
    )
    begin = time.perf_counter()
    selection = None
    if options.components == "auto":
        rows, ranks = _rows_and_ranks(table.data, options.max_ranks, options.seed)
        say(f"choosing among {len(ranks)} numbers of parts, on {rows.shape[0]} samples")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            selection = select_rank(
                rows, ranks, random_state=options.seed, loss=options.loss, init=options.init
            )
        rank = selection.recommended
        say(f"{rank} parts predict hidden entries best, or as well as more would")
    else:
        rank = options.components
    model = RobustNMF(
        rank, loss=options.loss, init=options.init, max_iter=options.max_iter, tol=options.tol,
        random_state=options.seed,
    )  # fmt: skip
    if say is _say:
        _show_progress(model)
    with warnings.catch_warnings(record=True) as fit_warnings:
        warnings.simplefilter("always")
        codes = model.fit_transform(table.data)
    if table.named:  # sparse tables have no place for them
        model.feature_names_in_ = np.array(table.features, dtype=object)
    for warning in fit_warnings:
        if issubclass(warning.category, (UserWarning, RuntimeWarning)):
            warn(in_options(str(warning.message)))
    seconds = time.perf_counter() - begin
    fit = Fit(model, table, codes, seconds, shape, selection, options.data.name)
    paths = write(fit, options.output)
    numbers = summary(fit)
    if options.json:
        files = {name: str(path) for name, path in paths.items()}
        print(json.dumps({**numbers, "files": files}))
        return 0
    outliers = len(numbers["outliers"])
    say(f"{numbers['components']} parts in {numbers['iterations']} iterations, {seconds:.1f} s; "
        f"{outliers} of {numbers['samples']} samples are outliers")  # fmt: skip
    say(f"report: {paths['report.html']}")
    return 0


def _units_note(data: np.ndarray | csr_array) -> str:
    """Say in words that features have very different units, if they have."""
    import numpy as np

    if not isinstance(data, np.ndarray):
        return ""  # counts, as a rule, which have one unit
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of columns without a value
        typical = np.nanmedian(data, axis=0)
    positive = typical[typical > 0]
    if len(positive) < 2 or positive.max() < NOTEWORTHY_RATIO * np.median(positive):
        return ""
    return (
        f"the largest feature is {positive.max() / np.median(positive):,.0f} times the median one "
        "and will rule the parts; scale features first, if they should count alike"
    )


def in_options(text: str) -> str:
    """Replace the names of parameters in a message by those of the options that set them."""

    def option(match: re.Match[str]) -> str:
        name, value = match["name"], match["value"]
        return OPTIONS[name] if value is None else f"{OPTIONS[name]} {value}"

    text = PARAMETER.sub(option, text)
    return text.replace("X.toarray()", "a file with a dense table")


def _components(text: str) -> int | str:
    """Parse -k."""
    if text == "auto":
        return text
    try:
        return positive_integer(text)
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(f'{error}, nor is it "auto"') from error


def _loss(text: str) -> str:
    """Parse --loss."""
    from robustnmf.losses import LOSSES

    return one_of(text, LOSSES)


def _init(text: str) -> str:
    """Parse --init."""
    from robustnmf.inits import INITS

    return one_of(text, INITS)


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


def _rows_and_ranks(
    data: np.ndarray | csr_array, max_ranks: int, seed: int
) -> tuple[np.ndarray | csr_array, range]:
    """Draw the samples by which the rank is chosen; return them and the ranks to choose from."""
    import numpy as np

    from robustnmf.estimators.rank import largest_rank

    rows = data
    if data.shape[0] > MAX_ROWS:
        indices = np.random.default_rng(seed).permutation(data.shape[0])[:MAX_ROWS]
        rows = data[np.sort(indices)]
    largest = min(max_ranks, largest_rank(rows))
    if largest < 1 or min(rows.shape) < 2:
        raise ValueError(f"-k auto needs two samples and features at least; X is {data.shape}.")
    return rows, range(1, largest + 1)


def _show_progress(model: RobustNMF) -> None:
    """Show a progress bar during the fit, if this scikit-learn has one."""
    try:
        from sklearn.callback import ProgressBar
    except ImportError:
        return
    model.set_callbacks(ProgressBar())


def _say(text: str) -> None:
    """Print a line at once."""
    print(text, flush=True)


def _say_nothing(text: str) -> None:
    """Print nothing."""
