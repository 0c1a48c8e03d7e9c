"""Solvers by name, and whether they suit a loss."""

from __future__ import annotations

from typing import Any

from firstpage.losses.loss import IncompatibleParts, Loss
from firstpage.registry import PartError, Registry
from firstpage.scorers.scorer import Fitting
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


def solver(given: str | AnySolver, default: AnySolver, seed: int) -> AnySolver:
    """A solver from a text such as "sgd(rate=0.01)"; "auto" is `default`."""
    if not isinstance(given, str):
        if not hasattr(given, "minimize"):
            raise PartError(f"solver must be a text such as 'lbfgs', or a solver; got {given!r}.")
        return given
    if given == "auto":
        return default
    created: AnySolver = REGISTRY.create(given, {"seed": seed})
    return created


def suited(loss: Loss, scorer: Fitting, seed: int) -> AnySolver:
    """The solver for those who do not choose."""
    if not scorer.parallel:
        return Adam(seed=seed)
    return LBFGS() if loss.traits.smooth else CuttingPlane()


def check_parts(solver: AnySolver, loss: Loss, scorer: Fitting) -> None:
    """Refuse, before any work, parts that lack what the solver relies on."""
    if solver.linear and not scorer.parallel:
        raise IncompatibleParts(
            f"{type(solver).__name__} needs linear scores. Choose scorer='linear', or a descent "
            "such as solver='adam'."
        )
    lacking = [trait for trait in solver.needs if not getattr(loss.traits, trait)]
    if lacking:
        raise IncompatibleParts(
            f"{type(solver).__name__} needs a {' and '.join(lacking)} loss, and "
            f"{type(loss).__name__} is not. Choose another loss or solver."
        )
