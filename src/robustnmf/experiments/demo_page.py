"""Write the results of the demo as a table, a picture and a page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from robustnmf.experiments.demo import FOUND, RANK, SHAPE, SHARE, SIDE, Demo, Figures, Learned, Row
from robustnmf.files.output import write_whole
from robustnmf.files.page import Content, Paragraph, Picture, Table, figure_bytes, page

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HEADER = ("method", "clean error", "AUROC", "eff. samples", "seconds", "iterations")
EXPLANATION = (
    f"scikit-learn's digits with {SHARE:.0%} of the samples corrupted: noise, shuffled pixels, "
    f"a bright block; {RANK} components. The clean error is the squared error of the clean samples "
    "with the components learned from all samples, relative to plain NMF fitted to the clean "
    "samples only. AUROC shows how well the energies separate corrupted from clean samples. Eff. "
    "samples is the effective sample size of the weights."
)
MAX_IMAGES = 8
SWIMMER_HEADER = ("method", "mean cosine", "limbs found", "left out", "of them bad")
SWIMMER_EXPLANATION = (
    f"256 stick figures with {SHARE:.0%} of them replaced by noise; every figure is a sum of four "
    "of 16 limbs. The mean cosine compares each component with the limb that it matches best. A "
    f"limb is found if its cosine is at least {FOUND}. Samples that RobustNMF gives no weight are "
    "left out."
)


def cells(row: Row) -> tuple[str, ...]:
    """Return a row of the table as texts."""
    return (
        row.method,
        f"{row.relative_error:.3f}",
        f"{row.auroc:.3f}",
        f"{row.model.effective_sample_size_:.0f}",
        f"{row.seconds:.2f}",
        f"{row.model.n_iter_}",
    )


def swimmer_cells(figures: Figures, learned: Learned) -> tuple[str, ...]:
    """Return a row of the table of figures as texts."""
    found = int((learned.cosines >= FOUND).sum())
    scores = learned.method, f"{learned.cosines.mean():.2f}", f"{found} of {len(learned.cosines)}"
    if learned.left_out is None:
        return (*scores, "", "")
    return (*scores, f"{learned.left_out.sum()}", f"{(learned.left_out & figures.bad).sum()}")


def write(demo: Demo, figures: Figures, learned: list[Learned], folder: Path) -> tuple[Path, Path]:
    """Write the picture and the page; return their paths."""
    png = picture(demo)
    rows = [swimmer_cells(figures, method) for method in learned]
    content: list[Content] = [
        Paragraph(SWIMMER_EXPLANATION),
        Table(SWIMMER_HEADER, rows, "Three methods on figures with noise"),
        Picture(swimmer_picture(figures, learned), "Figures, and the components of each method"),
        Paragraph(EXPLANATION),
        Table(HEADER, [cells(row) for row in demo.rows], "All methods on the corrupted digits"),
        Picture(png, "Corrupted samples, components, importances and objectives of all methods"),
        *(Paragraph(f"{row.method}: {text}") for row in demo.rows for text in row.warnings),
    ]
    paths = folder / "demo.png", folder / "report.html"
    write_whole(paths[0], png)
    write_whole(paths[1], page("robustnmf: the effect of 20% corrupted samples", content).encode())
    return paths


def picture(demo: Demo) -> bytes:
    """Draw basis images, importances and the objective of each method as PNG."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 1.35 * (len(demo.rows) + 1)), layout="constrained")
    grid = figure.add_gridspec(len(demo.rows) + 1, 3, width_ratios=(4, 2, 2))
    _images(figure.add_subplot(grid[0, 0]), demo.spoiled[demo.bad][::45], "corrupted samples")
    _images(figure.add_subplot(grid[0, 1:]), demo.spoiled[~demo.bad][::180], "clean samples")
    for i, row in enumerate(demo.rows, start=1):
        title = f"{row.method}: clean error {row.relative_error:.3f}"
        _images(figure.add_subplot(grid[i, 0]), row.model.components_, title)
        importances, history = row.model.sample_importances_, row.model.objective_history_
        only_clean = len(importances) != len(demo.bad)
        bad = np.zeros(len(importances), dtype=bool) if only_clean else demo.bad
        _importances(figure.add_subplot(grid[i, 1]), importances, bad, legend=i == 2)
        _objective(figure.add_subplot(grid[i, 2]), history)
    return figure_bytes(figure)


def swimmer_picture(figures: Figures, learned: list[Learned]) -> bytes:
    """Draw samples, and below them the components of every method, as PNG.

    Components that match no limb have a red frame.
    """
    from matplotlib.figure import Figure

    count = len(figures.parts)
    bad = np.flatnonzero(figures.bad)[: count // 4]
    good = np.flatnonzero(~figures.bad)[:: len(figures.X) // count][: count - len(bad)]
    samples = figures.X[np.concatenate([bad, good])]
    rows = [("samples, some of them noise", samples, np.ones(count))]
    for method in learned:
        title = f"{method.method}: mean cosine with the true limbs {method.cosines.mean():.2f}"
        rows.append((title, method.parts, method.cosines))
    figure = Figure(figsize=(12, 1.15 * len(rows)), layout="constrained")
    strips = np.atleast_1d(np.asarray(figure.subfigures(len(rows))))
    for strip, (title, images, cosines) in zip(strips, rows, strict=True):
        strip.suptitle(title, fontsize=9, x=0.003, ha="left")
        for axes, image, cosine in zip(strip.subplots(1, count), images, cosines, strict=True):
            axes.imshow(image.reshape(SIDE, SIDE), cmap="gray_r", interpolation="nearest")
            axes.set(xticks=[], yticks=[])
            for spine in axes.spines.values():
                is_found = cosine >= FOUND
                spine.set(color="0.8" if is_found else "tab:red", lw=1 if is_found else 2)
    return figure_bytes(figure)


def _images(axes: Axes, rows: np.ndarray, title: str) -> None:
    """Draw the first rows (n, pixels) as images side by side."""
    images = [row.reshape(SHAPE) / max(row.max(), 1e-300) for row in rows[:MAX_IMAGES]]
    strip = np.concatenate([np.pad(image, 1, constant_values=0.5) for image in images], axis=1)
    axes.imshow(strip, cmap="gray_r", interpolation="nearest")
    axes.set_title(title, fontsize=9, loc="left")
    axes.set_axis_off()


def _importances(axes: Axes, importances: np.ndarray, bad: np.ndarray, *, legend: bool) -> None:
    """Draw the histogram of importances relative to an equal share."""
    relative = np.log10(np.maximum(importances * len(importances), 1e-6))
    bins = np.linspace(min(-1.0, relative.min()), max(0.5, relative.max()), 41).tolist()
    for mask, color, label in ((~bad, "tab:blue", "clean"), (bad, "tab:red", "corrupted")):
        if mask.any():
            axes.hist(relative[mask], bins, color=color, alpha=0.6, label=label, density=True)
    axes.set_title("importance / equal share (log10)", fontsize=8, loc="left")
    axes.set_yticks([])
    axes.tick_params(labelsize=7)
    if legend:
        axes.legend(fontsize=7, frameon=False)


def _objective(axes: Axes, history: np.ndarray) -> None:
    """Draw the objective less its last value, so that every method fits one scale."""
    above = history - history[-1]
    axes.semilogy(np.maximum(above[:-1] / max(above[0], 1e-300), 1e-8), color="tab:green")
    axes.set_title("objective above its end", fontsize=8, loc="left")
    axes.tick_params(labelsize=7)
