"""Set-up pages of a project, from its title to its opening."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from firstpage.core import DataError
from firstpage.core.http import sentence
from firstpage.labeling.app.api.projects import check_may_create, new_project, read_uploads
from firstpage.labeling.app.imports.bundle import Bundle
from firstpage.labeling.app.imports.texts import add
from firstpage.labeling.app.pages.dashboard import CHOICES
from firstpage.labeling.app.pages.rendering import (
    LEAD,
    LOGIN,
    NOTES,
    field,
    page_routes,
    query_texts,
    redirect,
    render,
)
from firstpage.labeling.app.security import settings_of, store_of
from firstpage.labeling.app.store import assigning, projects, texts, webhooks
from firstpage.labeling.app.store.logins import Login
from firstpage.labeling.app.store.projects import Member, Project
from firstpage.labeling.app.store.scales import (
    parse_scale,
    parse_tags,
    scale_ends,
    scale_text,
    scale_title,
)
from firstpage.labeling.app.webhooks import check_public
from firstpage.labeling.session.events import RATES
from firstpage.labeling.strategies.registry import STRATEGIES, STRATEGY_OF

routes = page_routes(LEAD)

STRATEGY_LABELS = {
    "adaptive": "Adaptive: asks the most informative pair (recommended)",
    "tournament": "Tournament: fewest questions, trusts every answer",
    "insertion": "Binary insertion into the sorted top k; good with a prior order",
    "heap-closure": "Heap, with the transitive closure of the answers",
    "heap-memo": "Heap, never asks a pair twice",
    "heap": "Heap, as published: asks some pairs twice",
    "quick-sort": "Quick sort",
    "select-best": "Repeated selection of the best",
    "pools": "Rounds of random pairs over a shrinking pool",
    "duels": "Dueling bandit: double Thompson sampling",
}


@routes.get("/projects/new", admit=LOGIN)
def new(request: Request, login: Login) -> Response:
    with store_of(request).read() as tx:
        check_may_create(tx, login.person)
    return render(request, "lead/new.html", values={"title": "", "slug": ""})


@routes.post("/projects/new", admit=LOGIN)
def create(request: Request, login: Login, form: FormData) -> Response:
    title = field(form, "title")
    slug = field(form, "slug") or slug_of(title)
    try:
        project = new_project(request, login.person, slug=slug, title=title)
    except DataError as error:
        values = {"title": title, "slug": slug}
        return render(request, "lead/new.html", status=400, values=values, problem=sentence(error))
    return redirect(f"/p/{project.slug}/setup/data")


@routes.get("/p/{slug}/setup")
def project_page(request: Request, member: Member) -> Response:
    return _project_page(request, member)


@routes.post("/p/{slug}/setup/webhook")
def save_webhook(request: Request, member: Member, form: FormData) -> Response:
    """Set or remove the webhook; the secret that signs its messages is shown once."""
    if form.get("remove") == "yes":
        with store_of(request).write() as tx:
            webhooks.remove(tx, member.project, member.person)
        return redirect(f"/p/{member.project.slug}/setup", "webhook-removed")
    url = field(form, "url")
    try:
        check_public(url, settings_of(request).private_webhooks)
        with store_of(request).write() as tx:
            hook = webhooks.put(tx, member.project, url, member.person)
    except DataError as error:
        return _project_page(request, member, status=400, problem=sentence(error))
    return _project_page(request, member, secret=hook.secret)


def _project_page(
    request: Request, member: Member, secret: str | None = None, **context: Any
) -> Response:
    """Render the first page of the set-up; `secret` is that of a webhook just set."""
    with store_of(request).read() as tx:
        hook = webhooks.find(tx, member.project.id)
        messages = webhooks.recent(tx, member.project.id, 5)
        titles = query_texts(tx, member.project)
    return render(
        request,
        "lead/project.html",
        member=member,
        ready=ready(request, member),
        hook=hook,
        messages=messages,
        titles=titles,
        secret=secret,
        **context,
    )


@routes.post("/p/{slug}/setup")
def save_project(request: Request, member: Member, form: FormData) -> Response:
    changes = {"title": field(form, "title"), "guidelines": field(form, "guidelines")}
    with store_of(request).write() as tx:
        projects.change(tx, member.project, changes, member.person)
    return redirect(f"/p/{member.project.slug}/setup/data", "saved")


@routes.get("/p/{slug}/setup/judging")
def judging_page(request: Request, member: Member) -> Response:
    return _judging(request, member)


@routes.post("/p/{slug}/setup/judging")
def save_judging(request: Request, member: Member, form: FormData) -> Response:
    """Save the tool in draft, the setting before the first answer, options at any time."""
    try:
        with store_of(request).write() as tx:
            fixed = projects.fixed_settings(tx, member.project)
            changes = _changes(form, member.project, fixed)
            projects.change(tx, member.project, changes, member.person)
    except DataError as error:
        return _judging(request, member, status=400, problem=sentence(error))
    return redirect(f"/p/{member.project.slug}/setup/people", "saved")


@routes.get("/p/{slug}/setup/assignment")
def assignment_page(request: Request, member: Member) -> Response:
    """Show the current assignment, its problems, and what assigning again would change."""
    with store_of(request).read() as tx:
        overview = assigning.overview(tx, member.project)
    return render(
        request,
        "lead/assignment.html",
        member=member,
        ready=ready(request, member),
        overview=overview,
        reason=sentence(overview.reason) if overview.reason else "",
    )


@routes.post("/p/{slug}/assignment")
def assign(request: Request, member: Member, form: FormData) -> Response:
    """Assign the queries, and open the project if requested."""
    with store_of(request).write() as tx:
        assigning.assign_tasks(tx, member.project, member.person)
        if form.get("open") == "yes":
            projects.set_state(tx, member.project, "open", member.person)
    note = "opened" if form.get("open") == "yes" else "assigned"
    return redirect(f"/p/{member.project.slug}/dashboard", note)


@routes.post("/p/{slug}/open")
def reopen(request: Request, member: Member, form: FormData) -> Response:
    return _set_state(request, member, "open", "opened")


@routes.post("/p/{slug}/close")
def close(request: Request, member: Member, form: FormData) -> Response:
    return _set_state(request, member, "closed", "closed")


def ready(request: Request, member: Member) -> dict[str, bool]:
    """Return which steps of the set-up are complete."""
    project = member.project
    with store_of(request).read() as tx:
        has_queries = bool(texts.of_project(tx, project.id))
        has_people = bool(projects.present(tx, project.id, "assessor"))
    done = {"": True, "/data": has_queries, "/people": has_people}
    return done | dict.fromkeys(("/judging", "/assignment"), project.state != "draft")


def slug_of(title: str) -> str:
    """Return a short name for a title: ASCII letters and digits, the rest as dashes."""
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:64] or "project"


def _set_state(request: Request, member: Member, state: str, note: str) -> Response:
    with store_of(request).write() as tx:
        projects.set_state(tx, member.project, state, member.person)
    return redirect(f"/p/{member.project.slug}/dashboard", note)


def _judging(request: Request, member: Member, **context: Any) -> Response:
    project = member.project
    with store_of(request).read() as tx:
        fixed = projects.fixed_settings(tx, project)
    implied = set(STRATEGY_OF.values())  # by a tool
    named = [(n, w) for n, w in STRATEGY_LABELS.items() if n in STRATEGIES]
    known = {n for n, _ in named}
    named += [(n, n) for n in STRATEGIES if n not in known and n not in implied]
    if project.setting.strategy not in dict(named):
        named.append((project.setting.strategy, project.setting.strategy))
    return render(
        request,
        "lead/judging.html",
        member=member,
        ready=ready(request, member),
        tools=_tools(project),
        strategies=named,
        setting=project.setting,
        options=project.options,
        choices=CHOICES,
        scale_text=scale_text(project.options.grades),
        percentage=percentage,
        fixed=fixed,
        **context,
    )


def _tools(project: Project) -> list[tuple[str, str, str]]:
    """Return the tools, each with its label and what it asks."""
    scale = project.options.grades
    return [
        ("pairs", "Side by side", "Which of two documents is better? Finds the top k, in order."),
        (
            "grades",
            scale_title(scale).capitalize(),
            f"Each document on its own, {scale_ends(scale)}.",
        ),
        ("lists", "Two result lists", "Which of two result lists is better, and by how much?"),
    ]


def _changes(form: Any, project: Project, fixed: Mapping[str, str]) -> dict[str, Any]:
    """Return the changes of the form, as `projects.change` expects them.

    The fields of fixed parts are disabled, so the form does not have them.  If an answer came
    while the page was open it does, and the change is refused.
    """
    options: dict[str, Any] = {
        "ties": form.get("ties") == "yes",
        "bad": form.get("bad") == "yes",
        "away_after": _number(form, "away_after"),
        "training_pass": _fraction(form, "training_pass"),
        "replicates": _integer(form, "replicates"),
        "folds": _integer(form, "folds") if field(form, "folds") else None,
        "list_selection": field(form, "list_selection") or "order",
        "grades": parse_scale(field(form, "grades").replace("\r", "")),
        "aspects": parse_tags(field(form, "aspects").replace("\r", "")),
        "reasons": parse_tags(field(form, "reasons").replace("\r", "")),
        "verdict_weight": _weight(form, project),
    }
    changes: dict[str, Any] = {"options": options}
    if "setting" not in fixed or form.get("k") is not None:
        setting = {name: _integer(form, name) for name in ("k", "seed", "refine")}
        fractions = {name: _fraction(form, name, "0") for name in RATES}
        changes["setting"] = {**setting, **fractions, "strategy": field(form, "strategy")}
    if "tool" in fixed:
        return changes
    tools = [t for t in form.getlist("tools") if t in projects.TOOLS]
    if not tools:
        raise DataError("choose at least one tool.")
    options["tools"] = tools if len(tools) > 1 else None
    return {"tool": tools[0], **changes}


def _weight(form: Any, project: Project) -> float:
    text = field(form, "verdict_weight") or str(project.options.verdict_weight)
    if not re.fullmatch(r"\d{1,4}(\.\d{1,6})?", text):
        raise DataError(f"the weight of a verdict must be a number; got {text[:20]!r}.")
    return float(text) if "." in text else int(text)


def percentage(fraction: float) -> str:
    """Return a fraction as a percentage, from which `_fraction` reads the same number."""
    digits = format(Decimal(repr(fraction)) * 100, "f")
    return digits.rstrip("0").rstrip(".") if "." in digits else digits


def _fraction(form: Any, name: str, default: str = "") -> float:
    """Return the fraction of a percentage, without rounding it."""
    return float(_decimal(form, name, default) / 100)


def _number(form: Any, name: str) -> float:
    """Return a number that is not negative; an integer stays one."""
    value = _decimal(form, name)
    return int(value) if value == value.to_integral_value() else float(value)


def _decimal(form: Any, name: str, default: str = "") -> Decimal:
    text = field(form, name) or default
    if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,25})?", text):
        raise DataError(f"{name.replace('_', ' ')} must be a number; got {text[:20]!r}.")
    return Decimal(text)


def _integer(form: Any, name: str, default: str = "") -> int:
    text = field(form, name) or default
    if not re.fullmatch(r"\d{1,9}", text):
        raise DataError(f"{name.replace('_', ' ')} must be an integer; got {text[:20]!r}.")
    return int(text)


FORMATS = [
    ("rows", "Rows", "Queries and documents as JSON lines, CSV or Parquet"),
    ("trec", "TREC", "Topics, a run, and the collection with the texts"),
    ("letor", "LETOR", "A LETOR file, and the collection with the texts"),
    ("known", "Known answers", "Practice questions, or known answers to mix in"),
]
FILES = [  # name, label, hint, formats, needed
    ("documents", "Documents", "query, document, text or html, title …", "rows", True),
    ("queries", "Queries", "query, text, description; optional", "rows letor", False),
    ("images", "Images", "the image files that documents name", "rows", False),
    ("topics", "Topics", "TREC topics; optional", "trec", False),
    ("run", "Runs", "query Q0 document rank score tag; several are pooled", "trec", True),
    ("letor", "LETOR file", "with docid = … in its comments", "letor", True),
    ("collection", "Collection", "rows, TREC text, SMART or NPL; the texts", "trec letor", True),
    ("training", "Practice questions", "text, left, right, outcome, explanation", "known", False),
    ("gold_questions", "Known answers", "query, left, right, outcome", "known", False),
    ("qrels", "Grades", "qrels of the items of lists: query 0 item grade", "rows known", False),
]


SEVERAL = ("images", "run")  # may be several files


@routes.get("/p/{slug}/setup/data")
def data_page(request: Request, member: Member) -> Response:
    return _page(request, member)


@routes.post("/p/{slug}/preview/import")
def preview(request: Request, member: Member, form: FormData) -> Response:
    """Show the content of the chosen files, or the first error; nothing is stored."""
    try:
        bundle = _read(request, member.project, form)
    except DataError as error:
        return render(request, "lead/preview.html", member=member, problem=sentence(error))
    kinds = Counter(d.kind for q in bundle.queries for d in q.documents).most_common()
    return render(
        request,
        "lead/preview.html",
        member=member,
        queries=bundle.queries,
        kinds=kinds,
        documents=sum(n for _, n in kinds),
        gold_questions=len(bundle.gold_questions) + len(bundle.training),
        grades=sum(map(len, bundle.grades.values())),
        notes=[sentence(n) for n in bundle.notes],
    )


@routes.post("/p/{slug}/import")
def import_(request: Request, member: Member, form: FormData) -> Response:
    """Import the files, all or nothing; show what was omitted or corrected."""
    try:
        bundle = _read(request, member.project, form)
        add(store_of(request), member.project, bundle, member.person)
    except DataError as error:
        return _page(request, member, status=400, problem=sentence(error))
    if bundle.notes:
        notes = [sentence(note) for note in bundle.notes]
        return _page(request, member, note=NOTES["imported"], notes=notes)
    return redirect(f"/p/{member.project.slug}/setup/data", "imported")


def _page(request: Request, member: Member, notes: Sequence[str] = (), **context: Any) -> Response:
    """Render the page of imports; `notes` are those on the import before."""
    with store_of(request).read() as tx:
        queries = texts.of_project(tx, member.project.id)
        training = len(texts.gold_questions_of(tx, member.project.id, "training"))
    return render(
        request,
        "lead/data.html",
        member=member,
        ready=ready(request, member),
        queries=queries,
        documents=sum(q["n"] for q in queries),
        training=training,
        formats=FORMATS,
        files=FILES,
        several=SEVERAL,
        notes=notes,
        **context,
    )


def _read(request: Request, project: Project, form: FormData) -> Bundle:
    """Read the files of the form."""
    names = [name for name, *_ in FILES]
    files = {name: form.getlist(name) if name in SEVERAL else form.get(name) for name in names}
    return read_uploads(request, project, files)
