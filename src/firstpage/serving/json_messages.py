"""The JSON messages of the HTTP API, and the decoding of JSON requests.

Requests are validated against these types, and /openapi.json is generated from them.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Sequence
from operator import itemgetter
from typing import Annotated, Any, Literal

import numpy as np
from msgspec import UNSET, DecodeError, Meta, Raw, Struct, UnsetType, ValidationError
from msgspec.json import Decoder

from firstpage.core import Floats
from firstpage.data import offsets_from_lengths
from firstpage.data.io import RepeatedKey, unique_keys
from firstpage.serving import rank_request
from firstpage.serving.limits import Refusal
from firstpage.serving.rank_request import EXPECTED, RankRequest, RawRequest, short

Id = Annotated[str | int, Meta(description="A string or an integer.")]
_EXPLAIN = Meta(description="Number of features in each explanation; true: 10; false: none.")
Explain = Annotated[bool | Annotated[int, Meta(ge=0)] | None, _EXPLAIN]
Top = Annotated[
    int, Meta(ge=1, description="Number of candidates per query in the answer; default: all.")
]
Depth = Annotated[int, Meta(ge=1, description="Number of documents in the answer.")]
Client = Annotated[str, Meta(max_length=100, description="Id of the user, for the event log.")]
QueryId = Annotated[
    str, Meta(max_length=100, description="Id of the query: send it with further pages and events.")
]
_ORDERS = Meta(description="Documents of the arms that the request ranks, best first, by arm.")
Digest = Annotated[str, Meta(description="SHA-256 digest of the model file.")]
Notes = Annotated[
    list[str] | UnsetType, Meta(description="Categories that the model was not trained on.")
]
Explained = Annotated[str | UnsetType, Meta(description="Meaning of `part` in explanations.")]


class Candidate(Struct, forbid_unknown_fields=True, gc=False):
    """A candidate: its features by name, or as a list in the order of the model.

    A feature is a number; null where it is missing, if the model accepts that (GET /model); a
    string or an integer where it is a category.
    """

    features: dict[str, Any] | list[float | bool | str | None]
    id: Id | None = None


class BatchQuery(Struct, forbid_unknown_fields=True):
    """A query and its candidates."""

    candidates: list[Candidate]
    query: Id | None = None


class QueryMessage(BatchQuery):
    """One query: the body of POST /rank."""

    explain: Explain = False
    top: Top | None = None
    client: Client | None = None
    query_id: QueryId | None = None
    orders: Annotated[dict[str, list[Id]], _ORDERS] | None = None


class BatchMessage(Struct, forbid_unknown_fields=True):
    """Several queries: the body of POST /batch, which may also be a list of queries."""

    queries: list[BatchQuery]
    explain: Explain = False
    top: Top | None = None


class ScoreTerm(Struct, kw_only=True):
    """The contribution of a feature, or of a voter of a TopRank model, to a score."""

    feature: str | UnsetType = UNSET
    voter: str | UnsetType = UNSET
    value: float | str | UnsetType | None = UNSET
    part: float


class ScoreExplanation(Struct, kw_only=True):
    """The largest contributions to a score; `base` and all contributions add up to it."""

    base: float | UnsetType = UNSET
    parts: list[ScoreTerm]


class QueryAnswer(Struct, kw_only=True):
    """The answer to POST /rank, or an answer of a batch, without `model` and `explained`."""

    model: Digest | UnsetType = UNSET
    explained: Explained = UNSET
    query: Id | None
    order: Annotated[list[Id], Meta(description="Ids, or positions (the first is 0), best first.")]
    scores: Annotated[list[float], Meta(description="In the order of `order`.")]
    query_id: QueryId | UnsetType = UNSET
    explanations: list[ScoreExplanation] | UnsetType = UNSET
    notes: Notes = UNSET


class BatchAnswer(Struct, kw_only=True):
    """The answer to POST /batch."""

    model: Digest
    explained: Explained = UNSET
    notes: Notes = UNSET
    answers: list[QueryAnswer]


class SearchMessage(Struct, forbid_unknown_fields=True):
    """A typed query: the body of POST /search, or the query string of GET /search."""

    q: Annotated[str, Meta(description="What was typed; no character has a special meaning.")]
    depth: Depth | UnsetType = UNSET
    explain: Explain = False
    model: Annotated[bool, Meta(description="false: the results of the first stage.")] = True
    snippets: Annotated[bool, Meta(description="Whether titles and snippets are answered.")] = True
    client: Client | UnsetType = UNSET
    page: Annotated[int, Meta(ge=1, description="Page of the results, from 1.")] = 1
    query_id: QueryId | UnsetType = UNSET
    orders: Annotated[dict[str, list[str]], _ORDERS] | UnsetType = UNSET


class Passage(Struct, kw_only=True):
    """A text for display, without control characters."""

    text: str
    highlights: Annotated[
        list[tuple[int, int]], Meta(description="Begin and end of the words of the query.")
    ]
    cut: Annotated[bool, Meta(description="Whether the document has more text.")]


class SearchResult(Struct, kw_only=True):
    """A document that a search returns."""

    id: str
    score: Annotated[float | None, Meta(description="null: only an order of the request lists it.")]
    first_stage_rank: Annotated[int | None, Meta(description="The first is 1.")]
    stage_ranks: Annotated[
        dict[str, int], Meta(description="Rank in each stage that lists it: bm25, dense.")
    ]
    title: Passage | UnsetType = UNSET
    snippet: Passage | UnsetType = UNSET
    explanation: ScoreExplanation | UnsetType = UNSET


class SearchAnswer(Struct, kw_only=True):
    """The answer to /search."""

    model: Annotated[str | None, Meta(description="Digest of the model; null: first stage.")]
    explained: Explained = UNSET
    query: str
    corrected: Annotated[
        dict[str, str], Meta(description="Words of no document, and the terms that replace them.")
    ]
    candidates: Annotated[int, Meta(description="Number of documents of the first stage.")]
    query_id: QueryId | UnsetType = UNSET
    reranked: Annotated[
        bool | UnsetType, Meta(description="Whether the last stage reordered the results in time.")
    ] = UNSET
    results: Annotated[list[SearchResult], Meta(description="Best first.")]


class IndexSummary(Struct):
    """The index in service; `notes`: what has changed since the model was trained."""

    documents: int
    fingerprint: str
    notes: list[str]


class Health(Struct, kw_only=True):
    """The state of the server: the model in service since a Unix time, and its file."""

    status: Annotated[
        Literal["ok", "degraded", "no model"],
        Meta(description="degraded: the current file is refused, and an older model serves."),
    ]
    file: str
    model: str | UnsetType = UNSET
    digest: str | UnsetType = UNSET
    since: float | UnsetType = UNSET
    index: IndexSummary | UnsetType = UNSET
    reloads: int
    refused: str | None


class ModelDescription(Struct):
    """The model in service; `by_query`: whether a score depends on the other candidates."""

    ranker: str
    digest: str
    parameters: dict[str, Any]
    features: dict[str, Any]
    normalize: dict[str, Any] | None
    by_query: bool
    training: dict[str, Any]


class ModelSummary(Struct):
    """A model of a reload; only its digest, if the file is not a valid model."""

    digest: str | None
    ranker: str | None = None
    features: int | None = None


class ReloadReport(Struct, kw_only=True):
    """The models before and after a reload, and whether the new one is in service."""

    detail: str | UnsetType = UNSET
    digest: str | UnsetType = UNSET
    accepted: bool
    changed: bool
    refused: str | None
    old: ModelSummary | None
    new: ModelSummary | None
    features: dict[str, list[str]]
    reloads: int


_QUERY, _BATCH = Decoder(QueryMessage), Decoder(list[BatchQuery] | BatchMessage)
_FIELDS = Decoder(dict[str, Raw])
_NUMBER_TYPES = {int, float, bool}
_PATH = re.compile(
    r"(?:\.queries(?=\[))?(?:\[(\d+)\])?(?:\.candidates\[(\d+)\])?\.?(\w*)(?:\[(\d+))?"
)
BLANKS = b" \t\n\r"
_UNKNOWN = "Object contains unknown field "


def read_json(raw: RawRequest) -> RankRequest:
    """Return the request of a JSON body: one query, or a batch of them."""
    message = _decode(raw)
    _check_keys(message, raw.body)
    queries = _queries(message)
    if isinstance(message, list):
        message = BatchMessage(message)
    if raw.batch:
        raw.limits.check_queries(len(queries))
    blocks: list[Floats] = []
    ids: list[Any] = []
    has_ids = False
    unknown: Counter[int] = Counter()
    for number, query in enumerate(queries):
        label = number if query.query is None else query.query
        where = f"query {short(label)}" if raw.batch else "the query"
        raw.limits.check_candidates(len(query.candidates), where)
        query_ids = _ids(query.candidates, where)
        has_ids |= query_ids is not None
        labels = query_ids or list(range(len(query.candidates)))
        ids += labels
        blocks.append(_matrix(query.candidates, labels, raw, where, unknown))
    return RankRequest(
        blocks[0] if len(blocks) == 1 else np.concatenate(blocks),
        offsets_from_lengths([len(X) for X in blocks]),
        ids if has_ids else None,
        [query.query for query in queries],
        rank_request.DEFAULT_TERMS if message.explain is True else message.explain or 0,
        message.top,
        rank_request.unknown_notes(unknown, raw.names),
        _user(message, raw, has_ids) if isinstance(message, QueryMessage) else None,
    )


def _user(message: QueryMessage, raw: RawRequest, has_ids: bool) -> rank_request.User | None:
    """Return the user of a query; None if it names none."""
    if message.client is None:
        for name in ("query_id", "orders"):
            if getattr(message, name) is not None:
                raise Refusal(f"{name!r} needs 'client', the id of the user.")
        return None
    if message.query is None:
        raise Refusal("'client' needs 'query': what was typed, or the id of the query.")
    if not has_ids:
        raise Refusal("'client' needs an 'id' for each candidate, by which the log names it.")
    text = str(message.query)
    raw.limits.check_text(text)
    for name, value in (("client", message.client), ("query_id", message.query_id)):
        rank_request.check_printable(name, value)
    return rank_request.User(message.client, text, message.query_id, message.orders or {})


def _decode(raw: RawRequest) -> QueryMessage | BatchMessage | list[BatchQuery]:
    try:
        return _BATCH.decode(raw.body) if raw.batch else _QUERY.decode(raw.body)
    except RecursionError:
        raise Refusal("the body is nested too deeply.") from None
    except ValidationError as error:
        raise _invalid(str(error), raw) from None
    except (DecodeError, UnicodeDecodeError) as error:
        reason = str(error).removeprefix("JSON is malformed: ")[:200]
        raise Refusal(f"the body is not valid JSON ({reason}).") from None


def _check_keys(message: QueryMessage | BatchMessage | list[BatchQuery], body: bytes) -> None:
    """Refuse repeated keys, of which msgspec keeps the last.

    A colon follows every key.  If the message has as many keys and colons in ids as the body has
    colons, no key is repeated.  Otherwise keys with their default value and colons in other strings
    are taken into account, and if this does not explain all colons, the body is parsed again.
    """
    keys, colons = _n_keys(message), body.count(b":")
    if keys == colons or keys + _colons_in_ids(message, body) == colons:
        return
    if not isinstance(message, list):
        keys += len(_FIELDS.decode(body)) - _n_fields(message)
    if keys == colons or keys == body.translate(None, BLANKS).count(b'":'):
        return
    try:
        json.loads(body, object_pairs_hook=unique_keys, parse_int=str, parse_float=str)
    except RecursionError:
        raise Refusal("the body is nested too deeply.") from None
    except RepeatedKey as error:
        raise Refusal(f"the body is ambiguous: {error}") from None


def _queries(message: QueryMessage | BatchMessage | list[BatchQuery]) -> Sequence[BatchQuery]:
    if isinstance(message, BatchMessage):
        return message.queries
    return message if isinstance(message, list) else [message]


def _n_keys(message: QueryMessage | BatchMessage | list[BatchQuery]) -> int:
    """Return the number of keys without those whose value is the default."""
    count = _n_fields(message) if isinstance(message, BatchMessage) else 0
    if isinstance(message, QueryMessage):
        count += len(message.orders or ())
    for query in _queries(message):
        count += _n_fields(query) + len(query.candidates)
        for candidate in query.candidates:
            features = candidate.features
            count += (candidate.id is not None) + (type(features) is dict and len(features))
    return count


def _colons_in_ids(message: QueryMessage | BatchMessage | list[BatchQuery], body: bytes) -> int:
    """Return the number of colons in ids of queries and documents; 0 if they may be escaped."""
    if b"\\" in body:
        return 0
    queries = _queries(message)
    ids = [query.query for query in queries]
    ids += [candidate.id for query in queries for candidate in query.candidates]
    return sum(each.count(":") for each in ids if isinstance(each, str))


def _n_fields(message: BatchQuery | BatchMessage) -> int:
    """Return the number of fields whose value is not the default."""
    values = [getattr(message, name) for name in message.__struct_fields__]
    return sum(value is not None and value is not False for value in values)


def _invalid(error: str, raw: RawRequest) -> Refusal:
    """Return the refusal for an error of msgspec, such as "Expected `int` - at `$.top`"."""
    reason, separator, path = error.rpartition(" - at `$")
    if not separator:
        reason, path = error, ""
    match = _PATH.match(path)
    assert match is not None
    query, candidate, field, index = match.groups()
    names = {"query": query, "candidate": candidate}
    where = ": ".join(f"{name} {n}" for name, n in names.items() if n is not None) or "the body"
    kind: type[Struct] = BatchMessage if raw.batch else QueryMessage
    if query is not None or candidate is not None:
        kind = BatchQuery if candidate is None else Candidate
    fields = kind.__struct_fields__
    if reason.startswith(_UNKNOWN):
        return rank_request.unknown_field(reason.removeprefix(_UNKNOWN).strip("`"), fields, where)
    if "out of range" in reason:
        return Refusal(f"{where}: a number is too large; the limit of float64 is 1.8e308.")
    if field == "features" and index is not None:
        name = repr(raw.names[int(index)]) if int(index) < len(raw.names) else index
        return Refusal(f"{where}: feature {name} is not a number.")
    if field in EXPECTED:
        return Refusal(f"{where}: {field!r} must be {EXPECTED[field]}.")
    either = "a list of queries, or " if kind is BatchMessage else ""
    return Refusal(f"{where} must be {either}an object with {fields[0]!r}.")


def _ids(candidates: list[Candidate], where: str) -> list[Any] | None:
    """Return the candidates' ids, all different; None where no candidate has one."""
    ids = [candidate.id for candidate in candidates]
    if None in ids:
        if ids.count(None) == len(ids):
            return None
        number = ids.index(None)
        raise Refusal(
            f"{where}: candidate {number} has no id; give ids to all candidates, or to none."
        )
    rank_request.check_ids(ids, where)
    return ids


def _matrix(
    candidates: list[Candidate],
    ids: Sequence[Any],
    raw: RawRequest,
    where: str,
    unknown: Counter[int],
) -> Floats:
    """Return the features in the order of the model; count unknown categories by column."""
    names = raw.names
    select = itemgetter(*names) if len(names) > 1 else lambda features: (features[names[0]],)
    rows: list[Sequence[float]] = []

    def refusal(text: str) -> Refusal:
        return Refusal(f"{where}: candidate {short(ids[len(rows)])}{text}.")

    for candidate in candidates:
        features = candidate.features
        if isinstance(features, list):
            if len(features) != len(names):
                raise refusal(f" has {len(features)} features, but the model has {len(names)}")
            row: Sequence[Any] = features
        else:
            try:
                row = select(features)
            except KeyError as error:
                raise refusal(f" lacks the feature {short(error.args[0])}") from None
        if raw.categories or not _NUMBER_TYPES.issuperset(map(type, row)):
            try:
                row = _numbers(row, raw, unknown)
            except ValueError as error:
                raise refusal(str(error)) from None
        rows.append(row)
    try:
        return np.array(rows, np.float64)
    except OverflowError:
        raise Refusal(
            f"{where}: a feature is too large; the limit of float64 is 1.8e308."
        ) from None


def _numbers(row: Sequence[Any], raw: RawRequest, unknown: Counter[int]) -> list[float]:
    """Return a row with nulls as NaN and categories as their codes; raise ValueError otherwise."""
    numbers: list[float] = []
    for column, value in enumerate(row):
        name = repr(raw.names[column])
        if value is None:
            if not raw.missing:
                raise ValueError(f": feature {name} is null, and this model needs a number")
            numbers.append(math.nan)
        elif column in raw.categories:
            whole = isinstance(value, float) and value == value // 1
            text = str(int(value)) if whole else value if isinstance(value, str) else str(value)
            if not whole and type(value) not in (str, int):
                raise ValueError(
                    f": feature {name} is {short(value)}; give a category, a string or an integer"
                )
            code = raw.categories[column].get(text)
            unknown[column] += code is None
            numbers.append(math.nan if code is None else code)
        elif type(value) in _NUMBER_TYPES:
            numbers.append(value)
        else:
            raise ValueError(f": feature {name} is {short(value)}, not a number")
    return numbers
