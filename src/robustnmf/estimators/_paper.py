"""What the paper's six methods have in common."""

from __future__ import annotations

from typing import ClassVar

from robustnmf.compatibility import ModelSpec
from robustnmf.estimators._base import BaseRobustNMF
from robustnmf.estimators._docs import documented
from robustnmf.estimators._input import Seed
from robustnmf.losses import Frobenius
from robustnmf.structures import Free, Structure
from robustnmf.weightings import Uniform, Weighting


class PaperNMF(BaseRobustNMF):
    """Squared error, random start and multiplicative updates, as in the paper."""

    _default_init: ClassVar[str] = "random"

    def __init__(
        self,
        n_components: int | str | None = None,
        *,
        solver: str = "mu",
        init: str | None = "random",
        n_init: int = 1,
        max_iter: int = 1000,
        tol: float = 1e-4,
        random_state: Seed = None,
        verbose: int = 0,
    ):
        self.n_components = n_components
        self.solver = solver
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose

    def _parts(self) -> ModelSpec:
        return ModelSpec(Frobenius(), self._weighting(), self._structure())

    def _weighting(self) -> Weighting:
        return Uniform()

    def _structure(self) -> Structure:
        return Free()


documented_paper = documented(solver="mu", init="random", max_iter=1000)
