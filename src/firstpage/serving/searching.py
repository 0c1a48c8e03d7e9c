"""Search of a typed text: the first stage's candidates, ranked by the model in service."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

import msgspec
import numpy as np
from msgspec import UNSET, UnsetType, ValidationError

from firstpage.core import DataError, Floats, Ints, plain_text
from firstpage.core.http import JSON
from firstpage.data.io import RepeatedKey, unique_keys
from firstpage.search import Query, RetrievedDocuments
from firstpage.serving import json_messages as messages
from firstpage.serving import rank_request
from firstpage.serving.limits import Limits, Refusal
from firstpage.serving.rank_request import RankRequest, short, unknown_field
from firstpage.serving.ranking import EncodedAnswer, explain_scores, finite_scores
from firstpage.serving.served_index import ServedIndex
from firstpage.serving.served_model import ServedModel
from firstpage.serving.snippets import Highlighter, MarkedText, displayed

FIELDS = tuple(messages.SearchMessage.__struct_fields__)
TEXTS = ("q", "client", "query_id")
WORDS = {"true": True, "false": False}
MAX_VALUE = 2000  # characters of a field of a document that are shown
MAX_FIELDS = 40
DEPTH = 10  # documents of an answer, or all candidates if there are fewer


@dataclass(frozen=True, eq=False)
class Ranking:
    """The candidates of a typed text, in the orders of the first stage and of the model.

    Attributes
    ----------
    query : Query
        The terms of the text.
    found : RetrievedDocuments
        The candidates, in the order of the first stage.
    scores : ndarray
        Their scores by the model.
    order : ndarray of int
        The positions of the candidates, the best by the model first.
    request : RankRequest
        Their features.
    reranked : bool or None
        Whether the last stage reordered them; None if there is none.
    texts : ServedIndex or None
        What computed the features.
    """

    query: Query
    found: RetrievedDocuments
    scores: Floats
    order: Ints
    request: RankRequest
    reranked: bool | None = None
    texts: ServedIndex | None = None


def rank_text(
    model: ServedModel, text: str, by_model: bool = True, others: Sequence[Ranking] = ()
) -> Ranking:
    """Return the candidates of a text, ranked by the model or, without it, by the first stage.

    `others` are rankings of this text with the same first stage; what they have computed is reused.
    """
    texts = texts_of(model)
    try:
        query = others[0].query if others else texts.query(text)
        found = others[0].found if others else texts.retrieve(query)
        if not by_model or not len(found):
            nothing = RankRequest(np.empty((0, 0)), np.zeros(1, np.int64))
            return Ranking(query, found, found.scores, np.arange(len(found)), nothing)
        known = next((each for each in others if each.texts is texts), None)
        X = texts.compute(query, found.rows) if known is None else known.request.X
    except DataError as error:
        raise Refusal(plain_text(error)) from None
    request = RankRequest(X, np.array([0, len(X)]))
    scores = finite_scores(model, request)
    order = np.lexsort((np.arange(len(found)), -scores))
    reranked = None
    if texts.last_stage is not None:
        order, reranked = texts.last_stage.reorder(texts.index, text, found.rows, order)
    return Ranking(query, found, scores, order, request, reranked, texts)


@dataclass(frozen=True, eq=False)
class TwoRankings:
    """The results of the model, and those of the first stage that it is compared with.

    Documents are positions: first the candidates of the model, then what only the other lists.

    Attributes
    ----------
    ranking : Ranking
        The results of the model.
    rows : ndarray of int
        The row of each document in the index.
    model_rank, compared_rank : ndarray of int
        Its ranks from 1; 0 where a side does not list it.
    compared : RetrievedDocuments
        The documents of the other side.
    """

    ranking: Ranking
    rows: Ints
    model_rank: Ints
    compared_rank: Ints
    compared: RetrievedDocuments

    def best(self, depth: int) -> Ints:
        """Return the positions of the model's first documents."""
        return self.ranking.order[:depth]

    def compared_best(self, depth: int) -> Ints:
        """Return the positions of the other side's first documents."""
        listed = np.flatnonzero(self.compared_rank)
        return listed[np.argsort(self.compared_rank[listed])][:depth]


def rank_twice(model: ServedModel, text: str) -> TwoRankings:
    """Return the results of the model and of the first stage that the page compares."""
    ranking, texts = rank_text(model, text), texts_of(model)
    found = ranking.found
    compared = found
    if texts.against is not None:
        try:
            compared = texts.retrieve(ranking.query, texts.against)
        except DataError as error:
            raise Refusal(plain_text(error)) from None
    others = compared.rows[~np.isin(compared.rows, found.rows)]
    rows = np.concatenate([found.rows, others])
    model_rank, compared_rank = np.zeros((2, len(rows)), np.int64)
    model_rank[ranking.order] = np.arange(1, len(found) + 1)
    position = {row: number for number, row in enumerate(rows.tolist())}
    for rank, row in enumerate(compared.rows.tolist(), 1):
        compared_rank[position[row]] = rank
    return TwoRankings(ranking, rows, model_rank, compared_rank, compared)


def texts_of(model: ServedModel) -> ServedIndex:
    """Return the index of a model in service."""
    assert model.texts is not None, "the routes of texts exist only with an index"
    return model.texts


def read_message(body: bytes | None, params: Sequence[tuple[str, str]]) -> messages.SearchMessage:
    """Return the request of a JSON body, or of a query string."""
    if body is not None:
        for name, _ in params:
            raise unknown_field(name, [], "the query string of POST /search")
        return _decoded(body)
    values: dict[str, Any] = {}
    for name, value in params:
        if name not in FIELDS:
            raise unknown_field(name, FIELDS, "the query string")
        if name in values:
            raise Refusal(f"the query string has {name!r} twice.")
        values[name] = value if name in TEXTS else WORDS.get(value, value)
    for name in ("depth", "explain", "page"):
        number = values.get(name)
        if isinstance(number, str) and number.isascii() and number.isdigit() and len(number) < 10:
            values[name] = int(number)
    return _checked(values)


def _decoded(body: bytes) -> messages.SearchMessage:
    try:
        values = msgspec.json.decode(body)
    except RecursionError:
        raise Refusal("the body is nested too deeply.") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        reason = str(error).removeprefix("JSON is malformed: ")[:200]
        raise Refusal(f"the body is not valid JSON ({reason}).") from None
    try:
        json.loads(body, object_pairs_hook=unique_keys)  # msgspec keeps the last of equal keys
    except RepeatedKey as error:
        raise Refusal(f"the body is ambiguous: {error}") from None
    if not isinstance(values, dict):
        raise Refusal('the body must be an object such as {"q": "red shoes", "depth": 10}.')
    for name in values:
        if name not in FIELDS:
            raise unknown_field(name, FIELDS, "the body")
    return _checked(values)


def _checked(values: Mapping[str, Any]) -> messages.SearchMessage:
    expected = {
        "q": "the text of a query",
        "depth": "a number of documents, at least 1",
        "explain": rank_request.EXPECTED["explain"],
        "model": "true or false",
        "snippets": "true or false",
        "page": "a number from 1",
        **{name: rank_request.EXPECTED[name] for name in ("client", "query_id", "orders")},
    }
    if "q" not in values:
        raise Refusal("the query is missing; send it as 'q'.")
    for name, value in values.items():
        try:
            msgspec.convert({"q": "", name: value}, messages.SearchMessage)
        except ValidationError:
            raise Refusal(f"'{name}' must be {expected[name]}; got {short(value)}.") from None
    return msgspec.convert(dict(values), messages.SearchMessage)


def check_message(message: messages.SearchMessage, candidates: int, limits: Limits) -> None:
    """Refuse a text or depth beyond the limits, and characters that no text has."""
    limits.check_text(message.q)
    check_encodable(message.q)
    for name, text in (("client", message.client), ("query_id", message.query_id)):
        rank_request.check_printable(name, None if text is UNSET else text)
    if message.depth is not UNSET and message.depth > candidates:
        raise Refusal(
            f"'depth' is {message.depth:,}, and the first stage returns {candidates:,} candidates; "
            "send a smaller depth, or start the server with more --candidates.",
            413,
        )


def check_encodable(text: str) -> None:
    """Refuse lone surrogates, which are not characters."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Refusal("the query contains a lone surrogate, which is not a character.") from None


def search(
    model: ServedModel,
    message: messages.SearchMessage,
    limits: Limits,
    ranking: Ranking | None = None,
    query_id: str | UnsetType = UNSET,
) -> EncodedAnswer:
    """Search, and return the encoded answer; the `ranking` may be that of an experiment."""
    terms = rank_request.DEFAULT_TERMS if message.explain is True else int(message.explain or 0)
    if terms and not message.model:
        raise Refusal("'explain' needs the model; leave out 'model': false.")
    depth = depth_of(model, message)
    limits.check_explanations(depth, depth * min(terms, len(model.names)))
    ranking = ranking or rank_text(model, message.q, message.model)
    best = ranking.order[(message.page - 1) * depth :][:depth]
    explained: str | UnsetType = UNSET
    explanations: list[Any] = [UNSET] * len(best)
    if terms and len(best):
        explained, explanations = explain_positions(model, ranking, best, terms)
    rows, stage_ranks = ranking.found.rows[best], ranking.found.ranks()
    documents = shown_documents(texts_of(model), message.q, rows, message.snippets)
    results = [
        messages.SearchResult(
            id=document.id,
            score=float(ranking.scores[position]) if stage_ranks[position] else None,
            first_stage_rank=position + 1 if stage_ranks[position] else None,
            stage_ranks=stage_ranks[position],
            title=_passage(document.title),
            snippet=_passage(document.snippet),
            explanation=explanation,
        )
        for position, document, explanation in zip(
            best.tolist(), documents, explanations, strict=True
        )
    ]
    answer = messages.SearchAnswer(
        model=model.digest if message.model else None,
        explained=explained,
        query=message.q,
        corrected=dict(ranking.query.corrected),
        candidates=sum(map(bool, stage_ranks)),
        query_id=query_id,
        reranked=UNSET if ranking.reranked is None else ranking.reranked,
        results=results,
    )
    return EncodedAnswer(msgspec.json.encode(answer), JSON, 1, len(ranking.found))


def depth_of(model: ServedModel, message: messages.SearchMessage) -> int:
    """Return the number of documents per page."""
    depth = message.depth
    return min(DEPTH, texts_of(model).candidates) if depth is UNSET else depth


def explain_positions(
    model: ServedModel, ranking: Ranking, positions: Ints, terms: int
) -> tuple[str, list[messages.ScoreExplanation]]:
    """Return the kind of contributions, and the largest ones of some candidates."""
    request = RankRequest(ranking.request.X, ranking.request.offsets, explain=terms)
    return explain_scores(model, request, positions)


@dataclass(frozen=True)
class ResultDocument:
    """A document for display.

    Attributes
    ----------
    id : str
        Its id.
    source : mapping
        Its fields as they were indexed.
    title, snippet : MarkedText or None
        The title, and the passage with most terms of the query.
    """

    id: str
    source: Mapping[str, Any]
    title: MarkedText | None
    snippet: MarkedText | None

    @cached_property
    def fields(self) -> list[tuple[MarkedText, MarkedText]]:
        """The names and values of the first fields, as they were indexed; long ones are cut."""
        fields = islice(self.source.items(), MAX_FIELDS)
        return [(displayed(name), displayed(value, MAX_VALUE)) for name, value in fields]

    @property
    def hidden_fields(self) -> int:
        """How many fields are not shown."""
        return max(len(self.source) - MAX_FIELDS, 0)


def shown_documents(
    texts: ServedIndex, query: str, rows: Ints, snippets: bool = True
) -> list[ResultDocument]:
    """Return documents with their titles and snippets."""
    index = texts.index
    ids = [index.forward.ids[row] for row in rows.tolist()]
    if not snippets:
        return [ResultDocument(name, {}, None, None) for name in ids]
    sources = index.engine.sources(rows.tolist())
    fields = index.schema.analyzers
    highlighter = Highlighter(query, fields, texts.words)
    shown = []
    title_field = texts.title_field
    for name, source in zip(ids, sources, strict=True):
        body = {f: source[f] for f in fields if f != title_field and f in source}
        title = None
        if title_field is not None and title_field in source:
            title = highlighter.title(title_field, source[title_field])
        snippet = highlighter.snippet(body, "" if title is None else title.text)
        shown.append(ResultDocument(name, source, title, snippet))
    return shown


def _passage(text: MarkedText | None) -> messages.Passage | UnsetType:
    if text is None:
        return UNSET
    return messages.Passage(text=text.text, highlights=list(text.marks), cut=text.is_cut)
