"""Peak memory and time of a pass over a file that is read block by block; part of scale.py."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from threading import Event, Thread

import numpy as np
from harness import in_own_process, memory, parse, seconds

from robustnmf import RobustNMF

FEATURES = 1000
SHORT, LONG = 3, 8


def low_rank(rows: int, seed: int, features: int = FEATURES, k: int = 20) -> np.ndarray:
    """Draw a nonnegative table (rows, features) of rank k with noise, float32."""
    parts = np.random.default_rng(0).gamma(0.5, size=(k, features)).astype(np.float32)
    rng = np.random.default_rng(seed)
    codes = rng.gamma(0.5, size=(rows, k)).astype(np.float32)
    return codes @ parts + 0.1 * rng.random((rows, features), dtype=np.float32)


def files(gigabytes: float, folder: Path) -> list[dict]:
    """Measure a fit of a file that is read block by block: peak memory and time of a pass."""
    block = 50_000
    count = max(1, round(gigabytes * 2**30 / (4 * FEATURES) / block))
    path = folder / "x.npy"
    table = np.lib.format.open_memmap(path, "w+", np.float32, (count * block, FEATURES))
    for i in range(count):
        table[i * block : (i + 1) * block] = low_rank(block, i)
        print(f"\rwriting {path.name}: {i + 1} of {count}", end="", flush=True)
    table.flush()
    del table
    print()
    peaks: list[float] = []
    ratios: dict[str, list[float]] = {"from disk": [], "from the system's cache": []}
    for where in [place for place in ratios for _ in range(2)]:
        with _outside_cache(path) if where == "from disk" else nullcontext():
            read_seconds = min(seconds(_read_through, path) for _ in range(2))
            (short, _), (long, peak) = (in_own_process(__file__, path, n) for n in (SHORT, LONG))
        pass_seconds = (long - short) / (LONG - SHORT)
        ratios[where].append(pass_seconds / read_seconds)
        peaks.append(peak)
        print(
            f"{where}: read {read_seconds:.2f} s, pass {pass_seconds:.2f} s, peak {peak:.0f} MB",
            flush=True,
        )
    codes = count * block * 20 * 4 / 2**20
    size = path.stat().st_size / 2**30
    path.unlink()
    return [
        {"figure": f"file of {size:.1f} GB, k = 20: MB at the peak ({codes:.0f} of them codes)",
         "target": f"<= {1024 + codes:.0f}", "values": peaks},
        *({"figure": f"seconds of a pass over reading the file through, {where}",
           "target": "<= 1.5", "values": values} for where, values in ratios.items()),
    ]  # fmt: skip


@contextmanager
def _outside_cache(path: Path) -> Iterator[None]:
    """Keep a file out of the system's cache inside the with block."""
    stop = Event()

    def empty() -> None:
        with path.open("rb") as file:
            while not stop.wait(0.1):
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    thread = Thread(target=empty, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _read_through(path: Path) -> None:
    """Read a file from one end to the other."""
    with path.open("rb", buffering=0) as file:
        buffer = bytearray(8 * 2**20)
        while file.readinto(buffer):
            pass


def child(path: str, passes: int) -> None:
    """Fit a file; print the seconds it takes and the peak memory in MB."""
    model = RobustNMF(
        20, weighting="entropy", init="random", random_state=0, max_iter=passes, tol=0
    )
    spent = seconds(model.fit, path)
    # Not ru_maxrss, which begins with what the process that started this one had.
    print(json.dumps([spent, memory("VmHWM")]))


if __name__ == "__main__":
    path, passes = parse(__doc__, child={"nargs": 2}).child
    child(path, int(passes))
