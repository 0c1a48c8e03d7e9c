"""What a request asks, whatever its body was written in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from reprlib import Repr
from typing import Any

import numpy as np

from firstpage.serving.limits import Refusal
from firstpage.types import Array, Ints

REASONS = 10  # features of an explanation, where no number is asked for
ASKS = ("explain", "top")  # fields that say what the answer shall hold
ALL = 1 << 31  # more than there can be of anything here
SHORT = Repr()  # of what strangers send: neither long nor deep
SHORT.maxlevel, SHORT.maxstring, SHORT.maxother = 2, 60, 60


@dataclass(frozen=True)
class Wishes:
    """What the answer shall hold.

    explain  so many features of every candidate in the answer; 0: none
    top      the first so many candidates of a query; None: all
    """

    explain: int = 0
    top: int | None = None


@dataclass(frozen=True, eq=False)
class Asked:
    """Candidates of one or more queries; query q owns the rows offsets[q]:offsets[q+1]."""

    X: Array
    offsets: Ints
    ids: Sequence[Any] | None = None  # one a row; None: they go by their place in the query
    queries: Sequence[Any] | None = None
    wishes: Wishes = Wishes()

    @property
    def bounds(self) -> list[tuple[int, int]]:
        return list(pairwise(self.offsets.tolist()))

    @property
    def shown(self) -> int:
        """Candidates in the answer."""
        lengths = np.diff(self.offsets)
        top = self.wishes.top
        return int((lengths if top is None else np.minimum(lengths, top)).sum())


def wishes_of(given: Mapping[str, Any]) -> Wishes:
    """From a JSON object; `explain` may be true, and is 10 features then."""
    explain, top = given.get("explain", 0), given.get("top")
    if explain is True:
        explain = REASONS
    if explain in (False, None):
        explain = 0
    if type(explain) is not int or explain < 0:
        raise Refusal(422, "'explain' must be true, false or a number of features.")
    if top is not None and (type(top) is not int or top < 1):
        raise Refusal(422, "'top' must be a number of candidates from 1 on.")
    return Wishes(min(explain, ALL), None if top is None else min(top, ALL))


def check_fields(given: Iterable[str], known: Sequence[str], where: str) -> None:
    """Refuse a field that would be ignored."""
    for name in given:
        if name not in known:
            listed = ", ".join(map(repr, known))
            raise Refusal(422, f"{where} has an unknown field {short(name)}; known are {listed}.")


def wishes_of_address(given: Mapping[str, str]) -> Wishes:
    """From ?explain=..&top=.., where the body holds numbers alone."""
    words: dict[str, Any] = {"true": True, "false": False}
    found = {
        name: words.get(given[name], int(given[name]) if _whole(given[name]) else given[name])
        for name in ASKS
        if name in given
    }
    return wishes_of(found)


def _whole(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10


def check_finite(asked: Asked, names: Sequence[str]) -> None:
    """Every feature a finite number; the first that is not is named."""
    finite = np.isfinite(asked.X)
    if finite.all():
        return
    row, column = np.argwhere(~finite)[0].tolist()
    raise Refusal(
        422,
        f"{place(asked.ids, asked.queries, asked.offsets, row)}: feature {names[column]!r} is "
        f"{asked.X[row, column]}; every feature must be a finite number.",
    )


def place(ids: Sequence[Any] | None, queries: Sequence[Any] | None, offsets: Ints, row: int) -> str:
    """The name of a row, as its sender knows it."""
    query = int(np.searchsorted(offsets, row, side="right")) - 1
    inside = row - int(offsets[query])
    candidate = f"candidate {inside}" if ids is None else f"candidate {short(ids[row])}"
    if len(offsets) == 2:
        return candidate
    return f"query {query if queries is None else short(queries[query])}, {candidate}"


def short(value: Any) -> str:
    """A value for a message, of bounded length."""
    text = SHORT.repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
