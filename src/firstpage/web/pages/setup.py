"""Setting up a project: a short path from its name to its opening."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from typing import Any

from fastapi import APIRouter, HTTPException, Request, Response
from starlette.datastructures import FormData, UploadFile

from firstpage.data.formats.row_reader import ReadLimits
from firstpage.errors import DataError
from firstpage.labeling.strategies.registry import STRATEGIES, STRATEGY_OF
from firstpage.web.imports import bundle
from firstpage.web.imports.bundle import Bundle
from firstpage.web.imports.pictures import from_uploads
from firstpage.web.imports.texts import add
from firstpage.web.pages.dashboard import CHOICES
from firstpage.web.pages.rendering import Form, PageRoute, field, go, render, sentence
from firstpage.web.security import CurrentPerson, Lead, settings_of, store_of
from firstpage.web.store import assigning, projects, texts
from firstpage.web.store.connect import Tx
from firstpage.web.store.people import Person
from firstpage.web.store.projects import Member

router = APIRouter(route_class=PageRoute, include_in_schema=False)

TOOLS = [
    ("pairs", "Side by side", "Which of two documents is better? Finds the best k, in order."),
    ("grades", "Five grades", "Each document alone, from bad to perfect."),
    ("lists", "Two result lists", "Which of two whole lists is better, and by how much?"),
]
WORDS = {
    "adaptive": "Adaptive: asks where it is least sure (best for people)",
    "tournament": "Tournament: fewest questions, trusts every answer",
    "insertion": "Insertion: into the sorted best k; good with a prior order",
    "heap-closure": "Heap, using all that follows from answers",
    "heap-memo": "Heap, never asks a pair twice",
    "heap": "Heap, as published",
    "quick-sort": "Quick sort",
    "select-best": "Select the best, again and again",
}


@router.get("/projects/new")
def new(request: Request, person: CurrentPerson) -> Response:
    with store_of(request).read() as tx:
        _may_create(tx, person)
    return render(request, "lead/new.html", given={"title": "", "slug": ""})


@router.post("/projects/new")
def create(request: Request, form: Form, person: CurrentPerson) -> Response:
    title = field(form, "title")
    slug = field(form, "slug") or slug_of(title)
    try:
        with store_of(request).write() as tx:
            _may_create(tx, person)
            made = projects.create(tx, slug, title, by=person)
            if settings_of(request).open:
                projects.join(tx, made, person, "assessor", by=person)
    except DataError as error:
        given = {"title": title, "slug": slug}
        return render(request, "lead/new.html", status=400, given=given, problem=sentence(error))
    return go(f"/p/{made.slug}/setup/texts")


@router.get("/p/{slug}/setup")
def project_page(request: Request, member: Lead) -> Response:
    return render(request, "lead/project.html", member=member, ready=ready(request, member))


@router.post("/p/{slug}/setup")
def save_project(request: Request, member: Lead, form: Form) -> Response:
    changes = {"title": field(form, "title"), "guidelines": field(form, "guidelines")}
    with store_of(request).write() as tx:
        projects.change(tx, member.project, changes, member.person)
    return go(f"/p/{member.project.slug}/setup/texts", "saved")


@router.get("/p/{slug}/setup/judging")
def judging_page(request: Request, member: Lead) -> Response:
    return _judging(request, member)


@router.post("/p/{slug}/setup/judging")
def save_judging(request: Request, member: Lead, form: Form) -> Response:
    """Tool, strategy and k while nobody works by them; options always."""
    try:
        changes = _changes(form, member.project.state == "draft")
        with store_of(request).write() as tx:
            projects.change(tx, member.project, changes, member.person)
    except DataError as error:
        return _judging(request, member, status=400, problem=sentence(error))
    return go(f"/p/{member.project.slug}/setup/people", "saved")


@router.get("/p/{slug}/setup/deal")
def deal_page(request: Request, member: Lead) -> Response:
    """Show the deal as it is, what is wrong with it, and what dealing out would change."""
    with store_of(request).read() as tx:
        found = assigning.overview(tx, member.project)
    return render(
        request, "lead/deal.html", member=member, ready=ready(request, member), deal=found,
        why=sentence(found.why) if found.why else "",
    )  # fmt: skip


@router.post("/p/{slug}/deal")
def deal(request: Request, member: Lead, form: Form) -> Response:
    with store_of(request).write() as tx:
        assigning.deal(tx, member.project, member.person)
        if form.get("open") == "yes":
            projects.set_state(tx, member.project, "open", member.person)
    note = "opened" if form.get("open") == "yes" else "dealt"
    return go(f"/p/{member.project.slug}/dashboard", note)


@router.post("/p/{slug}/open")
def open_again(request: Request, member: Lead, form: Form) -> Response:
    return _set_state(request, member, "open", "opened")


@router.post("/p/{slug}/close")
def close(request: Request, member: Lead, form: Form) -> Response:
    return _set_state(request, member, "closed", "closed")


def ready(request: Request, member: Member) -> dict[str, bool]:
    """Which steps of the path are behind."""
    project = member.project
    with store_of(request).read() as tx:
        some = bool(texts.of_project(tx, project.id))
        team = projects.members(tx, project, "assessor")
    people = any(row["departed_at"] is None for row in team)
    opened = project.state != "draft"
    return {"": True, "/texts": some, "/people": people, "/judging": opened, "/deal": opened}


def slug_of(title: str) -> str:
    """A short name from a title: letters without marks, the rest as dashes."""
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:64] or "project"


def _set_state(request: Request, member: Member, state: str, note: str) -> Response:
    with store_of(request).write() as tx:
        projects.set_state(tx, member.project, state, member.person)
    return go(f"/p/{member.project.slug}/dashboard", note)


def _judging(request: Request, member: Member, **more: Any) -> Response:
    project = member.project
    own = set(STRATEGY_OF.values())
    named = [(n, w) for n, w in WORDS.items() if n in STRATEGIES]
    known = {n for n, _ in named}
    named += [(n, n) for n in STRATEGIES if n not in known and n not in own]
    if project.setting.strategy not in dict(named):
        named.append((project.setting.strategy, project.setting.strategy))
    return render(
        request, "lead/judging.html", member=member, ready=ready(request, member), tools=TOOLS,
        strategies=named, setting=project.setting, options=project.options, choices=CHOICES,
        **more,
    )  # fmt: skip


def _changes(form: Any, draft: bool) -> dict[str, Any]:
    """What the form says, as a project takes it."""
    options: dict[str, Any] = {
        "ties": form.get("ties") == "yes",
        "bad": form.get("bad") == "yes",
        "away_after": _whole(form, "away_after"),
        "training_pass": _whole(form, "training_pass") / 100,
        "replicates": _whole(form, "replicates"),
        "folds": _whole(form, "folds") if field(form, "folds") else None,
        "choose": field(form, "choose") or "order",
    }
    if not draft:
        return {"options": options}
    tools = [t for t in form.getlist("tools") if t in dict.fromkeys(n for n, _, _ in TOOLS)]
    if not tools:
        raise DataError("choose a tool.")
    options["tools"] = tools if len(tools) > 1 else None
    setting = {name: _whole(form, name) for name in ("k", "seed", "refine")}
    shares = {name: _whole(form, name) / 100 for name in ("repeats", "golds")}
    strategy = {"strategy": field(form, "strategy")}
    return {"tool": tools[0], "options": options, "setting": {**setting, **shares, **strategy}}


def _whole(form: Any, name: str) -> int:
    text = field(form, name)
    if not re.fullmatch(r"\d{1,9}", text):
        raise DataError(f"{name.replace('_', ' ')} is a whole number; got {text[:20]!r}.")
    return int(text)


def _may_create(tx: Tx, person: Person) -> None:
    if not person.admin and not any(m.leads for m in projects.of_person(tx, person)):
        raise HTTPException(403, "Only a lead may make projects.")


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
