"""A fit made ready: engine, problem and starts; and its results in the user's units."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from robustnmf.arrays import Array, device_of, host_dtype, on_device_of, to_numpy
from robustnmf.checkpoint import Checkpoint, samples_of, to_json
from robustnmf.compatibility import ModelSpec
from robustnmf.engine import Engine, InMemory, written
from robustnmf.estimators._aliases import init_of, solver_of
from robustnmf.estimators._input import check_fixed, check_weights
from robustnmf.estimators._regularisation import penalties_of
from robustnmf.estimators._start import rank_of, seeds_of, start_of, starts_of
from robustnmf.estimators._summary import overlap, reconstruction_error
from robustnmf.estimators.auto_rank import choose_rank_of, draw_rank_rows
from robustnmf.estimators.rank_selection import RankSelection
from robustnmf.fit import Callback, fit
from robustnmf.losses import ReweightedLoss
from robustnmf.problem import Problem
from robustnmf.screening import Screening, screen, screen_entries
from robustnmf.sources import Source
from robustnmf.state import Fitted, Start
from robustnmf.structures import Free
from robustnmf.weightings import Trimmed, Weighting, effective_sample_size


@dataclass(frozen=True)
class FitPlan:
    """One table, one problem, one or several starts.

    ``balance`` is the factor by which codes are smaller than the user's, ``free`` what the
    penalties in units without it, ``screening`` the result of the screening of the samples,
    ``rank_selection`` that of the choice of the number of components, where there was one.
    ``reference`` is the basis (components, features) of a screening of the entries, in the units
    of the engine.
    """

    parts: ModelSpec
    source: Source
    engine: Engine
    problem: Problem
    start: Start
    balance: float
    free: dict[str, Any]
    screening: Screening | None = None
    rank_selection: RankSelection | None = None
    reference: Array | None = None

    @property
    def unit(self) -> float:
        """By how much energies are smaller than in the user's units."""
        return self.engine.scale**self.parts.loss.degree

    def run(
        self,
        weightings: Sequence[Weighting],
        max_iter: int,
        tol: float,
        callback: Callback | None = None,
        device: str | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> list[Fitted]:
        """Every weighting from every start, weighting by weighting, as one batch.

        On a device it is PyTorch that computes there; what comes back is NumPy's again.
        """
        count = len(weightings)
        scaled = [self._in_units(weighting) for weighting in weightings]
        members = [weighting for weighting in scaled for _ in range(self.start.basis.shape[0])]
        engine, problem, start = self.engine, self.problem, self.start
        if device is not None:
            engine, problem, start = _on_device(device, engine, problem, start)
        return fit(
            engine, problem, members, start.repeated(engine, count),
            max_iter=max_iter, tol=tol, callback=callback, checkpoint=checkpoint,
        )  # fmt: skip

    def _in_units(self, weighting: Weighting) -> Weighting:
        """The weighting for the energies of the engine, with the cutoffs of the screening."""
        if self.screening is not None and weighting.needs_screening:
            return self.screening.weighting
        return weighting.rescaled(1.0 / self.unit)

    def checkpoint(
        self, model: Any, path: Any, every: Any, start: Sequence[Any] = ()
    ) -> Checkpoint:
        """What this fit is written down as, every so many seconds."""
        if not isinstance(path, (str, os.PathLike)):
            raise TypeError(f"checkpoint is {path!r}, but the path of a file is needed.")
        if not isinstance(every, (int, float, np.number)) or not every >= 0:
            raise ValueError(f"checkpoint_every is {every!r}, but seconds (>= 0) are needed.")
        if not self.engine.can_checkpoint:
            raise ValueError(
                "checkpoint is for X in memory or in files. Of a Dask array what a lost worker "
                "held is computed again, without a checkpoint."
            )
        target = Path(os.path.expanduser(path))
        return Checkpoint.at(
            target, self._identity(model, start), self.parts.weighting, float(every)
        )

    def _identity(self, model: Any, start: Sequence[Any]) -> dict[str, Any]:
        """What tells this fit from others, in words that JSON keeps."""
        from robustnmf import __version__

        engine = self.engine
        named = {
            f"parameter {k}": to_json(v) for k, v in model.get_params().items() if k != "verbose"
        }
        if not isinstance(model.random_state, (int, np.integer)):
            named.pop("parameter random_state")  # it says nothing about where the fit was
        return {
            "version": __version__,
            "estimator": type(model).__name__,
            **named,
            "shape of X": list(engine.shape),
            "dtype of X": host_dtype(engine.like).name,
            "content of X": samples_of(engine),
            "sample_weight": to_json(engine.sample_weight),
            "W": to_json(start[0] if start else None),
            "H": to_json(start[1] if start else None),
        }

    def codes(self, member: Fitted, path: Path | None = None) -> np.ndarray:
        """Codes in the user's units; in a file, where one is asked for."""
        if path is None:
            codes = member.codes
            # A member among others is a part of their array, which should not stay for it.
            alone = isinstance(codes, np.ndarray) and codes.flags.c_contiguous
            return codes if self.balance == 1.0 and alone else codes * self.balance
        return written(path, to_numpy(member.codes), self.balance)

    def encoder(self, basis: np.ndarray, weighting: Weighting) -> dict[str, Any]:
        """All that ``transform`` needs."""
        return {
            "components_": basis * (self.engine.scale / self.balance),
            "weighting_": weighting.rescaled(self.unit),
            "_problem": replace(self.problem, **self.free),
            "_scale": self.engine.scale,
        }

    def learned(self, member: Fitted) -> dict[str, Any]:
        """Fitted attributes in the user's units."""
        weights = member.weighting.normalised_weights(member.importances, self.engine.row_weight)
        learned = {
            **self.encoder(member.basis, member.weighting),
            "energies_": member.energies * self.unit,
            "sample_importances_": member.importances,
            "outliers_": member.weighting.outliers(
                member.penalised_energies,
                weights,
                self.engine.row_weight,
                self.engine.row_sizes(self.parts.loss.degree),
            ),
            "effective_sample_size_": float(
                effective_sample_size(weights, self.engine.full_row_weight)
            ),
            "objective_history_": self._history(member),
            "codes_overlap_": overlap(member.codes),
            "reconstruction_err_": reconstruction_error(
                member.energies, self.parts.loss, self.unit
            ),
            "n_iter_": member.n_iter,
        }
        if member.mixing is not None:
            learned["mixing_"] = (member.mixing / self.balance).T
        if self.rank_selection is not None:
            learned["rank_selection_"] = self.rank_selection
        return learned

    def _history(self, member: Fitted) -> Array:
        values = np.array(member.history) * self.unit**member.weighting.degree
        return on_device_of(member.basis, values)


def plan_fit(
    model: Any,
    parts: ModelSpec,
    source: Source,
    W: Any,
    H: Any,
    sample_weight: Any,
    weightings: int = 1,
    codes_path: Path | None = None,
    screened: bool = True,
) -> FitPlan:
    """Prepare the fit of an estimator, after all its input has been checked.

    ``screened`` allows a screening of the samples for weightings that need one.
    """
    source = source.checked(parts, learning=True)
    samples, features = source.shape
    parts.loss.check_features(features)
    problem = Problem(parts.loss, parts.structure, solver_of(model, parts))
    weights = check_weights(sample_weight, samples)
    selection = None
    rank = rank_of(source.shape, model.n_components, init_of(model), W, H)
    if rank is None:
        selection = choose_rank_of(model, parts, draw_rank_rows(source, problem, parts, weights))
        rank = selection.recommended
    members = weightings * model.n_init
    engine = source.engine(problem, parts.weighting, rank, members, sample_weight=weights)
    columns = rank * weightings * starts_of(model)
    engine.use_codes_store(columns, None if codes_path is None else codes_path.parent)
    given = getattr(model, "fixed_components", None)
    fixed = check_fixed(given, parts.structure, rank, features, host_dtype(engine.like))
    problem = replace(problem, loss=parts.loss.rescaled(1.0 / engine.scale))
    if fixed is not None:
        problem = replace(problem, fixed=on_device_of(engine.like, fixed / engine.scale))
    init, screening, reference = init_of(model), None, None
    with engine.thread_pool():
        if isinstance(problem.loss, ReweightedLoss) and (
            problem.loss.has_auto or (screened and init != "custom")
        ):
            entries = screen_entries(engine, problem.loss, rank, seed=0)
            problem = replace(problem, loss=entries.loss)
            if entries.basis is not None and type(parts.structure) is Free and init != "custom":
                reference = on_device_of(engine.like, entries.basis, engine.like.dtype)
        if screened and fixed is None and reference is None and _can_screen(model, parts):
            seeds = seeds_of(model, problem.solver).tolist()
            screening = screen(engine, problem, rank, init, seeds)
        if screening is None:
            start, balance = start_of(model, engine, problem, rank, W, H, reference)
        else:
            start, balance = screening.start, 1.0
        if reference is not None and screened and fixed is None:
            screening = Screening(start, Trimmed(entries.row_cutoff), 0.0, entries.sample)
    engine.forget_start()
    counted = samples if weights is None else float(weights.sum())
    shape = counted, features
    penalties = partial(
        penalties_of, model, parts.loss, parts.weighting, shape, engine.scale,
        host_dtype(engine.like),
    )  # fmt: skip
    problem = replace(problem, **penalties(balance))
    if problem.fixed is not None:
        problem = replace(problem, fixed=problem.fixed * balance)
    free = penalties()
    return FitPlan(
        parts, source, engine, problem, start, balance, free, screening, selection, reference
    )


def _can_screen(model: Any, parts: ModelSpec) -> bool:
    """Whether samples are screened: the start is ours to choose, and nothing but X matters."""
    if not parts.weighting.needs_screening or init_of(model) == "custom":
        return False
    penalised = any(getattr(model, name, 0) not in ("same", 0) for name in ("alpha_W", "alpha_H"))
    return type(parts.structure) is Free and not penalised


def _on_device(
    device: str, engine: Engine, problem: Problem, start: Start
) -> tuple[InMemory, Problem, Start]:
    """The same fit with its arrays as PyTorch tensors on a device."""
    import torch

    if not isinstance(engine, InMemory):
        raise ValueError(
            f"device={device!r} needs X in memory. Leave device out: X in files and on clusters is "
            "computed with where it is."
        )
    if not isinstance(engine.like, np.ndarray):
        raise ValueError(
            f"device={device!r} is for NumPy's arrays; X is on {device_of(engine.like)} already, "
            "and is computed with there. Leave device out."
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
