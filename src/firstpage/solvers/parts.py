"""Solvers by name, and whether they suit a loss."""

from __future__ import annotations

from typing import Any

from firstpage.losses.base import IncompatibleParts, Loss
from firstpage.names import PartError, build
from firstpage.solvers.descent import SGD, Adam, GradientDescent
from firstpage.solvers.lbfgs import LBFGS

SOLVERS: dict[str, Any] = {
    "lbfgs": LBFGS,
    "gd": GradientDescent,
    "gradient descent": GradientDescent,
    "sgd": SGD,
    "adam": Adam,
}


def solver(given: Any, default: Any, seed: int) -> Any:
    """A solver from a text such as "sgd(rate=0.01)"; "auto" is `default`."""
    if not isinstance(given, str):
        if not hasattr(given, "minimize"):
            raise PartError(f"solver must be a text such as 'lbfgs', or a solver; got {given!r}.")
        return given
    return default if given == "auto" else build(given, SOLVERS, "solver", seed=seed)


def check_parts(solver: Any, loss: Loss) -> None:
    """Refuse, before any work, a loss that lacks what the solver relies on."""
    lacking = [trait for trait in solver.needs if not getattr(loss.traits, trait)]
    if lacking:
        raise IncompatibleParts(
            f"{type(solver).__name__} needs a {' and '.join(lacking)} loss, and "
            f"{type(loss).__name__} is not. Choose another loss or solver."
        )
