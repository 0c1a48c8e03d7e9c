"""Rankers composed of a loss, a scorer and a solver."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, fields, replace
from typing import Any, ClassVar

from firstpage.core import DataError
from firstpage.core.engine import Engine
from firstpage.learning.losses.base import Loss
from firstpage.learning.losses.resampled import ResampledTies
from firstpage.learning.rankers.base import Grid, Ranker
from firstpage.learning.rankers.fit.fit import fit_scorer, fit_trees, growth_options
from firstpage.learning.rankers.fit.request import FitRequest, FitResult
from firstpage.learning.rankers.sharded.data import check_trees
from firstpage.learning.rankers.trees.growth import TreeObjective, tree_grid
from firstpage.learning.scorers.registry import scorer as scorer_of
from firstpage.learning.solvers.registry import solver as solver_of

UNUSED_BY_TREES = ("solver", "l2", "C")


@dataclass(eq=False, repr=False)
class Composed(Ranker):
    """Base class of rankers that minimize a loss over the parameters of a scorer with a solver.

    Parameters
    ----------
    scorer : str or scorer, default "linear"
        "linear", "mlp", "network" or "trees", with parameters as in "trees(count=300, leaves=31)"
        or "network(layers=(128, 64), dropout=0.1)".
    solver : str or solver, default "auto"
        "lbfgs", "gd", "sgd", "adam" or "cutting plane", with parameters as in "sgd(rate=0.01)".
        "auto" chooses one that suits the loss and the scorer.
    """

    _supports_shards: ClassVar[bool] = True

    _: KW_ONLY
    scorer: Any = "linear"
    solver: Any = "auto"

    def _loss(self) -> Loss:
        """Return the loss of the ranker; every subclass defines it."""
        raise AssertionError(f"{type(self).__name__} has no loss")

    def _tree_loss(self) -> Loss:
        """Return the loss for boosted trees, which sum over documents."""
        return self._loss()

    def _pair_loss(self) -> Loss:
        """Return the loss of votes on pairs; rankers that train on them define it."""
        raise AssertionError(f"{type(self).__name__} has no loss of pairs")

    def _fit_loss(self, request: FitRequest, trees: bool) -> Loss:
        """Return the loss of a fit: of votes or of labels, whose ties may be ordered anew."""
        if request.training.pairs is not None:
            return self._pair_loss()
        if trees:
            return self._tree_loss()
        loss = self._loss()
        return ResampledTies(loss, self.k, self.seed) if self.ties == "resample" else loss

    def _check_resampling(self) -> None:
        if self.solver == "auto" or solver_of(self.solver, self.seed).batch is None:
            raise DataError(
                "ties='resample' draws new orders in every epoch, which needs a stochastic solver; "
                "set solver='sgd' or solver='adam', or ties='random'."
            )
        if scorer_of(self.scorer).additive or self._device() not in (None, "cpu"):
            raise DataError(
                "ties='resample' needs linear scores or a network, trained on the CPU; use "
                "ties='random'."
            )

    def _penalty(self) -> float:
        """Return l2 of the penalty l2 / 2 * |w|^2, which is added to the mean loss per query."""
        raise AssertionError(f"{type(self).__name__} has no penalty")

    def _device(self) -> str | None:
        """Return the device to fit on; None leaves it to the scorer."""
        return None

    def _grows_trees(self) -> bool:
        return scorer_of(self.scorer).additive

    def _learn(self, request: FitRequest) -> FitResult:
        scorer, device = scorer_of(self.scorer), self._device()
        if scorer.additive and device is not None:
            raise DataError("trees grow on the CPU; device= is for linear scorers and networks.")
        loss = self._fit_loss(request, scorer.additive)
        if scorer.additive:
            growth = request.training.loss_growth(scorer, loss, growth_options(request))
            return fit_trees(request, scorer, growth)
        scorer = scorer if device is None else replace(scorer, device=device)
        return fit_scorer(request, loss, scorer, self.solver, self._penalty())

    def _paper_grid(self) -> Grid:
        """Return the learning rates of a descent solver, else the grid of the class.

        Trees have no penalty: where there is nothing else to tune, their learning rate is tuned.
        """
        scorer = scorer_of(self.scorer)
        if scorer.additive:
            grid = super()._paper_grid()
            effective = {name: grid[name] for name in grid if name not in UNUSED_BY_TREES}
            return effective or tree_grid(scorer)
        solver: Any = None if self.solver == "auto" else solver_of(self.solver, self.seed)
        if solver is None or not solver.rate_grid:
            return super()._paper_grid()
        return {"solver": [replace(solver, rate=rate) for rate in solver.rate_grid]}

    def _tree_objective(self) -> TreeObjective:
        self.check_parameters()
        return TreeObjective(type(self).__name__, self._tree_loss(), self._truth)

    def _check_engine(self, engine: Engine) -> None:
        if self.ties == "resample":
            raise DataError("ties='resample' needs the data in memory; use ties='random'.")
        scorer = scorer_of(self.scorer)
        if scorer.additive:
            check_trees(engine, scorer)

    def check_parameters(self) -> None:
        super().check_parameters()
        if self.solver != "auto":
            solver_of(self.solver, self.seed)
        if scorer_of(self.scorer).additive:
            self._check_tree_parameters()

    def _check_tree_parameters(self) -> None:
        """Raise an error for a parameter of linear scorers and networks that trees do not use."""
        for field in fields(self):
            if field.name in UNUSED_BY_TREES and getattr(self, field.name) != field.default:
                raise DataError(
                    f"trees do not use {field.name}; leave it out, and set parameters of trees, as "
                    "in scorer='trees(rate=0.05)'."
                )


def check_no_k(ranker: Ranker) -> None:
    """Raise an error if a ranker that trains on pairs has a k: only labels have a top k."""
    if ranker.k is not None:
        raise DataError(
            f"{type(ranker).__name__}(k={ranker.k}) needs labels: pairs have no top k. Leave k out."
        )
