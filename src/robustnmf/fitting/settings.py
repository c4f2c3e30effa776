"""All parameters of a fit in one record, and checks of the other arguments of ``fit``."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import _check_sample_weight

from robustnmf.arrays import fill_masked, is_foreign, to_numpy
from robustnmf.files.archive import is_stream
from robustnmf.inits import DETERMINISTIC
from robustnmf.loop.compatibility import ModelSpec, fastest_solver, unsupported_solver_reason
from robustnmf.loop.problem import Problem
from robustnmf.losses import ReweightedLoss
from robustnmf.solvers import SOLVERS
from robustnmf.sources import Source
from robustnmf.structures import Structure
from robustnmf.weightings import Uniform

Seed = int | np.random.RandomState | None

MOST_WEIGHT = 1e30
"""Largest sample weight: sums of larger ones leave the range of float32, in which X can be."""

SOLVER_ALIASES = {"cd": "hals"}
"""scikit-learn's names of solvers."""


@dataclass(frozen=True, eq=False)
class FitSettings:
    """The parameters of an estimator, validated.

    ``name`` is the name of the estimator, for messages. The fields after ``spec`` are parameters of
    :class:`RobustNMF`; estimators without some of them use the defaults.
    """

    name: str
    spec: ModelSpec
    n_components: int | str | None
    solver: str
    init: str | None
    n_init: int
    max_iter: int
    tol: float
    random_state: Seed
    verbose: int
    fixed_components: Any = None
    alpha_W: float = 0.0
    alpha_H: float | str = "same"
    l1_ratio: float = 0.0
    forget_factor: float = 0.9

    @property
    def chooses_rank(self) -> bool:
        """Whether the number of components is chosen from X; a custom start fixes it."""
        return self.n_components == "auto" and self.init != "custom"

    @property
    def start_name(self) -> str:
        """The start: ``init``, or the one that suits weighting and loss."""
        if self.init is not None:
            return self.init
        loss, weighting, _ = self.spec
        is_plain = isinstance(weighting, Uniform) and not isinstance(loss, ReweightedLoss)
        return "nndsvda" if is_plain else "robust"

    @property
    def n_starts(self) -> int:
        """Number of different starts."""
        is_unique = self.init == "custom" or self.start_name in DETERMINISTIC
        return 1 if is_unique else self.n_init

    @property
    def has_penalty(self) -> bool:
        """Whether codes or basis are penalised."""
        return self.alpha_W > 0 or self.basis_alpha > 0

    @property
    def basis_alpha(self) -> float:
        """Strength of the penalty on the basis."""
        return float(self.alpha_W if self.alpha_H == "same" else self.alpha_H)

    def problem(self) -> Problem:
        """Return the problem in the user's units, without penalties and fixed components."""
        loss, _, structure = self.spec
        solver = SOLVER_ALIASES.get(self.solver, self.solver)
        if solver == "auto":
            solver = fastest_solver(self.spec)
        reason = unsupported_solver_reason(loss, structure, solver)
        if reason is not None:
            alias = "" if solver == self.solver else f"solver={self.solver!r} means {solver!r}: "
            raise ValueError(alias + reason)
        return Problem(loss, structure, SOLVERS[solver]())


PARAMETERS = tuple(f.name for f in fields(FitSettings) if f.name not in ("name", "spec"))
"""Fields that are parameters of estimators."""


def check_weights(sample_weight: Any, samples: int) -> np.ndarray | None:
    """Validate sample weights: nonnegative, not all zero; return them in float64."""
    if sample_weight is None:
        return None
    sample_weight = on_host(sample_weight)
    table = np.broadcast_to(0.0, (samples, 1))  # only its length is used
    weights = _check_sample_weight(sample_weight, table, dtype=np.float64, ensure_non_negative=True)
    if not weights.any():  # older scikit-learn lets this pass
        raise ValueError("sample_weight needs at least one non-zero number; all are zero.")
    largest = weights.max()
    if not 1 / MOST_WEIGHT <= largest <= MOST_WEIGHT:
        raise ValueError(
            f"the largest sample_weight is {largest:.3g}, but it must lie between "
            f"{1 / MOST_WEIGHT:g} and {MOST_WEIGHT:g}. Divide the weights by {largest:.1g}."
        )
    return weights


def check_codes_path(
    path: Any, source: Source, structure: Structure, checkpoint: Any = None
) -> Path | None:
    """Validate ``codes_path``."""
    if path is None:
        return None
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"codes_path is {path!r}, but it must be the path of a file.")
    if source.codes_are_lazy:
        raise ValueError(
            "codes_path needs X in memory or in files. Codes of a Dask array stay on its workers: "
            "write the result of fit_transform with to_zarr or to_npy_stack."
        )
    if structure.mixes_samples:
        raise ValueError("codes_path does not support convex structures, which mix all samples.")
    target = Path(os.path.expanduser(path))
    if target.is_dir() or not target.parent.is_dir():
        raise FileNotFoundError(f"codes_path is {target}, not a file in a folder that exists.")
    if is_stream(target):
        raise ValueError(
            f"codes_path is {target}, a FIFO or a device, but a memory map needs a regular file. "
            "Write the result of fit_transform to it instead."
        )
    for other, what in ((source.file, "X"), (checkpoint, "the checkpoint")):
        is_path = isinstance(other, (str, os.PathLike))
        if is_path and Path(os.path.expanduser(other)).resolve() == target.resolve():
            raise ValueError(f"codes_path is the file of {what}, which would be overwritten.")
    with tempfile.TemporaryFile(dir=target.parent):
        pass  # fail before the fit if the folder is not writable
    return target


def on_host(values: Any) -> Any:
    """Return values as a NumPy array with NaN for masked values, for scikit-learn's checks."""
    return to_numpy(values) if is_foreign(values) else fill_masked(values)
