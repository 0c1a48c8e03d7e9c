"""The training record of a model: its data, versions, and the course of the fit.

Model files contain it, and the fitted attributes are read from it, after `fit` and after `load`.
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
"""A record of a model file, as JSON."""
NO_GAP = "gap_ is NaN: there is no bound of the optimum of this ranker."


@cache
def versions() -> dict[str, str]:
    """Return the versions of the packages that a fit may use; cached, because it is slow."""
    versions_by_package = {"firstpage": __version__}
    for package in ("numpy", "scipy", "lightgbm", "xgboost-cpu", "torch"):
        try:
            versions_by_package[package] = version(package)
        except PackageNotFoundError:
            continue
    return versions_by_package


def fit_record(
    iterations: int,
    objective: float,
    converged: bool,
    interrupted: bool,
    best: Step | None,
    history: list[Step],
    gap: float | None,
    gap_note: str | None = None,
) -> Record:
    """Return the course of a fit as JSON, from which `fitted_attributes` reads.

    `gap_note` says why the gap is unknown.  Seconds are omitted, so that equal fits write equal
    files.
    """
    score = best.measure if best else (history[-1].measure if history else None)
    return {
        "score": _number_to_json(score),
        "iterations": int(iterations),
        "best_iteration": best.iteration if best else None,
        "objective": _loss_to_json(objective),
        "gap": _number_to_json(gap),
        "gap_note": (gap_note or NO_GAP) if gap is None else None,
        "converged": bool(converged),
        "interrupted": bool(interrupted),
        "curve": [
            [s.iteration, _loss_to_json(s.loss), _number_to_json(s.measure)] for s in history
        ],
        "improved": [row for row, s in enumerate(history) if s.best],  # rows of the curve
    }


def fitted_attributes(record: Record) -> Record:
    """Return the fitted attributes of a record; records of older files lack some."""
    return {
        name: read(*(record[key] for key in keys))
        for name, (keys, read) in ATTRIBUTES.items()
        if record.keys() >= set(keys)
    }


def _number_to_json(value: float | None) -> float | str | None:
    """Return a number as JSON: NaN and infinities as strings."""
    if value is None:
        return None
    return float(value) if math.isfinite(value) else str(float(value))


def _loss_to_json(value: float) -> float | str | None:
    """Return a loss as JSON: NaN, which means unknown, as null."""
    return _number_to_json(None if math.isnan(value) else value)


def _number(stored: float | str | None) -> float | None:
    return None if stored is None else float(stored)


def _loss(stored: float | str | None) -> float:
    return math.nan if stored is None else float(stored)


def _history(curve: list[list[float]], improved: list[int]) -> list[Step]:
    best = set(improved)
    return [
        Step(int(iteration), _loss(loss), _number(measure), row in best)
        for row, (iteration, loss, measure) in enumerate(curve)
    ]


ATTRIBUTES: dict[str, tuple[tuple[str, ...], Callable[..., Any]]] = {
    # by name: the keys of the record, and the function of their values
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
