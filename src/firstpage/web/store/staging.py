"""Texts on their way into a project: written where nobody sees them, then moved in one step.

A long transaction would keep every answer waiting, since SQLite has one writer.  So an import
writes many short ones, to a project of the state `staging` that no list of projects shows; moving
its queries changes one number per query.  What is left of an import whose process was killed is
taken out by the next import, or the next start of a server.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

from sqlalchemy import delete, select, update

from firstpage.errors import DataError
from firstpage.web.store.connect import Store, Tx
from firstpage.web.store.tables import documents, golds, images, projects, queries
from firstpage.web.store.texts import Document, document_row, keep_image

STAGING = "staging"  # the state of a project that is being filled
BATCH_ROWS, BATCH_BYTES = 100, 1 << 18  # of one transaction, beside a single row that has more
DELETED_ROWS = 100  # of one transaction; long texts take long to delete
PAUSE = 0.01  # seconds between two transactions, at least; others write then
STALE = 5.0  # minutes without a transaction after which an import is taken for dead
Row = Mapping[str, Any]
Picture = tuple[str, bytes]  # its type, its data


class Staging:
    """One import under way; all that it writes is in transactions of bounded size."""

    def __init__(self, store: Store, pause: Callable[[float], None] = time.sleep) -> None:
        self.store, self._pause = store, pause
        self.slug = f"~{uuid4().hex}"  # none that a project can have
        with store.write() as tx:
            self.id = tx.add(
                projects, slug=self.slug, title="", guidelines="", tool="pairs",
                setting={}, options={}, state=STAGING, created=tx.now,
            )  # fmt: skip

    def add_queries(self, rows: Sequence[Row]) -> dict[str, int]:
        """Write queries, all of different keys; return their ids."""
        for batch in _batches(rows, lambda row: len(row["text"]) + len(row["description"])):
            with self._transaction() as tx:
                tx.add_all(queries, [{**row, "project": self.id} for row in batch])
        with self._transaction() as tx:
            ids = tx.all(select(queries.c.key, queries.c.id).where(queries.c.project == self.id))
        return {row["key"]: row["id"] for row in ids}

    def add_documents(
        self, placed: Iterable[tuple[int, int, Document]], pictures: Mapping[str, Picture]
    ) -> None:
        """Write documents, each with the id of its query and its position, and their pictures."""

        def size(one: tuple[int, int, Document]) -> int:
            document = one[2]
            picture = pictures[document.image][1] if document.image else b""
            return _size(document) + len(picture)

        for batch in _batches(placed, size):
            rows = [document_row(query, position, document) for query, position, document in batch]
            shown = {row["image"]: pictures[row["image"]] for row in rows if row["image"]}
            with self._transaction() as tx:
                for digest, (kind, data) in shown.items():
                    keep_image(tx, digest, kind, data)
                tx.add_all(documents, rows)

    def add_golds(self, rows: Sequence[Row]) -> None:
        """Write questions with known answers."""
        for batch in _batches(rows, lambda row: len(row["explanation"])):
            with self._transaction() as tx:
                tx.add_all(golds, [{**row, "project": self.id} for row in batch])

    @contextmanager
    def _transaction(self) -> Iterator[Tx]:
        """One transaction, and then time for those of others."""
        start = time.monotonic()
        with self.store.write() as tx:
            self._check_alive(tx)
            yield tx
        self._pause(max(PAUSE, time.monotonic() - start))

    def _check_alive(self, tx: Tx) -> None:
        mine = projects.c.slug == self.slug  # numbers are used again, names are not
        if not tx.run(update(projects).where(mine).values(created=tx.now)):
            raise DataError("the import stood still for too long and was taken out; import again.")

    def move(self, tx: Tx, project: int, golds_before: int) -> None:
        """Put all of it into a project: one statement each for queries and known answers."""
        self._check_alive(tx)
        tx.run(update(queries).where(queries.c.project == self.id).values(project=project))
        tx.run(
            update(golds)
            .where(golds.c.project == self.id)
            .values(project=project, position=golds.c.position + golds_before)
        )
        tx.run(delete(projects).where(projects.c.slug == self.slug))

    def discard(self) -> None:
        """Take out what is left of it; nothing, where it was moved."""
        _discard(self.store, self.slug, self._pause)


def clean(store: Store) -> None:
    """Take out what imports left whose processes were killed."""
    with store.read() as tx:
        old = (projects.c.state == STAGING) & (projects.c.created < tx.later(minutes=-STALE))
        dead = [row["slug"] for row in tx.all(select(projects.c.slug).where(old))]
    for slug in dead:
        _discard(store, slug, time.sleep)


def _discard(store: Store, slug: str, pause: Callable[[float], None]) -> None:
    while True:
        with store.write() as tx:
            staging = tx.value(select(projects.c.id).where(projects.c.slug == slug))
            if staging is None:
                return
            if not _delete_some(tx, staging):
                tx.run(delete(projects).where(projects.c.id == staging))
        pause(PAUSE)


def _delete_some(tx: Tx, staging: int) -> bool:
    """Delete some rows of an import; whether there were any."""
    mine = select(queries.c.id).where(queries.c.project == staging)
    for table, where in (
        (documents, documents.c.query.in_(mine)), (golds, golds.c.project == staging),
        (queries, queries.c.project == staging),
    ):  # fmt: skip
        ids = [row["id"] for row in tx.all(select(table.c.id).where(where).limit(DELETED_ROWS))]
        if ids and table is documents:
            _delete_documents(tx, ids)
        elif ids:
            tx.run(delete(table).where(table.c.id.in_(ids)))
        if ids:
            return True
    return False


def _delete_documents(tx: Tx, ids: Sequence[int]) -> None:
    """And the pictures that no other document shows."""
    mine = documents.c.id.in_(ids)
    shown = {row["image"] for row in tx.all(select(documents.c.image).where(mine))} - {None}
    tx.run(delete(documents).where(mine))
    others = select(documents.c.id).where(documents.c.image == images.c.id).exists()
    tx.run(delete(images).where(images.c.id.in_(shown), ~others))


def _batches(rows: Iterable[Any], size: Callable[[Any], int]) -> Iterator[list[Any]]:
    """Cut rows into lists of bounded length and size; one row that is larger stands alone."""
    batch: list[Any] = []
    total = 0
    for row in rows:
        here = size(row)
        if batch and (len(batch) == BATCH_ROWS or total + here > BATCH_BYTES):
            yield batch
            batch, total = [], 0
        batch.append(row)
        total += here
    if batch:
        yield batch


def _size(document: Document) -> int:
    """About so many bytes."""
    fields = 0 if document.fields is None else len(str(document.fields))
    return len(document.body) + len(document.title) + fields
