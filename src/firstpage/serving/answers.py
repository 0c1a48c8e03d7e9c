"""From what was asked to what is answered: scores, order, explanations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from firstpage.data.groups import ranked
from firstpage.errors import DataError
from firstpage.serving import arrow_body, json_body, npy_body
from firstpage.serving.asked import ASKS, Asked, check_fields, check_finite
from firstpage.serving.limits import Limits, Refusal, check_explained
from firstpage.serving.served import Served
from firstpage.types import Floats, Ints

JSON = "application/json"
FORMS = (JSON, npy_body.MEDIA, arrow_body.MEDIA)
ANSWERS = ("scores", "order", "json")
GREAT = "the features are so great that"
MANY, FEW = 5000, 2000  # candidates, and reasons, up to which others may wait for an answer


class Slow(Exception):
    """More work than others should wait for: it is to be done beside the loop."""


class Answer(NamedTuple):
    body: bytes
    media: str
    queries: int
    candidates: int


def answer(
    served: Served, limits: Limits, media: str, body: bytes, given: Mapping[str, str], batch: bool,
    beside: bool = True,
) -> Answer:  # fmt: skip
    """Read a body, score it, answer in the same format, or in JSON where ?answer=json asks so.

    Unless the work is done `beside` the loop, much of it raises Slow.
    """
    known = ("answer", *(() if media == JSON else ASKS), *(("lengths",) if batch else ()))
    check_fields(given, known, "the address")
    asked = _asked(served, limits, media, body, given, batch)
    form = given.get("answer", "json" if media == JSON else "scores")
    if form not in ANSWERS:
        raise Refusal(422, f"?answer= must be one of {', '.join(ANSWERS)}.")
    if form != "json" and (media == JSON or asked.wishes.explain):
        raise Refusal(422, "explanations, and all answers to JSON, are JSON; ask for ?answer=json.")
    reasons = _reasons(served, asked, limits) if asked.wishes.explain else 0
    if not beside and (
        len(asked.X) > MANY or reasons > FEW or (reasons and served.trees is not None)
    ):
        raise Slow
    check_finite(asked, served.names)
    try:
        scores = served.scores(asked.X, asked.offsets)
    except DataError as error:
        raise Refusal(422, str(error)) from None
    if not np.isfinite(scores).all():
        raise Refusal(422, f"{GREAT} a score is not finite.")
    count = len(asked.offsets) - 1
    written, kind = _written(served, asked, scores, form, media, batch)
    return Answer(written, kind, count, len(scores))


def _reasons(served: Served, asked: Asked, limits: Limits) -> int:
    """Features that will be named, if they are not too many."""
    found = asked.shown * min(asked.wishes.explain, len(served.names))
    check_explained(asked.shown, found, limits)
    return found


def _asked(
    served: Served, limits: Limits, media: str, body: bytes, given: Mapping[str, str], batch: bool
) -> Asked:
    if media == JSON:
        reader = json_body.read_batch if batch else json_body.read_rank
        return reader(body, served.names, limits)
    if media == npy_body.MEDIA:
        read = npy_body.read_batch if batch else npy_body.read_rank
        return read(body, given, len(served.names), limits)
    return arrow_body.read(body, given, served.names, limits, batch)


def _written(
    served: Served, asked: Asked, scores: Floats, form: str, media: str, batch: bool
) -> tuple[bytes, str]:
    if form == "scores" and media == npy_body.MEDIA:
        return npy_body.written(scores), media
    order = ranked(scores, asked.offsets)[0]
    if form == "json":
        return json_body.dumps(_told(served, asked, scores, order, batch)), JSON
    if media == npy_body.MEDIA:
        return npy_body.written(_inside(asked, order)), media
    ranks = np.empty(len(order), np.int64)
    for lo, hi in asked.bounds:
        ranks[order[lo:hi]] = np.arange(1, hi - lo + 1)
    return arrow_body.written(asked, scores, ranks), media


def _inside(asked: Asked, order: Ints) -> Ints:
    """Places inside the query, best first, the first `top` of each query."""
    top = asked.wishes.top
    parts = [order[lo:hi][:top] - lo for lo, hi in asked.bounds]
    return np.concatenate(parts)


def _told(served: Served, asked: Asked, scores: Floats, order: Ints, batch: bool) -> dict[str, Any]:
    top = asked.wishes.top
    kept = [order[lo:hi][:top] for lo, hi in asked.bounds]
    told: list[dict[str, Any]] = []
    for number, ((lo, _), rows) in enumerate(zip(asked.bounds, kept, strict=True)):
        places = rows.tolist()
        ids = asked.ids
        one = {
            "query": None if asked.queries is None else asked.queries[number],
            "order": [r - lo for r in places] if ids is None else [ids[r] for r in places],
            "scores": scores[rows].tolist(),
        }
        told.append(one)
    shown: dict[str, Any] = {"model": served.digest}
    if asked.wishes.explain:
        shown["explained"] = _explain(served, asked, kept, told)
    return {**shown, "answers": told} if batch else {**shown, **told[0]}


def _explain(served: Served, asked: Asked, kept: list[Ints], told: list[dict[str, Any]]) -> str:
    """Add to every query its explanations, in its order; returns what the parts are."""
    rows = np.concatenate(kept)
    try:
        names, parts = served.parts(asked.X, asked.offsets, rows)
    except DataError:  # a library's words are about itself
        raise Refusal(422, f"{GREAT} the score cannot be explained.") from None
    if not np.isfinite(parts.values).all():
        raise Refusal(422, f"{GREAT} a part of a score is not finite.")
    most = np.argsort(-np.abs(parts.values), axis=1, kind="stable")[:, : asked.wishes.explain]
    weights = np.take_along_axis(parts.values, most, axis=1).tolist()
    by_feature = names is served.names
    seen = asked.X[rows[:, None], most].tolist() if by_feature else None
    every = []
    for i, columns in enumerate(most.tolist()):
        reasons = [
            {"feature": names[c], "value": seen[i][j], "part": weights[i][j]}
            if seen is not None
            else {"voter": names[c], "part": weights[i][j]}
            for j, c in enumerate(columns)
        ]
        base = {} if parts.base is None else {"base": float(parts.base[i])}
        every.append({**base, "parts": reasons})
    at = 0
    for one, query in zip(told, kept, strict=True):
        one["explanations"] = every[at : at + len(query)]
        at += len(query)
    return parts.kind
