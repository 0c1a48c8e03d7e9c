"""Rankers that are a loss, seen through a scorer, minimised by a solver."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

from firstpage.engine.engine import Engine
from firstpage.losses.loss import Loss
from firstpage.rankers.fit.fit import fit_parts
from firstpage.rankers.fit.request import Composition, FitRequest, FitResult
from firstpage.rankers.ranker import Ranker
from firstpage.rankers.sharded.data import check_trees
from firstpage.scorers.registry import scorer as scorer_of
from firstpage.solvers.registry import solver as solver_of


@dataclass(eq=False, repr=False)
class Composed(Ranker):
    """`loss x scorer x solver`.

    scorer     "linear", "mlp" or "trees", with parameters as in "trees(count=300, leaves=31)"
    solver     "lbfgs", "gd", "sgd", "adam" or "cutting plane", as in "sgd(rate=0.01)"; "auto"
               suits the loss and the scorer
    """

    _spreads: ClassVar[bool] = True

    _: KW_ONLY
    scorer: Any = "linear"
    solver: Any = "auto"

    def _loss(self) -> Loss:
        raise AssertionError(f"{type(self).__name__} has no loss")

    def _tree_loss(self) -> Loss:
        """The loss as an objective of boosted trees, which add up documents."""
        return self._loss()

    def _penalty(self) -> float:
        """l2 in l2 / 2 * |w|^2, beside the mean loss of a query."""
        raise AssertionError(f"{type(self).__name__} has no penalty")

    def _parts(self) -> Composition:
        loss = self._tree_loss() if scorer_of(self.scorer).additive else self._loss()
        return Composition(loss, self.scorer, self.solver, self._penalty())

    def _learn(self, request: FitRequest) -> FitResult:
        return fit_parts(request, self._parts())

    def _check_place(self, place: Engine) -> None:
        scorer = scorer_of(self.scorer)
        if scorer.additive:
            check_trees(place, scorer)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        scorer_of(self.scorer)
        solver_of(self.solver, None, self.seed)
