"""Plan and run fits: settings, starts, runs, numbers of components, consensus and warnings."""

from robustnmf.fitting.plan import Encoder, FitPlan, FitResult, check_source, plan_fit
from robustnmf.fitting.rank import choose_components
from robustnmf.fitting.rank_selection import RankSelection
from robustnmf.fitting.settings import FitSettings, Seed, check_codes_path, check_weights
