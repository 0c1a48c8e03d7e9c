"""From the body of a request to the body of its answer: scores, order, explanations."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from msgspec import UNSET, UnsetType
from msgspec.json import encode
from starlette.datastructures import Headers

from firstpage.data.groups import sort_groups
from firstpage.errors import DataError
from firstpage.serving import binary_formats as binary
from firstpage.serving import json_messages as messages
from firstpage.serving.binary_formats import ARROW, NPY
from firstpage.serving.limits import Refusal
from firstpage.serving.rank_request import RankRequest, RawRequest, unknown_field
from firstpage.serving.served_model import ServedModel
from firstpage.types import Floats, Ints

JSON = "application/json"
READERS = {JSON: messages.read_json, NPY: binary.read_npy, ARROW: binary.read_arrow}
ANSWERS = ("scores", "order", "json")
OVERFLOW = "the features are so great that"
MAX_INLINE_ROWS, MAX_INLINE_REASONS = 5000, 2000  # up to which other requests may wait


class TooSlow(Exception):
    """The work would keep other requests waiting: it belongs in a thread."""


class Ranked(NamedTuple):
    body: bytes
    media_type: str
    queries: int
    candidates: int


def media_type_of(headers: Headers) -> str:
    """Return the media type of a body, if the server reads it."""
    media_type = headers.get("content-type", JSON).split(";")[0].strip().lower()
    if media_type not in READERS:
        raise Refusal(f"{media_type[:60]!r} is not read here; send {', '.join(READERS)}.", 415)
    if media_type == ARROW and not binary.has_arrow():
        raise Refusal(f"this server has no pyarrow; send {JSON} or {NPY}.", 415)
    if headers.get("content-encoding", "identity") != "identity":
        raise Refusal("compressed bodies are not read here.", 415)
    return media_type


def rank(model: ServedModel, raw: RawRequest, inline: bool = False) -> Ranked:
    """Read a body, score it, and answer in the same format, or in JSON for ?answer=json.

    Much work raises TooSlow where the caller works `inline`, between other requests.
    """
    request, answer = _read(raw)
    reasons = 0
    if request.explain:
        reasons = request.answered * min(request.explain, len(model.names))
        raw.limits.check_explained(request.answered, reasons)
    slow = len(request.X) > MAX_INLINE_ROWS or reasons > MAX_INLINE_REASONS
    if inline and (slow or (reasons and model.trees is not None)):
        raise TooSlow
    request.check_finite(model.names)
    try:
        scores = model.scores(request.X, request.offsets)
    except DataError as error:
        raise Refusal(str(error)) from None
    if not np.isfinite(scores).all():
        raise Refusal(f"{OVERFLOW} a score is not finite.")
    counts = len(request.offsets) - 1, len(scores)
    if answer == "json":
        return Ranked(_json_answer(model, request, scores, raw.batch), JSON, *counts)
    return Ranked(_binary_answer(request, scores, answer, raw.media_type), raw.media_type, *counts)


def _read(raw: RawRequest) -> tuple[RankRequest, str]:
    """Return what is asked, and the form of the answer."""
    json = raw.media_type == JSON
    known = ["answer", *([] if json else ["explain", "top"]), *(["lengths"] if raw.batch else [])]
    for name in raw.params:
        if name not in known:
            raise unknown_field(name, known, "the address")
    request = READERS[raw.media_type](raw)
    answer = raw.params.get("answer", "json" if json else "scores")
    if answer not in ANSWERS:
        raise Refusal(f"?answer= must be one of {', '.join(ANSWERS)}.")
    if answer != "json" and (json or request.explain):
        raise Refusal("explanations, and all answers to JSON, are JSON; ask for ?answer=json.")
    return request, answer


def _binary_answer(request: RankRequest, scores: Floats, answer: str, media_type: str) -> bytes:
    if answer == "scores" and media_type == NPY:
        return binary.write_npy(scores)
    order = sort_groups(scores, request.offsets)[0]
    if media_type == NPY:
        bounds = request.bounds
        return binary.write_npy(
            np.concatenate([order[lo:hi][: request.top] - lo for lo, hi in bounds])
        )
    ranks = np.empty(len(order), np.int64)
    for lo, hi in request.bounds:
        ranks[order[lo:hi]] = np.arange(1, hi - lo + 1)
    return binary.write_arrow(request, scores, ranks)


def _json_answer(model: ServedModel, request: RankRequest, scores: Floats, batch: bool) -> bytes:
    order, ids, answers = sort_groups(scores, request.offsets)[0], request.ids, []
    top_rows = [order[lo:hi][: request.top] for lo, hi in request.bounds]
    explained: str | UnsetType = UNSET
    if request.explain:
        explained, explanations = _explain(model, request, np.concatenate(top_rows))
    first = 0
    for number, rows in enumerate(top_rows):
        lo, positions, last = int(request.offsets[number]), rows.tolist(), first + len(rows)
        answers.append(
            messages.Answer(
                query=None if request.queries is None else request.queries[number],
                order=[r - lo for r in positions] if ids is None else [ids[r] for r in positions],
                scores=scores[rows].tolist(),
                explanations=explanations[first:last] if request.explain else UNSET,
            )
        )
        first = last
    if batch:
        answer = messages.BatchAnswer(model=model.digest, explained=explained, answers=answers)
        return encode(answer)
    answers[0].model, answers[0].explained = model.digest, explained
    return encode(answers[0])


def _explain(
    model: ServedModel, request: RankRequest, rows: Ints
) -> tuple[str, list[messages.Explanation]]:
    """Return what the parts of the scores are, and the greatest parts of each row."""
    try:
        names, parts = model.parts(request.X, request.offsets, rows)
    except DataError:  # a library's message is about itself
        raise Refusal(f"{OVERFLOW} the score cannot be explained.") from None
    if not np.isfinite(parts.values).all():
        raise Refusal(f"{OVERFLOW} a part of a score is not finite.")
    greatest = np.argsort(-np.abs(parts.values), axis=1, kind="stable")[:, : request.explain]
    weights = np.take_along_axis(parts.values, greatest, axis=1).tolist()
    by_feature = names is model.names
    values = request.X[rows[:, None], greatest].tolist() if by_feature else weights
    base = [UNSET] * len(rows) if parts.base is None else parts.base.tolist()
    explanations = []
    for i, columns in enumerate(greatest.tolist()):
        triples = zip(columns, values[i], weights[i], strict=True)
        reasons = [
            messages.Reason(feature=names[c], value=value, part=part)
            if by_feature
            else messages.Reason(voter=names[c], part=part)
            for c, value, part in triples
        ]
        explanations.append(messages.Explanation(base=base[i], parts=reasons))
    return parts.kind, explanations
