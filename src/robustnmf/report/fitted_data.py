"""A fitted model with the table it was fitted to."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from robustnmf.arrays import to_numpy
from robustnmf.report.names import display_name, format_percent
from robustnmf.tables import count_missing

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from robustnmf.estimators import RankSelection, RobustNMF
    from robustnmf.tables import Table


@dataclass(frozen=True)
class Fit:
    """A fitted model with the table it was fitted to.

    ``selection`` holds the errors by which the rank was chosen, if it was. With ``scale``
    (features,) the data of the table are divided by it, and so are the components of the model.
    ``unscaled`` are the data before that, if they are to be written.
    ``color_by`` names the column that samples are coloured by. Arrays over all samples are computed
    once: the tables and the page read them for every sample.
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

    @cached_property
    def components(self) -> np.ndarray:
        """The components (k, features) in the units of the file."""
        components = np.asarray(self.model.components_)
        return components if self.scale is None else components * self.scale

    @cached_property
    def weights(self) -> np.ndarray:
        """Weight of every sample over the largest (n_samples,).

        Importances also have a factor for the share of known values, which says nothing about how
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
        """Whether a sample is an outlier (n_samples,); blank samples are none."""
        return np.asarray(self.model.outliers_) & ~self.blank

    @cached_property
    def cutoffs(self) -> np.ndarray | None:
        """Energy above which each sample has less weight (n_samples,), if the weighting has one.

        Small samples can have lower cutoffs than others.
        """
        model, data = self.model, self.table.data
        if not model.weighting_.uses_row_sizes:
            return None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of names of features, which are those of the fit
            source = model._checked(data)
        sizes = model._engine(source).row_sizes(model._problem.loss.degree)
        return np.asarray(model.weighting_.for_row_sizes(to_numpy(sizes) * model._unit).cutoff)

    @cached_property
    def blank(self) -> np.ndarray:
        """Whether a sample is all zeros or missing values (n_samples,): any components fit it."""
        return (self.model.energies_ <= 0) | (self.model.sample_importances_ <= 0) & (
            np.abs(np.asarray(self.codes)).sum(axis=1) == 0
        )

    @cached_property
    def order(self) -> np.ndarray:
        """Indices of the samples, the most outlying first (n_samples,)."""
        weights = np.round(self.weights, 6)  # equal ones differ by rounding
        return np.lexsort((-self.model.energies_, weights, ~self.outliers, self.blank))

    @property
    def missing_text(self) -> str:
        """How many values are missing, in words."""
        count, size = int(self.missing.sum()), math.prod(self.table.data.shape)
        return f"{count:,} of {size:,} values are missing ({format_percent(count / size)})"

    def feature_name(self, feature: int) -> str:
        """Return the name of a feature as pages show it; those without one are numbered."""
        name = display_name(self.table.features[feature])
        return name if self.table.named else f"feature {name}"

    def part_shares(self, indices: np.ndarray) -> np.ndarray:
        """Return the share of each part in the approximations of samples (len(indices), k)."""
        components = np.asarray(self.model.components_, dtype=float)
        amounts = np.asarray(self.codes[indices], dtype=float) * components.sum(axis=1)
        totals = amounts.sum(axis=1, keepdims=True)
        return amounts / np.where(totals > 0, totals, 1.0)
