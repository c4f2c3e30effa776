"""Stick figures with known limbs, a fifth of them noise: how many limbs methods find.

    make bench        (or: python benchmarks/figures.py)

The figures of the README (``robustnmf.experiments.demo``), in 16 draws of brightness and noise.
A limb is found if the cosine of its component is 0.9 at least. What is possible is shown by
scikit-learn's NMF of the good figures alone; an isolation forest before it is what a user would do.
"""

from __future__ import annotations

import numpy as np
from harness import parse, write_result
from sklearn.decomposition import NMF
from sklearn.ensemble import IsolationForest

from robustnmf import RobustNMF
from robustnmf.experiments.demo import FOUND, Figures, draw_figures
from robustnmf.metrics import match_components

DRAWS = 16


def components_by_method(figures: Figures) -> dict[str, np.ndarray]:
    """Return the components (16, pixels) that every method learns."""
    rank = len(figures.parts)
    kept = IsolationForest(random_state=0).fit_predict(figures.X) == 1
    plain = NMF(rank, random_state=0, max_iter=1000)
    robust = RobustNMF(rank, random_state=0)
    return {
        "scikit-learn's NMF of the good figures": plain.fit(figures.X[~figures.bad]).components_,
        "scikit-learn's NMF": plain.fit(figures.X).components_,
        "isolation forest, then scikit-learn's NMF": plain.fit(figures.X[kept]).components_,
        "RobustNMF": robust.fit(figures.X).components_,
        "RobustNMF of the good figures": robust.fit(figures.X[~figures.bad]).components_,
    }


def main() -> None:
    """Print and write how many limbs are found in every draw."""
    parse(__doc__)
    found: dict[str, list[int]] = {}
    cosines: dict[str, list[float]] = {}
    for seed in range(DRAWS):
        figures = draw_figures(seed)
        for name, components in components_by_method(figures).items():
            *_, matched = match_components(figures.parts, components)
            found.setdefault(name, []).append(int((matched >= FOUND).sum()))
            cosines.setdefault(name, []).append(round(float(matched.mean()), 4))
    print("| method | limbs found, by draw | all 16 | mean cosine |\n|---|---|---|---|")
    for name, counts in found.items():
        whole = sum(count == 16 for count in counts)
        listed = " ".join(map(str, counts))
        print(f"| {name} | {listed} | {whole} of {DRAWS} | {np.mean(cosines[name]):.3f} |")
    write_result("figures.json", {"found": found, "cosines": cosines})


if __name__ == "__main__":
    main()
