"""``robustnmf fit``: read a table, fit, write components, codes, outliers, model and page."""

from __future__ import annotations

import argparse
import json
import re
import shlex
import time
import warnings
from datetime import UTC, datetime
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from robustnmf._version import __version__
from robustnmf.cli._shared import (
    Commands,
    UsageError,
    add_reading,
    check_output,
    name_places,
    places_named,
    positive_integer,
    read,
    surroundings,
    warn,
)

if TYPE_CHECKING:
    import numpy as np

    from robustnmf.estimators import RankSelection, RobustNMF
    from robustnmf.report.fitted import Fit
    from robustnmf.tables import Table

DESCRIPTION = """Factorise a table in a file into components. Samples that these do not describe
are marked as outliers and down-weighted or left out. The folder that -o names will hold

  report.html   one page: components, samples, outliers and the reasons
  basis.csv     the components, in the units of the file
  codes.csv     the codes: the weight of each component in every sample
  samples.csv   importance (weight) and energy (reconstruction error) of every sample; outliers
  model.rnmf    the model, for robustnmf transform and robustnmf.load
  run.json      command, version, parameters, and the columns that were skipped
"""
EXAMPLES = """examples:
  robustnmf fit spectra.csv -k 6 -o out/             6 components; open out/report.html
  robustnmf fit wine.csv -k auto --color-by class -o out/
  robustnmf fit german.csv -k 5 --sep ";" --decimal , -o out/
  robustnmf fit faces.npy -k 25 --image-shape 32x32 -o out/
  robustnmf fit filtered_feature_bc_matrix/ -k 12 -o out/
  robustnmf fit cells.h5ad --layer counts --mask-var highly_variable -k 12 --write-h5ad out.h5ad
  robustnmf fit table.tsv -k 8 --id patient --json -o out/ | jq .outliers
"""
MAX_RANKS = 15
LOSSES = (
    "frobenius", "kullback-leibler", "itakura-saito", "beta", "alpha", "huber", "truncated",
)  # fmt: skip
WEIGHTINGS = ("uniform", "l21", "huber", "fuzzy", "entropy", "cauchy", "trimmed")
INITS = ("random", "nndsvd", "nndsvda", "nndsvdar", "robust")
"""Names in the registries, which take a second to import; a test compares them."""

FORMER_NAMES = {"biweight": "truncated"}
"""Losses by names that are still understood."""

SCALES = ("auto", "none", "max", "std", "robust")

MAX_ROWS = 5000
"""Rows that are inspected for counts, classes and units of features."""

NOTEWORTHY_RATIO = 100
"""Ratio of the largest feature to the median one above which features have several units."""

SQUARED_LOSSES = {"frobenius", "huber", "truncated"}
"""Losses that the features of the largest numbers dominate."""

CLASS_NAMES = {"class", "classes", "label", "labels", "target", "cluster", "group", "category", "y"}
"""Names of columns that hold the classes of samples."""

H5AD_KEY = "nmf"
"""Name of the results in an AnnData file."""


def add(commands: Commands) -> None:
    """Add the command and its options."""
    parser = commands.add_parser("fit", help="factorise a table in a file, and find outliers",
                                 description=DESCRIPTION, epilog=EXAMPLES)  # fmt: skip
    add_reading(parser)
    parser.add_argument("--mask-var", metavar="COLUMN",
                        help="boolean column of var of an H5AD file, for example highly_variable: "
                        "only variables for which it is true are used")  # fmt: skip
    parser.add_argument("--color-by", metavar="COLUMN",
                        help="column of the table, or of obs, to colour and group samples by; it "
                        "is excluded from the features")  # fmt: skip
    parser.add_argument("-k", "--components", required=True, type=_components, metavar="K",
                        help='number of components (n_components); "auto" chooses it')  # fmt: skip
    parser.add_argument("-o", "--output", type=Path, metavar="FOLDER",
                        help="folder for the results")  # fmt: skip
    parser.add_argument("--write-h5ad", type=Path, metavar="FILE",
                        help="AnnData file to write: a copy of the input with the results; -o is "
                        "then optional")  # fmt: skip
    model = parser.add_argument_group("model")
    model.add_argument("--loss", choices=LOSSES, metavar="LOSS",
                       type=lambda name: FORMER_NAMES.get(name, name),
                       help=f"{', '.join(LOSSES)} (default: kullback-leibler for counts in H5AD, "
                       "MTX and other sparse files, else frobenius; truncated ignores single wrong "
                       "entries)")  # fmt: skip
    model.add_argument("--weighting", default="trimmed", choices=WEIGHTINGS, metavar="WEIGHTING",
                       help=f"weights of samples: {', '.join(WEIGHTINGS)} (default "
                       "trimmed; uniform is plain NMF)")  # fmt: skip
    model.add_argument("--scale", default="auto", choices=SCALES, metavar="SCALE",
                       help="divide every feature by its scale first: none, max, std, robust (its "
                       "interquartile range), auto (default: robust if the sizes of features "
                       "differ a hundredfold, else none); components are written in the units of "
                       "the file")  # fmt: skip
    model.add_argument("--init", choices=INITS, metavar="INIT",
                       help=f"start: {', '.join(INITS)} (default: nndsvda for uniform "
                       "weights, else robust)")  # fmt: skip
    model.add_argument("--n-init", type=positive_integer, default=1, metavar="N",
                       help="number of starts, with --init random; the best one is kept "
                       "(default 1)")  # fmt: skip
    model.add_argument("--max-iter", type=positive_integer, default=1000, metavar="N",
                       help="maximum number of iterations (default 1000)")  # fmt: skip
    model.add_argument("--tol", type=_tolerance, default=1e-4, metavar="T",
                       help="relative decrease to stop at (default 1e-4)")  # fmt: skip
    model.add_argument("--max-ranks", type=positive_integer, default=MAX_RANKS, metavar="N",
                       help=f"largest k that -k auto tries (default {MAX_RANKS})")  # fmt: skip
    model.add_argument(
        "--seed", type=_seed, default=0, help="seed of random numbers (random_state)"
    )
    parser.add_argument("--image-shape", metavar="HxW", type=_image_shape,
                        help="samples are images of this shape")  # fmt: skip
    parser.add_argument(
        "--quiet", action="store_true", help="print nothing but warnings and errors"
    )
    parser.set_defaults(run=run)


def _components(text: str) -> int | str:
    if text == "auto":
        return text
    try:
        return positive_integer(text)
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(f'{error}, nor "auto"') from error


def _tolerance(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of zero or more")
    return number


def _seed(text: str) -> int:
    if not re.fullmatch("[0-9]{1,10}", text) or int(text) >= 2**32:
        raise argparse.ArgumentTypeError(f"{text!r} is not an integer from 0 to 2**32 - 1")
    return int(text)


def _image_shape(text: str) -> tuple[int, int]:
    shape = re.fullmatch(r"([1-9]\d*)[x,]([1-9]\d*)", text, re.ASCII)
    if not shape:
        raise argparse.ArgumentTypeError(f"{text!r} is not HEIGHTxWIDTH")
    return int(shape[1]), int(shape[2])


def run(options: argparse.Namespace) -> int:
    """Read the table, fit, write all files, print a summary."""
    from robustnmf.tables import Doubt

    say = partial(_say, options)
    _check_outputs(options)
    table = read(options, say)
    if _is_quiet(options):
        for note in table.notes:
            if isinstance(note, Doubt):
                warn(note)  # numbers or samples are others, if it is wrong
    groupings = table.left_out or table.groupings
    if groupings and options.color_by is None and not table.turned:
        say(f"  {table.words.sample}s can be coloured and grouped by a column, for example "
            f"--color-by {shlex.quote(groupings[0])}")  # fmt: skip
    _check_table(options, table)
    # Imported now: they take seconds, and errors of reading come first.
    from robustnmf.files.page import counted
    from robustnmf.report.fitted import summary
    from robustnmf.report.fitted_page import write

    fit = _fit(options, table)
    numbers = summary(fit)
    paths: dict[str, Path] = {}
    if options.output is not None:
        paths = write(fit, options.output, run_record(options, fit, numbers))
    if options.write_h5ad is not None:
        _write_h5ad(options, fit)
        paths[options.write_h5ad.name] = options.write_h5ad
    if fit.missing.any():
        say(f"  {fit.missing_text}")
    if options.json:
        files = {name: str(path) for name, path in paths.items()}
        print(json.dumps({**numbers, "files": files}))
    say(f"{counted(numbers['components'], table.words.component)} in "
        f"{counted(numbers['iterations'], 'iteration')}, {fit.seconds:.1f} s; "
        f"outliers: {len(numbers['outliers'])} of {counted(numbers['samples'], table.words.sample)}"
    )  # fmt: skip
    if options.write_h5ad is not None:
        say(f"AnnData: {options.write_h5ad}")
    if options.output is not None:
        say(f"report: {paths['report.html']}")
    return 0


def _is_quiet(options: argparse.Namespace) -> bool:
    """Whether nothing but the summary for scripts is printed."""
    return options.json or options.quiet


def _say(options: argparse.Namespace, text: str) -> None:
    """Print a line at once, if the options allow it."""
    if not _is_quiet(options):
        print(text, flush=True)


def _check_outputs(options: argparse.Namespace) -> None:
    """Refuse outputs that cannot be written, or that would replace something, before the fit."""
    from robustnmf.report import FILES

    h5ad = options.write_h5ad
    if options.output is None and h5ad is None:
        raise UsageError("-o FOLDER or --write-h5ad FILE is needed for the results.")
    if str(options.output) == "-":
        raise UsageError("-o is -, but a folder is needed; results are several files.")
    check = partial(check_output, inputs=[options.data], force=options.force)
    paths = [options.output / name for name in FILES] if options.output is not None else []
    check("--output", options.output, paths)
    if h5ad is None:
        return
    for module in ("anndata", "h5py"):  # imported after the fit, as they take memory
        if find_spec(module) is None:
            raise ModuleNotFoundError(f"AnnData files need {module}", name=module)
    from robustnmf.anndata.files import check_raw_variables, is_anndata_file

    if h5ad.resolve() in [path.resolve() for path in paths]:
        raise UsageError(f"--write-h5ad is {h5ad}, a file that -o writes.")
    check("--write-h5ad", h5ad, [h5ad], streams=False)
    if not is_anndata_file(options.data):
        return
    if options.dataset is not None:
        raise ValueError(
            "--write-h5ad keeps the observations and variables of an AnnData file, which --dataset "
            "leaves out. Leave --dataset out, or --write-h5ad."
        )
    if options.raw:
        check_raw_variables(options.data)


def _check_table(options: argparse.Namespace, table: Table) -> None:
    """Refuse a table that does not fit the options."""
    from robustnmf.anndata import is_anndata_file
    from robustnmf.tables import StoredRows

    samples, features = table.data.shape
    most = min(samples, features)
    if (2 if options.components == "auto" else options.components) > most:
        advice = "Lower -k, or use -k auto" if most > 1 else "Use -k 1"
        raise ValueError(
            f"-k is {options.components}, but a table of {samples} x {features} (samples x "
            f"features) has at most {most} component{'s' * (most > 1)}. {advice}."
        )
    height, width = options.image_shape or (1, features)
    if height * width != features:
        raise ValueError(
            f"--image-shape is {height}x{width}, but HEIGHTxWIDTH of {features} pixels is needed."
        )
    if options.write_h5ad is None:
        return
    is_copy = is_anndata_file(options.data)
    if is_copy and table.turned:
        raise ValueError(
            "--write-h5ad keeps observations as samples. Leave --transpose out, or --write-h5ad."
        )
    if not is_copy and isinstance(table.data, StoredRows):
        raise ValueError(
            "--write-h5ad needs the table in memory, and this one is too large. Write it as H5AD "
            "and fit that."
        )


def _write_h5ad(options: argparse.Namespace, fit: Fit) -> None:
    """Write the file that was read, or its table, with the results in it as an AnnData file."""
    from robustnmf.anndata import result_slots, write_h5ad

    read = {"layer": options.layer, "use_raw": options.raw or None, "mask_var": options.mask_var}
    results = result_slots(fit.model, fit.codes, fit.components, H5AD_KEY, read)
    if fit.scale is not None:
        results["uns"][H5AD_KEY]["feature_scale"] = fit.scale
    data = fit.table.data if fit.unscaled is None else fit.unscaled
    write_h5ad(options.write_h5ad, options.data, fit.table, data, results)


def _fit(options: argparse.Namespace, table: Table) -> Fit:
    """Choose the loss, scale the features, choose the number of components, and fit."""
    import numpy as np

    from robustnmf.anndata import is_anndata_file
    from robustnmf.estimators import RobustNMF
    from robustnmf.report.fitted import Fit
    from robustnmf.tables import draw_rows, scale_features

    begin = time.perf_counter()
    messages: list[str] = []

    def note(text: str) -> None:
        if text:
            messages.append(text)
            warn(text)

    rows = draw_rows(table.data, MAX_ROWS, options.seed)
    if not options.color_by:
        note(class_note(rows, table))
    holds_counts = are_counts(rows, table)
    loss = options.loss or ("kullback-leibler" if holds_counts else "frobenius")
    if holds_counts and options.loss is None:
        where = table.place or "X"
        table.notes.append(f"{where} holds counts: --loss {loss} (--loss frobenius overrides)")
        _say(options, f"  {table.notes[-1]}")
    scale = unscaled = None
    kind, reason = options.scale, ""
    if kind == "auto":
        kind, reason = choose_scale(rows, table, loss, is_image=options.image_shape is not None)
        note(reason if kind == "none" else "")
    if kind != "none":
        if options.write_h5ad is not None and not is_anndata_file(options.data):
            unscaled = table.data  # which are written
        table, scale = scale_features(table, kind, options.seed, keep=unscaled is not None)
        table.notes.append(f"{reason}every feature is divided by its scale ({kind})")
        _say(options, f"  {table.notes[-1]}")
    parameters = {"loss": loss, "init": options.init, "weighting": options.weighting}
    selection, rank = None, options.components
    if rank == "auto":
        selection = _choose_rank(table, options, parameters, scale)
        rank = selection.recommended
        note(edge_note(selection, options.max_ranks, table.words.component))
    model = RobustNMF(
        rank, n_init=options.n_init, max_iter=options.max_iter, tol=options.tol,
        random_state=options.seed, **parameters,
    )  # fmt: skip
    if not _is_quiet(options):
        _show_progress(model)
    with places_named(table, scale), warnings.catch_warnings(record=True) as fit_warnings:
        warnings.simplefilter("always")
        codes = model.fit_transform(table.data)
    if table.named:  # sparse tables have no place for them
        model.feature_names_in_ = np.array(table.features, dtype=object)
    if scale is not None:
        model.feature_scale_ = scale  # kept by model.save
    for warning in fit_warnings:
        if issubclass(warning.category, (UserWarning, RuntimeWarning)):
            note(name_places(str(warning.message), table))
    return Fit(
        model, table, codes, time.perf_counter() - begin, options.image_shape, selection,
        options.data.name, scale, messages, options.color_by, unscaled, holds_counts,
    )  # fmt: skip


def _choose_rank(
    table: Table, options: argparse.Namespace, parameters: dict[str, Any], scale: np.ndarray | None
) -> RankSelection:
    """Compare numbers of components on some samples, as ``RobustNMF("auto")`` does."""
    from robustnmf.estimators import RobustNMF
    from robustnmf.fitting import check_source
    from robustnmf.fitting.rank import choose_rank, draw_rank_rows, largest_rank
    from robustnmf.sources import source_for

    with places_named(table, scale):
        with warnings.catch_warnings(action="ignore"):  # the fit repeats them
            settings = RobustNMF(
                random_state=options.seed, verbose=int(not _is_quiet(options)), **parameters
            )._settings()
            source = check_source(settings, source_for(table.data, settings.name))
            rows = draw_rank_rows(settings, source)
        largest = min(options.max_ranks, largest_rank(rows))
    words = table.words
    _say(options, f"comparing 1 to {largest} {words.component}s on {rows.shape[0]} {words.sample}s")
    with places_named(table if rows.shape[0] == table.data.shape[0] else None):
        selection = choose_rank(settings, rows, options.max_ranks)
    _say(options, selection.reason)
    return selection


def run_record(options: argparse.Namespace, fit: Fit, numbers: dict[str, Any]) -> dict[str, Any]:
    """Return the content of ``run.json``: command, input, parameters, and skipped columns."""
    left_out = ("columns_left_out", "cells_made_missing", "short_lines")
    results = ("samples", "features", "components", "iterations", "objective", "seconds")
    chosen = {
        name: str(value) if isinstance(value, Path) else value
        for name, value in vars(options).items()
        if name not in ("run", "command", "arguments")
    }
    return {
        "command": options.arguments,
        "version": __version__,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "input": {"path": str(options.data), "text_format": numbers["text_format"]},
        "options": chosen,
        "parameters": {
            name: value if isinstance(value, (bool, int, float, str, type(None))) else repr(value)
            for name, value in fit.model.get_params(deep=False).items()
        },
        "scale": None if fit.scale is None else dict(
            zip(fit.table.features, fit.scale.tolist(), strict=True)
        ),
        "counts": fit.holds_counts,
        "notes": list(fit.table.notes),
        "left_out": {name: numbers[name] for name in left_out},
        "results": {name: numbers[name] for name in results}
        | {"outliers": len(numbers["outliers"]), "blank": numbers["blank"],
           "missing_values": numbers["missing_values"]},
        "warnings": fit.warnings,
        **surroundings(None),
    }  # fmt: skip


def _show_progress(model: RobustNMF) -> None:
    """Show a progress bar during the fit, if this scikit-learn has one."""
    try:
        from sklearn.callback import ProgressBar
    except ImportError:
        return
    model.set_callbacks(ProgressBar())


def units_ratio(rows: Any) -> float:
    """Return the ratio of the largest feature to the median one; 1 for sparse rows."""
    import numpy as np

    if not isinstance(rows, np.ndarray):
        return 1.0  # counts, as a rule, which have one unit
    with warnings.catch_warnings(action="ignore"):  # of columns without a value
        typical = np.nanmedian(rows, axis=0)
    positive = typical[typical > 0]
    return float(positive.max() / np.median(positive)) if len(positive) > 1 else 1.0


def choose_scale(
    rows: Any, table: Table, loss: str, *, is_image: bool
) -> tuple[Literal["none", "robust"], str]:
    """Return the scale for ``--scale auto``, and the reason or a note; empty without either.

    Features of several units are scaled. Pixels, points of spectra and counts have one unit.
    """
    import numpy as np

    from robustnmf.report.fitted_plots import feature_axis

    ratio = units_ratio(rows)
    if ratio < NOTEWORTHY_RATIO or loss not in SQUARED_LOSSES:
        return "none", ""
    text = f"the largest feature is {ratio:,.0f} times the median one"
    known = rows[np.isfinite(rows)]
    if is_image or feature_axis(table) is not None or (known == np.floor(known)).all():
        return "none", (
            f"{text} and will dominate the components; if features have different units, use "
            "--scale robust"
        )
    return "robust", f"{text} (--scale none keeps the units): "


def are_counts(rows: Any, table: Table) -> bool:
    """Whether rows of a sparse table, or of cells, are counts; other dense tables never are."""
    import numpy as np

    from robustnmf.anndata.slots import is_counts

    is_dense = isinstance(rows, np.ndarray)
    return is_counts(rows) and (table.of_cells or table.place is not None or not is_dense)


def class_note(rows: Any, table: Table) -> str:
    """Ask whether a feature is a class: one of few integers, by its name or alone of its kind."""
    import numpy as np

    from robustnmf.report.fitted_plots import MAX_CATEGORIES

    if not isinstance(rows, np.ndarray) or not table.named or table.turned:
        return ""
    counts = {}
    for name, values in zip(table.features, rows.T, strict=True):
        levels = np.unique(values[np.isfinite(values)])
        is_integer = bool((levels == np.floor(levels)).all())
        if is_integer and 2 <= len(levels) <= min(MAX_CATEGORIES, len(rows) // 4):
            counts[name] = len(levels)
    names = [name for name in counts if name.lower() in CLASS_NAMES] or list(counts)
    if len(names) != 1 or len(table.features) < 2:
        return ""
    (name,) = names
    return (
        f"the column {name!r} holds {counts[name]} different integers and is used as a feature; if "
        f"it is the class of the samples, use --color-by {shlex.quote(name)}"
    )


def edge_note(selection: RankSelection, max_ranks: int, word: str = "component") -> str:
    """Note that the number of components is the largest or least one that was tried, if it is."""
    rank, largest = selection.recommended, int(selection.ranks[-1])
    if rank == largest > 1 and largest == max_ranks:
        return (
            f"-k auto chose {rank} {word}s, the most that it tried; more can be better, raise "
            "--max-ranks"
        )
    if rank == largest > 1:
        return (
            f"-k auto chose {rank} {word}s, the most that a table of this shape allows: it can "
            f"need as many {word}s as features, or have too few samples"
        )
    if rank == 1 < largest:
        return (
            f"-k auto chose 1 {word}, the least there is: samples differ only in their total, or "
            f"noise or features with large units hide other {word}s (--scale robust)"
        )
    return ""
