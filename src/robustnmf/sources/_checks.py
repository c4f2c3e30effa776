"""One check of X, whatever its kind: what a scan found, and what a model can use."""

from __future__ import annotations

from robustnmf.compatibility import ModelSpec, unsupported_reason
from robustnmf.engine import DataSummary, Occurrences

LEAST, MOST = 1e-150, 1e150
"""Largest values of X whose squares stay in the range of float64."""

LEAST_SINGLE, MOST_SINGLE = 1e-32, 1e32
"""Of float32: sums over many samples stay in its range, and small entries keep their digits."""

KINDS = {"sparse": "sparse X", "missing": "X with missing values", "dense": "X"}


def check_summary(
    name: str, spec: ModelSpec, summary: DataSummary, *, scale: float | None = None
) -> None:
    """Refuse X that the parts of a model cannot use, or that leaves the range of its floats.

    Parameters
    ----------
    name : str
        Of the estimator, for messages.
    spec : ModelSpec
    summary : DataSummary
    scale : float, optional
        Units of a fitted estimator, in which X is computed with.
    """
    data = "sparse" if summary.is_sparse else "missing" if summary.has_missing else "dense"
    reason = unsupported_reason(*spec, data)
    if reason is not None:
        raise ValueError(f"{name} cannot read {KINDS[data]}: {reason}")
    if not summary.known:
        raise ValueError(f"Input X contains NaN and nothing else; {name} needs known values.")
    if summary.has_inf:
        raise ValueError(f"Input X contains infinity; {name} needs finite values.")
    if summary.negative is not None:
        raise ValueError(
            f"Negative values in data passed to {name}: X holds "
            f"{_first(summary.negative, 'negative value')} = {summary.negative.value:.6g}; NMF "
            "needs X >= 0. Clip small negative noise at zero, or shift every feature by its "
            "minimum."
        )
    _check_range(summary.largest, name, summary.single, spec.loss.degree)
    if scale is not None:
        _check_units(summary.largest, name, summary.single, scale)
    if not spec.loss.takes_zeros and summary.least == 0:
        zeros = "zeros" if summary.zero is None else _first(summary.zero, "zero")
        raise ValueError(
            f"{spec.loss!r} needs X > 0, but X holds {zeros}: its loss is infinite there. Add a "
            "small constant to X, or use loss='kullback-leibler'."
        )


def check_nonempty(shape: tuple[int, ...], name: str) -> None:
    """Refuse tables without samples or features."""
    if not all(shape):
        raise ValueError(
            f"Found array with {shape[0]} sample(s) and {shape[1]} feature(s) "
            f"(shape={tuple(shape)}) while a minimum of 1 is required by {name}."
        )


def check_number_dtype(dtype: object, kind: str, name: str) -> None:
    """Refuse values that are no real numbers."""
    if kind not in "fiub":
        raise ValueError(f"X holds {dtype}, but {name} needs real numbers.")


def _first(values: Occurrences, what: str) -> str:
    """Return how many there are, in words, and where the first is."""
    plural = "" if values.times == 1 else "s"
    return f"{values.times} {what}{plural}, first at [{values.row}, {values.column}]"


def _bounds(single: bool) -> tuple[float, float]:
    """Return the least and the largest size of X in float32, or in float64."""
    return (LEAST_SINGLE, MOST_SINGLE) if single else (LEAST, MOST)


def _check_range(largest: float, name: str, single: bool, degree: float) -> None:
    """Refuse sizes that leave the range of the dtype that X is computed with in.

    ``degree`` is that of the loss: it, too, raises the values to a power.
    """
    power = max(2.0, abs(degree))
    lowest, highest = LEAST ** (2 / power), MOST ** (2 / power)
    least, most = _bounds(single)
    least, most = max(lowest, least), min(highest, most)
    if largest == 0 or least <= largest <= most:
        return
    inside = single and lowest <= largest <= highest
    raises = "squares it" if power == 2 else f"raises it to the power {degree:g}"
    how = "adds up products with it in float32" if single else raises
    raise ValueError(
        f"the largest value of X is {largest:.3g}; {name} {how}, so it needs to lie between "
        f"{least:g} and {most:g}. Divide X by {largest:.1g} first"
        f"{', or give it as float64' if inside else ''}."
    )


def _check_units(largest: float, name: str, single: bool, scale: float) -> None:
    """Refuse sizes that leave the range in the units of a fitted estimator."""
    least, most = _bounds(single)
    if largest == 0 or least * scale <= largest <= most * scale:
        return
    raise ValueError(
        f"the largest value of X is {largest:.3g}, but this {name} was fitted on values of about "
        f"{scale:.1g}; X needs to lie between {least:g} and {most:g} times those. Convert X to the "
        "units of the fit, or fit another estimator on it."
    )
