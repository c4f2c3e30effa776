"""A prepared fit (engine, problem and starts), and its results in the user's units."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from robustnmf._version import __version__
from robustnmf.arrays import (
    Array,
    as_float64,
    device_of,
    host_dtype,
    namespace,
    on_device_of,
    to_numpy,
)
from robustnmf.engine import Engine, InMemory, in_parts, written
from robustnmf.fitting.rank_selection import RankSelection
from robustnmf.fitting.settings import FitSettings, check_weights
from robustnmf.fitting.starts import begin, check_fixed, check_names, rank_of
from robustnmf.loop.checkpoint import Checkpoint, samples_of, to_json
from robustnmf.loop.encoding import objective
from robustnmf.loop.fit import Callback, fit
from robustnmf.loop.problem import ElasticNet, Problem
from robustnmf.loop.state import Fitted, Start
from robustnmf.losses import Loss
from robustnmf.screening import Screening
from robustnmf.sources import Source
from robustnmf.weightings import Weighting, effective_sample_size


@dataclass(frozen=True)
class Encoder:
    """All that ``transform`` needs, in the user's units."""

    components: Array
    weighting: Weighting
    problem: Problem
    scale: float

    def attributes(self) -> dict[str, Any]:
        """Return the fitted attributes of an estimator; fields that are None are left out."""
        private = {"problem": "_problem", "scale": "_scale"}
        return {
            private.get(name, f"{name}_"): value
            for name, value in vars(self).items()
            if value is not None
        }


@dataclass(frozen=True)
class FitResult(Encoder):
    """The results of a fit; fields are the fitted attributes without their underscore."""

    energies: Array
    sample_importances: Array
    outliers: Array
    effective_sample_size: float
    objective_history: Array
    codes_overlap: float
    reconstruction_err: float
    n_iter: int
    mixing: Array | None = None
    rank_selection: RankSelection | None = None


@dataclass(frozen=True)
class FitPlan:
    """A prepared fit: one table, one problem, one or several starts.

    ``sample_weight`` (samples,) are the user's weights, and ``penalties`` are those of codes and
    basis without the balance. The fields from ``start`` on are those of a `Beginning`.
    """

    settings: FitSettings
    source: Source
    engine: Engine
    sample_weight: np.ndarray | None
    problem: Problem
    penalties: tuple[ElasticNet, ElasticNet]
    start: Start
    balance: float = 1.0
    screening: Screening | None = None
    reference: Array | None = None

    @property
    def rank(self) -> int:
        """Number of components."""
        return self.start.basis.shape[1]

    @property
    def unit(self) -> float:
        """Factor from energies in the units of the engine to the user's units."""
        return self.engine.scale**self.problem.loss.degree

    def run(
        self,
        weightings: Sequence[Weighting] | None = None,
        callback: Callback | None = None,
        device: str | None = None,
        checkpoint: Checkpoint | None = None,
        solve_codes: bool = True,
    ) -> list[Fitted]:
        """Fit every weighting from every start as one batch; return members weighting by weighting.

        The default is the weighting of the settings. With a device, PyTorch fits on it, and the
        results are NumPy arrays. Without ``solve_codes``, the codes are those of the last pass.
        """
        settings = self.settings
        weightings = [settings.spec.weighting] if weightings is None else weightings
        scaled = [self._in_units(weighting) for weighting in weightings]
        members = [weighting for weighting in scaled for _ in range(self.start.basis.shape[0])]
        engine, problem, start = self.engine, self.problem, self.start
        if device is not None:
            engine, problem, start = _on_device(device, engine, problem, start)
        return fit(
            engine, problem, members, start.repeated(engine, len(scaled)),
            max_iter=settings.max_iter, tol=settings.tol, callback=callback, checkpoint=checkpoint,
            solve_codes=solve_codes,
        )  # fmt: skip

    def _in_units(self, weighting: Weighting) -> Weighting:
        """Return a weighting in the units of the engine, with the cutoffs of the screening."""
        if self.screening is not None and weighting.needs_screening:
            return self.screening.weighting
        return weighting.rescaled(1.0 / self.unit)

    def best(self, members: list[Fitted]) -> Fitted:
        """Return the member with the smallest objective, compared with the same weighting."""
        least = min(members, key=lambda member: member.shifted_objective)
        if len({str(member.weighting.get_params()) for member in members}) == 1:
            return least
        engine, sharpest = self.engine, least.weighting
        if sharpest.uses_row_sizes:
            sharpest = sharpest.for_row_sizes(engine.row_sizes(self.problem.loss.degree))

        def level(member: Fitted) -> float:
            if sharpest.per_entry:  # energies of rows do not determine the objective
                return objective(engine, self.problem, sharpest, member.basis)
            energies = member.penalised_energies[None, :]
            sums = sharpest.weigh(energies, engine.row_weight).objective_sums
            return float(sharpest.shifted_value_of(sums)[0, 0]) + member.basis_penalty_value

        return min(members, key=level)

    def checkpoint(
        self, parameters: Mapping[str, Any], path: Any, every: Any, W: Any = None, H: Any = None
    ) -> Checkpoint:
        """Return the checkpoint of this fit of an estimator, with an interval in seconds."""
        engine = self.engine
        if not isinstance(path, (str, os.PathLike)):
            raise TypeError(f"checkpoint is {path!r}, but it must be the path of a file.")
        if not isinstance(every, (int, float, np.number)) or not every >= 0:
            raise ValueError(f"checkpoint_every is {every!r}, but it must be seconds (>= 0).")
        if not engine.can_checkpoint:
            raise ValueError(
                "checkpoint needs X in memory or in files. Leave it out for a Dask array: Dask "
                "recomputes the chunks of lost workers."
            )
        named = {f"parameter {k}": to_json(v) for k, v in parameters.items() if k != "verbose"}
        if not isinstance(parameters.get("random_state"), (int, np.integer)):
            named.pop("parameter random_state", None)  # its state does not identify the fit
        identity = {
            "version": __version__,
            "estimator": self.settings.name,
            **named,
            "shape of X": list(engine.shape),
            "dtype of X": host_dtype(engine.like).name,
            "content of X": samples_of(engine),
            "sample_weight": to_json(engine.sample_weight),
            "W": to_json(W),
            "H": to_json(H),
        }
        target = Path(os.path.expanduser(path))
        return Checkpoint.at(target, identity, self.settings.spec.weighting, float(every))

    def codes(self, member: Fitted, path: Path | None = None) -> np.ndarray:
        """Return the codes in the user's units, as a memory map if a path is given."""
        if path is None:
            codes = member.codes
            # Copy a view, which would keep the codes of all members in memory.
            alone = isinstance(codes, np.ndarray) and codes.flags.c_contiguous
            return codes if self.balance == 1.0 and alone else codes * self.balance
        return written(path, to_numpy(member.codes), self.balance)

    def encoder(self, basis: Array, weighting: Weighting) -> Encoder:
        """Return the `Encoder` for a basis in the units of the engine."""
        scale, (codes_penalty, basis_penalty) = self.engine.scale, self.penalties
        return Encoder(
            basis * (scale / self.balance),
            weighting.rescaled(self.unit),
            replace(self.problem, codes_penalty=codes_penalty, basis_penalty=basis_penalty),
            scale,
        )

    def result(self, member: Fitted, rank_selection: RankSelection | None = None) -> FitResult:
        """Return the results of a member in the user's units."""
        engine, loss, weighting = self.engine, self.problem.loss, member.weighting
        weights = weighting.normalised_weights(member.importances, engine.row_weight)
        history = np.array(member.history) * self.unit**weighting.degree
        return FitResult(
            **vars(self.encoder(member.basis, weighting)),
            energies=member.energies * self.unit,
            sample_importances=member.importances,
            outliers=weighting.outliers(
                member.penalised_energies, weights, engine.row_weight,
                engine.row_sizes(loss.degree),
            ),
            effective_sample_size=float(effective_sample_size(weights, engine.full_row_weight)),
            objective_history=on_device_of(member.basis, history),
            codes_overlap=_overlap(member.codes),
            reconstruction_err=_reconstruction_error(member.energies, loss, self.unit),
            n_iter=member.n_iter,
            mixing=None if member.mixing is None else (member.mixing / self.balance).T,
            rank_selection=rank_selection,
        )  # fmt: skip


def check_source(settings: FitSettings, source: Source) -> Source:
    """Read or scan X, and refuse data that the loss, weighting or structure cannot use."""
    source = source.checked(settings.spec, learning=True)
    settings.spec.loss.check_features(source.shape[1])
    return source


def plan_fit(
    settings: FitSettings,
    source: Source,
    *,
    W: Any = None,
    H: Any = None,
    sample_weight: Any = None,
    weightings: int = 1,
    codes_path: Path | None = None,
    screened: bool = True,
) -> FitPlan:
    """Prepare a fit of checked X with a known number of components.

    ``weightings`` is the number of weightings in the batch, and ``screened`` allows a screening of
    samples and entries.
    """
    spec, problem = settings.spec, settings.problem()
    samples, features = source.shape
    weights = check_weights(sample_weight, samples)
    rank = rank_of(settings, source.shape, W, H)
    check_names(source, settings.fixed_components, "fixed_components")
    if not spec.structure.mixes_samples:
        check_names(source, H, "H")
    engine = source.engine(
        problem, spec.weighting, rank, weightings * settings.n_init, sample_weight=weights
    )
    columns = rank * weightings * settings.n_starts
    engine.use_codes_store(columns, None if codes_path is None else codes_path.parent)
    fixed = check_fixed(settings, rank, engine)
    loss = spec.loss.rescaled(1.0 / engine.scale)
    with engine.thread_pool():
        unpenalised = replace(problem, loss=loss, fixed=fixed)
        beginning = begin(settings, engine, unpenalised, rank, W, H, screened)
    engine.forget_start()
    balance = beginning.balance
    shape = samples if weights is None else float(weights.sum()), features
    problem = Problem(
        beginning.loss, spec.structure, problem.solver,
        None if fixed is None else fixed * balance,
        *_penalties(settings, engine, shape, balance),
    )  # fmt: skip
    return FitPlan(
        settings, source, engine, weights, problem, _penalties(settings, engine, shape, 1.0),
        beginning.start, balance, beginning.screening, beginning.reference,
    )  # fmt: skip


def _penalties(
    settings: FitSettings, engine: Engine, shape: tuple[float, int], balance: float
) -> tuple[ElasticNet, ElasticNet]:
    """Return the penalties of codes ``W / balance`` and of a basis ``H balance / scale``.

    scikit-learn adds penalties to half the squared error, but energies are the full squared error;
    other losses have no such factor. ``shape`` is (sum of the sample weights, features).
    """
    loss, weighting, _ = settings.spec
    n_samples, n_features = shape
    scale, l1_ratio = engine.scale, settings.l1_ratio
    energy = scale**loss.degree
    # This penalty sets all entries to zero; a larger one would only overflow.
    prohibitive = float(np.finfo(host_dtype(engine.like)).max) ** 0.5
    factor = 1.0 if loss.quadratic else 1.0 / loss.unit

    def penalty_of(strength: float, size: float, value: float) -> ElasticNet:
        lasso = factor * strength * l1_ratio * size / value
        ridge = factor * strength * (1 - l1_ratio) * size**2 / value
        return ElasticNet(float(min(lasso, prohibitive)), float(min(ridge, prohibitive)))

    return (
        penalty_of(n_features * float(settings.alpha_W), balance, energy),
        penalty_of(n_samples * settings.basis_alpha, scale / balance, energy**weighting.degree),
    )


def _reconstruction_error(energies: np.ndarray, loss: Loss, unit: float) -> float:
    """Return the norm of the residual; for other losses, as scikit-learn defines it."""
    factor = 2.0 / loss.unit if loss.quadratic or loss.weighs_entries else 2.0
    return float(factor * namespace(energies).sum(energies)) ** 0.5 * unit**0.5


def _overlap(codes: np.ndarray) -> float:
    """Return the mean cosine between different columns of the codes; 0 for columns of zeros."""
    parts = in_parts(codes) if isinstance(codes, np.ndarray) else [codes]
    gram = sum(to_numpy(as_float64(part).T @ as_float64(part)) for part in parts)
    norms = np.sqrt(np.diag(gram))
    cosines = gram / np.maximum(np.outer(norms, norms), np.finfo(np.float64).tiny)
    np.fill_diagonal(cosines, 0.0)
    return float(cosines.sum() / max(1, len(norms) * (len(norms) - 1)))


def _on_device(
    device: str, engine: Engine, problem: Problem, start: Start
) -> tuple[InMemory, Problem, Start]:
    """Move the arrays of a fit to a device as PyTorch tensors."""
    import torch

    if not isinstance(engine, InMemory):
        raise ValueError(
            f"device={device!r} needs X in memory. Leave device out for X in files or on clusters."
        )
    if not isinstance(engine.like, np.ndarray):
        raise ValueError(
            f"device={device!r} needs a NumPy array, but X is on {device_of(engine.like)} already "
            "and is fitted there. Leave device out."
        )
    if engine.like.ndim != 2 or not engine.complete:
        raise ValueError(
            f"device={device!r} needs dense X without missing values. Leave device out for "
            "sparse X or X with NaN."
        )

    def moved(array: Any) -> Any:
        return None if array is None else torch.as_tensor(np.ascontiguousarray(array)).to(device)

    there = InMemory(
        moved(engine.like), scale=engine.scale, block_rows=engine.shape[0],
        sample_weight=moved(engine.sample_weight), bring_home=True,
    )  # fmt: skip
    codes = [moved(engine.whole(start.codes, axis=1))]
    mixing = start.mixing and [moved(engine.whole(start.mixing, axis=1))]
    starts = Start(codes, moved(start.basis), mixing)
    return there, replace(problem, fixed=moved(problem.fixed)), starts
