"""Put what was read into a project."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import func, select

from firstpage.errors import DataError
from firstpage.web.imports.bundle import Bundle
from firstpage.web.imports.known import Known
from firstpage.web.store import audit, graded, projects, texts
from firstpage.web.store.connect import Tx
from firstpage.web.store.people import Person
from firstpage.web.store.projects import Project
from firstpage.web.store.tables import documents, golds, queries
from firstpage.web.store.texts import Query


@dataclass(frozen=True)
class Imported:
    """How much came in."""

    queries: int = 0
    documents: int = 0
    golds: int = 0
    training: int = 0
    grades: int = 0


def add(tx: Tx, project: Project, bundle: Bundle, by: Person | None) -> Imported:
    """All of it, in the transaction of the caller; what is there already is refused."""
    if project.state == "closed":
        raise DataError("the project is closed; open it to import more.")
    for digest, (kind, data) in bundle.pictures.kept.items():
        texts.keep_image(tx, digest, kind, data)
    position = _next(tx, project)
    have = {row["key"] for row in texts.of_project(tx, project.id)}
    for number, query in enumerate(bundle.queries):
        _check(query, have, project)
        texts.add_query(tx, project.id, query, position + number)
        have.add(query.key)
    for gold in bundle.golds:
        _add_gold(tx, project, gold)
    for lesson in bundle.training:
        _add_training(tx, project, lesson)
    made = Imported(
        len(bundle.queries), sum(len(q.documents) for q in bundle.queries), len(bundle.golds),
        len(bundle.training), _grade(tx, project, bundle),
    )  # fmt: skip
    audit.note(tx, "texts imported", person=by.id if by else None, project=project.id, **vars(made))
    return made


def _grade(tx: Tx, project: Project, bundle: Bundle) -> int:
    """Items of lists by their ids, old ones too: grades often come after the lists."""
    count = graded.grade(tx, project.id, bundle.grades) if bundle.grades else 0
    if bundle.grades and not count:
        raise DataError(
            f"{bundle.graded_by}: grades no item of the lists; do the query ids match, and does "
            "each item have its 'id'?"
        )
    return count


def _check(query: Query, have: set[str], project: Project) -> None:
    if query.key in have:
        raise DataError(f"query {query.key!r} is in the project already; leave it out.")
    if not query.documents:
        raise DataError(f"query {query.key!r} has no documents; give some, or leave it out.")
    projects.check_size(query.key, len(query.documents), project.setting, project.tools)
    lists = "lists" in project.tools
    if lists and any(d.kind != "list" for d in query.documents):
        raise DataError(f"query {query.key!r}: this project compares lists; give 'items' to each.")


def _add_gold(tx: Tx, project: Project, gold: Known) -> None:
    row = tx.first(
        select(queries.c.id).where(
            queries.c.project == project.id, queries.c.key == gold.query,
            queries.c.purpose == "work",
        )
    )  # fmt: skip
    if row is None:
        raise DataError(f"{gold.where}: there is no query {gold.query!r} in the project.")
    known = {d["key"] for d in texts.documents_of(tx, row["id"])}
    for key in (gold.left, gold.right):
        if key is not None and key not in known:
            raise DataError(f"{gold.where}: query {gold.query!r} has no document {key!r}.")
    if gold.left == gold.right:
        raise DataError(f"{gold.where}: left and right are the same document.")
    _insert(tx, project, row["id"], "gold", gold)


def _add_training(tx: Tx, project: Project, lesson: Known) -> None:
    """Its texts live in a query that is never dealt out."""
    assert lesson.own is not None
    number = _next(tx, project)
    own = Query(f"training {number}", lesson.own.text, lesson.own.description, lesson.own.documents)
    query = texts.add_query(tx, project.id, own, number, "training")
    _insert(tx, project, query, "training", lesson)


def _insert(tx: Tx, project: Project, query: int, kind: str, known: Known) -> None:
    count = select(func.count()).select_from(golds).where(golds.c.project == project.id)
    tx.add(
        golds, project=project.id, query=query, kind=kind, left=known.left, right=known.right,
        outcome=known.outcome, explanation=known.explanation, position=tx.value(count),
    )  # fmt: skip


def _next(tx: Tx, project: Project) -> int:
    last = tx.value(select(func.max(queries.c.position)).where(queries.c.project == project.id))
    return 0 if last is None else int(last) + 1


def count_documents(tx: Tx, project: Project) -> int:
    """All documents of the project's own queries."""
    mine = select(queries.c.id).where(queries.c.project == project.id, queries.c.purpose == "work")
    return int(tx.value(select(func.count()).where(documents.c.query.in_(mine))))
