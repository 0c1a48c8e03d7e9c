"""Queries and documents: what is there, a look into files, the import."""

from __future__ import annotations

from collections import Counter
from typing import Any

from fastapi import APIRouter, Request, Response
from starlette.datastructures import FormData, UploadFile

from firstpage.data.formats.row_reader import ReadLimits
from firstpage.errors import DataError
from firstpage.web.imports import bundle
from firstpage.web.imports.bundle import Bundle
from firstpage.web.imports.pictures import from_uploads
from firstpage.web.imports.texts import add
from firstpage.web.pages.rendering import Form, PageRoute, go, render, sentence
from firstpage.web.pages.setup import ready
from firstpage.web.security import Lead, settings_of, store_of
from firstpage.web.store import texts
from firstpage.web.store.projects import Member

router = APIRouter(route_class=PageRoute, include_in_schema=False)

FORMATS = [
    ("rows", "Rows", "Queries and documents as JSON lines, CSV or Parquet"),
    ("trec", "TREC", "Topics, a run, and the collection with the texts"),
    ("letor", "LETOR", "A LETOR file, and the collection with the texts"),
    ("known", "Known answers", "Practice questions, or known answers to mix in"),
]
FILES = [  # name, label, hint, formats, needed
    ("documents", "Documents", "query, document, text or html, title …", "rows", True),
    ("queries", "Queries", "query, text, description; may be left out", "rows letor", False),
    ("images", "Pictures", "the files that documents name", "rows", False),
    ("topics", "Topics", "TREC topics; may be left out", "trec", False),
    ("run", "Run", "query Q0 document rank score tag", "trec", True),
    ("letor", "LETOR file", "with docid = … in its comments", "letor", True),
    ("collection", "Collection", "JSON lines or TREC text with the documents", "trec letor", True),
    ("training", "Practice questions", "text, left, right, outcome, explanation", "known", False),
    ("golds", "Known answers", "query, left, right, outcome", "known", False),
    ("qrels", "Grades", "qrels of the items of lists: query 0 item grade", "rows known", False),
]


@router.get("/p/{slug}/setup/texts")
def texts_page(request: Request, member: Lead) -> Response:
    return _page(request, member)


@router.post("/p/{slug}/preview/import")
def look(request: Request, member: Lead, form: Form) -> Response:
    """What the chosen files hold, or the line that is wrong; nothing is kept."""
    try:
        found = _read(request, form)
    except DataError as error:
        return render(request, "lead/preview.html", member=member, problem=sentence(error))
    kinds = Counter(d.kind for q in found.queries for d in q.documents).most_common()
    return render(
        request, "lead/preview.html", member=member, queries=found.queries, kinds=kinds,
        documents=sum(n for _, n in kinds), golds=len(found.golds) + len(found.training),
        grades=sum(map(len, found.grades.values())), notes=[sentence(n) for n in found.notes],
    )  # fmt: skip


@router.post("/p/{slug}/import")
def import_(request: Request, member: Lead, form: Form) -> Response:
    """All of it, or nothing and the reason."""
    try:
        found = _read(request, form)
        add(store_of(request), member.project, found, member.person)
    except DataError as error:
        return _page(request, member, status=400, problem=sentence(error))
    return go(f"/p/{member.project.slug}/setup/texts", "imported")


def _page(
    request: Request, member: Member, status: int = 200, problem: str | None = None
) -> Response:
    with store_of(request).read() as tx:
        queries = texts.of_project(tx, member.project.id)
        training = len(texts.golds_of(tx, member.project.id, "training"))
    return render(
        request, "lead/texts.html", member=member, status=status, problem=problem,
        ready=ready(request, member), queries=queries, documents=sum(q["n"] for q in queries),
        training=training, formats=FORMATS, files=FILES,
    )  # fmt: skip


def _read(request: Request, form: FormData) -> Bundle:
    """The files that were chosen, by what they hold, and their pictures."""
    files: dict[str, Any] = {}
    for name, *_ in FILES:
        found = form.get(name)
        if name != "images" and isinstance(found, UploadFile) and found.filename:
            files[name] = bundle.File.uploaded(found.filename, found.file)
    images = [f for f in form.getlist("images") if isinstance(f, UploadFile) and f.filename]
    pictures = from_uploads({f.filename or "": f.file for f in images})
    limits = ReadLimits(bytes=settings_of(request).unpacked)
    return bundle.read(bundle.Sources(**files, pictures=pictures), limits)
