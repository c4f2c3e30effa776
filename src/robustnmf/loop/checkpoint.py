"""Write the state of a fit to disk, and resume the fit from it with the same result.

A checkpoint is an ``.npz`` of arrays and one JSON text, written next to its target and then
renamed. It identifies its fit; its content is never executed.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from array_api_compat import is_array_api_obj

from robustnmf.arrays import Array, Block, host_dtype, is_foreign, on_device_of, to_numpy
from robustnmf.engine import Engine
from robustnmf.files import archive
from robustnmf.loop.passes import BlockState
from robustnmf.loop.state import Fitted, MemberProgress, ObjectiveValue, State
from robustnmf.weightings import WEIGHTINGS, WarmupWeights, Weighting

FORMAT = "robustnmf checkpoint 3"
KINDS: dict[str, type[Weighting]] = {kind.__name__: kind for kind in WEIGHTINGS.values()}
KINDS["WarmupWeights"] = WarmupWeights
SAMPLES = 8
STATE_ARRAYS = ("basis", "previous", "basis_before_extrapolation")
RECORDS: dict[str, type] = {
    kind.__name__: kind for kind in (Fitted, MemberProgress, ObjectiveValue)
}


@dataclass
class Checkpoint:
    """The file to which the state of a fit is written, with ``every`` seconds between two writes.

    ``identity`` (JSON) are data, parameters and version, which distinguish this fit from others.
    """

    path: Path
    identity: dict[str, Any]
    every: float = 60.0
    _written: float = field(default_factory=time.monotonic)

    @classmethod
    def at(
        cls, path: Path, identity: dict[str, Any], weighting: Weighting, every: float
    ) -> Checkpoint:
        """Return a checkpoint; raise an error if the path or the weighting is not supported."""
        if KINDS.get(type(weighting).__name__) is not type(weighting):
            raise ValueError(
                f"checkpoint does not support {weighting!r}: only weightings of this library can "
                f"be stored ({', '.join(KINDS)}). Leave checkpoint out."
            )
        if not path.parent.is_dir():
            raise FileNotFoundError(
                f"checkpoint is {path}, but there is no folder {path.parent}. Create it."
            )
        if archive.is_stream(path):
            raise ValueError(f"checkpoint is {path}, a FIFO or a device; use a regular file.")
        return cls(path, identity, float(every))

    def offer(
        self, engine: Engine, iteration: int, state: State, results: dict[int, Fitted]
    ) -> None:
        """Write the state before a pass, if ``every`` seconds have passed since the last write."""
        if time.monotonic() - self._written < self.every:
            return
        arrays = {f"state.{n}": getattr(state, n) for n in STATE_ARRAYS}
        for name, array in vars(state.block_states[0]).items():
            if array is not None:
                arrays[f"local.{name}"] = engine.collect(state.block_states, name)
        arrays = {name: to_numpy(array) for name, array in arrays.items()}
        codec = archive.Codec(arrays, KINDS, RECORDS)
        record = {
            "format": FORMAT,
            "identity": self.identity,
            "iteration": iteration,
            "members": codec.to_json(state.members),
            "results": codec.to_json(
                [(member, _with_arrays(fitted, to_numpy)) for member, fitted in results.items()]
            ),
        }
        archive.write(self.path, arrays, record)
        self._written = time.monotonic()

    def resumed(
        self, engine: Engine, count: int, max_iter: int
    ) -> tuple[int, State, dict[int, Fitted]] | None:
        """Read the next pass, the state before it and finished members; None without a file."""
        if not self.path.exists():
            return None
        arrays, record = self.read()
        to_device = partial(on_device_of, engine.like)
        try:
            codec = archive.Codec(arrays, KINDS, RECORDS)
            members = codec.build(record["members"])
            local = {
                name.removeprefix("local."): engine.split(to_device(array), axis=1)
                for name, array in arrays.items()
                if name.startswith("local.")
            }
            block_states = [
                BlockState(**dict(zip(local, rows, strict=True)))
                for rows in zip(*local.values(), strict=True)
            ]
            bases = {n: to_device(arrays[f"state.{n}"]) for n in STATE_ARRAYS}
            results = {
                member: _with_arrays(fitted, to_device)
                for member, fitted in codec.build(record["results"])
            }
            _assert_whole(arrays, engine, len(members))
            iteration = int(record["iteration"])
            indices = sorted([member.index for member in members] + list(results))
            if indices != list(range(count)) or not 0 <= iteration <= max_iter:
                raise ValueError("its members or iterations do not belong to this fit")
            state = replace(State.at(members, block_states, bases["basis"]), **bases)
            return iteration, state, results
        except Exception as error:
            raise self.damaged(error) from error

    def read(self, expected: str = FORMAT) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Read arrays and record; raise an error if they are from another fit or format."""
        try:
            arrays, record = archive.read(self.path)
            if record["format"] != expected:
                raise ValueError(f"its format is {record['format']!r}")
            identity = dict(record["identity"])
        except Exception as error:  # a broken archive can raise any exception
            raise self.damaged(error) from error
        for name, value in self.identity.items():
            if not _same(identity.get(name), value):
                raise ValueError(
                    f"the checkpoint {self.path} belongs to another fit: its {name} is "
                    f"{identity.get(name)!r}, but here it is {value!r}. Use another path, or "
                    "delete the file to start over."
                )
        return arrays, record

    def damaged(self, error: Exception) -> ValueError:
        """Return the error that explains why the file cannot be read, and what to do."""
        return ValueError(
            f"{self.path} is not a readable checkpoint ({error}). Use another path, or "
            "delete the file to start over."
        )

    def done(self) -> None:
        """Delete the file after the fit."""
        self.path.unlink(missing_ok=True)
        archive.delete_leftovers(self.path)


def to_json(value: Any) -> Any:
    """Return a JSON-serialisable value: numbers and texts unchanged, arrays as a digest."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if hasattr(value, "__array__") or is_foreign(value) or isinstance(value, (list, tuple)):
        table = np.ascontiguousarray(to_numpy(value) if is_foreign(value) else np.asarray(value))
        return f"{table.dtype} {table.shape} {hashlib.sha256(table.tobytes()).hexdigest()[:16]}"
    return repr(value)


def samples_of(engine: Engine) -> list[float]:
    """Project X (n, m) on random directions: a few numbers that depend on all of its entries."""
    n, m = engine.shape
    rng = np.random.default_rng(0)
    features = on_device_of(engine.like, rng.random((m, SAMPLES)))
    samples = engine.split(on_device_of(engine.like, rng.random(n)))

    def visit(block: Block, weights: Array) -> tuple[None, np.ndarray]:
        return None, to_numpy(weights @ block.wide_project(features))

    return [float(value) for value in engine.sums(visit, samples)]


def _same(one: Any, other: Any) -> bool:
    """Whether two values of an identity are equal; projections of X up to rounding."""
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other) == SAMPLES:
        return bool(np.allclose(one, other, rtol=1e-9, atol=0.0))
    return one == other


def _assert_whole(arrays: dict[str, np.ndarray], engine: Engine, members: int) -> None:
    """Raise an error if shapes, dtypes or values of arrays do not match the members of this fit."""
    n, m = engine.shape
    k = arrays["state.basis"].shape[1]
    shapes = {f"state.{name}": (members, k, m) for name in STATE_ARRAYS}
    shapes["local.codes"] = (members, n, k)
    for name, array in arrays.items():
        has_other_rows = name.startswith("local.") and array.shape[:2] != (members, n)
        if has_other_rows or array.shape != shapes.get(name, array.shape):
            raise ValueError(f"{name} has the shape {array.shape}")
        if name in shapes and array.dtype != host_dtype(engine.like):
            raise ValueError(f"{name} contains {array.dtype}")
        if not np.isfinite(array).all():
            raise ValueError(f"{name} contains values that are not finite")


def _with_arrays(fitted: Fitted, copy: Callable[[Array], Array]) -> Fitted:
    """Return a finished member with its arrays copied to a device, or to the host."""
    arrays = {name: a for name, a in vars(fitted).items() if is_array_api_obj(a)}
    return replace(fitted, **{name: copy(array) for name, array in arrays.items()})
