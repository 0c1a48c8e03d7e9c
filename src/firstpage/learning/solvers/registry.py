"""Solvers by name, and whether they suit a loss and a scorer."""

from __future__ import annotations

from typing import Any

from firstpage.core import ParameterError, Registry
from firstpage.learning.losses.base import IncompatibleComponents, Loss
from firstpage.learning.scorers.scorer import BoundScorer
from firstpage.learning.solvers.cutting_plane.one_slack import CuttingPlane
from firstpage.learning.solvers.descent import SGD, Adam, GradientDescent
from firstpage.learning.solvers.lbfgs import LBFGS
from firstpage.learning.solvers.solver import AnySolver

SOLVERS: dict[str, Any] = {
    "lbfgs": LBFGS,
    "gd": GradientDescent,
    "sgd": SGD,
    "adam": Adam,
    "cutting plane": CuttingPlane,
}
LINEAR_RATE = 0.05  # of Adam for linear scores, in coordinates of about unit curvature
REGISTRY = Registry("solver", SOLVERS, {"gradient descent": "gd"})


def solver(name_or_solver: str | AnySolver, seed: int) -> AnySolver:
    """Return the solver of a string such as "sgd(rate=0.01)"; a solver is returned unchanged."""
    if isinstance(name_or_solver, str):
        created: AnySolver = REGISTRY.create(name_or_solver, {"seed": seed})
        return created
    if not hasattr(name_or_solver, "minimize"):
        raise ParameterError(
            f"solver must be a string such as 'lbfgs', or a solver; got {name_or_solver!r}."
        )
    return name_or_solver


def solver_for(
    name_or_solver: str | AnySolver, loss: Loss, scorer: BoundScorer, seed: int
) -> AnySolver:
    """Return the solver for a loss and a scorer; "auto" chooses one.

    Raises an error, before any work, if the loss or the scorer lacks what the solver requires.
    """
    if name_or_solver != "auto":
        chosen = solver(name_or_solver, seed)
    elif not scorer.linear:
        chosen = Adam(seed=seed)
    elif loss.traits.smooth and loss.traits.deterministic:
        chosen = LBFGS()
    else:
        chosen = CuttingPlane() if loss.traits.convex else Adam(LINEAR_RATE, seed=seed, whiten=True)
    if chosen.linear and not scorer.linear:
        raise IncompatibleComponents(
            f"{type(chosen).__name__} needs linear scores. Choose scorer='linear', or a descent "
            "such as solver='adam'."
        )
    if "deterministic" in chosen.required_traits and not scorer.deterministic:
        raise IncompatibleComponents(
            f"{type(chosen).__name__} needs the same scores in every evaluation, and dropout draws "
            "new ones. Set dropout=0, or choose a descent such as solver='adam'."
        )
    missing = [trait for trait in chosen.required_traits if not getattr(loss.traits, trait)]
    if missing:
        raise IncompatibleComponents(
            f"{type(chosen).__name__} needs a {' and '.join(missing)} loss, and "
            f"{type(loss).__name__} is not. Choose another loss or solver."
        )
    return chosen
