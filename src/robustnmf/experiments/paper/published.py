"""The numbers that the paper prints."""

from __future__ import annotations

from collections.abc import Mapping

from robustnmf.experiments.methods import METHODS

DATASETS = (
    "yale", "orl", "gtfd", "winequality_red", "page_blocks", "balance", "thyroid", "wdbc", "dimdata"
)  # fmt: skip

SIZES = {
    "yale": (165, "32x32", 15),
    "orl": (400, "32x32", 40),
    "gtfd": (750, "32x32", 50),
    "winequality_red": (4898, "12", 11),
    "page_blocks": (5473, "10", 5),
    "balance": (625, "4", 3),
    "thyroid": (7200, "21", 3),
    "wdbc": (569, "32", 2),
    "dimdata": (4192, "14", 2),
}
"""Table 1: samples, dimensions, classes."""

_ACCURACY = {
    "yale": (39.82, 30.76, 40.91, 41.06, 41.91, 41.61),
    "orl": (66.07, 26.06, 66.35, 67.99, 69.02, 67.92),
    "gtfd": (62.56, 49.32, 63.76, 64.73, 66.85, 64.17),
    "winequality_red": (30.29, 28.99, 29.66, 30.44, 42.40, 42.40),
    "page_blocks": (34.17, 34.99, 38.71, 36.67, 89.71, 89.71),
    "balance": (51.70, 51.34, 50.78, 51.93, 51.66, 54.55),
    "thyroid": (54.04, 55.83, 54.65, 54.19, 92.56, 92.56),
    "wdbc": (87.69, 83.68, 87.70, 88.58, 89.01, 89.69),
    "dimdata": (52.45, 54.26, 52.32, 52.45, 69.74, 67.42),
}
_INFORMATION = {
    "yale": (45.23, 38.04, 46.20, 46.31, 47.05, 47.15),
    "orl": (83.48, 50.87, 83.66, 84.40, 84.84, 84.34),
    "gtfd": (85.48, 73.93, 85.60, 86.05, 86.71, 85.90),
    "winequality_red": (10.56, 8.47, 10.53, 10.63, 9.88, 10.79),
    "page_blocks": (12.16, 6.78, 13.27, 12.57, 15.33, 12.55),
    "balance": (10.78, 13.01, 10.11, 11.73, 12.84, 17.48),
    "thyroid": (1.60, 1.55, 1.76, 1.61, 3.61, 2.41),
    "wdbc": (51.18, 34.76, 51.20, 54.32, 54.54, 54.57),
    "dimdata": (0.18, 0.84, 0.16, 0.18, 16.54, 14.33),
}


def _by_method(table: Mapping[str, tuple[float, ...]]) -> dict[tuple[str, str], float]:
    return {
        (dataset, method): value
        for dataset, values in table.items()
        for method, value in zip(METHODS, values, strict=True)
    }


ACCURACY = _by_method(_ACCURACY)
"""Table 2 in percent, by dataset and method."""

INFORMATION = _by_method(_INFORMATION)
"""Table 3 in percent, by dataset and method."""
