"""The run of ``robustnmf fit``: from the options to the files."""

from __future__ import annotations

import argparse
import json
import shlex
import time
import warnings
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from robustnmf.cli._messages import errors_in_options, in_options
from robustnmf.cli._notes import choose_scale, class_note, edge_note
from robustnmf.cli._shared import (
    UsageError,
    check_new,
    check_not_input,
    check_writable,
    read,
    surroundings,
    warn,
)

if TYPE_CHECKING:
    from robustnmf.estimators import RankSelection, RobustNMF
    from robustnmf.report.fitted_data import Fit
    from robustnmf.tables import Table

MAX_ROWS = 5000
"""Samples by which the units of features are compared."""


def run_fit(options: argparse.Namespace) -> int:
    """Read the table, fit, write all files, print a summary."""
    say = _say_nothing if options.json or options.quiet else _say
    _check_outputs(options)
    table = read(options, say)
    if table.left_out and options.color_by is None:
        say("  samples can be coloured by a column of texts, for example --color-by "
            f"{shlex.quote(table.left_out[0])}")  # fmt: skip
    # Imported now: they take seconds, and what cannot be read is said at once.
    from robustnmf.report.fitted import check_image_shape, summary, write
    from robustnmf.report.h5ad import check_table, write_h5ad
    from robustnmf.report.names import counted

    if options.write_h5ad is not None:
        check_table(table, options.data)
    _check_rank(options.components, *table.data.shape)
    shape = (
        None
        if options.image_shape is None
        else check_image_shape(options.image_shape, table.data.shape[1])
    )
    fit = _fit(options, table, shape, say)
    numbers = summary(fit)
    paths: dict[str, Path] = {}
    if options.output is not None:
        paths = write(fit, options.output, run_record(options, fit, numbers))
    if options.write_h5ad is not None:
        write_h5ad(fit, options.write_h5ad, options.data, options.layer)
        paths[options.write_h5ad.name] = options.write_h5ad
    if fit.missing.any():
        say(f"  {fit.missing_text}")
    if options.json:
        files = {name: str(path) for name, path in paths.items()}
        print(json.dumps({**numbers, "files": files}))
        return 0
    say(f"{counted(numbers['components'], 'part')} in "
        f"{counted(numbers['iterations'], 'iteration')}, {fit.seconds:.1f} s; "
        f"outliers: {len(numbers['outliers'])} of {numbers['samples']} samples")  # fmt: skip
    if options.write_h5ad is not None:
        say(f"AnnData: {options.write_h5ad}")
    if options.output is not None:
        say(f"report: {paths['report.html']}")
    return 0


def _check_outputs(options: argparse.Namespace) -> None:
    """Refuse outputs that cannot be written, or that would replace something, before the fit."""
    from robustnmf.report.files import output_paths
    from robustnmf.report.h5ad import check_h5ad

    if options.output is None and options.write_h5ad is None:
        raise UsageError("-o FOLDER is needed, or --write-h5ad FILE: where do the results go?")
    outputs: list[Path] = []
    if options.output is not None:
        if options.output.exists() and not options.output.is_dir():
            raise ValueError(f"--output is {options.output}, a file; a folder is needed.")
        if str(options.output) == "-":
            raise UsageError("-o is -, but a folder is needed; results are several files.")
        outputs += output_paths(options.output).values()
        check_writable("--output", options.output, outputs)
    for path in outputs:
        check_not_input(path, options.data)
    if options.write_h5ad is not None:
        if options.write_h5ad.resolve() in [path.resolve() for path in outputs]:
            raise UsageError(f"--write-h5ad is {options.write_h5ad}, a file that -o writes.")
        check_h5ad(options.write_h5ad, options.data, options.dataset)
        check_writable("--write-h5ad", options.write_h5ad, [options.write_h5ad])
        outputs.append(options.write_h5ad)
    check_new(outputs, force=options.force)


def _check_rank(rank: int | str, samples: int, features: int) -> None:
    """Refuse more parts than a table has rows or columns, each of which could be one itself."""
    most = min(samples, features)
    if rank != "auto" and int(rank) > most:
        advice = "Lower -k, or use -k auto" if most > 1 else "Use -k 1"
        raise ValueError(
            f"-k is {rank}, but a table of {samples} x {features} (samples x features) has at most "
            f"{most} component{'s' * (most > 1)}. {advice}."
        )


def _fit(
    options: argparse.Namespace,
    table: Table,
    shape: tuple[int, int] | None,
    say: Callable[[str], None],
) -> Fit:
    """Scale the features, choose the number of parts, and fit, as the options say."""
    import numpy as np

    from robustnmf.estimators import RobustNMF
    from robustnmf.report.fitted_data import Fit
    from robustnmf.report.h5ad import writes_data
    from robustnmf.tables import draw_rows, scale_features

    begin = time.perf_counter()
    messages: list[str] = []

    def note(text: str) -> None:
        messages.append(text)
        warn(text)

    rows = draw_rows(table.data, MAX_ROWS, options.seed)
    question = "" if options.color_by else class_note(rows, table)
    if question:
        note(question)
    scale = unscaled = None
    kind, reason = options.scale, ""
    if kind == "auto":
        kind, reason = choose_scale(rows, table, options)
        if reason and kind == "none":
            note(reason)
    if kind != "none":
        if writes_data(options.write_h5ad, options.data):
            unscaled = table.data
        table, scale = scale_features(table, kind, options.seed, keep=unscaled is not None)
        table.notes.append(f"{reason}every feature is divided by its scale ({kind})")
        say(f"  {table.notes[-1]}")
    parameters = {"loss": options.loss, "init": options.init, "weighting": options.weighting}
    selection = None
    rank = options.components
    if rank == "auto":
        selection = _choose_rank(table, options, parameters, say)
        rank = selection.recommended
        edge = edge_note(selection, options.max_ranks)
        if edge:
            note(edge)
    model = RobustNMF(
        rank, n_init=options.n_init, max_iter=options.max_iter, tol=options.tol,
        random_state=options.seed, **parameters,
    )  # fmt: skip
    if say is _say:
        _show_progress(model)
    with (
        errors_in_options(table, options.data),
        warnings.catch_warnings(record=True) as fit_warnings,
    ):
        warnings.simplefilter("always")
        codes = model.fit_transform(_values(table))
    if table.named:  # sparse tables have no place for them
        model.feature_names_in_ = np.array(table.features, dtype=object)
    if scale is not None:
        model.feature_scale_ = scale  # kept by model.save
    for warning in fit_warnings:
        if issubclass(warning.category, (UserWarning, RuntimeWarning)):
            note(in_options(str(warning.message), table, options.data))
    return Fit(
        model, table, codes, time.perf_counter() - begin, shape, selection, options.data.name,
        scale, messages, options.color_by, unscaled,
    )  # fmt: skip


def _values(table: Table) -> Any:
    """Return the values of a table as an estimator takes them."""
    from robustnmf.tables import StoredRows

    return table.data.source if isinstance(table.data, StoredRows) else table.data


def _choose_rank(
    table: Table,
    options: argparse.Namespace,
    parameters: dict[str, Any],
    say: Callable[[str], None],
) -> RankSelection:
    """Compare numbers of parts on some of the samples, as ``RobustNMF("auto")`` does."""
    from robustnmf.estimators import RobustNMF
    from robustnmf.fitting import check_source
    from robustnmf.fitting.rank import choose_rank, draw_rank_rows, largest_rank
    from robustnmf.sources import source_for

    with errors_in_options(table, options.data):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the fit says the same of X
            settings = RobustNMF(
                random_state=options.seed, verbose=int(say is _say), **parameters
            )._settings()
            source = check_source(settings, source_for(_values(table), settings.name))
            rows = draw_rank_rows(settings, source)
        largest = min(options.max_ranks, largest_rank(rows))
        say(f"choosing among {largest} numbers of parts, on {rows.shape[0]} samples")
    is_whole = rows.shape[0] == table.data.shape[0]
    with errors_in_options(table if is_whole else None, options.data):
        selection = choose_rank(settings, rows, options.max_ranks)
    say(selection.reason)
    return selection


def run_record(options: argparse.Namespace, fit: Fit, numbers: dict[str, Any]) -> dict[str, Any]:
    """Return what ``run.json`` holds: what was run, on what, and what was left out."""
    import robustnmf

    left_out = ("columns_left_out", "cells_made_missing", "short_lines")
    results = ("samples", "features", "components", "iterations", "objective", "seconds")
    chosen = {
        name: str(value) if isinstance(value, Path) else value
        for name, value in vars(options).items()
        if name not in ("run", "command", "arguments")
    }
    return {
        "command": options.arguments,
        "version": robustnmf.__version__,
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


def _say(text: str) -> None:
    """Print a line at once."""
    print(text, flush=True)


def _say_nothing(text: str) -> None:
    """Print nothing."""
