"""The options of a project: which there are, what is usual, what is refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from firstpage.errors import DataError

CHOICES = ("order", "simple-margin", "diverse", "committee")

DEFAULTS: dict[str, Any] = {
    "ties": False,  # a button for "neither is better"
    "bad": True,  # buttons for "clearly irrelevant"
    "away_after": 120,  # seconds without a sign of life until we ask
    "training_pass": 0.7,  # share of training questions to get right
    "replicates": 1,  # assessors a query, under each tool
    "tools": None,  # several tools, for a study; else the project's own
    "folds": None,
    "rtl": None,  # documents read from right to left; None: as their text does
    "seconds": None,  # expected a judgment; None: as published for the tool
    "choose": "order",  # which pair of lists comes next: by the order of work, or what teaches most
}


def checked_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Those given, each of its kind; what is not known is refused."""
    for name, value in given.items():
        if name not in DEFAULTS:
            raise DataError(f"a project has no option {name!r} (it has: {', '.join(DEFAULTS)}).")
        fits, words = RULES[name]
        if value is None and DEFAULTS[name] is None:
            continue
        if not fits(value):
            raise DataError(f"the option {name} is {words}; got {value!r}.")
    return dict(given)


def _number(value: object, low: float, high: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high


def _count(high: int) -> tuple[Callable[[Any], bool], str]:
    return (
        lambda v: isinstance(v, int) and _number(v, 1, high),
        f"a whole number from 1 to {high}",
    )


def _tools(value: Any) -> bool:
    known = {"pairs", "grades", "lists"}
    if not isinstance(value, list | tuple) or not all(isinstance(v, str) for v in value):
        return False
    return 0 < len(set(value) & known) == len(value)


_FLAG: tuple[Callable[[Any], bool], str] = (lambda v: isinstance(v, bool), "true or false")
RULES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "ties": _FLAG,
    "bad": _FLAG,
    "rtl": _FLAG,
    "away_after": (lambda v: _number(v, 5, 86400), "seconds from 5 to 86400"),
    "training_pass": (lambda v: _number(v, 0, 1), "a share from 0 to 1"),
    "seconds": (lambda v: _number(v, 0.1, 3600), "seconds from 0.1 to 3600"),
    "replicates": _count(1000),
    "folds": _count(100_000),
    "choose": (lambda v: v in CHOICES, f"one of {', '.join(CHOICES)}"),
    "tools": (_tools, "a list of pairs, grades, lists, each once"),
}
