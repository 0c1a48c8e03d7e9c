"""What the address of the search page asks for, and the two rankings that it compares."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlencode

import numpy as np
from starlette.datastructures import QueryParams

from firstpage.core.http import guest_csrf
from firstpage.serving.json_messages import ScoreExplanation
from firstpage.serving.limits import Limits, Refusal
from firstpage.serving.page_frame import sentence
from firstpage.serving.searching import (
    DEPTH,
    ResultDocument,
    check_encodable,
    explain_positions,
    rank_text,
    shown_documents,
    texts_of,
)
from firstpage.serving.served_index import ServedIndex
from firstpage.serving.served_model import ServedModel
from firstpage.serving.snippets import CONTROLS

MAX_DEPTH = 50  # documents per side
REASONS = 6  # features that explain a score
MODEL, FIRST_STAGE = "model", "first stage"


@dataclass(frozen=True)
class Visitor:
    """The session of a browser that may give feedback, named by the random token of its cookie."""

    session: str

    @property
    def csrf(self) -> str:
        """The token that its forms must have."""
        return guest_csrf(self.session)

    def sides(self, text: str) -> tuple[str, str]:
        """Return which ranking is left and right: random per query, fixed within a session."""
        drawn = hashlib.sha256(f"{self.session}\0{text}".encode("utf-8", "replace")).digest()[0]
        return (MODEL, FIRST_STAGE) if drawn % 2 else (FIRST_STAGE, MODEL)


@dataclass(frozen=True)
class PageQuery:
    """What the address of the page asks for; without a text only the search box is shown.

    `names` says whether to show which side is the model's, where feedback is asked; `note` names a
    confirmation in `NOTES`.
    """

    text: str = ""
    depth: int = DEPTH
    names: bool = False
    note: str = ""

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
        return f"/?{urlencode(params)}"


def read_page_query(
    params: QueryParams, texts: ServedIndex, limits: Limits
) -> tuple[PageQuery, str | None]:
    """Return what the address asks for, and what is wrong with it."""
    text = " ".join(CONTROLS.sub(" ", params.get("q", "")).split())
    most = min(MAX_DEPTH, texts.candidates)
    depth = params.get("depth", str(min(DEPTH, most)))
    query = PageQuery(text, min(DEPTH, most), params.get("show") == "names", params.get("note", ""))
    if not (depth.isascii() and depth.isdigit() and len(depth) < 5 and 1 <= int(depth) <= most):
        return query, f"The depth must be a number from 1 to {most}."
    query = replace(query, depth=int(depth))
    if text:
        try:
            limits.check_text(text)
            check_encodable(text)
        except Refusal as refusal:
            return replace(query, text=text[: limits.text]), sentence(refusal.detail)
    return query, None


@dataclass(frozen=True)
class ComparedDocument:
    """A document on one side of the page, with its ranks on both sides, counted from 1."""

    document: ResultDocument
    rank: int
    other_rank: int
    score: float
    explanation: ScoreExplanation | None = None


@dataclass(frozen=True)
class RankingComparison:
    """The first documents of both rankings of a query, and what contributions to a score are."""

    candidates: int
    model: tuple[ComparedDocument, ...]
    first_stage: tuple[ComparedDocument, ...]
    explained: str

    @property
    def is_same(self) -> bool:
        """Whether both sides show the same documents in the same order."""
        return self.ids(MODEL) == self.ids(FIRST_STAGE)

    def ids(self, side: str) -> list[str]:
        """Return the ids of the documents of a ranking."""
        documents = self.model if side == MODEL else self.first_stage
        return [each.document.id for each in documents]

    def digest(self, sides: Sequence[str]) -> str:
        """Return a digest of what is shown on the two sides."""
        shown = json.dumps([self.ids(side) for side in sides])
        return hashlib.sha256(shown.encode("utf-8", "replace")).hexdigest()[:16]


def compare(model: ServedModel, query: PageQuery) -> RankingComparison:
    """Return the first documents of both rankings of a query."""
    ranking, texts = rank_text(model, query.text), texts_of(model)
    by_model, by_first_stage = ranking.order, np.arange(len(ranking.rows))
    model_rank = np.empty(len(by_model), np.int64)
    model_rank[by_model] = np.arange(1, len(by_model) + 1)
    best, first = by_model[: query.depth], by_first_stage[: query.depth]
    positions = np.unique(np.concatenate([best, first]))
    shown = dict(
        zip(
            positions.tolist(),
            shown_documents(texts, query.text, ranking.rows[positions]),
            strict=True,
        )
    )
    explained, explanations = "", dict[int, ScoreExplanation]()
    if len(positions):
        explained, reasons = explain_positions(model, ranking, positions, REASONS)
        explanations = dict(zip(positions.tolist(), reasons, strict=True))
    model_side = tuple(
        ComparedDocument(shown[p], rank, p + 1, float(ranking.scores[p]), explanations.get(p))
        for rank, p in enumerate(best.tolist(), 1)
    )
    first_side = tuple(
        ComparedDocument(
            shown[p],
            p + 1,
            int(model_rank[p]),
            float(ranking.first_stage_scores[p]),
            explanations.get(p),
        )
        for p in first.tolist()
    )
    return RankingComparison(len(ranking.rows), model_side, first_side, explained)
