"""A fitted model with the table it was fitted to; its numbers, and tables of them as CSV."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import IO, Any

import numpy as np
from scipy.sparse import csr_array

from robustnmf.arrays import to_numpy
from robustnmf.estimators import RankSelection, RobustNMF
from robustnmf.estimators.base import BaseRobustNMF
from robustnmf.estimators.encoding import find_outliers
from robustnmf.files.page import display_name, format_percent
from robustnmf.tables import Table, count_missing, divide, is_number


@dataclass(frozen=True)
class Fit:
    """A fitted model with the table it was fitted to.

    ``selection`` holds the errors by which the rank was chosen, if it was. With ``scale``
    (features,) the data of the table are divided by it, and so are the components of the model.
    ``unscaled`` are the data before that, if they are to be written.
    ``color_by`` names the column that samples are coloured and grouped by. Arrays over all samples
    are computed once: the tables and the page read them for every sample.
    """

    model: RobustNMF
    table: Table
    codes: np.ndarray
    seconds: float
    image_shape: tuple[int, int] | None = None
    selection: RankSelection | None = None
    name: str = "data"
    scale: np.ndarray | None = None
    warnings: list[str] = field(default_factory=list)
    color_by: str | None = None
    unscaled: np.ndarray | csr_array | None = None
    holds_counts: bool = False

    @cached_property
    def components(self) -> np.ndarray:
        """The components (k, features) in the units of the file."""
        components = np.asarray(self.model.components_)
        return components if self.scale is None else components * self.scale

    @cached_property
    def weights(self) -> np.ndarray:
        """Weight of every sample over the largest (n_samples,).

        Importances also have a factor for the share of known values, which does not depend on how
        well a sample is described; it is divided out.
        """
        known = self.table.data.shape[1] - self.missing
        weights = np.asarray(self.model.sample_importances_) / np.maximum(known, 1)
        return weights / max(float(weights.max()), np.finfo(float).tiny)

    @cached_property
    def missing(self) -> np.ndarray:
        """Number of missing values of every sample (n_samples,)."""
        return count_missing(self.table.data)

    @cached_property
    def outliers(self) -> np.ndarray:
        """Whether a sample is an outlier (n_samples,); blank samples are not."""
        return np.asarray(self.model.outliers_) & ~self.blank

    @cached_property
    def cutoffs(self) -> np.ndarray | None:
        """Energy above which each sample has less weight (n_samples,), if the weighting has one.

        Small samples can have lower cutoffs than others.
        """
        model, data = self.model, self.table.data
        if not model.weighting_.uses_row_sizes:
            return None
        with warnings.catch_warnings(action="ignore"):  # names of features are those of the fit
            source = model._checked(data)
        sizes = model._engine(source).row_sizes(model._problem.loss.degree)
        return np.asarray(model.weighting_.for_row_sizes(to_numpy(sizes) * model._unit).cutoff)

    @cached_property
    def blank(self) -> np.ndarray:
        """Whether a sample is all zeros or missing values (n_samples,): any components fit it."""
        model = self.model
        has_no_weight = (model.sample_importances_ <= 0) & ~np.asarray(model.outliers_)
        has_no_codes = np.abs(np.asarray(self.codes)).sum(axis=1) == 0
        return (model.energies_ <= 0) | has_no_weight & has_no_codes

    @cached_property
    def order(self) -> np.ndarray:
        """Indices of the samples, outliers first, the most outlying of them first (n_samples,)."""
        weights = np.round(self.weights, 6)  # equal ones differ by rounding
        return np.lexsort((-self.model.energies_, weights, ~self.outliers, self.blank))

    @property
    def missing_text(self) -> str:
        """How many values are missing, in words."""
        count, size = int(self.missing.sum()), math.prod(self.table.data.shape)
        share = f" ({format_percent(count / size)})" if count else ""
        return f"{count:,} of {size:,} values are missing{share}"

    @property
    def component_names(self) -> list[str]:
        """What the components are called on the page: numbered from one, as in the files."""
        word = self.table.words.component
        return [f"{word} {j + 1}" for j in range(len(self.model.components_))]

    def feature_name(self, feature: int) -> str:
        """Return the name of a feature as pages show it; those without one are numbered."""
        name = display_name(self.table.features[feature])
        return name if self.table.named else f"{self.table.words.feature} {name}"

    def component_shares(self, indices: np.ndarray) -> np.ndarray:
        """Return the share of each component in the approximations of samples (len(indices), k).

        These are the codes for components that sum to one, normalised to sum to one per sample.
        """
        components = np.asarray(self.model.components_, dtype=float)
        amounts = np.asarray(self.codes[indices], dtype=float) * components.sum(axis=1)
        totals = amounts.sum(axis=1, keepdims=True)
        return amounts / np.where(totals > 0, totals, 1.0)


def summary(fit: Fit) -> dict[str, Any]:
    """Return the numbers of a fit that ``robustnmf fit --json`` prints."""
    model, (samples, features) = fit.model, fit.table.data.shape
    return {
        "samples": int(samples),
        "features": int(features),
        "components": int(model.components_.shape[0]),
        "iterations": int(model.n_iter_),
        "objective": float(model.objective_history_[-1]),
        "effective_sample_size": float(model.effective_sample_size_),
        "blank": int(fit.blank.sum()),
        "missing_values": int(fit.missing.sum()),
        "counts": fit.holds_counts,
        "loss": str(model.loss),
        "outliers": [fit.table.ids[i] for i in fit.order[: fit.outliers.sum()]],
        "seconds": round(fit.seconds, 3),
        **read_summary(fit.table),
    }


def read_summary(table: Table) -> dict[str, Any]:
    """Return the facts about how a table was read that ``--json`` prints."""
    return {
        "columns_left_out": table.left_out,
        "cells_made_missing": table.made_missing,
        "short_lines": len(table.short_lines),
        "text_format": table.text_format,
        "place": table.place,
        "notes": list(table.notes),
    }


def encode_samples(model: BaseRobustNMF, data: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return codes (n, k), energies (n,) and whether samples are outliers (n,), in one pass.

    Features are divided by the scale of the fit, if it had one.
    """
    scale = getattr(model, "feature_scale_", None)
    if scale is not None:
        is_array = isinstance(scale, np.ndarray) and scale.shape == (model.n_features_in_,)
        if not is_array or scale.dtype.kind != "f" or not ((scale > 0) & np.isfinite(scale)).all():
            raise ValueError("the model has scales of features that are not positive numbers.")
        if data.shape[1] != len(scale):
            raise ValueError(
                f"the table has {data.shape[1]} features, but the model has {len(scale)}."
            )
        data = divide(data, scale)
    codes, energies, sizes = (to_numpy(found) for found in model._measure(data)[:3])
    return codes, energies, find_outliers(model, energies, sizes)


def write_csv(
    file: IO[bytes],
    label: str,
    names: Iterable[str],
    columns: Sequence[str],
    array: np.ndarray,
    outliers: np.ndarray | None = None,
) -> None:
    """Write rows as CSV: a name (headed by ``label``), numbers (n, m), whether it is an outlier.

    Numbers have as many digits as their precision needs.
    """
    import pandas

    array = np.asarray(array)
    index = pandas.Index([escape_formula(name) for name in names], name=label)
    frame = pandas.DataFrame(array, index, [escape_formula(name) for name in columns])
    if outliers is not None:
        frame["outlier"] = outliers.astype(int)
    digits = "%.9g" if array.dtype == np.float32 else None
    frame.to_csv(file, na_rep="nan", float_format=digits, lineterminator="\r\n")


def column_names(count: int) -> list[str]:
    """Return the names of components in files."""
    return [f"component{j + 1}" for j in range(count)]


def escape_formula(text: str) -> str:
    """Return a name for a CSV file that spreadsheets do not interpret as a formula."""
    is_risky = bool(text) and text[0] in "=+-@\t\r\n"
    return f"'{text}" if is_risky and not is_number(text) else text
