"""The pages: their templates, and the pages about searches and errors."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment

from firstpage.core import counted
from firstpage.core.http import CachedStaticFiles, page_templates, sentence
from firstpage.serving.page_contents import (
    FIRST_STAGE,
    MODEL,
    PageQuery,
    RankingComparison,
    Visitor,
    compare,
)
from firstpage.serving.searching import DEPTH, texts_of
from firstpage.serving.served_model import ServedModel
from firstpage.serving.snippets import displayed
from firstpage.serving.watched_model import WatchedModel, printable

FOLDER = Path(__file__).parent
NOTES = {
    "preference": "Your preference is stored. Thank you.",
    "known": "Your preference for these pages was stored before; the first one counts.",
    "judge": "The query and the first documents of both rankings are stored for judging.",
    "judged": "This query was stored for judging before.",
}


@cache
def static_files() -> CachedStaticFiles:
    """Return the static files, with the address under which they are served."""
    return CachedStaticFiles(FOLDER / "static", sheets={"page.css": ("base.css", "search.css")})


@cache
def templates() -> Environment:
    """Return the templates of the pages."""
    environment = page_templates(FOLDER / "templates")
    environment.filters |= {"displayed": displayed, "printable": printable, "counted": counted}
    environment.globals |= {"static": static_files().url, "default_depth": DEPTH}
    return environment


def compile_templates() -> None:
    """Compile all templates, so that no request waits for it."""
    for name in templates().list_templates():
        templates().get_template(name)


def render(name: str, watched: WatchedModel, **context: Any) -> str:
    """Render a template with the variables that all pages share."""
    shared = {
        "watched": watched,
        "searchable": watched.source is not None,
        "query": PageQuery(),
        "note": None,
        "note_kind": "good",
        "problem": None,
    }
    return templates().get_template(name).render({**shared, **context})


def search_page(
    model: ServedModel,
    watched: WatchedModel,
    query: PageQuery,
    visitor: Visitor | None = None,
    *,
    problem: str | None = None,
    comparison: RankingComparison | None = None,
) -> str:
    """Return the page to search and to compare; without a comparison, the search box only.

    `problem` says what is wrong with the address.  Only a visitor is asked for feedback.
    With the id of the query, there is one list, and clicks on it are logged.
    """
    return render(
        "search.html",
        watched,
        model=model,
        texts=texts_of(model),
        query=query,
        visitor=visitor,
        comparison=comparison,
        sides=(MODEL,)
        if query.query_id
        else (MODEL, FIRST_STAGE)
        if visitor is None
        else visitor.sides(query.text),
        note=NOTES.get(query.note) if visitor and comparison else None,
        problem=problem and sentence(problem),
    )


def compared_page(
    model: ServedModel, watched: WatchedModel, query: PageQuery, visitor: Visitor | None
) -> tuple[str, int]:
    """Search; return the page with both rankings, and the number of candidates."""
    comparison = compare(model, query)
    page = search_page(model, watched, query, visitor, comparison=comparison)
    return page, comparison.candidates


def error_page(watched: WatchedModel, title: str, detail: str) -> str:
    """Return a page that says why a request was refused."""
    return render("error.html", watched, title=title, detail=sentence(detail))
