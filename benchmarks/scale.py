"""Benchmarks of large tables: files, Dask and streams, and a table that includes the GPU's.

    make bench-scale        (or: python benchmarks/scale.py [--gigabytes 16] [--only files ...])

files      a .npy file of float32, k = 20: peak resident memory of the process that fits it, and
           seconds per pass over those of reading the file from one end to the other. Twice: with
           the file in the system's cache, where it fits, and with the cache emptied all the
           time, as it would be for a file larger than memory.
dask       an array of 2 GB in chunks of 64 MB: one worker with one thread over a fit in memory on
           one thread; two such workers over one. Workers are processes, X is persisted.
equal      components after 50 passes from one start, in float64, against NumPy in memory.
stream     seconds of ``partial_fit`` with plain weights until the basis describes samples held
           back as well as MiniBatchNMF's does after an epoch, which takes as many times longer.

Rows of the GPU come from results/scale_gpu.json (``python benchmarks/scale_gpu.py`` on a machine
that has one). A pass is the difference between a long and a short fit over the difference in
passes. The file is written to a folder of its own (``--folder``) and deleted again.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from threading import Event, Thread

import numpy as np
from harness import (
    RESULTS,
    in_own_process,
    memory,
    parse,
    read_result,
    seconds,
    seconds_per_pass,
    table,
    write_result,
)

from robustnmf import RobustNMF

FEATURES = 1000
SHORT, LONG = 3, 8
LONG_IN_MEMORY = 15


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
    content = np.lib.format.open_memmap(path, "w+", np.float32, (count * block, FEATURES))
    for i in range(count):
        content[i * block : (i + 1) * block] = low_rank(block, i)
        print(f"\rwriting {path.name}: {i + 1} of {count}", end="", flush=True)
    content.flush()
    del content
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


def fit_file(path: str, passes: int) -> None:
    """Fit a file; print the seconds it takes and the peak memory in MB."""
    model = RobustNMF(
        20, weighting="entropy", init="random", random_state=0, max_iter=passes, tol=0
    )
    spent = seconds(model.fit, path)
    # Not ru_maxrss, which begins with what the process that started this one had.
    print(json.dumps([spent, memory("VmHWM")]))


def on_dask(gigabytes: float, repeats: int) -> list[dict]:
    """Time a pass on one and two workers, and of the same fit in memory."""
    import dask.array as da
    from distributed import Client, LocalCluster, wait
    from threadpoolctl import threadpool_limits

    chunk = 64 * 2**20 // (8 * FEATURES)
    count = round(gigabytes * 2**30 / (8 * FEATURES * chunk))
    X = np.concatenate([low_rank(chunk, i).astype(np.float64) for i in range(count)])
    arguments = {"weighting": "entropy", "init": "random", "random_state": 0, "tol": 0}

    def pass_seconds(data: object) -> float:
        def run(passes: int) -> None:
            RobustNMF(20, max_iter=passes, **arguments).fit(data)

        return seconds_per_pass(run, SHORT, LONG_IN_MEMORY)

    times: dict[str, list[float]] = {"memory": [], "1": [], "2": []}
    for _ in range(repeats):
        with threadpool_limits(1):
            times["memory"].append(pass_seconds(X))
        for workers in (1, 2):
            cluster = LocalCluster(
                n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None,
                memory_limit=0,
            )  # fmt: skip
            with cluster, Client(cluster):
                data = da.map_blocks(
                    _draw_chunk, chunks=((chunk,) * count, (FEATURES,)), dtype=np.float64
                ).persist()  # on the workers, instead of sending it there
                wait(data)
                times[str(workers)].append(pass_seconds(data))
        print({name: f"{values[-1]:.2f} s a pass" for name, values in times.items()}, flush=True)
    pairs = list(zip(times["1"], times["2"], times["memory"], strict=True))
    return [
        {"figure": f"Dask, {gigabytes:g} GB: two workers over one", "target": ">= 1.6",
         "values": [one / two for one, two, _ in pairs]},
        {"figure": f"Dask, {gigabytes:g} GB: time of one worker over memory on one thread",
         "target": "<= 1.25", "values": [one / memory for one, _, memory in pairs]},
    ]  # fmt: skip


def _draw_chunk(block_info: dict | None = None) -> np.ndarray:
    """Draw a chunk of the table, by its number."""
    chunk = block_info[None]
    return low_rank(chunk["chunk-shape"][0], chunk["chunk-location"][0]).astype(np.float64)


def equal(folder: Path) -> list[dict]:
    """Compare components from other engines with NumPy's, relative to the largest entry."""
    import dask.array as da
    import torch

    X = low_rank(20_000, 0, 200, 8).astype(np.float64)
    path = folder / "equal.npy"
    np.save(path, X)
    rng = np.random.default_rng(0)
    start = {"W": 0.1 + rng.random((20_000, 8)), "H": 0.1 + rng.random((8, 200))}
    model = RobustNMF(8, weighting="entropy", init="custom", max_iter=50, tol=0)
    expected = model.fit(X, **start).components_
    inputs = {
        "torch": torch.asarray(X),
        "file": path,
        "Dask": da.from_array(X, chunks=(3000, 200)),
    }
    figures = []
    for name, data in inputs.items():
        components = np.asarray(model.fit(data, **start).components_)
        worst = float(np.abs(components - expected).max() / expected.max())
        figures.append({"figure": f"{name} beside NumPy, 50 passes", "target": "<= 1e-9",
                        "values": [worst]})  # fmt: skip
    path.unlink()
    return figures


def stream(rows: int) -> list[dict]:
    """Time partial_fit on minibatches of 1,000 against MiniBatchNMF."""
    from sklearn.decomposition import MiniBatchNMF

    from robustnmf.metrics import squared_errors

    X = low_rank(rows, 0, 500, 10).astype(np.float64)
    held_back = low_rank(2000, 10**6, 500, 10).astype(np.float64)
    ratios = []
    for seed in range(3):
        peer = MiniBatchNMF(10, init="nndsvda", batch_size=1000, random_state=seed)
        begin = time.perf_counter()
        for at in range(0, rows, 1000):
            peer.partial_fit(X[at : at + 1000])
        theirs = time.perf_counter() - begin
        goal = squared_errors(held_back, peer.components_).sum()
        model = RobustNMF(10, weighting="uniform", random_state=seed)
        ours = 0.0
        for at in range(0, rows, 1000):
            begin = time.perf_counter()
            model.partial_fit(X[at : at + 1000])
            ours += time.perf_counter() - begin
            if squared_errors(held_back, model.components_).sum() <= goal:
                break
        ratios.append(theirs / ours)
        print(f"MiniBatchNMF {theirs:.2f} s, partial_fit {ours:.2f} s", flush=True)
    return [{"figure": f"MiniBatchNMF's time over partial_fit's to one error, {rows} x 500",
             "target": ">= 3", "values": ratios}]  # fmt: skip


def main() -> None:
    """Run the benchmark, write the result files and print the table."""
    options = parse(
        __doc__,
        gigabytes={"type": float, "default": 16.0},
        repeats={"type": int, "default": 5, "help": "of the measurements on Dask"},
        folder={"type": Path, "help": "where the file goes"},
        only={"nargs": "+", "choices": ["files", "dask", "equal", "stream"]},
        child={"nargs": 2},
    )
    if options.child:
        fit_file(options.child[0], int(options.child[1]))
        return
    parts = read_result("scale.json").get("parts", {})
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        measurements = {
            "files": lambda: files(options.gigabytes, folder),
            "dask": lambda: on_dask(2.0, options.repeats),
            "equal": lambda: equal(folder),
            "stream": lambda: stream(100_000),
        }
        for part in options.only or measurements:
            parts[part] = measurements[part]()
            command = "make bench-scale (or: python benchmarks/scale.py)"
            write_result("scale.json", {"command": command, "parts": parts})
    figures = [figure for part in measurements if part in parts for figure in parts[part]]
    figures += read_result("scale_gpu.json").get("figures", [])
    text = table(figures, ".4g", ".3g")
    (RESULTS / "scale.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
