"""JSON bodies: {"query": .., "candidates": [{"id": .., "features": {..} or [..]}, ..]}."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from importlib.util import find_spec
from operator import itemgetter
from typing import Any

import numpy as np

from firstpage.data.groups import offsets_from_lengths
from firstpage.serving.asked import ASKS, Asked, check_fields, short, wishes_of
from firstpage.serving.limits import Limits, Refusal, check_candidates, check_queries
from firstpage.types import Floats

QUERY = ("query", "candidates")
CANDIDATE = ("id", "features")
NUMBERS = {int, float, bool}
if find_spec("orjson"):  # three times as fast, where it happens to be
    import orjson

    loads: Any = orjson.loads
    dumps: Any = orjson.dumps
else:
    loads = json.loads

    def dumps(value: Any) -> bytes:
        return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()


def read_rank(body: bytes, names: tuple[str, ...], limits: Limits) -> Asked:
    """One query."""
    held = _parsed(body)
    if not isinstance(held, dict):
        raise Refusal(422, "the body must be a JSON object with 'candidates'.")
    check_fields(held, (*QUERY, *ASKS), "the body")
    ids, X = _query(held, names, limits, "the query")
    return Asked(X, offsets_from_lengths([len(X)]), ids, [held.get("query")], wishes_of(held))


def read_batch(body: bytes, names: tuple[str, ...], limits: Limits) -> Asked:
    """A list of queries, or {"queries": [..], "explain": .., "top": ..}."""
    held = _parsed(body)
    if isinstance(held, dict):
        check_fields(held, ("queries", *ASKS), "the body")
    wishes = wishes_of(held) if isinstance(held, dict) else wishes_of({})
    queries = held.get("queries") if isinstance(held, dict) else held
    if not isinstance(queries, list):
        raise Refusal(422, "the body must be a JSON list of queries, or an object with 'queries'.")
    check_queries(len(queries), limits)
    ids: list[Any] = []
    blocks = []
    for number, query in enumerate(queries):
        if not isinstance(query, dict):
            raise Refusal(422, f"query {number} must be an object with 'candidates'.")
        where = f"query {short(query.get('query', number))}"
        check_fields(query, QUERY, where)
        found, X = _query(query, names, limits, where)
        ids += range(len(X)) if found is None else found
        blocks.append(X)
    labels = [query.get("query") for query in queries]
    return Asked(
        np.concatenate(blocks), offsets_from_lengths([len(X) for X in blocks]), ids, labels, wishes
    )


def _parsed(body: bytes) -> Any:
    try:
        return loads(body)
    except RecursionError:
        raise Refusal(422, "the body is not JSON that we read: it is nested too deeply.") from None
    except ValueError as error:
        said = str(error).splitlines()[0][:200]
        raise Refusal(422, f"the body is not JSON ({said}).") from None


def _query(
    held: dict[str, Any], names: tuple[str, ...], limits: Limits, where: str
) -> tuple[list[Any] | None, Floats]:
    """(ids, features) of one query's candidates."""
    if type(held.get("query")) not in (str, int, type(None)):
        raise Refusal(422, "'query' must be a text or a whole number, or left out.")
    candidates = held.get("candidates")
    if not isinstance(candidates, list):
        raise Refusal(422, f"{where} must have a list 'candidates'.")
    check_candidates(len(candidates), limits, where)
    for number, candidate in enumerate(candidates):
        if not isinstance(candidate, dict) or "features" not in candidate:
            raise Refusal(422, f"{where}: candidate {number} must be an object with 'features'.")
        if len(candidate) > 2 or (len(candidate) == 2 and "id" not in candidate):
            check_fields(candidate, CANDIDATE, f"{where}: candidate {number}")
    ids = [candidate.get("id") for candidate in candidates]
    named = _ids(ids, where)
    rows = [candidate["features"] for candidate in candidates]
    return named, _matrix(rows, names, where, named or range(len(rows)))


def _ids(ids: list[Any], where: str) -> list[Any] | None:
    """Texts or whole numbers, all different; None where no candidate has one."""
    kinds = set(map(type, ids))
    if kinds == {type(None)}:
        return None
    for number, each in enumerate(ids if not kinds <= {str, int} else ()):
        if type(each) not in (str, int):
            raise Refusal(
                422,
                f"{where}: candidate {number} has the id {short(each)}; every candidate must have "
                "a text or a whole number, or none of them an id.",
            )
    if len(set(ids)) < len(ids):
        counts = Counter(ids)
        twice = next(each for each in ids if counts[each] > 1)
        raise Refusal(422, f"{where} has two candidates with the id {short(twice)}.")
    return ids


def _matrix(rows: list[Any], names: tuple[str, ...], where: str, ids: Sequence[Any]) -> Floats:
    """Features by name in the model's order, or as they stand; all rows the same way."""
    pick = itemgetter(*names)
    single = len(names) == 1
    out = []
    for row, each in zip(rows, ids, strict=True):
        found: Sequence[Any]
        if isinstance(row, dict):
            try:
                found = (pick(row),) if single else pick(row)
            except KeyError as error:
                lost = short(error.args[0])
                raise Refusal(
                    422, f"{where}: candidate {short(each)} lacks the feature {lost}."
                ) from None
        elif isinstance(row, list):
            found = row
        else:
            raise Refusal(
                422,
                f"{where}: the features of candidate {short(each)} must be an object by name, or "
                "a list in the model's order (GET /model shows it).",
            )
        if len(found) != len(names) or not NUMBERS.issuperset(map(type, found)):
            raise _wrong(found, names, where, each)
        out.append(found)
    try:
        return np.array(out, np.float64)
    except OverflowError:
        raise Refusal(422, f"{where}: a feature is too great for a float64 number.") from None


def _wrong(found: Sequence[Any], names: tuple[str, ...], where: str, each: Any) -> Refusal:
    which = f"{where}: candidate {short(each)}"
    if len(found) != len(names):
        return Refusal(422, f"{which} has {len(found)} features, and the model {len(names)}.")
    at, value = next((i, v) for i, v in enumerate(found) if type(v) not in NUMBERS)
    return Refusal(422, f"{which}: feature {names[at]!r} is {short(value)}, which is no number.")
