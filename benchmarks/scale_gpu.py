"""Time of a pass on a GPU, and of a fit on a GPU and on two cores.

    python benchmarks/scale_gpu.py        (needs PyTorch and a GPU)

1,000,000 x 1,000 in float32, 50 components, entropy weights, multiplicative updates: milliseconds
per pass, in full float32 and with TF32 allowed. A pass is the difference between a long and a short
fit over the difference in passes. Beside it the time of one copy of X on the GPU, of which two
would be the least that a pass can take. Then 100,000 x 1,000 with 20 components from one start,
on the GPU and on two threads of the processor beside it. Last the fits behind Tables 2 and 3, all
values on the paper's grids from ten starts, as ``robustnmf reproduce --device cuda`` runs them
(left out where ROBUSTNMF_DATA does not say where the nine datasets are).
"""

from __future__ import annotations

import time
import warnings

import numpy as np
import torch
from harness import write_result
from threadpoolctl import threadpool_limits

from robustnmf import Entropy, RobustNMF
from robustnmf.experiments.paper.tables import SIZES
from robustnmf.experiments.protocol import METHODS
from robustnmf.experiments.reproduce import is_available
from robustnmf.experiments.trial import Task, fit_points

SHORT, LONG, REPEATS = 10, 210, 3


def low_rank(rows: int, features: int, k: int) -> torch.Tensor:
    """Draw a nonnegative table (rows, features) of rank k with noise, on the GPU."""
    generator = torch.Generator("cuda").manual_seed(0)
    shapes = (rows, k), (k, features)
    codes, parts = (torch.rand(s, generator=generator, device="cuda") ** 3 for s in shapes)
    return codes @ parts + 0.1 * torch.rand((rows, features), generator=generator, device="cuda")


def seconds(X: object, k: int, passes: int, **start: object) -> tuple[float, float]:
    """Return the seconds and the last objective of a fit."""
    model = RobustNMF(
        k, weighting=Entropy(50.0), solver="mu", init="custom", max_iter=passes, tol=0
    )
    torch.cuda.synchronize()
    begin = time.perf_counter()
    model.fit(X, **start)
    torch.cuda.synchronize()
    return time.perf_counter() - begin, float(model.objective_history_[-1])


def factors(rows: int, features: int, k: int) -> dict[str, np.ndarray]:
    """Draw random codes W and basis H as a start."""
    rng = np.random.default_rng(0)
    return {"W": 0.1 + rng.random((rows, k), dtype=np.float32),
            "H": 0.1 + rng.random((k, features), dtype=np.float32)}  # fmt: skip


def a_pass(X: object, k: int, **start: object) -> float:
    """Return the seconds of one pass."""
    (short, _), (long, _) = (seconds(X, k, n, **start) for n in (SHORT, LONG))
    return (long - short) / (LONG - SHORT)


def fit_paper_grids() -> tuple[int, float]:
    """Fit the paper's grids on its datasets; return the number of fits and their seconds."""
    count, total = 0, 0.0
    for dataset in SIZES:
        batches: dict[tuple, list] = {}
        for method in METHODS.values():
            task = Task(dataset, method.name, noise=0.05)
            points = [(task, value) for value in method.grid or (None,)]
            batches.setdefault(task.batch_key, []).extend(points)
        X, y = task.table()
        for points in batches.values():
            torch.cuda.synchronize()
            begin = time.perf_counter()
            count += len(fit_points(points, X, len(np.unique(y)), device="cuda"))
            total += time.perf_counter() - begin
    return count, total


def main() -> None:
    """Run the benchmark, print its figures and write the result file."""
    warnings.simplefilter("ignore")
    name = torch.cuda.get_device_name()
    figures = []
    X, start = low_rank(1_000_000, 1000, 50), factors(1_000_000, 1000, 50)
    copies = []
    for _ in range(REPEATS + 1):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        X.clone()
        torch.cuda.synchronize()
        copies.append(1e3 * (time.perf_counter() - begin))
    figures.append({"figure": f"{name}: ms to copy 1,000,000 x 1,000 float32", "target": "reported",
                    "values": copies[1:]})  # fmt: skip
    for allowed, target in ((False, "<= 5"), (True, "<= 3")):
        torch.backends.cuda.matmul.allow_tf32 = allowed
        seconds(X, 50, SHORT, **start)  # compiles kernels
        values = [1e3 * a_pass(X, 50, **start) for _ in range(REPEATS)]
        what = "TF32" if allowed else "float32"
        figures.append({"figure": f"{name}: ms per pass, 1,000,000 x 1,000, k = 50, {what}",
                        "target": target, "values": values})  # fmt: skip
        print(figures[-1], flush=True)
    torch.backends.cuda.matmul.allow_tf32 = False
    del X
    X, start = low_rank(100_000, 1000, 20), factors(100_000, 1000, 20)
    on_gpu = [seconds(X, 20, 50, **start) for _ in range(REPEATS + 1)][1:]
    table = X.cpu().numpy()
    with threadpool_limits(2):
        on_cpu = [seconds(table, 20, 50, **start) for _ in range(2)][1:]
    ratios = [on_cpu[0][0] / gpu for gpu, _ in on_gpu]
    difference = abs(on_gpu[0][1] / on_cpu[0][1] - 1)
    figures.append({"figure": f"{name} over two threads, 100,000 x 1,000, k = 20, 50 passes "
                              f"(objectives {difference:.0e} apart)",
                    "target": "reported", "values": ratios})  # fmt: skip
    print(figures[-1], flush=True)
    del X
    if all(is_available(dataset, None) for dataset in SIZES):
        fit_paper_grids()  # compiles kernels
        runs = [fit_paper_grids() for _ in range(REPEATS)]
        what = f"seconds for the {runs[0][0]:,} fits behind Tables 2 and 3"
        figures.append({"figure": f"{name}: {what}",
                        "target": "<= 3", "values": [seconds for _, seconds in runs]})  # fmt: skip
        print(figures[-1], flush=True)
    content = {"gpu": name, "torch": torch.__version__, "figures": figures}
    write_result("scale_gpu.json", {"command": "python benchmarks/scale_gpu.py", **content})


if __name__ == "__main__":
    main()
