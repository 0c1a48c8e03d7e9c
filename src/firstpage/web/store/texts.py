"""Queries, their documents, and questions with known answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import RowMapping, func, select

from firstpage.web.store.connect import Tx
from firstpage.web.store.tables import documents, golds, images, queries

KINDS = ("text", "html", "image", "card", "list")
SHOWN = ("id", "query", "key", "title", "kind", "fields", "prior", "position")  # all but the body


@dataclass(frozen=True)
class Document:
    """One document as it comes in; `body` is text or HTML, `image` the digest of a picture."""

    key: str
    title: str = ""
    kind: str = "text"
    body: str = ""
    fields: Mapping[str, Any] | None = None
    url: str | None = None
    image: str | None = None
    prior: float | None = None


@dataclass(frozen=True)
class Query:
    """One query as it comes in."""

    key: str
    text: str
    description: str = ""
    documents: tuple[Document, ...] = ()


def document_row(query: int, position: int, document: Document) -> dict[str, Any]:
    """A document of a query as the table has it."""
    fields = None if document.fields is None else dict(document.fields)
    return {**vars(document), "fields": fields, "query": query, "position": position}


def of_project(tx: Tx, project: int, purpose: str = "work") -> Sequence[RowMapping]:
    """Its queries in order, each with the number of its documents (`n`)."""
    count = (
        select(func.count()).where(documents.c.query == queries.c.id).scalar_subquery().label("n")
    )
    return tx.all(
        select(queries, count)
        .where(queries.c.project == project, queries.c.purpose == purpose)
        .order_by(queries.c.position)
    )


def query(tx: Tx, query: int) -> RowMapping:
    """Return one query."""
    row = tx.first(select(queries).where(queries.c.id == query))
    assert row is not None, f"no query {query}"
    return row


def documents_of(tx: Tx, query: int) -> Sequence[RowMapping]:
    """In order, without their bodies."""
    columns = [documents.c[name] for name in SHOWN]
    return tx.all(select(*columns).where(documents.c.query == query).order_by(documents.c.position))


def whole_of(tx: Tx, query: int) -> Sequence[RowMapping]:
    """In order, with their bodies."""
    return tx.all(
        select(documents).where(documents.c.query == query).order_by(documents.c.position)
    )


def document(tx: Tx, document: int) -> RowMapping | None:
    """One document with its body, and its query's project and purpose."""
    return tx.first(
        select(documents, queries.c.project, queries.c.purpose)
        .join(queries, queries.c.id == documents.c.query)
        .where(documents.c.id == document)
    )


def image(tx: Tx, digest: str) -> RowMapping | None:
    return tx.first(select(images).where(images.c.id == digest))


def keep_image(tx: Tx, digest: str, kind: str, data: bytes) -> None:
    """Once, however many documents show it."""
    if not tx.value(select(images.c.id).where(images.c.id == digest)):
        tx.run(images.insert().values(id=digest, type=kind, data=data))


def golds_of(tx: Tx, project: int, kind: str, query: int | None = None) -> Sequence[RowMapping]:
    """Questions with known answers, in order; of one query, or of all."""
    found = select(golds).where(golds.c.project == project, golds.c.kind == kind)
    if query is not None:
        found = found.where(golds.c.query == query)
    return tx.all(found.order_by(golds.c.position))


GRADE = "grade"  # of an item; a whole number, absent or None where nobody has judged it
IDS = ("document", "docid", "doc_id", "docno", "document_id", "id")  # of an item


def items_of(fields: Any) -> list[dict[str, Any]]:
    """The items that the fields of a list hold."""
    items = fields.get("items") if isinstance(fields, dict) else None
    return [i for i in items if isinstance(i, dict)] if isinstance(items, list) else []


def grades_of(fields: Any) -> tuple[int | None, ...]:
    """From the first place on."""
    return tuple(item.get(GRADE) for item in items_of(fields))


def without_grade(item: Any) -> Any:
    """An item as it is shown: a grade would bias who sees it."""
    if not isinstance(item, dict):
        return item
    return {name: value for name, value in item.items() if name != GRADE}


def with_grades(fields: Any, known: Mapping[str, int]) -> tuple[Any, int]:
    """Return the fields of a list whose items have the grades of their ids; how many have one."""
    found = [_graded(item, known) for item in items_of(fields)]
    hits = sum(new for _, new in found)
    return ({**fields, "items": [item for item, _ in found]} if hits else fields), hits


def _graded(item: dict[str, Any], known: Mapping[str, int]) -> tuple[dict[str, Any], bool]:
    named = next((str(item[name]) for name in IDS if item.get(name) not in (None, "")), "")
    found = known.get(named)
    return (item, False) if found is None else ({**item, GRADE: found}, True)
