"""Queries, their documents, and gold questions."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import RowMapping, bindparam, func, select

from firstpage.data import DOCUMENT_IDS, ROW_IDS
from firstpage.labeling.app.store.connect import Tx
from firstpage.labeling.app.store.tables import documents, gold_questions, images, queries

KINDS = ("text", "html", "image", "card", "list")
LISTED = (  # all columns but the body
    "id", "query", "key", "title", "kind", "fields", "prior", "runs", "position",
)  # fmt: skip

# Prepared once: building a statement takes longer than running it.
OF_QUERY = (
    select(*(documents.c[name] for name in LISTED))
    .where(documents.c.query == bindparam("query"), documents.c.archived.is_(None))
    .order_by(documents.c.position)
)
BY_ID = select(documents).where(documents.c.id.in_(bindparam("ids", expanding=True)))


@dataclass(frozen=True)
class DocumentRecord:
    """A document to import; `body` is text or HTML, `image` the digest of an image.

    `runs` names the runs that contain it, where several were pooled.
    """

    key: str
    title: str = ""
    kind: str = "text"
    body: str = ""
    fields: Mapping[str, Any] | None = None
    url: str | None = None
    image: str | None = None
    prior: float | None = None
    runs: tuple[str, ...] | None = None


@dataclass(frozen=True)
class QueryRecord:
    """A query to import, with its documents."""

    key: str
    text: str
    description: str = ""
    documents: tuple[DocumentRecord, ...] = ()


def document_row(query: int, position: int, document: DocumentRecord) -> dict[str, Any]:
    """Return the table row of a document."""
    fields = None if document.fields is None else dict(document.fields)
    runs = None if document.runs is None else list(document.runs)
    return {**vars(document), "fields": fields, "runs": runs, "query": query, "position": position}


def of_project(
    tx: Tx, project: int, purpose: str = "work", archived: bool = False
) -> Sequence[RowMapping]:
    """Return the queries of a project in order, each with the number of its documents (`n`).

    Archived queries are left out unless they are asked for.
    """
    counted = documents.c.query == queries.c.id, documents.c.archived.is_(None)
    count = select(func.count()).where(*counted).scalar_subquery().label("n")
    rows = select(queries, count).where(queries.c.project == project, queries.c.purpose == purpose)
    if not archived:
        rows = rows.where(queries.c.archived.is_(None))
    return tx.all(rows.order_by(queries.c.position))


def query(tx: Tx, query: int) -> RowMapping:
    """Return one query."""
    row = tx.first(select(queries).where(queries.c.id == query))
    assert row is not None, f"no query {query}"
    return row


def documents_of(tx: Tx, query: int) -> Sequence[RowMapping]:
    """Return the documents of a query in order, without their bodies."""
    return tx.all(OF_QUERY, query=query)


def titles_and_ids(tx: Tx, query: int) -> dict[str, dict[str, Any]]:
    """Return the title (or the key, where there is none) and the id of documents by key."""
    rows = select(documents.c.id, documents.c.key, documents.c.title).where(
        documents.c.query == query
    )
    return {
        row["key"]: {"title": row["title"] or row["key"], "id": row["id"]} for row in tx.all(rows)
    }


def full_documents_of(tx: Tx, query: int) -> Sequence[RowMapping]:
    """Return the documents of a query in order, with their bodies."""
    rows = select(documents).where(documents.c.query == query, documents.c.archived.is_(None))
    return tx.all(rows.order_by(documents.c.position))


def documents_by_id(tx: Tx, ids: Collection[int]) -> Sequence[RowMapping]:
    """Return documents with their bodies."""
    return tx.all(BY_ID, ids=list(ids))


def document(tx: Tx, document: int) -> RowMapping | None:
    """Return a document with its body, and the project and purpose of its query."""
    return tx.first(
        select(documents, queries.c.project, queries.c.purpose)
        .join(queries, queries.c.id == documents.c.query)
        .where(documents.c.id == document)
    )


def image(tx: Tx, digest: str) -> RowMapping | None:
    """Return an image by its digest."""
    return tx.first(select(images).where(images.c.id == digest))


def add_image(tx: Tx, digest: str, kind: str, data: bytes) -> None:
    """Store an image once, however many documents show it."""
    if not tx.value(select(images.c.id).where(images.c.id == digest)):
        tx.run(images.insert().values(id=digest, type=kind, data=data))


def gold_questions_of(
    tx: Tx, project: int, kind: str, query: int | None = None
) -> Sequence[RowMapping]:
    """Return the gold questions of a project, or of one query, in order."""
    rows = select(gold_questions).where(
        gold_questions.c.project == project, gold_questions.c.kind == kind
    )
    if query is not None:
        rows = rows.where(gold_questions.c.query == query)
    return tx.all(rows.order_by(gold_questions.c.position))


GRADE = "grade"  # of an item; an integer, absent or None if it is not judged
IDS = (*DOCUMENT_IDS, *ROW_IDS)  # columns of an item


def items_of(fields: Any) -> list[dict[str, Any]]:
    """Return the items in the fields of a list."""
    items = fields.get("items") if isinstance(fields, dict) else None
    return [i for i in items if isinstance(i, dict)] if isinstance(items, list) else []


def item_id(item: Mapping[str, Any]) -> str:
    """Return the id of an item; empty if it has none."""
    return next((str(item[name]) for name in IDS if item.get(name) not in (None, "")), "")


def item_ids_of(fields: Any) -> tuple[str, ...]:
    """Return the ids of a list's items, in rank order; an item without one is empty."""
    return tuple(item_id(item) for item in items_of(fields))


def grades_of(fields: Any) -> tuple[int | None, ...]:
    """Return the grades of a list's items, in rank order."""
    return tuple(item.get(GRADE) for item in items_of(fields))


def without_grade(item: Any) -> Any:
    """Return an item as it is shown: its grade would bias the assessor."""
    if not isinstance(item, dict):
        return item
    return {name: value for name, value in item.items() if name != GRADE}


def with_grades(fields: Any, grades: Mapping[str, int]) -> tuple[Any, int]:
    """Return the fields of a list with the grades of its items by id, and how many have one."""
    items = [_graded(item, grades) for item in items_of(fields)]
    count = sum(is_graded for _, is_graded in items)
    return ({**fields, "items": [item for item, _ in items]} if count else fields), count


def _graded(item: dict[str, Any], grades: Mapping[str, int]) -> tuple[dict[str, Any], bool]:
    grade = grades.get(item_id(item))
    return (item, False) if grade is None else ({**item, GRADE: grade}, True)
