"""Tables of PyArrow; null marks a missing value."""

from __future__ import annotations

from typing import Any

import numpy as np

from robustnmf.sources.array import ArraySource


class ArrowSource(ArraySource):
    """A table or record batch whose columns are numbers; their names are those of the features."""

    @classmethod
    def claims(cls, X: Any) -> bool:
        return type(X).__module__.partition(".")[0] == "pyarrow" and hasattr(X, "column_names")

    def floats(self, model: Any = None) -> np.ndarray:
        if model is not None:
            self.check_features(model)
        pairs = zip(self.X.column_names, self.X.columns, strict=True)
        columns = [self._numbers(name, column) for name, column in pairs]
        if not columns:
            raise ValueError(f"X has no columns; {self.name} needs at least one feature.")
        return ArraySource(np.column_stack(columns), self.name).floats()

    def _numbers(self, name: str, column: Any) -> np.ndarray:
        """Return a column as floats, NaN where it is null."""
        values = np.asarray(column)
        if values.dtype.kind == "O" and column.null_count and str(column.type) == "bool":
            values = np.array([np.nan if v is None else float(v) for v in values])
        if values.dtype.kind not in "fiub":
            raise ValueError(
                f"column {name!r} of X holds {column.type}, but {self.name} needs real numbers. "
                "Leave it out, for example with X.drop_columns."
            )
        return values if values.dtype == np.float32 else values.astype(np.float64)
