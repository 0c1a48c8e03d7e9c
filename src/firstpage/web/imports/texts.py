"""Put what was read into a project: all of it, or nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import func, select

from firstpage.errors import DataError
from firstpage.web.store import audit, texts
from firstpage.web.store.connect import Tx
from firstpage.web.store.people import Person
from firstpage.web.store.projects import Project
from firstpage.web.store.tables import queries
from firstpage.web.store.texts import Query


@dataclass(frozen=True)
class Imported:
    """What came in."""

    queries: int = 0
    documents: int = 0
    golds: int = 0
    training: int = 0


def add_queries(tx: Tx, project: Project, found: Iterable[Query], by: Person | None) -> Imported:
    """New queries with their documents; one that is there already is refused."""
    have = {row["key"] for row in texts.of_project(tx, project.id)}
    have |= {row["key"] for row in texts.of_project(tx, project.id, "training")}
    last = tx.value(select(func.max(queries.c.position)).where(queries.c.project == project.id))
    position = 0 if last is None else int(last) + 1
    count = documents = 0
    for query in found:
        if query.key in have:
            raise DataError(f"query {query.key!r} is in the project already; leave it out.")
        if not query.documents:
            raise DataError(f"query {query.key!r} has no documents; give some, or leave it out.")
        texts.add_query(tx, project.id, query, position + count)
        have.add(query.key)
        count += 1
        documents += len(query.documents)
    audit.note(
        tx, "texts imported", person=by.id if by else None, project=project.id,
        queries=count, documents=documents,
    )  # fmt: skip
    return Imported(count, documents)
