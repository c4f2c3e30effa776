"""Simulated counts with known parts: single cells with doublets, tumours with hypermutators."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse

from robustnmf.experiments.matching import match_parts

CHANNELS = 96
"""Kinds of single-base substitutions with their neighbours."""

SUBSTITUTIONS = ("C>A", "C>G", "C>T", "T>A", "T>C", "T>G")


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


@dataclass(frozen=True)
class Catalogues:
    """Mutations of tumours (tumours, 96) and what they were drawn from.

    ``signatures`` (k, 96) sum to one; ``is_hypermutator`` (tumours,) is True for tumours with
    very many mutations of a process of their own.
    """

    counts: np.ndarray
    signatures: np.ndarray
    is_hypermutator: np.ndarray


def simulate_catalogues(
    n_tumours: int = 300, n_signatures: int = 5, *, hypermutators: float = 0.05, seed: int = 0
) -> Catalogues:
    """Draw mutational catalogues.

    A signature favours one or two kinds of substitutions in some contexts, or is flat, as those
    that are published do. Exposures are gamma with many near zero; mutations are Poisson. Each
    hypermutator has thirty times as many mutations, all of them from a profile of its own.
    """
    rng = np.random.default_rng(seed)
    signatures = np.stack([_signature(rng) for _ in range(n_signatures)])
    exposures = rng.gamma(0.7, 400.0, (n_tumours, n_signatures))
    rates = exposures @ signatures
    is_hypermutator = rng.random(n_tumours) < hypermutators
    usual = rates.sum(axis=1).mean()
    for tumour in np.flatnonzero(is_hypermutator):
        rates[tumour] = 30 * usual * rng.dirichlet(np.full(CHANNELS, 0.1))
    return Catalogues(rng.poisson(rates).astype(np.float64), signatures, is_hypermutator)


def _signature(rng: np.random.Generator) -> np.ndarray:
    """Draw a signature (96,) that sums to one."""
    weights = np.full(len(SUBSTITUTIONS), 0.03)
    chosen = rng.choice(len(SUBSTITUTIONS), rng.integers(1, 3), replace=False)
    weights[chosen] += rng.dirichlet(np.ones(len(chosen)))
    contexts = rng.dirichlet(np.full(16, 0.4), len(SUBSTITUTIONS))
    signature = (weights[:, None] * contexts).ravel()
    return signature / signature.sum()


def matched_cosines(truth: np.ndarray, components: np.ndarray) -> np.ndarray:
    """Compute the cosine of every true part (k, features) with the component matched to it.

    Each component is matched once; parts without one have zero.
    """
    parts, _, cosines = match_parts(truth, components)
    matched = np.zeros(len(truth))
    matched[parts] = cosines
    return matched
