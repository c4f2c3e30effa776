"""Gene programs of cells: ``robustnmf.anndata.consensus`` beside the package cnmf, file to results.

    python benchmarks/cells.py --cnmf-python PATH [--workers 2] [--device cuda] [--append]

Real cells (``scanpy.datasets.pbmc68k_reduced``, counts rebuilt from ``.raw``), and simulated ones
with 20 programs, without and with 5 percent of damaged cells. Each call is a process of its own
that reads an H5AD file, after a first one that does not count; nor do imports. ``--cnmf-python`` is
a Python that has cnmf, ``--workers`` the number of its processes. ``recovered`` counts planted
programs with a cosine of 0.9 or more, ``Rand index`` compares the dominant program with the type of
the cells, and ``reproduced`` is the mean cosine between the programs of different seeds. On the
real cells, cnmf's consensus step is also run on our runs: the least cosine of its spectra and ours.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import anndata
import numpy as np
import pandas as pd
import scipy.sparse
from harness import describe_run, parse, read_result, write_result
from sklearn.metrics import adjusted_rand_score

from robustnmf.metrics import match_components

RECOVERED = 0.9

MEASURE = """
import json, resource, sys, time
source, target, k, runs, seed, workers, device = sys.argv[1:]
k, runs, seed, workers = int(k), int(runs), int(seed), int(workers)

def processor():
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used), used

def finish(begin, spectra, usages):
    seconds = time.perf_counter() - begin[0]
    spent, used = processor()
    np.savez(target, spectra=spectra, usages=usages)
    print(json.dumps({
        "seconds": round(seconds, 2),
        "processor seconds": round(spent - begin[1], 1),
        "peak MB of the largest process": round(max(u.ru_maxrss for u in used) / 1024),
    }))
"""

OURS = """
import warnings
import anndata, numpy as np
import robustnmf.estimators  # which consensus imports
from robustnmf.anndata import consensus
warnings.simplefilter("ignore")
if device != "cpu":
    import torch
    torch.zeros(1, device=device)
begin = time.perf_counter(), processor()[0]
adata = anndata.read_h5ad(source)
consensus(adata, k, n_runs=runs, random_state=seed, device=None if device == "cpu" else device)
finish(begin, adata.varm["consensus_tpm"].T, adata.obsm["X_consensus"])
"""

CNMF = """
import tempfile
import numpy as np, pandas as pd
from cnmf import cNMF
begin = time.perf_counter(), processor()[0]
with tempfile.TemporaryDirectory() as folder:
    model = cNMF(output_dir=folder, name="run")
    model.prepare(counts_fn=source, components=[k], n_iter=runs, seed=seed)
    model.factorize_multi_process(total_workers=workers)
    model.combine()
    model.consensus(k=k, density_threshold=0.5, show_clustering=False, build_ref=False)
    tables = [pd.read_csv(model.paths[name + "__txt"] % (k, "0_5"), sep="\\t", index_col=0)
              for name in ("gene_spectra_tpm", "consensus_usages")]
finish(begin, *(table.to_numpy() for table in tables))
"""

RUNS = """
import sys, anndata
from robustnmf.anndata import consensus, write_cnmf
source, folder, k, runs = sys.argv[1:]
adata = anndata.read_h5ad(source)
consensus(adata, int(k), n_runs=int(runs), keep_runs=True)
write_cnmf(adata, folder, "run")
"""

COMBINE = """
import sys
from cnmf import cNMF
cNMF(output_dir=sys.argv[2], name="run").consensus(
    k=int(sys.argv[3]), density_threshold=0.5, show_clustering=False, build_ref=False
)
"""


def real_cells() -> tuple[anndata.AnnData, np.ndarray | None, Any]:
    """Return 700 blood cells with counts; their programs are not known, their types are."""
    import scanpy

    cells = scanpy.datasets.pbmc68k_reduced()
    ratios = np.expm1(cells.raw.X.toarray().astype(np.float64))
    least = np.where(ratios > 0, ratios, np.inf).min(axis=1, keepdims=True)
    counts = scipy.sparse.csr_matrix(np.rint(ratios / least))
    adata = anndata.AnnData(counts, obs=cells.obs[["bulk_labels"]], var=cells.var[[]])
    return adata, None, cells.obs["bulk_labels"].astype(str).to_numpy()


def simulated_cells(
    damaged: float, n_cells: int = 10_000, n_genes: int = 5_000, k: int = 20
) -> tuple[anndata.AnnData, np.ndarray | None, Any]:
    """Return cells of k programs, each of which raises a twentieth of the genes.

    A cell uses the program of its type, and some of the others. Of a damaged cell few genes are
    left, other ones each time, in large numbers.
    """
    rng = np.random.default_rng(0)
    programs = np.tile(rng.lognormal(0.0, 1.2, n_genes), (k, 1))
    for program in programs:
        raised = rng.permutation(n_genes)[: n_genes // 20]
        program[raised] *= rng.lognormal(1.6, 0.6, len(raised))
    programs /= programs.sum(axis=1, keepdims=True)
    frequency = rng.dirichlet(np.full(k, 4.0)) + 0.3 / k
    types = rng.choice(k, n_cells, p=frequency / frequency.sum())
    usages = 0.4 * rng.dirichlet(np.full(k, 0.15), n_cells)
    usages[np.arange(n_cells), types] += 0.6
    sizes = rng.lognormal(np.log(4000), 0.4, (n_cells, 1))
    is_damaged = rng.random(n_cells) < damaged
    rates = usages @ programs
    left = rng.gamma(0.02, size=(int(is_damaged.sum()), n_genes))
    rates[is_damaged] = 3 * left / left.sum(axis=1, keepdims=True)
    counts = rng.poisson(sizes * rates).astype(np.float32)
    seen = counts.any(axis=0)
    names = np.where(is_damaged, "damaged", types.astype(str))
    return anndata.AnnData(scipy.sparse.csr_matrix(counts[:, seen])), programs[:, seen], names


def call(python: str, script: str, *given: object, alone: bool = False) -> str:
    """Run a script in a process of its own, which may have one thread; return what it prints."""
    limits = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"} if alone else {}
    done = subprocess.run(
        [python, "-c", script, *map(str, given)],
        capture_output=True, text=True, check=False, env=os.environ | limits,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(done.stderr)
    return done.stdout


def measure(
    python: str, script: str, source: Path, k: int, seed: int, options: argparse.Namespace,
    device: str = "cpu",
) -> tuple[dict[str, Any], np.ndarray, np.ndarray]:  # fmt: skip
    """Run a script; return its cost, spectra and usages."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder, "found.npz")
        given = source, target, k, options.runs, seed, options.workers, device
        printed = call(python, MEASURE + script, *given, alone=script is CNMF)
        with np.load(target) as found:
            spectra, usages = found["spectra"], found["usages"]
        return json.loads(printed.splitlines()[-1]), spectra, usages


def describe(
    spectra: list[np.ndarray], usages: list[np.ndarray], programs: np.ndarray | None, types: Any
) -> dict[str, Any]:
    """Compare the spectra and usages of all seeds with the truth and with each other."""
    good = types != "damaged"
    rand = [adjusted_rand_score(types[good], u.argmax(axis=1)[good]) for u in usages]
    result: dict[str, Any] = {"Rand index": [round(float(value), 3) for value in rand]}
    if programs is not None:
        cosines = [match_components(programs, found)[2] for found in spectra]
        result["recovered"] = [int((c >= RECOVERED).sum()) for c in cosines]
        result["mean cosine"] = [round(float(c.mean()), 4) for c in cosines]
    pairs = [match_components(spectra[0], other)[2].mean() for other in spectra[1:]]
    result["reproduced"] = round(float(np.mean(pairs)), 4) if pairs else None
    return result


def same_runs(source: Path, k: int, options: argparse.Namespace) -> dict[str, float]:
    """Compare our spectra with those of cnmf's consensus step on our runs; return least cosines."""
    tables = {"gene_spectra_tpm": "TPM", "spectra": "scaled counts"}
    found: list[dict[str, np.ndarray]] = []
    with tempfile.TemporaryDirectory() as folder:
        for python, script in ((sys.executable, RUNS), (options.cnmf_python, COMBINE)):
            call(python, script, source, folder, k, options.runs)
            paths = {
                name: next(Path(folder, "run").glob(f"run.{name}.k_{k}.*.txt")) for name in tables
            }
            found.append({name: pd.read_csv(path, sep="\t", index_col=0).to_numpy()
                          for name, path in paths.items()})  # fmt: skip
    ours, theirs = found
    return {what: round(float(match_components(ours[name], theirs[name])[2].min()), 6)
            for name, what in tables.items()}  # fmt: skip


def main() -> None:
    """Run the benchmark, print its rows and write the result file after each of them."""
    options = parse(
        __doc__,
        cnmf_python={"help": "a Python that has cnmf; without it cnmf is left out"},
        runs={"type": int, "default": 100},
        seeds={"type": int, "default": 2},
        cnmf_seeds={"type": int, "help": "seeds of cnmf"},
        workers={"type": int, "default": 2, "help": "processes of cnmf"},
        device={"help": "also run on this device of PyTorch"},
        tables={"nargs": "*", "help": "only these"},
        append={"action": "store_true", "help": "keep the rows of earlier runs"},
    )
    tables = {
        "pbmc68k_reduced": (real_cells, 8),
        "simulated": (lambda: simulated_cells(0.0), 20),
        "simulated, 5% damaged": (lambda: simulated_cells(0.05), 20),
    }
    methods = {"robustnmf": (sys.executable, OURS, "cpu")}
    if options.device:
        methods[f"robustnmf, {options.device}"] = (sys.executable, OURS, options.device)
    if options.cnmf_python:
        methods["cnmf"] = (options.cnmf_python, CNMF, "cpu")
    rows: list[dict[str, Any]] = []
    warm: set[tuple[str, str]] = set()
    earlier = read_result("cells.json")["rows"] if options.append else []
    for name, (make, k) in tables.items():
        if options.tables and name not in options.tables:
            continue
        with tempfile.TemporaryDirectory() as folder:
            adata, programs, types = make()
            source = Path(folder, "cells.h5ad")
            adata.write_h5ad(source)
            for method, (python, script, device) in methods.items():
                seeds = (script is CNMF and options.cnmf_seeds) or options.seeds
                if (script, device) not in warm:  # compiles, and reads libraries from the disk
                    measure(python, script, source, k, 0, options, device)
                    warm.add((script, device))
                found = [measure(python, script, source, k, seed, options, device)
                         for seed in range(seeds)]  # fmt: skip
                costs, spectra, usages = (list(values) for values in zip(*found, strict=True))
                cost = {key: [cost[key] for cost in costs] for key in costs[0]}
                rows.append({"table": name, "shape": list(adata.shape), "method": method,
                             "runs": options.runs, "workers of cnmf": options.workers,
                             "processor": describe_run()["machine"]["processor"], **cost,
                             **describe(spectra, usages, programs, types)})  # fmt: skip
                if script is CNMF and programs is None:
                    rows[-1]["least cosine, same runs"] = same_runs(source, k, options)
                print(rows[-1], flush=True)
                write_result("cells.json", {"rows": earlier + rows})


if __name__ == "__main__":
    main()
