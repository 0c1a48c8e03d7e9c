"""What a request asks for, whatever format its body has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from reprlib import Repr
from typing import Any

import numpy as np

from firstpage.serving.limits import Refusal
from firstpage.types import Array, Ints

DEFAULT_REASONS = 10  # features per explanation, where the request names no number
MAX_COUNT = 1 << 31  # more than there can be of candidates or features
EXPLAIN = "true, false or a number of features"
TOP = "a number of candidates from 1 on"
_SHORT = Repr()  # neither long nor deep, whatever a client sends
_SHORT.maxlevel, _SHORT.maxstring, _SHORT.maxother = 2, 60, 60


@dataclass(frozen=True, eq=False)
class RankRequest:
    """Candidates of one or more queries; query q owns the rows offsets[q]:offsets[q+1].

    ids      one per row; None: candidates are known by their positions in the query
    queries  one label per query; None: queries are known by their positions
    explain  number of features named per candidate in the answer; 0: no explanations
    top      number of candidates per query in the answer; None: all
    """

    X: Array
    offsets: Ints
    ids: Sequence[Any] | None = None
    queries: Sequence[Any] | None = None
    explain: int = 0
    top: int | None = None

    @property
    def bounds(self) -> list[tuple[int, int]]:
        return list(pairwise(self.offsets.tolist()))

    @property
    def answered(self) -> int:
        """Number of candidates in the answer."""
        lengths = np.diff(self.offsets)
        return int((lengths if self.top is None else np.minimum(lengths, self.top)).sum())

    def check_finite(self, names: Sequence[str]) -> None:
        """Refuse a feature that is not a finite number, and name it."""
        finite = np.isfinite(self.X)
        if finite.all():
            return
        row, column = np.argwhere(~finite)[0].tolist()
        raise Refusal(
            422,
            f"{self._position(row)}: feature {names[column]!r} is {self.X[row, column]}; every "
            "feature must be a finite number.",
        )

    def _position(self, row: int) -> str:
        """Return the name by which the sender knows a row."""
        query = int(np.searchsorted(self.offsets, row, side="right")) - 1
        inside = row - int(self.offsets[query])
        candidate = f"candidate {inside if self.ids is None else short(self.ids[row])}"
        if len(self.offsets) == 2:
            return candidate
        return f"query {query if self.queries is None else short(self.queries[query])}, {candidate}"


def count_explained(explain: int | None) -> int:
    """Return how many features explain a candidate: `true` means 10, `false` and null none."""
    return DEFAULT_REASONS if explain is True else min(explain or 0, MAX_COUNT)


def options_of(params: Mapping[str, str]) -> dict[str, Any]:
    """Return `explain` and `top` of the query string, for bodies that hold only numbers."""
    explain, top = params.get("explain", "false"), params.get("top")
    switches = {"true": DEFAULT_REASONS, "false": 0}
    if explain not in switches and not _is_count(explain):
        raise Refusal(422, f"'explain' must be {EXPLAIN}.")
    if top is not None and not (_is_count(top) and int(top)):
        raise Refusal(422, f"'top' must be {TOP}.")
    return {
        "explain": switches[explain] if explain in switches else int(explain),
        "top": None if top is None else int(top),
    }


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10


def unknown_field(name: str, known: Sequence[str], where: str) -> Refusal:
    """Return the refusal of a field that would otherwise be ignored."""
    listed = ", ".join(map(repr, known))
    return Refusal(422, f"{where} has an unknown field {short(name)}; known are {listed}.")


def short(value: Any) -> str:
    """Return a value for a message, of bounded length."""
    text = _SHORT.repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
