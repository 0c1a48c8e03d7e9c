"""Put what was read into a project: all of it or nothing, and nobody waits for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import bindparam, func, select, update

from firstpage.errors import DataError
from firstpage.labeling.session.events import Setting
from firstpage.web.imports.bundle import Bundle
from firstpage.web.imports.rows import Known
from firstpage.web.store import audit, projects, texts
from firstpage.web.store.connect import Store, Tx
from firstpage.web.store.people import Person
from firstpage.web.store.projects import Project
from firstpage.web.store.staging import Staging, clean
from firstpage.web.store.tables import audit as audit_table
from firstpage.web.store.tables import documents, golds, queries
from firstpage.web.store.tables import projects as project_table
from firstpage.web.store.texts import Document, Query

NOTE = "texts imported"  # in the audit log
CLOSED = "the project is closed; open it to import more."
# Rows that the last transaction of an import changes, while answers wait.
MAX_QUERIES, MAX_KNOWN, MAX_REGRADED = 10_000, 10_000, 5000


@dataclass(frozen=True)
class Imported:
    """How much came in."""

    queries: int = 0
    documents: int = 0
    golds: int = 0
    training: int = 0
    grades: int = 0


@dataclass(frozen=True)
class Before:
    """A project as an import finds it; of one that is not made yet there is nothing."""

    latest: int | None = None  # the last import into it
    position: int = 0  # of the next query
    ids: dict[str, int] = field(default_factory=dict)  # of all queries, by key
    work: frozenset[str] = frozenset()  # keys of those that people judge


@dataclass
class Regraded:
    """Grades that items get: of new lists in place, of lists in the project as rows to write."""

    count: int = 0
    rows: list[dict[str, Any]] = field(default_factory=list)


def add(store: Store, project: Project, bundle: Bundle, by: Person | None) -> Imported:
    """Import into a project; what is there already is refused."""
    with (
        staged(store, bundle, project.tools, project.setting, project) as ready,
        store.write() as tx,
    ):
        return ready.publish(tx, project, by)


@contextmanager
def staged(
    store: Store, bundle: Bundle | None, tools: Sequence[str], setting: Setting,
    project: Project | None = None,
) -> Iterator[Ready]:  # fmt: skip
    """Write all of it where nobody sees it; what was not published in the end is taken out.

    tools, setting  by which the texts will be judged
    project         where they go; None: into one that is not made yet
    """
    if bundle is None:
        yield Ready(None, Imported(), Before(), Regraded())
        return
    with store.read() as tx:
        before = Before() if project is None else _before(tx, project)
        grades = _grades(tx, project, bundle)
    imported = _count(bundle, grades.count)
    _check(bundle, before, grades, tools, setting)
    clean(store)
    staging = Staging(store)
    try:
        _write(staging, bundle, before)
        yield Ready(staging, imported, before, grades)
    finally:
        staging.discard()


@dataclass(frozen=True)
class Ready:
    """Texts that are written, and not yet seen."""

    staging: Staging | None
    imported: Imported
    before: Before
    grades: Regraded

    def publish(self, tx: Tx, project: Project, by: Person | None) -> Imported:
        """Make them part of the project, in the transaction of the caller."""
        if self.staging is None:
            return self.imported
        tx.first(
            select(project_table.c.id).where(project_table.c.id == project.id).with_for_update()
        )
        if projects.get(tx, project.id).state == "closed":
            raise DataError(CLOSED)
        if _latest(tx, project) != self.before.latest:
            raise DataError("somebody imported into this project at the same time; import again.")
        count = select(func.count()).select_from(golds).where(golds.c.project == project.id)
        self.staging.move(tx, project.id, int(tx.value(count)))
        if self.grades.rows:
            texts = update(documents).where(documents.c.id == bindparam("document"))
            tx.connection.execute(texts.values(fields=bindparam("graded")), self.grades.rows)
        audit.note(
            tx, NOTE, person=by.id if by else None, project=project.id, **vars(self.imported)
        )  # fmt: skip
        return self.imported


def _before(tx: Tx, project: Project) -> Before:
    if project.state == "closed":
        raise DataError(CLOSED)
    rows = tx.all(
        select(queries.c.key, queries.c.id, queries.c.purpose, queries.c.position)
        .where(queries.c.project == project.id)
    )  # fmt: skip
    return Before(
        _latest(tx, project),
        1 + max((row["position"] for row in rows), default=-1),
        {row["key"]: row["id"] for row in rows},
        frozenset(row["key"] for row in rows if row["purpose"] == "work"),
    )


def _latest(tx: Tx, project: Project) -> int | None:
    """The number of the last import into a project: two at once would not know of each other."""
    mine = (audit_table.c.project == project.id) & (audit_table.c.action == NOTE)
    latest: int | None = tx.value(select(func.max(audit_table.c.id)).where(mine))
    return latest


# --- what is refused


def _check(
    bundle: Bundle, before: Before, grades: Regraded, tools: Sequence[str], setting: Setting
) -> None:
    for count, most, what in (
        (len(bundle.queries) + len(bundle.training), MAX_QUERIES, "queries"),
        (len(bundle.golds), MAX_KNOWN, "known answers"),
        (len(grades.rows), MAX_REGRADED, "lists of the project that get grades"),
    ):
        if count > most:
            raise DataError(f"{count:,} {what} are more than the {most:,} of one import; split it.")
    for query in bundle.queries:
        _check_query(query, before, tools, setting)


def _check_query(query: Query, before: Before, tools: Sequence[str], setting: Setting) -> None:
    if query.key in before.ids:
        raise DataError(f"query {query.key!r} is in the project already; leave it out.")
    if not query.documents:
        raise DataError(f"query {query.key!r} has no documents; give some, or leave it out.")
    projects.check_size(query.key, len(query.documents), setting, tools)
    if "lists" in tools and any(d.kind != "list" for d in query.documents):
        raise DataError(f"query {query.key!r}: this project compares lists; give 'items' to each.")


def _check_gold(gold: Known, known: frozenset[str] | None) -> None:
    """`known`: the documents of its query."""
    if known is None:
        raise DataError(f"{gold.where}: there is no query {gold.query!r} in the project.")
    for key in (gold.left, gold.right):
        if key is not None and key not in known:
            raise DataError(f"{gold.where}: query {gold.query!r} has no document {key!r}.")
    if gold.left == gold.right:
        raise DataError(f"{gold.where}: left and right are the same document.")


# --- what is written


def _write(staging: Staging, bundle: Bundle, before: Before) -> None:
    """Queries, documents, known answers."""
    lessons = _lessons(bundle, before)
    work = [_graded(query, bundle) for query in bundle.queries]
    rows = [
        {
            "key": query.key, "text": query.text, "description": query.description,
            "purpose": purpose, "position": before.position + number,
        }
        for number, (query, purpose) in enumerate(
            [*((query, "work") for query in work), *((query, "training") for query in lessons)]
        )
    ]  # fmt: skip
    ids = staging.add_queries(rows)
    staging.add_documents(
        (
            (ids[query.key], position, document)
            for query in (*work, *lessons)
            for position, document in enumerate(query.documents)
        ),
        bundle.pictures.kept,
    )
    known = _known(staging.store, bundle, before)
    known_rows: list[dict[str, Any]] = []
    for gold in bundle.golds:
        _check_gold(gold, known.get(gold.query))
        query = ids.get(gold.query) or before.ids[gold.query]
        known_rows.append(_known_row(gold, query, "gold", len(known_rows)))
    for lesson, query_of in zip(bundle.training, lessons, strict=True):
        known_rows.append(_known_row(lesson, ids[query_of.key], "training", len(known_rows)))
    staging.add_golds(known_rows)


def _known_row(known: Known, query: int, kind: str, position: int) -> dict[str, Any]:
    return {
        "query": query, "kind": kind, "left": known.left, "right": known.right,
        "outcome": known.outcome, "explanation": known.explanation, "position": position,
    }  # fmt: skip


def _lessons(bundle: Bundle, before: Before) -> list[Query]:
    """Texts of training questions, each in a query of its own that is never dealt out."""
    taken = {*before.ids, *(query.key for query in bundle.queries)}
    numbers = iter(range(before.position, before.position + len(taken) + len(bundle.training)))
    lessons = []
    for lesson in bundle.training:
        assert lesson.own is not None
        key = next(key for key in (f"training {n}" for n in numbers) if key not in taken)
        lessons.append(replace(lesson.own, key=key))
    return lessons


def _known(store: Store, bundle: Bundle, before: Before) -> dict[str, frozenset[str]]:
    """The documents of every query that a known answer is about."""
    keys = {q.key: frozenset(d.key for d in q.documents) for q in bundle.queries}
    with store.read() as tx:
        for key in {gold.query for gold in bundle.golds} & before.work:
            rows = texts.documents_of(tx, before.ids[key])
            keys[key] = frozenset(row["key"] for row in rows)
    return keys


# --- grades of the items of lists


def _grades(tx: Tx, project: Project | None, bundle: Bundle) -> Regraded:
    """Items get grades by their ids, those of old lists too: grades often come after the lists."""
    regraded = Regraded()
    for query in bundle.queries:
        regraded.count += sum(_hits(d, bundle.grades.get(query.key)) for d in query.documents)
    for row in texts.of_project(tx, project.id) if project and bundle.grades else ():
        known = bundle.grades.get(row["key"])
        for document in texts.documents_of(tx, row["id"]) if known else ():
            fields, hits = texts.with_grades(document["fields"], known or {})
            regraded.count += hits
            if hits and fields != document["fields"]:
                regraded.rows.append({"document": document["id"], "graded": fields})
    if bundle.grades and not regraded.count:
        raise DataError(
            f"{bundle.graded_by}: grades no item of the lists; do the query ids match, and does "
            "each item have its 'id'?"
        )
    return regraded


def _hits(document: Document, known: Any) -> int:
    return texts.with_grades(document.fields, known)[1] if known else 0


def _graded(query: Query, bundle: Bundle) -> Query:
    known = bundle.grades.get(query.key)
    if not known:
        return query
    new = (replace(d, fields=texts.with_grades(d.fields, known)[0]) for d in query.documents)
    return replace(query, documents=tuple(new))


def _count(bundle: Bundle, grades: int) -> Imported:
    return Imported(
        len(bundle.queries), sum(len(q.documents) for q in bundle.queries), len(bundle.golds),
        len(bundle.training), grades,
    )  # fmt: skip
