"""``robustnmf transform``: compute codes and energies of new samples, and mark outliers."""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from robustnmf.cli._shared import (
    Commands,
    UsageError,
    add_reading,
    check_output,
    command,
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

DESCRIPTION = """Apply a model to new samples. Written is a CSV file with a line for each: how much
of every part it has, its energy (its distance from what the parts make of it), and whether it is
an outlier by the rule of the fit. Columns are matched by their names.
"""
EXAMPLES = """examples:
  robustnmf transform out/model.rnmf new.csv -o codes.csv
  robustnmf transform out/model.rnmf new.csv -o codes.csv --json
  robustnmf transform out/model.rnmf new.csv -o - | gzip > codes.csv.gz
"""


def add(commands: Commands) -> None:
    """Add the command and its options."""
    summary = "codes and energies of new samples, and whether they are outliers"
    parser = command(commands, "transform", summary, EXAMPLES, DESCRIPTION)
    parser.add_argument("model", type=Path, help="model.rnmf of robustnmf fit, or model.save(path)")
    add_reading(parser)
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE",
                        help='CSV file for the codes; "-" is standard output')  # fmt: skip
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Read the model and the table, compute codes and energies, write them, print a summary."""
    from robustnmf.estimators import load
    from robustnmf.report.files import output_file
    from robustnmf.report.fitted import encode_samples, read_summary, write_codes

    to_stdout = is_stdout(options.output)
    if to_stdout and options.json:
        raise UsageError("--json prints to standard output, where -o writes the codes to.")
    if not to_stdout:
        inputs = [options.data, options.model]
        check_output("--output", options.output, [options.output], inputs, force=options.force)
    model = load(options.model)
    if not hasattr(model, "transform"):
        raise ValueError(f"{options.model} is a {type(model).__name__}, which has no codes.")
    messages = sys.stderr if to_stdout else sys.stdout

    def say(text: str) -> None:
        if not options.json:
            print(text, file=messages)

    table = read(options, say)
    data, unknown = align_features(table, model)
    if unknown:
        first = ", ".join(repr(name[:40]) for name in unknown[:5])
        more = ", ..." if len(unknown) > 5 else ""
        warn(f"left out, no features of the model: {first}{more}")
    with places_named(table), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about names of features, which were compared above
        codes, energies, outliers = encode_samples(model, data)
    sys.stdout.flush()
    with nullcontext(sys.stdout.buffer) if to_stdout else output_file(options.output) as file:
        write_codes(file, table.ids, codes, energies, outliers)
    sys.stdout.flush()
    samples, features = table.data.shape
    if options.json:
        result = {"samples": samples, "features": features, "output": str(options.output)}
        result["outliers"] = [table.ids[int(i)] for i in outliers.nonzero()[0]]
        print(json.dumps({**result, **read_summary(table), "columns_not_in_model": unknown}))
    say(f"codes of {samples} samples, {int(outliers.sum())} of them outliers: {options.output}")
    return 0


def align_features(
    table: Table, model: BaseRobustNMF
) -> tuple[np.ndarray | csr_array | StoredRows, list[str]]:
    """Return the columns that are features of the model, in its order, and names of the others."""
    from robustnmf.tables import StoredRows

    names = getattr(model, "feature_names_in_", None)
    data = table.data
    if names is None or not table.named:
        return data, []
    if list(names) == list(table.features):  # repeated names are numbered alike
        return data, []
    ambiguous = [name for name in names if name in table.repeated]
    if ambiguous:
        raise ValueError(
            f"the table has several features that are called {ambiguous[0][:40]!r}, and not the "
            "same features in the same order as the model, so that it is not known which is which. "
            "Choose those of the model with --columns, or give them different names."
        )
    positions = {name: i for i, name in enumerate(table.features)}
    missing = [name for name in names if name not in positions]
    if missing:
        first = ", ".join(repr(name[:40]) for name in missing[:5])
        raise ValueError(
            f"{len(missing)} of the {len(names)} features of the model are not in the table: "
            f"{first}{', ...' if len(missing) > 5 else ''}."
        )
    known = set(names)
    unknown = [name for name in table.features if name not in known]
    places = [positions[name] for name in names]
    return data.choose(places) if isinstance(data, StoredRows) else data[:, places], unknown
