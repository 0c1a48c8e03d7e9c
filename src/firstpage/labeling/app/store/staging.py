"""Staging of imports: texts are written to a hidden project, then moved in one step.

A long transaction would delay every answer, since SQLite has one writer.  An import therefore uses
many short ones, which write to a project in the state `staging` that no list shows; moving its
queries changes one number per query.  The remains of an import whose process was killed are
deleted by the next import, or at the next start of a server.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

from sqlalchemy import delete, select, update

from firstpage.core import DataError
from firstpage.labeling.app.store.connect import Store, Tx
from firstpage.labeling.app.store.tables import documents, gold_questions, images, projects, queries
from firstpage.labeling.app.store.texts import DocumentRecord, add_image, document_row

STAGING = "staging"  # the state of a project that is being filled
BATCH_ROWS, BATCH_BYTES = 100, 1 << 18  # maximum per transaction; a larger row stands alone
DELETED_ROWS = 100  # maximum per transaction; deleting long texts is slow
PAUSE = 0.01  # minimum seconds between two transactions, in which others can write
STALE = 5.0  # minutes without a transaction after which an import counts as dead
Row = Mapping[str, Any]
Picture = tuple[str, bytes]  # media type, data


class Staging:
    """An import in progress, written in transactions of bounded size."""

    def __init__(self, store: Store, pause: Callable[[float], None] = time.sleep) -> None:
        self.store, self._pause = store, pause
        self.slug = f"~{uuid4().hex}"  # not a valid name of a project
        with store.write() as tx:
            empty = {"title": "", "guidelines": "", "tool": "pairs", "setting": {}, "options": {}}
            self.id = tx.add(projects, slug=self.slug, state=STAGING, created=tx.now, **empty)

    def add_queries(self, rows: Sequence[Row]) -> dict[str, int]:
        """Write queries with distinct keys; return their ids by key."""
        for batch in _batches(rows, lambda row: len(row["text"]) + len(row["description"])):
            with self._transaction() as tx:
                tx.add_all(queries, [{**row, "project": self.id} for row in batch])
        with self._transaction() as tx:
            ids = tx.all(select(queries.c.key, queries.c.id).where(queries.c.project == self.id))
        return {row["key"]: row["id"] for row in ids}

    def add_documents(
        self, placed: Iterable[tuple[int, int, DocumentRecord]], pictures: Mapping[str, Picture]
    ) -> None:
        """Write documents, each with the id of its query and its position, and their pictures."""

        def size(item: tuple[int, int, DocumentRecord]) -> int:
            document = item[2]
            picture = pictures[document.image][1] if document.image else b""
            return _size(document) + len(picture)

        for batch in _batches(placed, size):
            rows = [document_row(query, position, document) for query, position, document in batch]
            images = {row["image"]: pictures[row["image"]] for row in rows if row["image"]}
            with self._transaction() as tx:
                for digest, (kind, data) in images.items():
                    add_image(tx, digest, kind, data)
                tx.add_all(documents, rows)

    def add_gold_questions(self, rows: Sequence[Row]) -> None:
        """Write gold questions."""
        for batch in _batches(rows, lambda row: len(row["explanation"])):
            with self._transaction() as tx:
                tx.add_all(gold_questions, [{**row, "project": self.id} for row in batch])

    @contextmanager
    def _transaction(self) -> Iterator[Tx]:
        """Yield a transaction; afterwards pause as long as it took, so that others can write."""
        start = time.monotonic()
        with self.store.write() as tx:
            self._check_alive(tx)
            yield tx
        self._pause(max(PAUSE, time.monotonic() - start))

    def _check_alive(self, tx: Tx) -> None:
        own_project = projects.c.slug == self.slug  # ids are reused, names are not
        if not tx.run(update(projects).where(own_project).values(created=tx.now)):
            raise DataError("the import was idle for too long and was removed; import again.")

    def move(self, tx: Tx, project: int, gold_questions_before: int) -> None:
        """Move everything into a project: one statement each for queries and gold questions."""
        self._check_alive(tx)
        tx.run(update(queries).where(queries.c.project == self.id).values(project=project))
        tx.run(
            update(gold_questions)
            .where(gold_questions.c.project == self.id)
            .values(project=project, position=gold_questions.c.position + gold_questions_before)
        )
        tx.run(delete(projects).where(projects.c.slug == self.slug))

    def discard(self) -> None:
        """Delete what was not moved."""
        _discard(self.store, self.slug, self._pause)


def remove_stale_imports(store: Store) -> None:
    """Delete the remains of imports whose processes were killed."""
    with store.read() as tx:
        old = (projects.c.state == STAGING) & (projects.c.created < tx.later(minutes=-STALE))
        dead = tx.column(select(projects.c.slug).where(old))
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
    """Delete some rows of an import; return whether there were any."""
    query_ids = select(queries.c.id).where(queries.c.project == staging)
    for table, condition in (
        (documents, documents.c.query.in_(query_ids)),
        (gold_questions, gold_questions.c.project == staging),
        (queries, queries.c.project == staging),
    ):
        ids = tx.column(select(table.c.id).where(condition).limit(DELETED_ROWS))
        if ids and table is documents:
            _delete_documents(tx, ids)
        elif ids:
            tx.run(delete(table).where(table.c.id.in_(ids)))
        if ids:
            return True
    return False


def _delete_documents(tx: Tx, ids: Sequence[int]) -> None:
    """Delete documents, and images that no other document shows."""
    deleted = documents.c.id.in_(ids)
    digests = {*tx.column(select(documents.c.image).where(deleted))} - {None}
    tx.run(delete(documents).where(deleted))
    still_used = select(documents.c.id).where(documents.c.image == images.c.id).exists()
    tx.run(delete(images).where(images.c.id.in_(digests), ~still_used))


def _batches(rows: Iterable[Any], size: Callable[[Any], int]) -> Iterator[list[Any]]:
    """Yield lists of rows of bounded length and size; a row that is larger stands alone."""
    batch: list[Any] = []
    total = 0
    for row in rows:
        row_size = size(row)
        if batch and (len(batch) == BATCH_ROWS or total + row_size > BATCH_BYTES):
            yield batch
            batch, total = [], 0
        batch.append(row)
        total += row_size
    if batch:
        yield batch


def _size(document: DocumentRecord) -> int:
    """Return the approximate size of a document in bytes."""
    fields = 0 if document.fields is None else len(str(document.fields))
    return len(document.body) + len(document.title) + fields
