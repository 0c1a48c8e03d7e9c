"""What the address of the search page asks for, and the two rankings that it compares."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple
from urllib.parse import urlencode

import numpy as np
from starlette.datastructures import QueryParams

from firstpage.core import Ints
from firstpage.core.http import guest_csrf
from firstpage.search import RetrievedDocuments
from firstpage.serving.json_messages import ScoreExplanation
from firstpage.serving.limits import Limits, Refusal
from firstpage.serving.searching import (
    DEPTH,
    Ranking,
    ResultDocument,
    check_encodable,
    explain_positions,
    rank_twice,
    shown_documents,
    texts_of,
)
from firstpage.serving.served_index import ServedIndex
from firstpage.serving.served_model import ServedModel
from firstpage.serving.snippets import CONTROLS, displayed

MAX_DEPTH = 50  # documents per side
REASONS = 6  # features that explain a score
MAX_ID = 100  # characters of the id of a query
MODEL, FIRST_STAGE = "model", "first stage"


@dataclass(frozen=True)
class Visitor:
    """The session of a browser that may give feedback, named by the random token of its cookie."""

    session: str

    @property
    def csrf(self) -> str:
        """The token that its forms must have."""
        return guest_csrf(self.session)

    @property
    def client(self) -> str:
        """The id in the event log, from which neither the cookie nor the CSRF token follows."""
        return hashlib.sha256(f"client:{self.session}".encode()).hexdigest()[:32]

    def sides(self, text: str) -> tuple[str, str]:
        """Return which ranking is left and right: random per query, fixed within a session."""
        drawn = hashlib.sha256(f"{self.session}\0{text}".encode("utf-8", "replace")).digest()[0]
        return (MODEL, FIRST_STAGE) if drawn % 2 else (FIRST_STAGE, MODEL)


@dataclass(frozen=True)
class PageQuery:
    """What the address of the page asks for; without a text only the search box is shown.

    `names` says whether to show which side is the model's, where feedback is asked; `note` names a
    confirmation of `pages.NOTES`.  `number` is that of the page of one list, and `query_id` the id
    of its query in the event log.
    """

    text: str = ""
    depth: int = DEPTH
    names: bool = False
    note: str = ""
    number: int = 1
    query_id: str = ""

    @property
    def address(self) -> str:
        """The address of this page."""
        params = {"q": self.text}
        if self.depth != DEPTH:
            params["depth"] = str(self.depth)
        if self.names:
            params["show"] = "names"
        if self.note:
            params["note"] = self.note
        if self.query_id:
            params |= {"page": str(self.number), "query_id": self.query_id}
        return f"/?{urlencode(params)}"

    def turned(self, pages: int) -> PageQuery:
        """Return the query of a later or an earlier page of the same list."""
        return replace(self, number=self.number + pages)

    def with_names(self, names: bool) -> PageQuery:
        """Return the query whose page shows which side is the model's, or hides it."""
        return replace(self, names=names, note="")


def read_page_query(
    params: QueryParams, texts: ServedIndex, limits: Limits
) -> tuple[PageQuery, str | None]:
    """Return what the address asks for, and what is wrong with it."""
    text = " ".join(CONTROLS.sub(" ", params.get("q", "")).split())
    most = min(MAX_DEPTH, texts.candidates)
    depth = params.get("depth", str(min(DEPTH, most)))
    query = PageQuery(text, min(DEPTH, most), params.get("show") == "names", params.get("note", ""))
    if not (depth.isascii() and depth.isdigit() and len(depth) < 5 and 1 <= int(depth) <= most):
        return query, f"the depth must be a number from 1 to {most}."
    query = replace(query, depth=int(depth))
    number, query_id = params.get("page", "1"), params.get("query_id", "")
    if not (number.isascii() and number.isdigit() and len(number) < 5 and int(number)):
        return query, "the page must be a number from 1."
    if len(query_id) > MAX_ID or not query_id.isprintable():
        return query, "the id of the query is not one of this server; search again."
    query = replace(query, number=int(number), query_id=query_id)
    if text:
        try:
            limits.check_text(text)
            check_encodable(text)
        except Refusal as refusal:
            return replace(query, text=text[: limits.text]), refusal.detail
    return query, None


class Reason(NamedTuple):
    """The contribution of a feature to a score, for display.

    `fraction` is its absolute value divided by that of the largest contribution.
    """

    feature: str
    value: str
    contribution: str
    fraction: str
    is_positive: bool


def reasons_of(explanation: ScoreExplanation) -> list[Reason]:
    """Return the largest contributions to a score."""
    largest = max((abs(term.part) for term in explanation.parts), default=0.0) or 1.0
    return [
        Reason(
            displayed(term.feature if isinstance(term.feature, str) else term.voter).text,
            f"{term.value:.4g}" if isinstance(term.value, float) else "",
            f"{term.part:+.3g}",
            f"{abs(term.part) / largest:.3f}",
            term.part >= 0,
        )
        for term in explanation.parts
    ]


@dataclass(frozen=True)
class ComparedDocument:
    """A document on one side of the page, with its ranks on both sides, counted from 1.

    `other_rank` is 0 where the other side does not list it; `origin` says by what a hybrid first
    stage listed it.
    """

    document: ResultDocument
    rank: int
    other_rank: int
    score: float
    reasons: Sequence[Reason] = ()
    origin: str = ""


@dataclass(frozen=True)
class RankingComparison:
    """The first documents of both rankings of a query, and what contributions to a score are.

    `corrected` are the words that no document contains, with the terms that stand for them.
    """

    candidates: int
    model: tuple[ComparedDocument, ...]
    first_stage: tuple[ComparedDocument, ...]
    explained: str
    corrected: Sequence[tuple[str, str]] = ()

    @property
    def is_same(self) -> bool:
        """Whether both sides show the same documents in the same order."""
        return self.ids(MODEL) == self.ids(FIRST_STAGE)

    @property
    def moved(self) -> int:
        """How many documents of the model's page have another rank in the first stage."""
        return sum(each.rank != each.other_rank for each in self.model)

    @property
    def new(self) -> int:
        """How many documents of the model's page are not on that of the first stage."""
        return len(set(self.ids(MODEL)) - set(self.ids(FIRST_STAGE)))

    def documents(self, side: str) -> tuple[ComparedDocument, ...]:
        """Return the documents of a ranking."""
        return self.model if side == MODEL else self.first_stage

    def ids(self, side: str) -> list[str]:
        """Return the ids of the documents of a ranking."""
        return [each.document.id for each in self.documents(side)]

    def digest(self, sides: Sequence[str]) -> str:
        """Return a digest of what is shown on the two sides."""
        shown = json.dumps([self.ids(side) for side in sides])
        return hashlib.sha256(shown.encode("utf-8", "replace")).hexdigest()[:16]


def origins_of(found: RetrievedDocuments) -> list[str]:
    """Return by what a hybrid first stage listed each document; empty texts if it is no hybrid."""
    names = {"bm25": "words", "dense": "meaning"}
    if len(found.stages) == 1:
        return [""] * len(found)
    return [" and ".join(names[stage] for stage in ranks) for ranks in found.ranks()]


def one_list(model: ServedModel, ranking: Ranking, query: PageQuery) -> RankingComparison:
    """Return a page of one ranking, which is not compared."""
    before = (query.number - 1) * query.depth
    best = ranking.order[before:][: query.depth]
    documents = shown_documents(texts_of(model), query.text, ranking.found.rows[best])
    listed = tuple(ComparedDocument(d, n, n, 0.0) for n, d in enumerate(documents, before + 1))
    return RankingComparison(len(ranking.found), listed, (), "", ranking.query.corrected)


def compare(model: ServedModel, query: PageQuery) -> RankingComparison:
    """Return the first documents of both rankings of a query."""
    both, texts = rank_twice(model, query.text), texts_of(model)
    ranking, n_candidates = both.ranking, len(both.ranking.found)
    best, first = both.best(query.depth), both.compared_best(query.depth)
    positions = np.unique(np.concatenate([best, first]))
    documents = shown_documents(texts, query.text, both.rows[positions])
    shown = dict(zip(positions.tolist(), documents, strict=True))
    explained, reasons = "", dict[int, list[Reason]]()
    scored = positions[positions < n_candidates]
    if len(scored):
        explained, explanations = explain_positions(model, ranking, scored, REASONS)
        reasons = dict(zip(scored.tolist(), map(reasons_of, explanations), strict=True))
    origins, others = origins_of(ranking.found), origins_of(both.compared)

    def listed(p: int, rank: int, ranks: Ints, score: float, origin: str) -> ComparedDocument:
        return ComparedDocument(shown[p], rank, int(ranks[p]), score, reasons.get(p, ()), origin)

    model_side = tuple(
        listed(p, rank, both.compared_rank, float(ranking.scores[p]), origins[p])
        for rank, p in enumerate(best.tolist(), 1)
    )
    scores = both.compared.scores.tolist()
    first_side = tuple(
        listed(p, rank, both.model_rank, scores[rank - 1], others[rank - 1])
        for rank, p in enumerate(first.tolist(), 1)
    )
    corrected = ranking.query.corrected
    return RankingComparison(n_candidates, model_side, first_side, explained, corrected)
