"""Find outliers and wrong entries on a few thousand rows, before the fit of all samples."""

from robustnmf.screening.decision import UNDECIDED
from robustnmf.screening.entries import fit_good_entries, screen_entries
from robustnmf.screening.neighbourhood import Neighbourhood, find_neighbourhood
from robustnmf.screening.samples import ROWS, Screening, enough_components, screen
