"""Write an import into a project, all or nothing, without delaying answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import bindparam, func, select, update

from firstpage.core import DataError
from firstpage.labeling.app.imports.bundle import Bundle
from firstpage.labeling.app.imports.rows import KnownAnswer
from firstpage.labeling.app.store import Person, Project, Store, Tx, audit, projects, texts
from firstpage.labeling.app.store.staging import Staging, remove_stale_imports
from firstpage.labeling.app.store.tables import audit as audit_table
from firstpage.labeling.app.store.tables import documents, gold_questions, queries
from firstpage.labeling.app.store.tables import projects as project_table
from firstpage.labeling.app.store.texts import DocumentRecord, QueryRecord
from firstpage.labeling.session.events import Setting

NOTE = "texts imported"  # action in the audit log
CLOSED = "the project is closed; reopen it to import more."
# The maximum rows that the last transaction of an import changes, while answers wait.
MAX_QUERIES, MAX_KNOWN, MAX_REGRADED = 10_000, 10_000, 5000


@dataclass(frozen=True)
class ImportCounts:
    """The numbers of imported rows."""

    queries: int = 0
    documents: int = 0
    gold_questions: int = 0
    training: int = 0
    grades: int = 0


@dataclass(frozen=True)
class ProjectSnapshot:
    """A project at the start of an import; empty if it does not exist yet."""

    latest: int | None = None  # the audit id of the last import into it
    position: int = 0  # of the next query
    ids: dict[str, int] = field(default_factory=dict)  # of all queries, by key
    work: frozenset[str] = frozenset()  # keys of the queries that people judge


@dataclass
class GradeChanges:
    """The number of graded items, and the rows of existing lists to update."""

    count: int = 0
    rows: list[dict[str, Any]] = field(default_factory=list)


def add(store: Store, project: Project, bundle: Bundle, by: Person | None) -> ImportCounts:
    """Import into a project; queries that exist already are refused."""
    with (
        staged(store, bundle, project.tools, project.setting, project) as ready,
        store.write() as tx,
    ):
        return ready.publish(tx, project, by)


@contextmanager
def staged(
    store: Store,
    bundle: Bundle | None,
    tools: Sequence[str],
    setting: Setting,
    project: Project | None = None,
) -> Iterator[StagedImport]:
    """Write an import to a staging project; what is not published at the end is deleted."""
    if bundle is None:
        yield StagedImport(None, ImportCounts(), ProjectSnapshot(), GradeChanges())
        return
    with store.read() as tx:
        before = ProjectSnapshot() if project is None else _snapshot(tx, project)
        grades = _grades(tx, project, bundle)
        _check_known(bundle, _known(tx, project) if bundle.gold_questions else {})
    imported = _counts(bundle, grades.count)
    _check(bundle, before, grades, tools, setting)
    remove_stale_imports(store)
    staging = Staging(store)
    try:
        _write(staging, bundle, before)
        yield StagedImport(staging, imported, before, grades)
    finally:
        staging.discard()


@dataclass(frozen=True)
class StagedImport:
    """Texts that are written to the staging project and not yet visible."""

    staging: Staging | None
    imported: ImportCounts
    before: ProjectSnapshot
    grades: GradeChanges

    def publish(self, tx: Tx, project: Project, by: Person | None) -> ImportCounts:
        """Move the texts into the project, in the transaction of the caller."""
        if self.staging is None:
            return self.imported
        tx.first(
            select(project_table.c.id).where(project_table.c.id == project.id).with_for_update()
        )
        _check_open(projects.get(tx, project.id))
        if _latest(tx, project) != self.before.latest:
            raise DataError("another import into this project ran at the same time; import again.")
        known = tx.count(gold_questions, gold_questions.c.project == project.id)
        self.staging.move(tx, project.id, known)
        if self.grades.rows:
            statement = update(documents).where(documents.c.id == bindparam("document"))
            tx.connection.execute(statement.values(fields=bindparam("graded")), self.grades.rows)
        audit.note(tx, NOTE, by, project, **vars(self.imported))
        return self.imported


def _check_open(project: Project) -> None:
    """Refuse a project that is archived or closed."""
    if project.archived is not None:
        raise DataError(f"the project {project.slug!r} is archived; restore it first.")
    if project.state == "closed":
        raise DataError(CLOSED)


def _snapshot(tx: Tx, project: Project) -> ProjectSnapshot:
    _check_open(project)
    rows = tx.all(
        select(queries.c.key, queries.c.id, queries.c.purpose, queries.c.position).where(
            queries.c.project == project.id
        )
    )
    return ProjectSnapshot(
        _latest(tx, project),
        1 + max((row["position"] for row in rows), default=-1),
        {row["key"]: row["id"] for row in rows},
        frozenset(row["key"] for row in rows if row["purpose"] == "work"),
    )


def _latest(tx: Tx, project: Project) -> int | None:
    """Return the audit id of the last import into a project, to detect concurrent imports."""
    imports = (audit_table.c.project == project.id) & (audit_table.c.action == NOTE)
    latest: int | None = tx.value(select(func.max(audit_table.c.id)).where(imports))
    return latest


def _check(
    bundle: Bundle,
    before: ProjectSnapshot,
    grades: GradeChanges,
    tools: Sequence[str],
    setting: Setting,
) -> None:
    for count, limit, noun in (
        (len(bundle.queries) + len(bundle.training), MAX_QUERIES, "queries"),
        (len(bundle.gold_questions), MAX_KNOWN, "known answers"),
        (len(grades.rows), MAX_REGRADED, "lists of the project that get grades"),
    ):
        if count > limit:
            raise DataError(
                f"{count:,} {noun} exceed the {limit:,} allowed per import; split the import."
            )
    for query in bundle.queries:
        _check_query(query, before, tools, setting)


def _check_query(
    query: QueryRecord, before: ProjectSnapshot, tools: Sequence[str], setting: Setting
) -> None:
    if query.key in before.ids:
        raise DataError(f"query {query.key!r} is already in the project; leave it out.")
    if not query.documents:
        raise DataError(f"query {query.key!r} has no documents; give some, or leave it out.")
    projects.check_size(query.key, len(query.documents), setting, tools)
    if "lists" in tools and any(d.kind != "list" for d in query.documents):
        raise DataError(
            f"query {query.key!r}: this project compares lists; every document needs 'items'."
        )


def _known(tx: Tx, project: Project | None) -> dict[tuple[str, str, str | None], int]:
    """Return the answers of a project's gold questions, in the form of `_oriented`."""
    if project is None:
        return {}
    rows = tx.all(
        select(queries.c.key, *(gold_questions.c[name] for name in ("left", "right", "outcome")))
        .join(gold_questions, gold_questions.c.query == queries.c.id)
        .where(gold_questions.c.project == project.id, gold_questions.c.kind == "gold")
    )
    return dict(_oriented(r["key"], r["left"], r["right"], r["outcome"]) for r in rows)


def _check_known(bundle: Bundle, known: dict[tuple[str, str, str | None], int]) -> None:
    """Refuse a gold question to which another answer is known; `known` is extended."""
    for gold in bundle.gold_questions:
        question, outcome = _oriented(gold.query, gold.left, gold.right, gold.outcome)
        if known.setdefault(question, outcome) != outcome:
            documents = " and ".join(repr(key) for key in (gold.left, gold.right) if key)
            raise DataError(
                f"{gold.location}: there is another known answer about {documents} of query "
                f"{gold.query!r}; leave one of them out."
            )


def _oriented(
    query: str, left: str, right: str | None, outcome: int
) -> tuple[tuple[str, str, str | None], int]:
    """Return a question with its documents in a fixed order, and its grade or direction."""
    if right is None:
        return (query, left, None), outcome
    sign = (outcome > 0) - (outcome < 0)
    return ((query, left, right), sign) if left < right else ((query, right, left), -sign)


def _check_gold(gold: KnownAnswer, documents: frozenset[str] | None) -> None:
    """Raise unless the documents of a gold question are among those of its query."""
    if documents is None:
        raise DataError(f"{gold.location}: there is no query {gold.query!r} in the project.")
    for key in (gold.left, gold.right):
        if key is not None and key not in documents:
            raise DataError(f"{gold.location}: query {gold.query!r} has no document {key!r}.")
    if gold.left == gold.right:
        raise DataError(f"{gold.location}: left and right are the same document.")


def _write(staging: Staging, bundle: Bundle, before: ProjectSnapshot) -> None:
    """Write queries, documents and gold questions."""
    practice_queries = _practice_queries(bundle, before)
    work = [_graded(query, bundle) for query in bundle.queries]
    rows = [
        {
            "key": query.key,
            "text": query.text,
            "description": query.description,
            "purpose": purpose,
            "position": before.position + number,
        }
        for number, (query, purpose) in enumerate(
            [
                *((query, "work") for query in work),
                *((query, "training") for query in practice_queries),
            ]
        )
    ]
    ids = staging.add_queries(rows)
    staging.add_documents(
        (
            (ids[query.key], position, document)
            for query in (*work, *practice_queries)
            for position, document in enumerate(query.documents)
        ),
        bundle.pictures.by_digest,
    )
    documents_by_query = _gold_documents(staging.store, bundle, before)
    gold_rows: list[dict[str, Any]] = []
    for gold in bundle.gold_questions:
        _check_gold(gold, documents_by_query.get(gold.query))
        query = ids.get(gold.query) or before.ids[gold.query]
        gold_rows.append(_gold_row(gold, query, "gold", len(gold_rows)))
    for question, query_record in zip(bundle.training, practice_queries, strict=True):
        gold_rows.append(_gold_row(question, ids[query_record.key], "training", len(gold_rows)))
    staging.add_gold_questions(gold_rows)


def _gold_row(gold: KnownAnswer, query: int, kind: str, position: int) -> dict[str, Any]:
    return {
        "query": query, "kind": kind, "left": gold.left, "right": gold.right,
        "outcome": gold.outcome, "explanation": gold.explanation, "position": position,
    }  # fmt: skip


def _practice_queries(bundle: Bundle, before: ProjectSnapshot) -> list[QueryRecord]:
    """Return the practice questions as queries of their own, which are never assigned."""
    used_keys = {*before.ids, *(query.key for query in bundle.queries)}
    numbers = iter(range(before.position, before.position + len(used_keys) + len(bundle.training)))
    practice_queries = []
    for question in bundle.training:
        assert question.query_record is not None
        key = next(key for key in (f"training {n}" for n in numbers) if key not in used_keys)
        practice_queries.append(replace(question.query_record, key=key))
    return practice_queries


def _gold_documents(
    store: Store, bundle: Bundle, before: ProjectSnapshot
) -> dict[str, frozenset[str]]:
    """Return the document keys of every query that has gold questions."""
    keys = {q.key: frozenset(d.key for d in q.documents) for q in bundle.queries}
    with store.read() as tx:
        for key in {gold.query for gold in bundle.gold_questions} & before.work:
            rows = texts.documents_of(tx, before.ids[key])
            keys[key] = frozenset(row["key"] for row in rows)
    return keys


def _grades(tx: Tx, project: Project | None, bundle: Bundle) -> GradeChanges:
    """Return the grades of items by id, also of existing lists: grades often come later."""
    changes = GradeChanges()
    for query in bundle.queries:
        changes.count += sum(_hits(d, bundle.grades.get(query.key)) for d in query.documents)
    for row in texts.of_project(tx, project.id) if project and bundle.grades else ():
        grades = bundle.grades.get(row["key"])
        for document in texts.documents_of(tx, row["id"]) if grades else ():
            fields, hits = texts.with_grades(document["fields"], grades or {})
            changes.count += hits
            if hits and fields != document["fields"]:
                changes.rows.append({"document": document["id"], "graded": fields})
    if bundle.grades and not changes.count:
        raise DataError(
            f"{bundle.graded_by}: grades no item of the lists; check that the query ids match and "
            "that each item has its 'id'."
        )
    return changes


def _hits(document: DocumentRecord, grades: Any) -> int:
    return texts.with_grades(document.fields, grades)[1] if grades else 0


def _graded(query: QueryRecord, bundle: Bundle) -> QueryRecord:
    grades = bundle.grades.get(query.key)
    if not grades:
        return query
    graded = (replace(d, fields=texts.with_grades(d.fields, grades)[0]) for d in query.documents)
    return replace(query, documents=tuple(graded))


def _counts(bundle: Bundle, grades: int) -> ImportCounts:
    return ImportCounts(
        len(bundle.queries),
        sum(len(q.documents) for q in bundle.queries),
        len(bundle.gold_questions),
        len(bundle.training),
        grades,
    )
