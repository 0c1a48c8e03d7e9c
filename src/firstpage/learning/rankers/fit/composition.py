"""How rankers learn: a loss, a scorer, a solver, a penalty and a device; or another procedure."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Literal, TypeVar

from firstpage.core import DataError, warn
from firstpage.core.engine import Engine
from firstpage.learning.losses.base import Loss
from firstpage.learning.losses.resampled import ResampledTies
from firstpage.learning.rankers.fit.estimator import Grid
from firstpage.learning.rankers.fit.fit import fit_scorer, fit_trees, growth_options
from firstpage.learning.rankers.fit.request import FitRequest, FitResult
from firstpage.learning.rankers.sharded.data import check_trees
from firstpage.learning.rankers.trees.growth import tree_grid
from firstpage.learning.scorers.registry import AnyScorer
from firstpage.learning.scorers.registry import scorer as scorer_of
from firstpage.learning.solvers.registry import solver as solver_of
from firstpage.learning.solvers.solver import AnySolver

UNUSED_BY_TREES = ("solver", "l2", "C")


@dataclass(frozen=True, eq=False)
class Procedure:
    """What `compose` of a ranker returns: it learns from a request.

    Most rankers return a `Composition`.
    """

    @property
    def reads_labels(self) -> bool:
        """Whether a fit on votes reads labels too."""
        return True

    def fit(self, request: FitRequest) -> FitResult:
        """Return the fitted model with the record of its training."""
        raise AssertionError(f"{type(self).__name__} does not learn")

    def check_engine(self, engine: Engine) -> None:
        """Raise an error for an engine that cannot train it over shards."""

    def resampled(self, name: str, k: int | None, seed: int) -> Procedure:
        """Return the procedure that orders equal labels anew in every epoch."""
        raise DataError(
            f"ties='resample' needs the epochs of a stochastic solver, and {name} has none; use "
            "ties='random'."
        )

    def tree_loss(self, name: str) -> Loss:
        """Return the loss that boosted trees minimize."""
        raise DataError(f"{name} has no loss that boosted trees can minimize.")

    def grid(self, of_paper: Grid) -> Grid:
        """Return the values to tune, given those that the papers search."""
        return dict(of_paper)


@dataclass(frozen=True, eq=False)
class Composition(Procedure):
    """A loss that is minimized over the parameters of a scorer, with a penalty on their squares."""

    loss: Loss
    scorer: AnyScorer
    solver: AnySolver | Literal["auto"] = "auto"  # "auto" chooses one for the loss and the scorer
    penalty: float = 0.0  # l2 of l2 / 2 * |params|^2, which is added to the mean loss
    device: str | None = None  # None leaves it to the scorer
    reads_labels: bool = True  # in a fit on votes
    note: str | None = None  # a warning about the loss, when a fit begins

    def fit(self, request: FitRequest) -> FitResult:
        if self.note is not None:
            warn(self.note)
        if self.scorer.additive:
            options = growth_options(request)
            growth = request.training.loss_growth(self.scorer, self.loss, options)
            return fit_trees(request, growth)
        scorer = self.scorer
        scorer = scorer if self.device is None else replace(scorer, device=self.device)
        return fit_scorer(request, self.loss, scorer, self.solver, self.penalty)

    def check_engine(self, engine: Engine) -> None:
        if isinstance(self.loss, ResampledTies):
            raise DataError("ties='resample' needs the data in memory; use ties='random'.")
        if self.scorer.additive:
            check_trees(engine, self.scorer)

    def resampled(self, name: str, k: int | None, seed: int) -> Composition:
        if self.scorer.additive or self.device not in (None, "cpu"):
            raise DataError(
                "ties='resample' needs linear scores or a network, trained on the CPU; use "
                "ties='random'."
            )
        if isinstance(self.solver, str) or self.solver.batch is None:
            raise DataError(
                "ties='resample' draws new orders in every epoch, which needs a stochastic solver; "
                "set solver='sgd' or solver='adam', or ties='random'."
            )
        return replace(self, loss=ResampledTies(self.loss, k, seed))

    def tree_loss(self, name: str) -> Loss:
        return self.loss

    def grid(self, of_paper: Grid) -> Grid:
        """Return the learning rates of a descent, else the grid of the papers.

        Trees have no penalty: where there is nothing else to tune, their learning rate is tuned.
        """
        if self.scorer.additive:
            effective = {name: of_paper[name] for name in of_paper if name not in UNUSED_BY_TREES}
            return effective or tree_grid(self.scorer)
        solver: Any = self.solver
        if solver == "auto" or not solver.rate_grid:
            return dict(of_paper)
        return {"solver": [replace(solver, rate=rate) for rate in solver.rate_grid]}


Kind = TypeVar("Kind", bound=Composition)


def composed(
    ranker: Any,
    kind: type[Kind],
    loss: Loss,
    penalty: float,
    device: str | None,
    **options: Any,
) -> Kind:
    """Return the composition of a loss with the ranker's scorer and solver, which are parsed."""
    scorer = scorer_of(ranker.scorer)
    if scorer.additive:
        _check_unused_by_trees(ranker)
        if device is not None:
            raise DataError("trees grow on the CPU; device= is for linear scorers and networks.")
    solver = ranker.solver if ranker.solver == "auto" else solver_of(ranker.solver, ranker.seed)
    return kind(loss, scorer, solver, penalty, device, **options)


def _check_unused_by_trees(ranker: Any) -> None:
    """Raise an error for a parameter of linear scorers and networks that trees do not use."""
    for field in fields(ranker):
        if field.name in UNUSED_BY_TREES and getattr(ranker, field.name) != field.default:
            raise DataError(
                f"trees do not use {field.name}; leave it out, and set parameters of trees, as "
                "in scorer='trees(rate=0.05)'."
            )


def check_no_k(ranker: Any) -> None:
    """Raise an error if a ranker that learns from votes has a k: only labels have a top k."""
    if ranker.k is not None:
        raise DataError(
            f"{type(ranker).__name__}(k={ranker.k}) needs labels: pairs have no top k. Leave k out."
        )
