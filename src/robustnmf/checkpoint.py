"""The state of a fit on disk, from which it goes on as if it had never been interrupted.

A checkpoint is an ``.npz`` of arrays and one JSON text, written beside its target and renamed.
It names the fit it belongs to; nothing in it is ever executed.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from robustnmf import archive
from robustnmf.arrays import Array, host_dtype, is_foreign, on_device_of, to_numpy
from robustnmf.passes import Local
from robustnmf.state import Fitted, Reading, State, Track
from robustnmf.weightings import WEIGHTINGS, Gate, Weighting

FORMAT = "robustnmf checkpoint 1"
KINDS: dict[str, type[Weighting]] = {kind.__name__: kind for kind in WEIGHTINGS.values()}
KINDS["Gate"] = Gate
SAMPLES = 8
OF_MEMBERS = ("codes", "basis", "energies", "importances", "weighed", "mixing")
"""Arrays of a member that has left."""


@dataclass
class Checkpoint:
    """Where and how often a fit is written down.

    Parameters
    ----------
    path : Path
    identity : dict
        What tells this fit from others, as JSON has it: data, parameters, version.
    every : float
        Seconds between two writes.
    """

    path: Path
    identity: dict[str, Any]
    every: float = 60.0
    _written: float = field(default_factory=time.monotonic)

    @classmethod
    def at(
        cls, path: Path, identity: dict[str, Any], weighting: Weighting, every: float
    ) -> Checkpoint:
        """A checkpoint, if it could be written there and read again."""
        if KINDS.get(type(weighting).__name__) is not type(weighting):
            raise ValueError(
                f"checkpoint cannot keep {weighting!r}: it reads the weightings of this library "
                f"alone, {', '.join(KINDS)}. Leave checkpoint out."
            )
        if not path.parent.is_dir():
            raise FileNotFoundError(
                f"checkpoint is {path}, but there is no folder {path.parent}. Make it first."
            )
        if archive.is_stream(path):
            raise ValueError(f"checkpoint is {path}, a FIFO or a device; a file is needed.")
        return cls(path, identity, float(every))

    def offer(self, engine: Any, iteration: int, state: State, results: dict[int, Fitted]) -> None:
        """Write the state before a pass, if it is time."""
        if time.monotonic() - self._written < self.every:
            return
        arrays = {f"state.{n}": getattr(state, n) for n in ("basis", "previous", "reached")}
        for name in _present(state.locals[0]):
            arrays[f"local.{name}"] = engine.collect(state.locals, name)
        told: dict[str, Any] = {
            "format": FORMAT,
            "identity": self.identity,
            "iteration": iteration,
            "tracks": [_track_told(track) for track in state.tracks],
            "results": {},
        }
        for member, fitted in results.items():
            told["results"][str(member)] = _fitted_told(fitted)
            for name in OF_MEMBERS:
                if getattr(fitted, name) is not None:
                    arrays[f"result.{member}.{name}"] = getattr(fitted, name)
        archive.write(self.path, {name: to_numpy(a) for name, a in arrays.items()}, told)
        self._written = time.monotonic()

    def resumed(
        self, engine: Any, members: int, max_iter: int
    ) -> tuple[int, State, dict[int, Fitted]] | None:
        """Where the fit was: the next pass, the state before it, members that had left."""
        if not self.path.exists():
            return None
        arrays, told = self._read()
        like = engine.like

        def here(array: np.ndarray) -> Array:
            return on_device_of(like, array)

        try:
            tracks = [_track_of(track) for track in told["tracks"]]
            local = {
                name.removeprefix("local."): engine.split(here(array), axis=1)
                for name, array in arrays.items()
                if name.startswith("local.")
            }
            locals_ = [
                Local(**dict(zip(local, rows, strict=True)))
                for rows in zip(*local.values(), strict=True)
            ]
            basis, previous, reached = (
                here(arrays[f"state.{n}"]) for n in ("basis", "previous", "reached")
            )
            results = {
                int(member): _fitted_of(
                    said, {n: here(arrays[f"result.{member}.{n}"]) for n in OF_MEMBERS
                           if f"result.{member}.{n}" in arrays},
                )
                for member, said in told["results"].items()
            }  # fmt: skip
            _assert_whole(arrays, engine, len(tracks))
            iteration = int(told["iteration"])
            found = sorted([track.member for track in tracks] + list(results))
            if found != list(range(members)) or not 0 <= iteration <= max_iter:
                raise ValueError("its members or iterations are none of this fit")
            state = State.at(tracks, locals_, basis)
            state = State(tracks, locals_, basis, previous, reached, state.weighting)
            return iteration, state, results
        except Exception as error:
            raise self._damaged(error) from error

    def _read(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        try:
            arrays, told = archive.read(self.path)
            if told["format"] != FORMAT:
                raise ValueError(f"its format is {told['format']!r}")
            identity = dict(told["identity"])
        except Exception as error:  # whatever reading a broken archive comes up with
            raise self._damaged(error) from error
        differs = [
            name for name, value in self.identity.items() if not _same(identity.get(name), value)
        ]
        if differs:
            name = differs[0]
            raise ValueError(
                f"the checkpoint {self.path} belongs to another fit: its {name} is "
                f"{identity.get(name)!r}, here it is {self.identity[name]!r}. Give another path, "
                "or delete the file to start over."
            )
        return arrays, told

    def _damaged(self, error: Exception) -> ValueError:
        return ValueError(
            f"{self.path} is no checkpoint that can be read ({error}). Give another path, or "
            "delete the file to start over."
        )

    def done(self) -> None:
        """The fit is over; what it would have gone on from is no longer needed."""
        self.path.unlink(missing_ok=True)


def told(value: Any) -> Any:
    """A value in words that JSON keeps; arrays by a digest."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if hasattr(value, "__array__") or is_foreign(value) or isinstance(value, (list, tuple)):
        table = np.ascontiguousarray(to_numpy(value) if is_foreign(value) else np.asarray(value))
        return f"{table.dtype} {table.shape} {hashlib.sha256(table.tobytes()).hexdigest()[:16]}"
    return repr(value)


def samples_of(engine: Any) -> list[float]:
    """A few numbers that depend on every entry of X and on where it is."""
    n, m = engine.shape
    rng = np.random.default_rng(0)
    across = on_device_of(engine.like, rng.random((m, SAMPLES)))
    along = engine.split(on_device_of(engine.like, rng.random(n)))

    def visit(block: Any, weights: Array) -> tuple[None, np.ndarray]:
        return None, to_numpy(weights @ block.wide_project(across))

    return [float(value) for value in engine.sums(visit, along)]


def _same(one: Any, other: Any) -> bool:
    """Whether two values agree, numbers of X up to the order of their sums."""
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other) == SAMPLES:
        return bool(np.allclose(one, other, rtol=1e-9, atol=0.0))
    return one == other


def _assert_whole(arrays: dict[str, np.ndarray], engine: Any, members: int) -> None:
    """Refuse arrays that are not those of so many members of a fit of these data."""
    n, m = engine.shape
    k = arrays["state.basis"].shape[1]
    wanted = {
        "state.basis": (members, k, m), "state.previous": (members, k, m),
        "state.reached": (members, k, m), "local.codes": (members, n, k),
    }  # fmt: skip
    for name, array in arrays.items():
        rows = name.startswith("local.") and array.shape[:2] != (members, n)
        if rows or array.shape != wanted.get(name, array.shape):
            raise ValueError(f"{name} has the shape {array.shape}")
        if name in wanted and array.dtype != host_dtype(engine.like):
            raise ValueError(f"{name} holds {array.dtype}")
        if not np.isfinite(array).all():
            raise ValueError(f"{name} holds what is no number")


def _present(local: Local) -> list[str]:
    return [f.name for f in fields(local) if getattr(local, f.name) is not None]


def _weighting_told(weighting: Weighting) -> dict[str, Any]:
    return {"kind": type(weighting).__name__, **weighting.get_params()}


def _weighting_of(told: dict[str, Any]) -> Weighting:
    parameters = dict(told)
    return KINDS[parameters.pop("kind")](**parameters)


def _track_told(track: Track) -> dict[str, Any]:
    told = {f.name: getattr(track, f.name) for f in fields(track)}
    told["asked"], told["weighting"] = map(_weighting_told, (track.asked, track.weighting))
    told["reading"] = None if track.reading is None else list(track.reading)
    return told


def _track_of(told: dict[str, Any]) -> Track:
    reading = told["reading"]
    return Track(**{
        **told,
        "asked": _weighting_of(told["asked"]),
        "weighting": _weighting_of(told["weighting"]),
        "reading": None if reading is None else Reading(*reading),
    })  # fmt: skip


def _fitted_told(fitted: Fitted) -> dict[str, Any]:
    told = {f.name: getattr(fitted, f.name) for f in fields(fitted) if f.name not in OF_MEMBERS}
    return {**told, "weighting": _weighting_told(fitted.weighting)}


def _fitted_of(told: dict[str, Any], arrays: dict[str, Array]) -> Fitted:
    return Fitted(**{**told, **arrays, "weighting": _weighting_of(told["weighting"])})
