"""A ranking request, independent of the format of its body."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from reprlib import Repr
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from firstpage.core import Array, Ints
from firstpage.serving.limits import Limits, Refusal

DEFAULT_TERMS = 10  # features per explanation if the request sets no number
EXPECTED = {  # valid values of a field
    "queries": "a list of queries",
    "query": "a string or an integer, or left out",
    "candidates": "a list of candidates",
    "id": "a string or an integer",
    "features": "an object by name, or a list in the model's order (GET /model shows it)",
    "explain": "true, false or a number of features",
    "top": "a number of candidates, at least 1",
    "client": "a text of at most 100 characters",
    "query_id": "a text of at most 100 characters",
    "orders": "an object of lists of ids by arm, in the body of a POST",
}
_SHORT = Repr()  # bounds the length and the depth of what a client sends
_SHORT.maxlevel, _SHORT.maxstring, _SHORT.maxother = 2, 60, 60


CategoryCodes = Mapping[int, Mapping[str, float]]


class RawRequest(NamedTuple):
    """A request as it arrives, and what is needed to decode it.

    `params` are those of the query string; `names` are the features of the model.  `missing` says
    whether features may be null; `categories` has the codes of categories by column.
    """

    media_type: str
    body: bytes
    params: Mapping[str, str]
    batch: bool
    names: tuple[str, ...]
    limits: Limits
    missing: bool = False
    categories: CategoryCodes = MappingProxyType({})

    @property
    def options(self) -> dict[str, Any]:
        """`explain` and `top` of the query string, for bodies that contain only numbers."""
        explain, top = self.params.get("explain", "false"), self.params.get("top")
        explain = {"true": str(DEFAULT_TERMS), "false": "0"}.get(explain, explain)
        if not _is_count(explain):
            raise Refusal(f"'explain' must be {EXPECTED['explain']}.")
        if top is not None and not (_is_count(top) and int(top)):
            raise Refusal(f"'top' must be {EXPECTED['top']}.")
        return {"explain": int(explain), "top": None if top is None else int(top)}


class User(NamedTuple):
    """The user of a query, what was typed, and the orders of arms that the request ranks.

    Without `orders` (None), as on the page, there are none even if an arm needs them.
    """

    client: str
    text: str
    query_id: str | None
    orders: Mapping[str, Sequence[Any]] | None


@dataclass(frozen=True, eq=False)
class RankRequest:
    """Candidates of one or more queries; query q has the rows offsets[q]:offsets[q+1].

    Attributes
    ----------
    X : array
        The features, a row per candidate.
    offsets : array of int
        The first row of each query, and the number of rows.
    ids : sequence or None
        An id per row; None: candidates are identified by their positions in the query.
    queries : sequence or None
        A label per query; None: queries are identified by their positions.
    explain : int
        Number of features per explanation in the answer; 0: no explanations.
    top : int or None
        Number of candidates per query in the answer; None: all.
    notes : tuple of str
        What the answer says about the features that were sent.
    user : User or None
        Whose query it is, for the event log and the experiment.
    """

    X: Array
    offsets: Ints
    ids: Sequence[Any] | None = None
    queries: Sequence[Any] | None = None
    explain: int = 0
    top: int | None = None
    notes: tuple[str, ...] = ()
    user: User | None = None

    @property
    def bounds(self) -> list[tuple[int, int]]:
        """(first row, row after the last) of each query."""
        return list(pairwise(self.offsets.tolist()))

    @property
    def answer_size(self) -> int:
        """Number of candidates in the answer."""
        lengths = np.diff(self.offsets)
        top = len(self.X) if self.top is None else min(self.top, len(self.X))
        return int(np.minimum(lengths, top).sum())

    def check_finite(self, names: Sequence[str], missing: bool) -> None:
        """Refuse a feature that is infinite, or NaN unless it may be missing, and name it."""
        finite = ~np.isinf(self.X) if missing else np.isfinite(self.X)
        if finite.all():
            return
        row, column = np.argwhere(~finite)[0].tolist()
        query = int(np.searchsorted(self.offsets, row, side="right")) - 1
        position = row - int(self.offsets[query])
        where = f"candidate {position if self.ids is None else short(self.ids[row])}"
        if len(self.offsets) > 2:
            label = query if self.queries is None else self.queries[query]
            where = f"query {short(label)}, {where}"
        raise Refusal(
            f"{where}: feature {names[column]!r} is {self.X[row, column]}; every feature must be a "
            "finite number."
        )


def check_ids(ids: Sequence[Any], where: str) -> None:
    """Refuse two candidates of a query with the same id."""
    if len(set(ids)) < len(ids):
        repeated = next(label for label, count in Counter(ids).items() if count > 1)
        raise Refusal(f"{where} has two candidates with the id {short(repeated)}.")


def check_printable(name: str, text: str | None) -> None:
    """Refuse an id with characters that cannot be printed."""
    if text is not None and not text.isprintable():
        raise Refusal(f"'{name}' contains characters that cannot be printed.")


def unique_params(params: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Return the parameters of a query string by name; refuse a name that occurs twice."""
    for name, count in Counter(name for name, _ in params).items():
        if count > 1:
            raise Refusal(f"the query string has {short(name)} twice.")
    return dict(params)


def unknown_notes(unknown: Mapping[int, int], names: Sequence[str]) -> tuple[str, ...]:
    """Return a line per feature with categories that the model was not trained on."""
    return tuple(
        f"{names[column]!r}: {count} values are unknown to the model, and treated as missing"
        for column, count in unknown.items()
        if count
    )


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10


def unknown_field(name: str, known: Sequence[str], where: str) -> Refusal:
    """Return the refusal of a field or parameter that does not exist."""
    listed = ", ".join(map(repr, known))
    return Refusal(f"{where} has an unknown field {short(name)}; the fields are {listed}.")


def short(value: Any) -> str:
    """Return a value as text of bounded length, for a message."""
    text = _SHORT.repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
