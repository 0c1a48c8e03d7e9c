"""Requests that give feedback: their checks, and what they store."""

from __future__ import annotations

import random
import re
import time
from dataclasses import replace
from urllib.parse import parse_qsl

from starlette.datastructures import QueryParams
from starlette.requests import Request

from firstpage.core.http import FORGED, equal_tokens, network_name
from firstpage.serving.feedback import FeedbackFolder, document_row, query_id
from firstpage.serving.limits import Limits, Refusal
from firstpage.serving.page_contents import MODEL, PageQuery, Visitor, compare, read_page_query
from firstpage.serving.searching import rank_twice, texts_of
from firstpage.serving.served_model import ServedModel
from firstpage.serving.workers import RemoteFeedback

Folder = FeedbackFolder | RemoteFeedback
COOKIE = "firstpage_search"
SESSION = re.compile(r"[A-Za-z0-9_-]{43}")
FORM = "application/x-www-form-urlencoded"
MAX_FORM = 1 << 16  # bytes
MAX_FORM_FIELDS = 20
JUDGED_DEPTH = 20  # of each ranking
OUTCOMES = {"left": 1, "equal": 0, "right": -1}


def visitor_of(request: Request) -> Visitor | None:
    """Return the session of a request's cookie; None if it has none."""
    session = request.cookies.get(COOKIE, "")
    return Visitor(session) if SESSION.fullmatch(session) else None


def check_media_type(request: Request) -> None:
    """Refuse a body that is not a form."""
    media_type = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if media_type != FORM:
        raise Refusal(f"send the form as {FORM}.", 415)


def network_of(request: Request) -> str:
    """Return the network of the client, for the limit of the rate."""
    return network_name(request.client.host if request.client is not None else "")


def read_form(request: Request, body: bytes) -> tuple[Visitor, dict[str, str]]:
    """Return the session and the fields of a form whose CSRF token is correct."""
    try:
        fields = dict(
            parse_qsl(body.decode("ascii"), keep_blank_values=True, max_num_fields=MAX_FORM_FIELDS)
        )
    except ValueError:
        raise Refusal("the form cannot be read.") from None
    visitor = visitor_of(request)
    if visitor is None or not equal_tokens(fields.get("csrf", ""), visitor.csrf):
        raise Refusal(FORGED, 403)
    return visitor, fields


def form_query(model: ServedModel, fields: dict[str, str], limits: Limits) -> PageQuery:
    """Return the query of a form."""
    wanted = {name: fields[name] for name in ("q", "depth", "show") if name in fields}
    query, problem = read_page_query(QueryParams(wanted), texts_of(model), limits)
    if problem is not None or not query.text:
        raise Refusal(problem or "the query is empty; type some words.")
    return query


def store_preference(
    folder: Folder, model: ServedModel, visitor: Visitor, query: PageQuery, fields: dict[str, str]
) -> PageQuery:
    """Store which page is better; return the page to show next."""
    outcome = OUTCOMES.get(fields.get("outcome", ""))
    if outcome is None:
        raise Refusal("'outcome' must be left, equal or right.")
    comparison, sides = compare(model, query), visitor.sides(query.text)
    shown = comparison.digest(sides)
    if fields.get("shown") != shown:
        raise Refusal("the results have changed since this page was shown; search again.", 409)
    if comparison.is_same:
        raise Refusal("both pages are the same, so neither is better.")
    name = query_id(query.text)
    is_new = folder.add_preference(
        {
            "query": name,
            "text": query.text,
            "lists": "documents",
            "left": comparison.ids(sides[0]),
            "right": comparison.ids(sides[1]),
            "outcome": outcome,
            "model_side": "left" if sides[0] == MODEL else "right",
            "model": model.digest,
            "index": texts_of(model).index.fingerprint,
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "id": f"{name}-{shown}-{visitor.csrf[:16]}",
        }
    )
    return replace(query, names=True, note="preference" if is_new else "known")


def store_query(folder: Folder, model: ServedModel, query: PageQuery) -> PageQuery:
    """Store a query to judge, with the first documents of both rankings in random order."""
    both, texts = rank_twice(model, query.text), texts_of(model)
    index = texts.index
    sides = both.best(JUDGED_DEPTH), both.compared_best(JUDGED_DEPTH)
    positions = sorted({position for side in sides for position in side.tolist()})
    if not positions:
        raise Refusal("no document matches this query.")
    random.Random(query_id(query.text)).shuffle(positions)
    rows = [int(both.rows[position]) for position in positions]
    documents = [
        document_row(index.forward.ids[row], source, index.schema.analyzers, texts.title_field)
        for row, source in zip(rows, index.engine.sources(rows), strict=True)
    ]
    is_new = folder.add_query(query.text, documents)
    return replace(query, note="judge" if is_new else "judged")
