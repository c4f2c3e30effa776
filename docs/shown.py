"""Tables and pictures that README and the pages show, made from result files and registries.

    python docs/shown.py              # from results/paper, results/contamination, results/pictures
    python docs/shown.py --measure    # run the demo and a fit first (a minute; needs Chromium)

A table lies between ``<!-- begin NAME -->`` and ``<!-- end NAME -->`` (``.. begin NAME`` and
``.. end NAME`` in reStructuredText); what is between them is written here and nowhere else. A
picture carries a digest of the files it was drawn from. ``tests/docs/test_shown.py`` compares what
is shown with the result files.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import re
import shutil
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).resolve().parent))

from parts import reference_of_losses_and_structures, reference_of_weightings, weightings_table

from robustnmf.experiments.contamination.cells import Summary, means
from robustnmf.experiments.contamination.judge import Score
from robustnmf.experiments.contamination.samples import LAYOUT
from robustnmf.experiments.contamination.scenario import Scenario
from robustnmf.experiments.contamination.study import Row

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "results"
IMAGES = ROOT / "docs" / "images"
DIGEST = "Digest"
SCREEN = 1200, 1900
"""Pixels of the page that the picture of a report shows."""

Table = tuple[list[str], list[list[str]]]


def read_csv(path: Path) -> Table:
    """Header and rows."""
    with path.open(newline="") as file:
        header, *rows = csv.reader(file)
    return header, rows


def markdown(header: list[str], rows: list[list[str]]) -> str:
    """A table."""
    lines = [header, ["---"] * len(header), *rows]
    # Pairs of numbers are not broken into two lines.
    cells = [[cell.replace(" / ", "\u00a0/\u00a0") for cell in line] for line in lines]
    return "\n".join("| " + " | ".join(line) + " |" for line in cells)


def demo_table() -> str:
    """Methods on corrupted digits."""
    _, rows = read_csv(RESULTS / "pictures" / "demo.csv")
    names = {"EucNMF on clean": "plain NMF on clean samples only", "EucNMF": "`EucNMF` (plain NMF)"}
    shown = [[names.get(name, f"`{name}`"), *numbers] for name, *numbers in rows]
    return markdown(
        ["method", "clean error", "AUROC of corrupted samples", "effective samples"], shown
    )


DETECTORS_SHOWN = {
    "IsolationForest, plain NMF": "isolation forest",
    "LocalOutlierFactor, plain NMF": "local outlier factor",
    "IsolationForest given the share of bad samples, plain NMF": "isolation forest, known share",
}
"""By the name of a method in the result files: its head of a column, without "plain NMF"."""


def real_table() -> str:
    """Errors of the default and of what a user would do without it, on real tables held out."""
    header, rows = read_csv(RESULTS / "real" / "errors.csv")
    return markdown([DETECTORS_SHOWN.get(name, name) for name in header], rows)


def constants_table() -> str:
    """Every constant of the decision at half and at twice its value."""
    return markdown(*read_csv(RESULTS / "real" / "constants.csv"))


def real_entries_table() -> str:
    """Errors of held-out samples of real tables with bad entries, one row for each method."""
    header, rows = read_csv(RESULTS / "real_entries" / "errors.csv")
    names = {"plain NMF, told the bad entries": "plain NMF, corrupted entries marked as missing"}
    return markdown(
        ["method", *(row[0] for row in rows)],
        [*zip([names.get(n, n) for n in header[1:]], *(row[1:] for row in rows), strict=True)],
    )


def before_and_after() -> str:
    """The release without screening, as it was measured then, beside today's results."""
    before = {
        "tuned": ["49.4 / 685", "15.1 / 63.1", "6.66 / 55.0", "14.1%"],
        "held_out": ["29.4 / 1098", "4.44 / 39.8", "5.86 / 48.0", "10.9%"],
    }
    rows = []
    for part, old in before.items():
        name = part.replace("_", " ")
        rows.append([f"{name}, before", *old])
        rows.append([f"{name}, after, the same tables", *without_few_samples(name), ""])
        new = mean_and_worst(f"errors_{part}")["RobustNMF"]
        rows.append([f"{name}, after, all tables", *new, lost_when_clean(part)])
    header = [
        "`RobustNMF(k)`", "clean", "5 to 20% corrupted", "30 to 40% corrupted",
        "good samples left out, clean",
    ]  # fmt: skip
    return markdown(header, rows)


def without_few_samples(part: str) -> list[str]:
    """Mean and worst error of RobustNMF by share of bad samples, without tables of few samples.

    The benchmark did not have these when "before" was measured.
    """
    header, lines = read_csv(RESULTS / "contamination" / "scores.csv")
    rows: list[Row] = []
    for line in lines:
        cells = dict(zip(header, line, strict=True))
        if cells["method"] != LAYOUT.ours or cells["dataset"].startswith("few_"):
            continue
        scenario = Scenario(
            cells["dataset"], cells["corruption"], float(cells["share"]), int(cells["seed"]),
            int(cells["rank"]),
        )  # fmt: skip
        errors = float(cells["relative_error"]), float(cells["geometric_error"])
        rows.append((scenario, Score(LAYOUT.ours, *errors)))
    cells_of_part = means(LAYOUT.parts(rows)[part], LAYOUT.ours, LAYOUT.error)
    summaries = [Summary.of(band.of(cells_of_part)) for band in LAYOUT.bands]
    return [f"{summary.mean:.3f} / {summary.worst:.3g}" for summary in summaries]


def grids_sentence() -> str:
    """The best of the paper's grids on the earlier benchmark."""
    _, rows = read_csv(RESULTS / "contamination" / "grids" / "errors_held_out.csv")
    of_grids = [row for row in rows if row[0].endswith("best of grid")]
    name, clean, few, many = min(of_grids, key=lambda row: float(row[2].split(" / ")[0]))
    method = name.removesuffix(" best of grid")
    return f"The best of them is {method}: {clean} (clean), {few} (5 to 20%), {many} (30 to 40%)."


def mean_and_worst(name: str) -> dict[str, list[str]]:
    """Of every method, by share of bad samples; between them the files have a percentile."""
    _, rows = read_csv(RESULTS / "contamination" / f"{name}.csv")
    return {method: [_ends(cell) for cell in cells] for method, *cells in rows}


def _ends(cell: str) -> str:
    first, *_, last = cell.split(" / ")
    return f"{first} / {float(last):.3g}"


def lost_when_clean(part: str) -> str:
    """Share of the good samples of clean tables that have no weight, mean over tables."""
    _, rows = read_csv(RESULTS / "contamination" / f"lost_{part}.csv")
    return {row[0]: row[1] for row in rows}["RobustNMF"].split(" / ")[0]


def accuracy_table() -> str:
    """Table 2 beside the paper's, with one column of the table without labels."""
    header, rows = read_csv(RESULTS / "paper" / "table2.csv")
    _, without = read_csv(RESULTS / "paper" / "table2_without_labels.csv")
    last = header.index("EWRNMF")
    shown = []
    for row, other in zip(rows, without, strict=True):
        cells = [_ours_and_theirs(cell) for cell in row[1 : last + 1]]
        shown.append([row[0], *cells, _ours_and_theirs(other[last]).split(" (")[0], row[-1]])
    head = ["ACC, ours (paper's)", *header[1 : last + 1], "EWRNMF without labels", header[-1]]
    return f"{markdown(head, shown)}\n\n{accuracy_notes()}"


def _ours_and_theirs(cell: str) -> str:
    """``39.76 ± 2.06³ (39.82, -0.06)`` without the deviation and the difference."""
    found = re.fullmatch(r"(\S+) ± [\d.]+(\D*) \((\S+), \S+\)", cell)
    assert found is not None, cell
    return f"{found[1]}{found[2]} ({found[3]})"


def accuracy_notes() -> str:
    """What the marks mean, and what the table amounts to."""
    lines = (RESULTS / "paper" / "tables.md").read_text().splitlines()
    marks = list(dict.fromkeys(line for line in lines if line[:1] in ("¹", "²", "³")))
    told = [line.removeprefix("- ACC: ") for line in lines if line.startswith("- ACC: ")]
    notes = "; ".join(line for line in marks if f"{line[0]}" in _marks_in_table2())
    return f"{notes}.\n\n" + "\n".join(f"* {line}" for line in told)


def _marks_in_table2() -> str:
    return (RESULTS / "paper" / "table2.csv").read_text()


def fits_sentence() -> str:
    """How many fits are behind the tables and figures, and on what they ran."""
    run = json.loads((RESULTS / "paper" / "run.json").read_text())
    parts = [
        f"{found['fits']:,} fits on {machine} ({found['seconds']:,.0f} s of fitting)"
        for machine, found in run["fitting"].items()
    ]
    return f"{'; '.join(parts)}. Code {run['code']}, {run['date']}."


def weightings() -> str:
    """All weightings, with the weight that they give to a sample."""
    header = ["weighting", "weight of a sample with reconstruction error $z_i$", "use it for"]
    return markdown(header, weightings_table())


def cells_table() -> str:
    """The benchmark of gene programs, a row for each table and method."""
    rows = json.loads((ROOT / "benchmarks" / "results" / "cells.json").read_text())["rows"]
    names = "cells x genes", "method", "runs", "cores", "seconds", "processor", "found (cosine)"
    lines = [f"| {' | '.join(names)} | Rand index |", "|---" * (len(names) + 1) + "|"]
    for row in rows:
        shape = " x ".join(f"{size:,}" for size in row["shape"])
        found = "(not known)"
        if "recovered" in row:
            found = f"{min(row['recovered'])} of 20 ({min(row['mean cosine']):.3f})"
        wall, processor = (median(row[name]) for name in ("seconds", "processor seconds"))
        lines.append(
            f"| {shape}{', 5% damaged' if 'damaged' in row['table'] else ''} | {row['method']} | "
            f"{row['runs']} | {row['processor'].split()[-1]} | {wall:.3g} | {processor:.3g} | "
            f"{found} | {min(row['Rand index']):.2f} |"
        )
    return "\n".join(lines)


BLOCKS: dict[str, tuple[str, Callable[[], str]]] = {
    "demo": ("docs/about.md", demo_table),
    "accuracy": ("docs/reproduction.md", accuracy_table),
    "real": ("docs/robustness.md", real_table),
    "constants": ("docs/tried.md", constants_table),
    "real-entries": ("docs/robustness.md", real_entries_table),
    "before-and-after": ("docs/tried.md", before_and_after),
    "grids": ("docs/tried.md", grids_sentence),
    "cells": ("docs/guide/consensus.md", cells_table),
    "fits": ("docs/reproduction.md", fits_sentence),
    "weightings": ("docs/guide/methods.md", weightings),
    "reference-weightings": ("docs/reference.rst", reference_of_weightings),
    "reference-losses-structures": ("docs/reference.rst", reference_of_losses_and_structures),
}
"""By name: the page, and what makes the text between its marks."""


def pattern(name: str) -> re.Pattern[str]:
    """Where a block is in its page."""
    begin, end = (rf"(?:<!-- {mark} {name} -->|\.\. {mark} {name})" for mark in ("begin", "end"))
    return re.compile(rf"({begin}\n).*?({end})(?=\n|$)", re.DOTALL)


def write_blocks() -> None:
    """Write all blocks into their pages."""
    for name, (page, make) in BLOCKS.items():
        path = ROOT / page
        text, inside = path.read_text(), make()
        new, count = pattern(name).subn(
            lambda found, inside=f"\n{inside}\n\n": found[1] + inside + found[2], text
        )
        if count != 1:
            raise ValueError(f"{page} has {count} blocks named {name}; there must be one.")
        path.write_text(new)


def draw_reproduction() -> bytes:
    """Accuracy of every method beside the paper's, a panel for each dataset."""
    from matplotlib.figure import Figure

    header, rows = read_csv(RESULTS / "paper" / "table2.csv")
    methods = header[1:-1]
    figure = Figure(figsize=(11, 7.5), layout="constrained")
    for axes, row in zip(figure.subplots(3, 3).flat, rows, strict=True):
        for at, cell in enumerate(row[1:-1]):
            found = re.fullmatch(r"(\S+) ± ([\d.]+)\D* \((\S+), \S+\)", cell)
            assert found is not None, cell
            ours, deviation, published = map(float, found.groups())
            axes.errorbar(at, ours, deviation, fmt="o", color="tab:blue", capsize=3, label="ours")
            axes.plot(at, published, "x", color="tab:red", ms=8, mew=2, label="paper")
        axes.axhline(float(row[-1]), color="gray", lw=1, ls=":", label="largest class")
        axes.set_title(row[0], fontsize=10, loc="left")
        axes.set_xticks(range(len(methods)), methods, rotation=30, ha="right", fontsize=7)
        axes.tick_params(axis="y", labelsize=8)
        axes.margins(x=0.1)
    handles, labels = axes.get_legend_handles_labels()
    first = {label: handle for handle, label in zip(handles, labels, strict=True)}
    figure.legend(first.values(), first.keys(), loc="outside upper right", ncols=3, frameon=False)
    figure.suptitle("Clustering accuracy in percent (mean and deviation of ten starts)", x=0.3)
    return as_png(figure)


SAMPLES_BEFORE = {
    "plain NMF": ("plain NMF", "s", "tab:red"),
    "LocalOutlierFactor, plain NMF": ("local outlier factor, then plain NMF", "v", "tab:brown"),
    "IsolationForest, plain NMF": ("isolation forest, then plain NMF", "^", "tab:green"),
    "RobustNMF": ("RobustNMF(k)", "o", "tab:blue"),
}
ENTRIES_BEFORE = {
    "plain NMF": ("plain NMF", "s", "tab:red"),
    "truncated Cauchy NMF": ("truncated Cauchy NMF", "P", "tab:purple"),
    "rNMF": ("rNMF (sparse outliers)", "X", "tab:pink"),
    "winsorised, plain NMF": ("clipped at Tukey's fences, then plain NMF", "v", "tab:brown"),
    "Tukey's inner fences as NaN, plain NMF": (
        "missing beyond Tukey's fences, then plain NMF", "^", "tab:green",
    ),
    "RobustNMF truncated": ('RobustNMF(k, loss="truncated")', "o", "tab:blue"),
}  # fmt: skip
"""By the name of a method in the result files: its label, marker and colour."""


def draw_real() -> bytes:
    """Errors on real tables held out, a row for each scenario and a panel for each benchmark."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.2, 6.2), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1, 1))
    _draw_errors(left, "real", SAMPLES_BEFORE, "Corrupted samples", 2.05)
    _draw_errors(right, "real_entries", ENTRIES_BEFORE, "Corrupted entries", 3.3)
    return as_png(figure)


def _draw_errors(axes, folder: str, methods: dict, title: str, largest: float) -> None:
    """Draw the geometric means of a benchmark, from the cleanest scenario down."""
    header, rows = read_csv(RESULTS / folder / "errors.csv")
    rows = sorted((row for row in rows if not row[0].startswith("mean")), key=_percent)
    for at, row in enumerate(rows):
        axes.axhline(at, color="0.9", lw=1, zorder=0)
        for name, (label, marker, colour) in methods.items():
            error = float(row[header.index(name)].partition(" / ")[0])
            axes.plot(error, at, marker, color=colour, ms=7, label=label if at == 0 else None)
    axes.axvline(1, color="0.5", lw=1, ls=":", zorder=0)
    axes.set_yticks(range(len(rows)), [row[0] for row in rows])
    axes.invert_yaxis()
    axes.set(title=title, xlim=(0.97, largest), xlabel="error (1 = plain NMF of clean data)")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=1, frameon=False)


def _percent(row: list[str]) -> int:
    """How much of a table is corrupted in the scenario of a row."""
    found = re.search(r"(\d+)%", row[0])
    return int(found[1]) if found else 0


def as_png(figure) -> bytes:
    """A figure as a file."""
    buffer = BytesIO()
    figure.savefig(buffer, format="png", dpi=100)
    return buffer.getvalue()


PICTURES: dict[str, tuple[tuple[str, ...], Callable[[], bytes] | None]] = {
    "demo.png": (("pictures/demo.csv",), None),
    "swimmer.png": (("pictures/swimmer.csv",), None),
    "report.png": (("pictures/fit.csv",), None),
    "reproduction.png": (("paper/table2.csv",), draw_reproduction),
    "real.png": (("real/errors.csv", "real_entries/errors.csv"), draw_real),
}
"""By name: the result files a picture is drawn from, and what draws it (or ``--measure`` does)."""


def digest_of(names: tuple[str, ...]) -> str:
    """Digest of result files."""
    content = b"\0".join((RESULTS / name).read_bytes() for name in names)
    return hashlib.sha256(content).hexdigest()


def with_digest(png: bytes, digest: str) -> bytes:
    """A PNG with a digest in a text chunk, right before its end."""
    body = DIGEST.encode() + b"\0" + digest.encode()
    checksum = zlib.crc32(b"tEXt" + body)
    chunk = struct.pack(">I", len(body)) + b"tEXt" + body + struct.pack(">I", checksum)
    return png[:-12] + chunk + png[-12:]


def digest_in(png: bytes) -> str | None:
    """The digest that a PNG carries."""
    for kind, body in _chunks(png):
        if kind == b"tEXt" and body.startswith(DIGEST.encode() + b"\0"):
            return body.partition(b"\0")[2].decode()
    return None


def _chunks(png: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = 8
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        yield png[at + 4 : at + 8], png[at + 8 : at + 8 + length]
        at += length + 12


def write_picture(name: str, png: bytes) -> None:
    """Write a picture with the digest of the files it was drawn from."""
    (IMAGES / name).write_bytes(with_digest(png, digest_of(PICTURES[name][0])))


def write_pictures() -> None:
    """Draw what is not up to date; the same data draw the same picture."""
    for name, (files, draw) in PICTURES.items():
        path = IMAGES / name
        if path.exists() and digest_in(path.read_bytes()) == digest_of(files):
            continue
        if draw is None:
            raise ValueError(f"{name} is not of today's {files[0]}: run with --measure.")
        write_picture(name, draw())


def measure() -> None:
    """Run the demo, and fit a table; both are the same every time but for rounding."""
    from robustnmf.experiments.demo import fit_figures, run
    from robustnmf.experiments.demo_page import (
        HEADER,
        SWIMMER_HEADER,
        cells,
        picture,
        swimmer_cells,
        swimmer_picture,
    )

    demo = run()
    folder = RESULTS / "pictures"
    folder.mkdir(parents=True, exist_ok=True)
    # Seconds and iterations are not shown.
    write_csv(folder / "demo.csv", list(HEADER[:4]), [list(cells(row)[:4]) for row in demo.rows])
    write_picture("demo.png", picture(demo))
    figures, learned = fit_figures()
    found = [list(swimmer_cells(figures, method)) for method in learned]
    write_csv(folder / "swimmer.csv", list(SWIMMER_HEADER), found)
    # Two rows of components are enough.
    shown = [method for method in learned if "uniform" not in method.method]
    write_picture("swimmer.png", swimmer_picture(figures, shown))
    with TemporaryDirectory() as place:
        fit_wine(Path(place))
        (folder / "fit.csv").write_bytes((Path(place) / "out" / "basis.csv").read_bytes())
        write_picture("report.png", screenshot(Path(place) / "out" / "report.html"))


def fit_wine(folder: Path) -> None:
    """Fit scikit-learn's wine data from the shell, into ``out`` of a folder."""
    from sklearn.datasets import load_wine

    from robustnmf.cli import main as run_command

    wine = load_wine(as_frame=True)
    frame = wine.frame.rename(columns={"target": "class"})
    frame["class"] = wine.target_names[wine.target]
    frame.to_csv(folder / "wine.csv", index=False)
    options = ["-k", "auto", "--color-by", "class", "--quiet"]
    run_command(["fit", str(folder / "wine.csv"), "-o", str(folder / "out"), *options])


def screenshot(page: Path) -> bytes:
    """The top of a page, as Chromium shows it."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        raise RuntimeError("the picture of the report needs Chromium.")
    target = page.with_suffix(".png")
    flags = ["--headless", "--no-sandbox", "--hide-scrollbars", "--virtual-time-budget=20000"]
    size = f"--window-size={','.join(map(str, SCREEN))}"
    command = [chromium, *flags, size, f"--screenshot={target}", page.as_uri()]
    subprocess.run(command, check=True, capture_output=True)
    return target.read_bytes()


def write_csv(path: Path, header: list[str], rows: list[list[str]]) -> None:
    """Write a table."""
    with path.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])


def main() -> None:
    """Write everything."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--measure", action="store_true", help="run the demo and the fit first")
    if parser.parse_args().measure:
        measure()
    write_blocks()
    write_pictures()


if __name__ == "__main__":
    main()
