"""Solvers by name, and whether they suit a loss."""

from __future__ import annotations

from typing import Any

from firstpage.losses.loss import IncompatibleComponents, Loss
from firstpage.registry import ParameterError, Registry
from firstpage.scorers.scorer import BoundScorer
from firstpage.solvers.cutting_plane.n_slack import NSlack
from firstpage.solvers.cutting_plane.one_slack import CuttingPlane
from firstpage.solvers.descent import SGD, Adam, GradientDescent
from firstpage.solvers.lbfgs import LBFGS
from firstpage.solvers.solver import AnySolver

SOLVERS: dict[str, Any] = {
    "lbfgs": LBFGS,
    "gd": GradientDescent,
    "sgd": SGD,
    "adam": Adam,
    "cutting plane": CuttingPlane,
    "n-slack": NSlack,
}
REGISTRY = Registry("solver", SOLVERS, {"gradient descent": "gd"})


def solver(given: str | AnySolver, seed: int) -> AnySolver:
    """A solver from a text such as "sgd(rate=0.01)"; a solver stays as it is."""
    if isinstance(given, str):
        created: AnySolver = REGISTRY.create(given, {"seed": seed})
        return created
    if not hasattr(given, "minimize"):
        raise ParameterError(f"solver must be a text such as 'lbfgs', or a solver; got {given!r}.")
    return given


def solver_for(given: str | AnySolver, loss: Loss, scorer: BoundScorer, seed: int) -> AnySolver:
    """The solver for a loss and a scorer, which "auto" chooses.

    Refuses, before any work, parts that lack what the solver relies on.
    """
    if given != "auto":
        chosen = solver(given, seed)
    elif not scorer.parallel:
        chosen = Adam(seed=seed)
    else:
        chosen = LBFGS() if loss.traits.smooth else CuttingPlane()
    if chosen.linear and not scorer.parallel:
        raise IncompatibleComponents(
            f"{type(chosen).__name__} needs linear scores. Choose scorer='linear', or a descent "
            "such as solver='adam'."
        )
    lacking = [trait for trait in chosen.needs if not getattr(loss.traits, trait)]
    if lacking:
        raise IncompatibleComponents(
            f"{type(chosen).__name__} needs a {' and '.join(lacking)} loss, and "
            f"{type(loss).__name__} is not. Choose another loss or solver."
        )
    return chosen
