"""Studies of contamination: how methods bear bad samples and entries."""

from robustnmf.experiments.contamination.entries import ENTRIES
from robustnmf.experiments.contamination.real import REAL, REAL_ENTRIES
from robustnmf.experiments.contamination.samples import SAMPLES

STUDIES = {study.name: study for study in (SAMPLES, ENTRIES, REAL, REAL_ENTRIES)}
"""Studies by name."""
