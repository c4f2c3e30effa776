"""``robustnmf transform``: compute codes and energies of new samples, and mark outliers."""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from robustnmf.cli._shared import (
    Commands,
    UsageError,
    add_reading,
    check_output,
    is_stdout,
    places_named,
    read,
    warn,
)

if TYPE_CHECKING:
    import numpy as np
    from scipy.sparse import csr_array

    from robustnmf.estimators.base import BaseRobustNMF
    from robustnmf.tables import StoredRows, Table

DESCRIPTION = """Apply a model to new samples. The CSV file has a line for each sample: its code
for every component, its energy (reconstruction error), and whether it is an outlier by the cutoffs
of the fit. Columns are matched by their names. For an H5AD file, the layer or .raw of the fit
is read (it is recorded in run.json next to the model); --layer X reads X.
"""
EXAMPLES = """examples:
  robustnmf transform out/model.rnmf new.csv -o codes.csv
  robustnmf transform out/model.rnmf new.csv -o codes.csv --json
  robustnmf transform out/model.rnmf new.csv -o - | gzip > codes.csv.gz
"""


def add(commands: Commands) -> None:
    """Add the command and its options."""
    parser = commands.add_parser("transform", help="codes, energies and outliers of new samples",
                                 description=DESCRIPTION, epilog=EXAMPLES)  # fmt: skip
    parser.add_argument("model", type=Path, help="model.rnmf of robustnmf fit, or model.save(path)")
    add_reading(parser)
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE",
                        help='CSV file for the codes; "-" is standard output')  # fmt: skip
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Read the model and the table, compute codes and energies, write them, print a summary."""
    import numpy as np

    from robustnmf.estimators import load
    from robustnmf.files.output import output_file
    from robustnmf.report.fitted import column_names, encode_samples, read_summary, write_csv
    from robustnmf.tables import Doubt, join_first

    to_stdout = is_stdout(options.output)
    if to_stdout and options.json:
        raise UsageError("--json prints to standard output, and -o writes the codes there.")
    if not to_stdout:
        inputs = [options.data, options.model]
        check_output("--output", options.output, [options.output], inputs, force=options.force)
    model = load(options.model)
    if not hasattr(model, "transform"):
        raise ValueError(f"{options.model} is a {type(model).__name__}, which has no transform.")
    messages = sys.stderr if to_stdout else sys.stdout

    def say(text: str) -> None:
        if not options.json:
            print(text, file=messages)

    _read_as_fitted(options)
    if not options.transpose:
        options.needed = frozenset(getattr(model, "feature_names_in_", ()))
    table = read(options, say)
    for note in table.notes:
        if options.decimal is None and isinstance(note, Doubt):
            warn(note)  # a thousand times too large or small, if it is wrong
    data, unknown = align_features(table, model)
    if unknown:
        names = join_first(repr(name[:40]) for name in unknown)
        warn(f"skipped {len(unknown)} columns that are not features of the model: {names}")
    aligned = table
    if data is not table.data:
        aligned = replace(table, data=data, features=list(model.feature_names_in_))
    scale = getattr(model, "feature_scale_", None)
    # Names of features were compared above.
    with places_named(aligned, scale), warnings.catch_warnings(action="ignore"):
        codes, energies, outliers = encode_samples(model, data)
    sys.stdout.flush()
    with nullcontext(sys.stdout.buffer) if to_stdout else output_file(options.output) as file:
        columns = [*column_names(codes.shape[1]), "energy"]
        write_csv(file, "id", table.ids, columns, np.column_stack([codes, energies]), outliers)
    sys.stdout.flush()
    samples, features = table.data.shape
    if options.json:
        result = {"samples": samples, "features": features, "output": str(options.output)}
        result["outliers"] = [table.ids[int(i)] for i in outliers.nonzero()[0]]
        print(json.dumps({**result, **read_summary(table), "columns_not_in_model": unknown}))
    words = table.words
    say(f"codes of {samples} {words.sample}s, {int(outliers.sum())} of them outliers: "
        f"{options.output}")  # fmt: skip
    return 0


def _read_as_fitted(options: argparse.Namespace) -> None:
    """Choose the layer, ``.raw`` or dataset that the fit has read, unless the options choose one.

    Texts in doubt are read with the decimal mark of the fit.
    """
    try:
        record = json.loads(options.model.with_name("run.json").read_text(encoding="utf-8"))
        layer, raw, dataset = (record["options"][name] for name in ("layer", "raw", "dataset"))
        decimal = (record["input"]["text_format"] or {}).get("decimal")
    except (OSError, ValueError, LookupError, TypeError, AttributeError):  # no record of a fit
        return
    options.fitted_decimal = decimal if decimal in (".", ",") else None
    if options.raw or options.layer is not None or options.dataset is not None:
        return
    suffix = options.data.suffix.lower()
    if isinstance(dataset, str) and suffix in (".h5ad", ".h5", ".hdf5", ".npz"):
        options.dataset = dataset
        warn(f"reading dataset {dataset[:40]!r} as in the fit (run.json); --dataset reads another")
    elif (raw is True or isinstance(layer, str)) and suffix in (".h5ad", ".h5", ".hdf5"):
        from robustnmf.anndata import is_anndata_file

        if not is_anndata_file(options.data):
            return  # of Cell Ranger, which holds counts alone
        options.layer, options.raw = (None, True) if raw is True else (layer, False)
        warn(f"reading {'.raw' if options.raw else f'layer {layer[:40]!r}'} as in the fit "
             "(run.json); --layer X reads X")  # fmt: skip


def align_features(
    table: Table, model: BaseRobustNMF
) -> tuple[np.ndarray | csr_array | StoredRows, list[str]]:
    """Return the columns that are features of the model, in its order, and names of the others."""
    from robustnmf.tables import StoredRows, join_first

    names = getattr(model, "feature_names_in_", None)
    data = table.data
    # Repeated names are numbered alike.
    if names is None or not table.named or list(names) == list(table.features):
        return data, []
    ambiguous = [name for name in names if name in table.repeated]
    if ambiguous:
        raise ValueError(
            f"the table has several features that are called {ambiguous[0][:40]!r}, and its "
            "features or their order differ from those of the model, so they cannot be matched by "
            "name. Give them different names."
        )
    positions = {name: i for i, name in enumerate(table.features)}
    missing = [name for name in names if name not in positions]
    if missing:
        raise ValueError(
            f"{len(missing)} of the {len(names)} features of the model are not in the table: "
            f"{join_first(repr(name[:40]) for name in missing)}."
        )
    known = set(names)
    unknown = [name for name in table.features if name not in known]
    places = [positions[name] for name in names]
    return data.choose(places) if isinstance(data, StoredRows) else data[:, places], unknown
