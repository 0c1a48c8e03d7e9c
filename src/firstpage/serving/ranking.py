"""The processing of a request body: decode, score, explain and encode the answer."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from msgspec import UNSET, UnsetType
from msgspec.json import encode
from starlette.datastructures import Headers

from firstpage.core import Array, DataError, Floats, Ints
from firstpage.core.http import JSON
from firstpage.data import sort_groups
from firstpage.learning.models import LARGE
from firstpage.serving import binary_formats as binary
from firstpage.serving import json_messages as messages
from firstpage.serving.binary_formats import ARROW, NPY
from firstpage.serving.limits import Refusal
from firstpage.serving.rank_request import RankRequest, RawRequest, unknown_field
from firstpage.serving.served_model import ServedModel

READERS = {JSON: messages.read_json, NPY: binary.read_npy, ARROW: binary.read_arrow}
ANSWERS = ("scores", "order", "json")
MAX_INLINE_ROWS, MAX_INLINE_TERMS = 5000, 2000  # for work in the event loop


class TooSlow(Exception):
    """The work would delay other requests; it must run in a thread."""


class UserTraffic(Protocol):
    """What ranks and logs the queries of users: see `experiments.Traffic`."""

    @property
    def is_quick(self) -> bool:
        """Whether this takes less time than waking another thread."""
        ...

    def rank(
        self, served: ServedModel, request: RankRequest, scores: Floats
    ) -> tuple[Ints, str | UnsetType]:
        """Return the order of the candidates, and the id of a query that is logged."""
        ...


class EncodedAnswer(NamedTuple):
    """The body of an answer, and the numbers of queries and candidates for the metrics."""

    body: bytes
    media_type: str
    queries: int
    candidates: int


def media_type_of(headers: Headers) -> str:
    """Return the media type of a body; refuse one that the server cannot decode."""
    media_type = headers.get("content-type", JSON).split(";")[0].strip().lower()
    if media_type not in READERS:
        raise Refusal(f"{media_type[:60]!r} is not supported; send {', '.join(READERS)}.", 415)
    if media_type == ARROW and not binary.has_arrow():
        raise Refusal(f"Arrow is not supported without pyarrow; send {JSON} or {NPY}.", 415)
    if headers.get("content-encoding", "identity") != "identity":
        raise Refusal("compressed bodies are not supported; send them uncompressed.", 415)
    return media_type


def rank(
    model: ServedModel, raw: RawRequest, traffic: UserTraffic | None = None, inline: bool = False
) -> EncodedAnswer:
    """Decode a body, score it, and answer in the same format, or in JSON for ?answer=json.

    Queries of users are logged, and may be of an experiment, by the `traffic`.  With `inline`, in
    the event loop, a large request raises TooSlow.
    """
    request, answer = _read(raw)
    terms = 0
    if request.explain:
        terms = request.answer_size * min(request.explain, len(model.names))
        raw.limits.check_explanations(request.answer_size, terms)
    slow = len(request.X) > MAX_INLINE_ROWS or terms > MAX_INLINE_TERMS
    slow = slow or bool(terms and model.trees is not None)
    if inline and (slow or (request.user and traffic and not traffic.is_quick)):
        raise TooSlow
    request.check_finite(model.names, model.model.reads_missing)
    scores = finite_scores(model, request)
    counts = len(request.offsets) - 1, len(scores)
    if answer == "json":
        body = _json_answer(model, request, scores, raw.batch, traffic)
        return EncodedAnswer(body, JSON, *counts)
    return EncodedAnswer(
        _binary_answer(request, scores, answer, raw.media_type), raw.media_type, *counts
    )


def finite_scores(model: ServedModel, request: RankRequest) -> Floats:
    """Return the scores of all candidates; refuse the request if one is not finite."""
    X = request.X
    try:
        scores = model.scores(X, request.offsets)
    except DataError as error:
        raise _overflow(model, X, str(error)) from None
    if not np.isfinite(scores).all():
        raise _overflow(model, X[~np.isfinite(scores)], "a score is not finite")
    model.count_drift(X, request.offsets, scores)
    return scores


def _overflow(model: ServedModel, X: Array, problem: str) -> Refusal:
    """Return the refusal of candidates without a score: 500 if none of their features is large."""
    row, column = np.unravel_index(np.argmax(np.abs(np.nan_to_num(X))), X.shape)
    if abs(X[row, column]) > LARGE:
        feature = f"feature {model.names[column]!r} is {X[row, column]:.3g}"
        return Refusal(f"{problem.rstrip('.')}: {feature}, which is too large.")
    model.report_fault(problem)
    return Refusal(
        f"{problem.rstrip('.')}, although the features are of ordinary size: the model of this "
        "server is at fault; train it again.",
        500,
    )


def _read(raw: RawRequest) -> tuple[RankRequest, str]:
    """Return the request, and the kind of answer."""
    is_json = raw.media_type == JSON
    known = [
        "answer",
        *([] if is_json else ["explain", "top"]),
        *(["lengths"] if raw.batch else []),
    ]
    for name in raw.params:
        if name not in known:
            raise unknown_field(name, known, "the query string")
    request = READERS[raw.media_type](raw)
    answer = raw.params.get("answer", "json" if is_json else "scores")
    if answer not in ANSWERS:
        raise Refusal(f"?answer= must be one of {', '.join(ANSWERS)}.")
    if answer != "json" and (is_json or request.explain):
        raise Refusal("explanations and answers to JSON bodies are JSON; set ?answer=json.")
    if answer != "json":
        _check_binary_answer(request, answer, raw.media_type)
    return request, answer


def _check_binary_answer(request: RankRequest, answer: str, media_type: str) -> None:
    """Refuse parameters that an answer in NumPy's or Arrow's format cannot follow."""
    if media_type == ARROW and answer == "order":
        raise Refusal("an answer in Arrow has the column 'rank'; leave out ?answer=order.")
    if media_type == ARROW and request.top is not None and request.ids is None:
        raise Refusal("'top' with an Arrow body needs a column 'id', or ?answer=json.")
    if media_type == NPY and request.top is not None and answer == "scores":
        raise Refusal(
            "an array of scores has one per row, whatever 'top' is; set ?answer=order or "
            "?answer=json."
        )


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


def _json_answer(
    model: ServedModel,
    request: RankRequest,
    scores: Floats,
    batch: bool,
    traffic: UserTraffic | None,
) -> bytes:
    ids, answers = request.ids, []
    query_id: str | UnsetType = UNSET
    if traffic is None:
        order = sort_groups(scores, request.offsets)[0]
    else:
        order, query_id = traffic.rank(model, request, scores)
    top_rows = [order[lo:hi][: request.top] for lo, hi in request.bounds]
    explained: str | UnsetType = UNSET
    notes = list(request.notes) or UNSET
    if request.explain:
        explained, explanations = explain_scores(model, request, np.concatenate(top_rows))
    start = 0
    for number, rows in enumerate(top_rows):
        lo, row_list, stop = int(request.offsets[number]), rows.tolist(), start + len(rows)
        answers.append(
            messages.QueryAnswer(
                query=None if request.queries is None else request.queries[number],
                order=[r - lo for r in row_list] if ids is None else [ids[r] for r in row_list],
                scores=scores[rows].tolist(),
                query_id=query_id,
                explanations=explanations[start:stop] if request.explain else UNSET,
            )
        )
        start = stop
    if batch:
        answer = messages.BatchAnswer(
            model=model.digest, explained=explained, notes=notes, answers=answers
        )
        return encode(answer)
    answers[0].model, answers[0].explained, answers[0].notes = model.digest, explained, notes
    return encode(answers[0])


def _feature_values(
    model: ServedModel, X: Array, rows: Ints, columns: Ints
) -> list[list[float | str | None]]:
    """Return the features of the explained terms as they were sent: null, a number, a category."""
    values: list[list[float | str | None]] = X[rows[:, None], columns].tolist()
    for row, numbers in zip(values, columns.tolist(), strict=True):
        for at, column in enumerate(numbers):
            value = row[at]
            if value != value:
                row[at] = None
            elif column in model.model.categories:
                row[at] = model.model.categories[column][int(value)]  # type: ignore[arg-type]
    return values


def explain_scores(
    model: ServedModel, request: RankRequest, rows: Ints
) -> tuple[str, list[messages.ScoreExplanation]]:
    """Return the kind of contributions, and the largest ones of each row."""
    try:
        names, contributions = model.contributions(request.X, request.offsets, rows)
    except DataError:  # the message of a library would not help the client
        raise _overflow(model, request.X, "the score cannot be explained") from None
    if not np.isfinite(contributions.values).all():
        raise _overflow(model, request.X, "a contribution to a score is not finite")
    magnitudes = np.abs(contributions.values)
    largest = np.argsort(-magnitudes, axis=1, kind="stable")[:, : request.explain]
    weights = np.take_along_axis(contributions.values, largest, axis=1).tolist()
    by_feature = names is model.names
    values = _feature_values(model, request.X, rows, largest) if by_feature else weights
    bases = contributions.base
    base = [UNSET] * len(rows) if bases is None else bases.tolist()
    explanations = []
    for i, columns in enumerate(largest.tolist()):
        triples = zip(columns, values[i], weights[i], strict=True)
        terms = [
            messages.ScoreTerm(feature=names[c], value=value, part=weight)
            if by_feature
            else messages.ScoreTerm(voter=names[c], part=weight)
            for c, value, weight in triples
        ]
        explanations.append(messages.ScoreExplanation(base=base[i], parts=terms))
    return contributions.kind, explanations
