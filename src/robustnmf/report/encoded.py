"""New samples in the parts of a fitted model: codes, energies, and which are outliers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from robustnmf.arrays import to_numpy
from robustnmf.estimators.encoding import find_outliers
from robustnmf.tables import StoredRows, divide

if TYPE_CHECKING:
    from robustnmf.estimators.base import BaseRobustNMF


def encode_samples(model: BaseRobustNMF, data: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return codes (n, k), energies (n,) and whether samples are outliers (n,), in one pass.

    Features are divided by the scale of the fit, if it had one.
    """
    scale = _scale_of(model)
    if scale is not None:
        if data.shape[1] != len(scale):
            raise ValueError(
                f"the table has {data.shape[1]} features, but the model has {len(scale)}."
            )
        data = divide(data, scale)
    source = model._checked(data.source if isinstance(data, StoredRows) else data)
    engine = model._engine(source)
    codes, energies = model._encode_rows(source, engine)
    sizes = to_numpy(engine.row_sizes(model._problem.loss.degree)) * model._unit
    energies = to_numpy(energies) * model._unit
    return to_numpy(codes), energies, find_outliers(model, energies, sizes)


def _scale_of(model: Any) -> np.ndarray | None:
    """Return what the features of the fit were divided by (features,), if they were."""
    scale = getattr(model, "feature_scale_", None)
    if scale is None:
        return None
    is_array = isinstance(scale, np.ndarray) and scale.shape == (model.n_features_in_,)
    if not is_array or scale.dtype.kind != "f" or not ((scale > 0) & np.isfinite(scale)).all():
        raise ValueError("the model has scales of features that are no positive numbers.")
    return scale
