"""``robustnmf transform``: what a model makes of new samples."""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path
from typing import Any

from robustnmf.cli._shared import add_reading, command, read

EXAMPLES = """examples:
  robustnmf transform out/model.rnmf new.csv -o codes.csv
  robustnmf transform out/model.rnmf new.csv -o codes.csv --json
"""


def add(commands: Any) -> None:
    """The command and its options."""
    parser = command(commands, "transform", "codes and energies of new samples", EXAMPLES)
    parser.add_argument("model", type=Path, help="model.rnmf of robustnmf fit, or model.save(path)")
    add_reading(parser)
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE",
                        help="CSV file for the codes")  # fmt: skip
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Read, encode, write, tell."""
    import robustnmf
    from robustnmf.report.files import write_whole
    from robustnmf.report.fitted import codes_csv

    model = robustnmf.load(options.model)
    if not hasattr(model, "transform"):
        raise ValueError(f"{options.model} is a {type(model).__name__}, which has no codes.")
    if options.output.is_dir():
        raise ValueError(f"--output is {options.output}, a folder; a file is needed.")
    table = read(options)
    if not options.json:
        for note in table.notes:
            print(f"  {note}")
    data = aligned(table, model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names, which were compared
        content = codes_csv(table.ids, model.transform(data), 0.0 - model.score_samples(data))
    write_whole(options.output, content)
    samples, features = table.data.shape
    if options.json:
        told = {"samples": samples, "features": features, "output": str(options.output)}
        print(json.dumps(told))
    else:
        print(f"codes of {samples} samples: {options.output}")
    return 0


def aligned(table: Any, model: Any) -> Any:
    """The columns that the model knows, in its order."""
    names = getattr(model, "feature_names_in_", None)
    if names is None or not table.named:
        return table.data
    several = [name for name in names if name in table.repeated]
    if several:
        raise ValueError(f"the table has several features that are called {several[0][:40]!r}.")
    place = {name: i for i, name in enumerate(table.features)}
    missing = [name for name in names if name not in place]
    if missing:
        shown = ", ".join(repr(name[:40]) for name in missing[:5])
        raise ValueError(
            f"{len(missing)} of the {len(names)} features of the model are not in the table: "
            f"{shown}{', ...' if len(missing) > 5 else ''}."
        )
    return table.data[:, [place[name] for name in names]]
