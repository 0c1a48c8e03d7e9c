"""The JSON messages of the HTTP API, and how a request in JSON is read.

Requests are validated against these types, and /openapi.json is made from them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from operator import itemgetter
from typing import Annotated, Any, Literal

import numpy as np
from msgspec import UNSET, DecodeError, Meta, Struct, UnsetType, ValidationError
from msgspec.json import Decoder

from firstpage.data.groups import offsets_from_lengths
from firstpage.serving import rank_request
from firstpage.serving.limits import Refusal
from firstpage.serving.rank_request import EXPECTED, RankRequest, RawRequest, short
from firstpage.types import Floats

Id = Annotated[str | int, Meta(description="A string or an integer.")]
NamedFeatures = Meta(description="Features named per candidate in the answer; true: 10.")
Explain = Annotated[bool | Annotated[int, Meta(ge=0)] | None, NamedFeatures]
Top = Annotated[int, Meta(ge=1, description="Candidates per query in the answer.")]
Digest = Annotated[str, Meta(description="The sha256 of the model's file.")]
Explained = Annotated[str | UnsetType, Meta(description="What the parts are.")]


class Candidate(Struct, forbid_unknown_fields=True, gc=False):
    features: dict[str, Any] | list[float | bool]
    id: Id | None = None


class BatchQuery(Struct, forbid_unknown_fields=True):
    candidates: list[Candidate]
    query: Id | None = None


class Query(BatchQuery):
    """One query: the body of POST /rank."""

    explain: Explain = False
    top: Top | None = None


class Batch(Struct, forbid_unknown_fields=True):
    """Many queries: the body of POST /batch, which may be a plain list of them, too."""

    queries: list[BatchQuery]
    explain: Explain = False
    top: Top | None = None


class Reason(Struct, kw_only=True):
    """What one feature, or one voter of a TopRank model, adds to a score."""

    feature: str | UnsetType = UNSET
    voter: str | UnsetType = UNSET
    value: float | UnsetType = UNSET
    part: float


class Explanation(Struct, kw_only=True):
    base: float | UnsetType = UNSET
    parts: list[Reason]


class Answer(Struct, kw_only=True):
    """The answer to POST /rank, or without model and kind of explanation one of a batch."""

    model: Digest | UnsetType = UNSET
    explained: Explained = UNSET
    query: Id | None
    order: Annotated[list[Id], Meta(description="Ids, or positions from 0 on; the best first.")]
    scores: Annotated[list[float], Meta(description="In the order of `order`.")]
    explanations: list[Explanation] | UnsetType = UNSET


class BatchAnswer(Struct, kw_only=True):
    """The answer to POST /batch."""

    model: Digest
    explained: Explained = UNSET
    answers: list[Answer]


class Health(Struct, kw_only=True):
    status: Annotated[
        Literal["ok", "degraded", "no model"],
        Meta(description="degraded: the file there is refused, and an older model ranks."),
    ]
    file: str
    model: str | UnsetType = UNSET
    digest: str | UnsetType = UNSET
    since: float | UnsetType = UNSET
    reloads: int
    refused: str | None


class ModelDescription(Struct):
    ranker: str
    digest: str
    parameters: dict[str, Any]
    features: dict[str, Any]
    normalize: dict[str, Any] | None
    by_query: bool
    training: dict[str, Any]


class ModelSummary(Struct):
    digest: str | None
    ranker: str | None = None
    features: int | None = None


class ReloadReport(Struct, kw_only=True):
    """The models before and after a look at the file, and whether the new one is served."""

    detail: str | UnsetType = UNSET
    digest: str | UnsetType = UNSET
    accepted: bool
    changed: bool
    refused: str | None
    old: ModelSummary | None
    new: ModelSummary | None
    features: dict[str, list[str]]
    reloads: int


class Problem(Struct):
    detail: Annotated[str, Meta(description="One line.")]


_QUERY, _BATCH = Decoder(Query), Decoder(list[BatchQuery] | Batch)
_NUMBERS = {int, float, bool}
_PATH = re.compile(
    r"(?:\.queries(?=\[))?(?:\[(\d+)\])?(?:\.candidates\[(\d+)\])?\.?(\w*)(?:\[(\d+))?"
)
_UNKNOWN = "Object contains unknown field "


def read_json(raw: RawRequest) -> RankRequest:
    """Return the request of a JSON body: one query, or a batch of them."""
    message = _decode(raw)
    if isinstance(message, list):
        message = Batch(message)
    queries = message.queries if isinstance(message, Batch) else [message]
    if raw.batch:
        raw.limits.check_queries(len(queries))
    blocks: list[Floats] = []
    ids: list[Any] = []
    named = False
    for number, query in enumerate(queries):
        label = number if query.query is None else query.query
        where = f"query {short(label)}" if raw.batch else "the query"
        raw.limits.check_candidates(len(query.candidates), where)
        own = _ids(query.candidates, where)
        named |= own is not None
        ids += own or range(len(query.candidates))
        names = ids[-len(query.candidates) :]
        blocks.append(_matrix(query.candidates, names, raw.names, where))
    return RankRequest(
        blocks[0] if len(blocks) == 1 else np.concatenate(blocks),
        offsets_from_lengths([len(X) for X in blocks]),
        ids if named else None,
        [query.query for query in queries],
        rank_request.DEFAULT_REASONS if message.explain is True else message.explain or 0,
        message.top,
    )


def _decode(raw: RawRequest) -> Query | Batch | list[BatchQuery]:
    try:
        return _BATCH.decode(raw.body) if raw.batch else _QUERY.decode(raw.body)
    except RecursionError:
        raise Refusal("the body is nested too deeply.") from None
    except ValidationError as error:
        raise _invalid(str(error), raw) from None
    except (DecodeError, UnicodeDecodeError) as error:
        reason = str(error).removeprefix("JSON is malformed: ")[:200]
        raise Refusal(f"the body is not JSON ({reason}).") from None


def _invalid(error: str, raw: RawRequest) -> Refusal:
    """Return the refusal for what msgspec says, such as "Expected .. - at `$.candidates[3].id`"."""
    reason, at, path = error.rpartition(" - at `$")
    if not at:
        reason, path = error, ""
    match = _PATH.match(path)
    assert match is not None
    query, candidate, field, index = match.groups()
    names = {"query": query, "candidate": candidate}
    where = ": ".join(f"{name} {n}" for name, n in names.items() if n is not None) or "the body"
    kind: type[Struct] = Batch if raw.batch else Query
    if query is not None or candidate is not None:
        kind = BatchQuery if candidate is None else Candidate
    fields = kind.__struct_fields__
    if reason.startswith(_UNKNOWN):
        return rank_request.unknown_field(reason.removeprefix(_UNKNOWN).strip("`"), fields, where)
    if "out of range" in reason:
        return Refusal(f"{where}: a number is too large; float64 ends at 1.8e308.")
    if field == "features" and index is not None:
        name = repr(raw.names[int(index)]) if int(index) < len(raw.names) else index
        return Refusal(f"{where}: feature {name} is no number.")
    if field in EXPECTED:
        return Refusal(f"{where}: {field!r} must be {EXPECTED[field]}.")
    either = "a list of queries, or " if kind is Batch else ""
    return Refusal(f"{where} must be {either}an object with {fields[0]!r}.")


def _ids(candidates: list[Candidate], where: str) -> list[Any] | None:
    """Return the candidates' ids, all different; None where no candidate has one."""
    ids = [candidate.id for candidate in candidates]
    if None in ids:
        if ids.count(None) == len(ids):
            return None
        number = ids.index(None)
        raise Refusal(f"{where}: candidate {number} has no id; give all of them ids, or none.")
    if len(set(ids)) < len(ids):
        counts = Counter(ids)
        twice = next(each for each in ids if counts[each] > 1)
        raise Refusal(f"{where} has two candidates with the id {short(twice)}.")
    return ids


def _matrix(
    candidates: list[Candidate], ids: Sequence[Any], names: tuple[str, ...], where: str
) -> Floats:
    """Return the features, in the model's order."""
    pick = itemgetter(*names) if len(names) > 1 else lambda features: (features[names[0]],)
    rows: list[Sequence[float]] = []

    def refusal(text: str) -> Refusal:
        return Refusal(f"{where}: candidate {short(ids[len(rows)])}{text}.")

    for candidate in candidates:
        features = candidate.features
        if isinstance(features, list):
            if len(features) != len(names):
                raise refusal(f" has {len(features)} features, and the model {len(names)}")
            rows.append(features)
            continue
        try:
            row = pick(features)
        except KeyError as error:
            raise refusal(f" lacks the feature {short(error.args[0])}") from None
        if not _NUMBERS.issuperset(map(type, row)):
            at = next(i for i, value in enumerate(row) if type(value) not in _NUMBERS)
            raise refusal(f": feature {names[at]!r} is {short(row[at])}, which is no number")
        rows.append(row)
    try:
        return np.array(rows, np.float64)
    except OverflowError:
        raise Refusal(f"{where}: a feature is too large; float64 ends at 1.8e308.") from None
