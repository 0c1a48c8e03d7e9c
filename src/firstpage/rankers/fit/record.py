"""The training record of a model: its data, versions, and how the fit went.

Model files carry it as it is, and fitted attributes are read from it, after `fit` and after `load`
alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from firstpage import __version__
from firstpage.rankers.fit.progress import Step

Record = dict[str, Any]
"""What model files carry, as JSON holds it."""
NO_GAP = "gap_ is NaN: only cutting planes and n-slack, of linear weights, bound the optimum."


@cache
def versions() -> dict[str, str]:
    """Of what took part; looking them up is slow."""
    found = {"firstpage": __version__}
    for package in ("numpy", "scipy", "lightgbm", "xgboost-cpu", "torch"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def fit_record(
    iterations: int,
    objective: float,
    converged: bool,
    interrupted: bool,
    best: Step | None,
    history: list[Step],
    gap: float | None,
) -> Record:
    """Return how a fit went, as JSON holds it; `fitted_attributes` reads the same values back.

    Seconds are left out: the same training writes the same file.
    """
    score = best.measure if best else (history[-1].measure if history else None)
    return {
        "score": _written(score),
        "iterations": int(iterations),
        "best_iteration": best.iteration if best else None,
        "objective": _written_loss(objective),
        "gap": _written(gap),
        "gap_note": NO_GAP if gap is None else None,
        "converged": bool(converged),
        "interrupted": bool(interrupted),
        "curve": [[s.iteration, _written_loss(s.loss), _written(s.measure)] for s in history],
        "improved": [row for row, s in enumerate(history) if s.best],  # rows of the curve
    }


def fitted_attributes(record: Record) -> Record:
    """Return the fitted attributes that a record holds; those of older files are fewer."""
    return {
        name: read(*(record[key] for key in keys))
        for name, (keys, read) in ATTRIBUTES.items()
        if record.keys() >= set(keys)
    }


def _written(value: float | None) -> float | str | None:
    """Return a number as JSON holds it: NaN and infinities as text."""
    if value is None:
        return None
    return float(value) if math.isfinite(value) else str(float(value))


def _written_loss(value: float) -> float | str | None:
    """Return a loss as JSON holds it: NaN, one that is not known, as null."""
    return _written(None if math.isnan(value) else value)


def _number(written: float | str | None) -> float | None:
    return None if written is None else float(written)


def _loss(written: float | str | None) -> float:
    return math.nan if written is None else float(written)


def _history(curve: list[list[float]], improved: list[int]) -> list[Step]:
    best = set(improved)
    return [
        Step(int(iteration), _loss(loss), _number(measure), row in best)
        for row, (iteration, loss, measure) in enumerate(curve)
    ]


ATTRIBUTES: dict[str, tuple[tuple[str, ...], Callable[..., Any]]] = {
    # by name: what they are read from, and how
    "n_iter_": (("iterations",), int),
    "objective_": (("objective",), _loss),
    "converged_": (("converged",), bool),
    "interrupted_": (("interrupted",), bool),
    "best_iteration_": (("best_iteration",), lambda number: number),
    "best_score_": (("score",), _number),
    "gap_": (("gap",), _loss),
    "gap_note_": (("gap_note",), lambda text: text),
    "history_": (("curve", "improved"), _history),
}
