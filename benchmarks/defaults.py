"""Time of the call that users make, ``RobustNMF(k).fit(X)``, beside plain and scikit-learn's NMF.

    python benchmarks/defaults.py [--repeats 5] [--tables ...] [--gpu]

Default parameters on all sides. Medians over repeats in turns, and the range of the ratios of
neighbouring runs: machines are shared. The error at which plain NMF stops is compared with that of
scikit-learn's. Reads of X are counted for a table in a file. With
``--gpu`` the default fit of tensors on the GPU instead, in seconds. Rows of tables that are not run
again stay in the result file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse
from harness import in_turns, parse, read_result, seconds, write_result
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.decomposition import NMF

from robustnmf import RobustNMF

KL = "kullback-leibler"

Table = tuple[Callable[[], Any], int, str]
"""A function that makes X, its rank, and the loss."""


def low_rank(n: int, m: int, k: int) -> np.ndarray:
    """Draw a table (n, m) of rank k, with noise."""
    rng = np.random.default_rng(0)
    exact = rng.gamma(0.5, size=(n, k)) @ rng.gamma(0.5, size=(k, m))
    return exact + 0.05 * rng.random((n, m))


def sparse(n: int, m: int, k: int, density: float) -> scipy.sparse.csr_array:
    """Draw counts (n, m) of k topics, of which about a share is not zero."""
    rng = np.random.default_rng(0)
    rows = scipy.sparse.random_array((n, m), density=density, rng=rng, format="csr")
    topics = rng.integers(k, size=n)
    favourite = rng.gamma(0.3, size=(k, m))
    rows.data = 1.0 + rng.poisson(
        3 * favourite[np.repeat(topics, np.diff(rows.indptr)), rows.indices]
    )
    return rows


def with_noise(X: np.ndarray) -> np.ndarray:
    """Replace a tenth of the samples by noise."""
    X, bad = X.copy(), len(X) // 10
    X[:bad] = X.max() * np.random.default_rng(0).random((bad, X.shape[1]))
    return X


def clusters() -> np.ndarray:
    """Draw three clusters of 90, 270 and 540 samples with features of their own."""
    rng = np.random.default_rng(0)
    parts = np.kron(np.eye(3), 0.5 + rng.random((1, 10)))
    labels = np.repeat([0, 1, 2], [90, 270, 540])
    noise = np.exp(0.1 * rng.standard_normal((900, 30)))
    return (0.5 + rng.random((900, 1))) * parts[labels] * noise


def over_maxima(X: np.ndarray) -> np.ndarray:
    """Divide features by their largest values."""
    return X / X.max(axis=0)


TABLES: dict[str, Table] = {
    "iris 150 x 4": (lambda: over_maxima(load_iris().data), 3, "frobenius"),
    "wine 178 x 13": (lambda: over_maxima(load_wine().data), 3, "frobenius"),
    "wdbc 569 x 30": (lambda: over_maxima(load_breast_cancer().data), 5, "frobenius"),
    "three clusters 900 x 30": (clusters, 3, "frobenius"),
    "digits 1797 x 64": (lambda: load_digits().data, 12, "frobenius"),
    "digits, a tenth noise": (lambda: with_noise(load_digits().data), 12, "frobenius"),
    "4,000 x 600": (lambda: low_rank(4000, 600, 15), 15, "frobenius"),
    "4,000 x 600, a tenth noise": (lambda: with_noise(low_rank(4000, 600, 15)), 15, "frobenius"),
    "60,000 x 80": (lambda: low_rank(60_000, 80, 8), 8, "frobenius"),
    "sparse 20,000 x 4,000, 1%": (lambda: sparse(20_000, 4000, 15, 0.01), 15, "frobenius"),
    "Kullback-Leibler 3,000 x 400": (lambda: low_rank(3000, 400, 15), 15, KL),
    "Kullback-Leibler, sparse 8,000 x 2,500, 2%": (lambda: sparse(8000, 2500, 15, 0.02), 15, KL),
}
GPU_TABLES = {
    "2,000 x 500": (2000, 500, 10),
    "100,000 x 1,000": (100_000, 1000, 20),
    "500,000 x 1,000": (500_000, 1000, 50),
}
"""Samples, features and rank of float32 tensors."""


LONGER = 500
"""Passes in which a plain fit can reach the error of scikit-learn."""

PASSES = 15, 65
"""Passes of a short and of a long fit, of which the difference gives the time of one."""


def compare(name: str, repeats: int) -> dict[str, Any]:
    """Time the default beside plain NMF and scikit-learn's on one table."""
    make, k, loss = TABLES[name]
    X = make()
    peer = {"solver": "mu", "beta_loss": KL} if loss == KL else {}
    models = {
        "default": RobustNMF(k, loss=loss, random_state=0),
        "plain": RobustNMF(k, loss=loss, weighting="uniform", random_state=0),
        "scikit-learn": NMF(k, random_state=0, **peer),
    }
    for model in models.values():
        model.fit(X)  # compiles
    # scikit-learn reports the root of the squared error, or of twice the divergence.
    error = models["scikit-learn"].reconstruction_err_ ** 2 / (2 if loss == KL else 1)
    plain = clone(models["plain"]).set_params(tol=0.0)
    longer = clone(plain).set_params(max_iter=LONGER).fit(X)
    history = longer.objective_history_ * (longer.energies_.sum() / longer.objective_history_[-1])
    reached = np.flatnonzero(history <= error)
    if len(reached):
        models["plain, same error"] = plain.set_params(max_iter=max(1, int(reached[0])))
    times = in_turns({name: partial(model.fit, X) for name, model in models.items()}, repeats)
    row: dict[str, Any] = {"table": name, "rank": k, "repeats": repeats}
    for which, values in times.items():
        row[f"{which}, s"] = round(float(np.median(values)), 4)
    for title, one, other in (
        ("scikit-learn over plain with the same error", "scikit-learn", "plain, same error"),
        ("scikit-learn over default", "scikit-learn", "default"),
        ("default over plain", "default", "plain"),
    ):
        if other not in times:
            continue
        ratios = np.divide(times[one], times[other])
        row[title] = round(float(np.median(ratios)), 2)
        row[f"{title}, range"] = [round(float(r), 2) for r in (ratios.min(), ratios.max())]
    row["error, plain over scikit-learn"] = round(float(models["plain"].energies_.sum() / error), 4)
    return row


def count_reads() -> dict[str, Any]:
    """Count how often the default fit reads X, given as a function that yields blocks of it."""
    X = low_rank(60_000, 80, 8)
    rows_read = 0

    def blocks() -> Iterator[np.ndarray]:
        nonlocal rows_read
        for at in range(0, len(X), 10_000):
            rows_read += 10_000
            yield X[at : at + 10_000]

    model = RobustNMF(8, random_state=0).fit(blocks)
    return {"reads of X": round(rows_read / len(X), 1), "passes": model.n_iter_}


def beside_cpu(X: Any, k: int) -> tuple[float, float]:
    """Compare a fit on the GPU with one on the CPU: objectives, and energies of all samples."""
    there = RobustNMF(k, random_state=0).fit(X)
    here = RobustNMF(k, random_state=0).fit(X.cpu().numpy())
    values = [float(model.objective_history_[-1]) for model in (there, here)]
    apart = np.abs(there.energies_.cpu().numpy() - here.energies_) / np.median(here.energies_)
    return round(values[0] / values[1], 6), float(f"{np.median(apart):.1e}")


def on_gpu(repeats: int) -> list[dict[str, Any]]:
    """Time default fits and ``transform`` of tensors on the GPU."""
    import torch

    results = []
    for name, (n, m, k) in GPU_TABLES.items():
        generator = torch.Generator("cuda").manual_seed(0)
        codes, parts = (
            torch.rand(shape, generator=generator, device="cuda") ** 3 for shape in ((n, k), (k, m))
        )
        X = codes @ parts + 0.1 * torch.rand((n, m), generator=generator, device="cuda")
        model = RobustNMF(k, random_state=0)

        def wait(function: Callable[[], Any]) -> float:
            torch.cuda.synchronize()

            def call() -> None:
                function()
                torch.cuda.synchronize()

            return seconds(call)

        wait(lambda model=model, X=X: model.fit(X))  # compiles
        fits = [wait(lambda model=model, X=X: model.fit(X)) for _ in range(repeats)]
        codes_s = [wait(lambda model=model, X=X: model.transform(X)) for _ in range(repeats)]
        row = {"table": name, "rank": k, "passes": int(model.n_iter_)}
        # All passes, each with its decisions.
        short, long = (
            min(
                wait(partial(RobustNMF(k, tol=1e-12, init="random", max_iter=p).fit, X))
                for _ in range(3)
            )
            for p in PASSES
        )
        row["pass, ms"] = round(1e3 * (long - short) / (PASSES[1] - PASSES[0]), 2)
        if n <= 100_000:
            row["objective over that of the CPU"], row["energies apart"] = beside_cpu(X, k)
        for title, values in (("fit, s", fits), ("transform, s", codes_s)):
            row[title] = round(float(np.median(values)), 4)
            row[f"{title}, range"] = [round(float(v), 4) for v in (min(values), max(values))]
        results.append(row)
        print(row, flush=True)
    return results


def main() -> None:
    """Run the benchmark, print its rows and write the result file."""
    names = list(TABLES)
    options = parse(
        __doc__,
        repeats={"type": int, "default": 5},
        gpu={"action": "store_true"},
        tables={"nargs": "*", "default": names, "choices": names},
    )
    if options.gpu:
        import torch

        gpu = torch.cuda.get_device_name()
        write_result("defaults_gpu.json", {"gpu": gpu, "rows": on_gpu(options.repeats)})
        return
    rows = {row["table"]: row for row in read_result("defaults.json").get("rows", [])}
    reads = count_reads()
    print(reads)
    for name in options.tables:
        rows[name] = compare(name, options.repeats)
        print(rows[name], flush=True)
        known = [rows[table] for table in TABLES if table in rows]
        write_result("defaults.json", {"rows": known, "file": reads})


if __name__ == "__main__":
    main()
