"""Consensus parts of simulated cells beside cNMF and scikit-learn's best of many runs.

    python benchmarks/consensus.py --seeds 5 --runs 100 --cnmf-python PATH

Ten programs in 2,000 cells with 2,000 genes, a tenth of the cells doublets; once more with 5
percent of damaged cells. All methods get counts divided by the standard deviations of the genes,
as cNMF does. ``--cnmf-python`` is a Python that has the package cnmf; without it cNMF is left out.
Times are those of this machine with two threads, or two processes for methods without threads.
Processor seconds depend less on what else the machine does.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from joblib import Parallel, delayed
from machine import write_result
from sklearn.decomposition import NMF

from robustnmf import ConsensusNMF, RankSelection, RobustNMF, select_rank
from robustnmf.metrics import match_parts

K, SCENARIOS = 10, {"doublets": 0.0, "doublets and damaged cells": 0.05}
RECOVERED = 0.9

CNMF = """
import sys, time
import numpy as np, pandas as pd
from cnmf import cNMF, save_df_to_npz

folder, k, runs, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
counts = np.load(folder + "/counts.npy")
genes = [f"g{j}" for j in range(counts.shape[1])]
frame = pd.DataFrame(counts, index=[f"c{i}" for i in range(len(counts))], columns=genes)
save_df_to_npz(frame, folder + "/counts.df.npz")
open(folder + "/genes.txt", "w").write("\\n".join(genes))
model = cNMF(output_dir=folder, name="cnmf")
begin = time.perf_counter()
model.prepare(counts_fn=folder + "/counts.df.npz", components=[k], n_iter=runs, seed=seed,
              genes_file=folder + "/genes.txt", densify=True)
model.factorize_multi_process(total_workers=2)
model.combine()
model.consensus(k=k, density_threshold=0.5, show_clustering=False, build_ref=False,
                refit_usage=False)
print("seconds", time.perf_counter() - begin)
spectra = pd.read_csv(model.paths["consensus_spectra__txt"] % (k, "0_5"), sep="\\t", index_col=0)
np.save(folder + "/spectra.npy", spectra[genes].to_numpy())
"""


@dataclass(frozen=True)
class Cells:
    """Counts of cells (cells, genes) and what they were drawn from.

    ``programs`` (k, genes) sum to one, ``usages`` (cells, k) are the shares of a cell's own
    transcripts, ``is_doublet`` and ``is_damaged`` (cells,) mark bad cells.
    """

    counts: scipy.sparse.csr_array
    programs: np.ndarray
    usages: np.ndarray
    is_doublet: np.ndarray
    is_damaged: np.ndarray


def simulate_cells(
    n_cells: int = 2000,
    n_genes: int = 2000,
    n_programs: int = 10,
    *,
    doublets: float = 0.1,
    damaged: float = 0.0,
    ambient: float = 0.1,
    depth: float = 1000.0,
    seed: int = 0,
) -> Cells:
    """Draw counts of single cells.

    Every program raises some genes above a basal expression that all programs share. A cell uses
    the program of its type, with unequal frequencies of types, and some of the others. Its number
    of transcripts is lognormal, and genes vary from cell to cell beyond that (gamma). Doublets are
    sums of two cells. Of ``damaged`` cells a few genes, other ones each time, are left, in large
    numbers. A share ``ambient`` of the counts of every cell comes from the mean of all cells.
    """
    rng = np.random.default_rng(seed)
    basal = rng.lognormal(0.0, 1.0, n_genes)
    programs = np.tile(0.2 * basal, (n_programs, 1))
    for program in programs:
        raised = rng.permutation(n_genes)[: n_genes // 20]
        program[raised] += basal[raised] * rng.lognormal(0.7, 0.7, len(raised))
    programs /= programs.sum(axis=1, keepdims=True)
    frequency = rng.dirichlet(np.full(n_programs, 2.0)) + 0.2 / n_programs
    kinds = rng.choice(n_programs, n_cells, p=frequency / frequency.sum())
    usages = 0.5 * rng.dirichlet(np.full(n_programs, 0.2), n_cells)
    usages[np.arange(n_cells), kinds] += 0.5
    sizes = rng.lognormal(np.log(depth), 0.5, (n_cells, 1))
    rates = sizes * (usages @ programs) * rng.gamma(2.0, 0.5, (n_cells, n_genes))
    is_doublet = rng.random(n_cells) < doublets
    rates[is_doublet] += rates[rng.integers(n_cells, size=is_doublet.sum())]
    is_damaged = rng.random(n_cells) < damaged
    left = rng.gamma(0.02, size=(int(is_damaged.sum()), n_genes))
    rates[is_damaged] = 5 * sizes[is_damaged] * left / left.sum(axis=1, keepdims=True)
    soup = rates.mean(axis=0) / rates.mean(axis=0).sum()
    rates = (1 - ambient) * rates + ambient * rates.sum(axis=1, keepdims=True) * soup
    counts = scipy.sparse.csr_array(rng.poisson(rates).astype(np.float64))
    return Cells(counts, programs, usages, is_doublet, is_damaged)


def prepared(
    seed: int, damaged: float, size: int, genes: int | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw counts (cells, genes), the table that is factorised, and the programs in its units."""
    cells = simulate_cells(size, genes or size, K, damaged=damaged, seed=seed)
    counts = cells.counts.toarray()
    deviation = counts.std(axis=0, ddof=1)
    seen = deviation > 0
    counts, deviation = counts[:, seen], deviation[seen]
    return counts, counts / deviation, cells.programs[:, seen] / deviation


def matched_cosines(truth: np.ndarray, components: np.ndarray) -> np.ndarray:
    """Compute the cosine of every true part (k, features) with the component matched to it.

    Each component is matched once; parts without one have zero.
    """
    parts, _, cosines = match_parts(truth, components)
    matched = np.zeros(len(truth))
    matched[parts] = cosines
    return matched


def score(
    truth: np.ndarray, components: np.ndarray, seconds: float, cpu: float, **more: Any
) -> dict[str, Any]:
    """Compare components with the true programs; ``cpu`` are the seconds of all processors."""
    cosines = matched_cosines(truth, components)
    return {
        "mean cosine": round(float(cosines.mean()), 4),
        "recovered": int((cosines > RECOVERED).sum()),
        "seconds": round(seconds, 1),
        "processor seconds": round(cpu, 1),
        **more,
    }


def run_consensus(table: np.ndarray, truth: np.ndarray, weighting: str, runs: int) -> dict:
    """Fit ConsensusNMF."""
    begin, cpu = time.perf_counter(), time.process_time()
    model = ConsensusNMF(RobustNMF(K, weighting=weighting), n_runs=runs, random_state=0).fit(table)
    seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
    return score(
        truth, model.components_, seconds, cpu,
        **{
            "least stability": round(float(model.stability_.min()), 3),
            "mean objective": float(model.objectives_.mean()),
            "iterations": model.n_iter_,
        },
    )  # fmt: skip


def run_sklearn(table: np.ndarray, truth: np.ndarray, runs: int) -> dict:
    """Fit scikit-learn's NMF from random starts in two processes, and keep the best."""

    def fit(seed: int) -> tuple[float, np.ndarray, float]:
        warnings.simplefilter("ignore")
        begin = time.process_time()
        model = NMF(K, init="random", random_state=seed, max_iter=1000).fit(table)
        return model.reconstruction_err_**2, model.components_, time.process_time() - begin

    begin = time.perf_counter()
    fitted = Parallel(n_jobs=2)(delayed(fit)(seed) for seed in range(runs))
    seconds = time.perf_counter() - begin
    objectives, components, times = zip(*fitted, strict=True)
    best = components[int(np.argmin(objectives))]
    mean = float(np.mean(objectives))
    return score(truth, best, seconds, sum(times), **{"mean objective": mean})


def run_cnmf(python: str, counts: np.ndarray, truth: np.ndarray, runs: int) -> dict:
    """Run the package cnmf in its own Python, with two processes."""
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/counts.npy", counts)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(
            [python, "-c", CNMF, folder, str(K), str(runs), "1"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            return {"reason": done.stderr.strip().splitlines()[-1]}
        seconds = float(done.stdout.split("seconds")[-1].split()[0])
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return score(truth, np.load(f"{folder}/spectra.npy"), seconds, cpu)


def choose_ranks(cells: int, bootstraps: int) -> dict:
    """Choose the rank of one table and of bootstraps of its cells, by error and stability."""
    _, table, _ = prepared(0, 0.0, cells, cells // 2)
    rng = np.random.default_rng(0)
    chosen = []
    for at in range(1 + bootstraps):
        rows = rng.integers(cells, size=cells) if at else np.arange(cells)
        selection = select_rank(
            table[rows], range(K - 3, K + 4), stability=True, n_folds=3, n_runs=10, random_state=0
        )
        by_error = RankSelection(selection.ranks, selection.errors)
        chosen.append((selection.recommended, by_error.recommended))
        print("rank", chosen[-1], flush=True)
    whole, *others = (rank for rank, _ in chosen)
    return {
        "cells": cells, "genes": cells // 2, "true": K, "chosen": whole, "of bootstraps": others,
        "same": sum(rank == whole for rank in others), "by error alone": [r for _, r in chosen],
    }  # fmt: skip


def methods_for(
    data: tuple[np.ndarray, ...], options: argparse.Namespace, others: bool
) -> dict[str, Callable[[], dict]]:
    """Return the methods to run on one table, by name."""
    counts, table, truth = data
    runs, peer_runs = options.runs, options.peer_runs or options.runs
    methods: dict[str, Callable[[], dict]] = {
        "ConsensusNMF": lambda: run_consensus(table, truth, "trimmed", runs),
        "ConsensusNMF, uniform": lambda: run_consensus(table, truth, "uniform", runs),
    }
    if others:
        methods["scikit-learn, best run"] = lambda: run_sklearn(table, truth, peer_runs)
    if others and options.cnmf_python:
        methods["cnmf"] = lambda: run_cnmf(options.cnmf_python, counts, truth, peer_runs)
    return methods


def main() -> None:
    """Run the benchmark, print its rows and write the result file after each of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--size", type=int, default=2000, help="cells and genes")
    parser.add_argument("--cnmf-python", help="a Python that has cnmf")
    parser.add_argument("--peer-seeds", type=int, help="seeds for which others are run")
    parser.add_argument("--peer-runs", type=int, help="runs of others")
    parser.add_argument("--bootstraps", type=int, default=10, help="0 leaves out choosing ranks")
    parser.add_argument("--rank-cells", type=int, default=1200, help="cells for that")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows: list[dict] = []
    content: dict[str, Any] = {
        "programs": K, "cells and genes": options.size,
        "runs": options.runs, "seeds": options.seeds, "rows": rows,
    }  # fmt: skip
    peers = options.seeds if options.peer_seeds is None else options.peer_seeds
    content |= {"seeds of others": peers, "runs of others": options.peer_runs or options.runs}
    run_consensus(prepared(99, 0.0, 100)[1], prepared(99, 0.0, 100)[2], "trimmed", 2)  # compile
    for scenario, damaged in SCENARIOS.items():
        for seed in range(options.seeds):
            methods = methods_for(prepared(seed, damaged, options.size), options, seed < peers)
            for method, run in methods.items():
                rows.append({"scenario": scenario, "seed": seed, "method": method, **run()})
                print(rows[-1], flush=True)
                write_result("consensus.json", content)
    if options.bootstraps:
        content["rank"] = choose_ranks(options.rank_cells, options.bootstraps)
        print(content["rank"])
    write_result("consensus.json", content)


if __name__ == "__main__":
    main()
