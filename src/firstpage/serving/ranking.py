"""From the body of a request to the body of its answer: scores, order, explanations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from msgspec import UNSET, UnsetType, structs
from msgspec.json import encode
from starlette.datastructures import Headers

from firstpage.data.groups import ranked
from firstpage.errors import DataError
from firstpage.serving.binary_formats import (
    ARROW,
    NPY,
    has_arrow,
    read_arrow,
    read_npy,
    write_arrow,
    write_npy,
)
from firstpage.serving.json_messages import (
    Answer,
    BatchAnswer,
    Explanation,
    QueryAnswer,
    Reason,
    read_json,
)
from firstpage.serving.limits import Limits, Refusal, check_explained
from firstpage.serving.rank_request import RankRequest, unknown_field
from firstpage.serving.served_model import ServedModel
from firstpage.types import Floats, Ints

JSON = "application/json"
MEDIA_TYPES = (JSON, NPY, ARROW)
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
    if media_type not in MEDIA_TYPES:
        raise Refusal(415, f"{media_type[:60]!r} is not read here; send {', '.join(MEDIA_TYPES)}.")
    if media_type == ARROW and not has_arrow():
        raise Refusal(415, f"this server has no pyarrow; send {JSON} or {NPY}.")
    if headers.get("content-encoding", "identity") != "identity":
        raise Refusal(415, "compressed bodies are not read here.")
    return media_type


def rank(
    model: ServedModel, limits: Limits, media_type: str, body: bytes, params: Mapping[str, str],
    batch: bool, inline: bool = False,
) -> Ranked:  # fmt: skip
    """Read a body, score it, and answer in the same format, or in JSON for ?answer=json.

    Much work raises TooSlow where the caller works `inline`, between other requests.
    """
    request = _read(model, limits, media_type, body, params, batch)
    answer = params.get("answer", "json" if media_type == JSON else "scores")
    if answer not in ANSWERS:
        raise Refusal(422, f"?answer= must be one of {', '.join(ANSWERS)}.")
    if answer != "json" and (media_type == JSON or request.explain):
        raise Refusal(422, "explanations, and all answers to JSON, are JSON; ask for ?answer=json.")
    reasons = 0
    if request.explain:
        reasons = request.answered * min(request.explain, len(model.names))
        check_explained(request.answered, reasons, limits)
    if inline and (
        len(request.X) > MAX_INLINE_ROWS
        or reasons > MAX_INLINE_REASONS
        or (reasons and model.trees is not None)
    ):
        raise TooSlow
    request.check_finite(model.names)
    try:
        scores = model.scores(request.X, request.offsets)
    except DataError as error:
        raise Refusal(422, str(error)) from None
    if not np.isfinite(scores).all():
        raise Refusal(422, f"{OVERFLOW} a score is not finite.")
    content = _write(model, request, scores, answer, media_type, batch)
    media_type = JSON if answer == "json" else media_type
    return Ranked(content, media_type, len(request.offsets) - 1, len(scores))


def _read(
    model: ServedModel, limits: Limits, media_type: str, body: bytes, params: Mapping[str, str],
    batch: bool,
) -> RankRequest:  # fmt: skip
    known = ["answer"]
    known += [] if media_type == JSON else ["explain", "top"]
    known += ["lengths"] if batch else []
    for name in params:
        if name not in known:
            raise unknown_field(name, known, "the address")
    if media_type == JSON:
        return read_json(body, model.names, limits, batch)
    read = read_npy if media_type == NPY else read_arrow
    return read(body, params, model.names, limits, batch)


def _write(
    model: ServedModel, request: RankRequest, scores: Floats, answer: str, media_type: str,
    batch: bool,
) -> bytes:  # fmt: skip
    if answer == "scores" and media_type == NPY:
        return write_npy(scores)
    order = ranked(scores, request.offsets)[0]
    if answer != "json" and media_type == ARROW:
        ranks = np.empty(len(order), np.int64)
        for lo, hi in request.bounds:
            ranks[order[lo:hi]] = np.arange(1, hi - lo + 1)
        return write_arrow(request, scores, ranks)
    top_rows = [order[lo:hi][: request.top] for lo, hi in request.bounds]
    if answer == "json":
        return _write_json(model, request, scores, top_rows, batch)
    starts = request.offsets[:-1]
    return write_npy(np.concatenate([rows - lo for rows, lo in zip(top_rows, starts, strict=True)]))


def _write_json(
    model: ServedModel, request: RankRequest, scores: Floats, top_rows: list[Ints], batch: bool
) -> bytes:
    ids, answers = request.ids, []
    for number, ((lo, _), rows) in enumerate(zip(request.bounds, top_rows, strict=True)):
        positions = rows.tolist()
        answers.append(
            QueryAnswer(
                query=None if request.queries is None else request.queries[number],
                order=[r - lo for r in positions] if ids is None else [ids[r] for r in positions],
                scores=scores[rows].tolist(),
            )
        )
    explained: str | UnsetType = UNSET
    if request.explain:
        explained, explanations = _explain(model, request, np.concatenate(top_rows))
        first = 0
        for answer in answers:
            answer.explanations = explanations[first : first + len(answer.order)]
            first += len(answer.order)
    if batch:
        return encode(BatchAnswer(model=model.digest, explained=explained, answers=answers))
    return encode(Answer(model=model.digest, explained=explained, **structs.asdict(answers[0])))


def _explain(model: ServedModel, request: RankRequest, rows: Ints) -> tuple[str, list[Explanation]]:
    """Return what the parts of the scores are, and the greatest parts of each row."""
    try:
        names, parts = model.parts(request.X, request.offsets, rows)
    except DataError:  # a library's message is about itself
        raise Refusal(422, f"{OVERFLOW} the score cannot be explained.") from None
    if not np.isfinite(parts.values).all():
        raise Refusal(422, f"{OVERFLOW} a part of a score is not finite.")
    greatest = np.argsort(-np.abs(parts.values), axis=1, kind="stable")[:, : request.explain]
    weights = np.take_along_axis(parts.values, greatest, axis=1).tolist()
    by_feature = names is model.names
    values = request.X[rows[:, None], greatest].tolist() if by_feature else weights
    base = [UNSET] * len(rows) if parts.base is None else parts.base.tolist()
    return parts.kind, [
        Explanation(
            base=base[i],
            parts=[
                Reason(feature=names[c], value=value, part=part)
                if by_feature
                else Reason(voter=names[c], part=part)
                for c, value, part in zip(columns, values[i], weights[i], strict=True)
            ],
        )
        for i, columns in enumerate(greatest.tolist())
    ]
