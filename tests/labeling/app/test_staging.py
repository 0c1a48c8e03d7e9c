"""Imports in short transactions: nothing waits for one, and no partial import is visible."""

from __future__ import annotations

import gzip
import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, func, select

import firstpage
from firstpage.core.errors import DataError
from firstpage.data.formats.row_reader import CHUNK_BYTES
from firstpage.labeling.app.imports import bundle, texts
from firstpage.labeling.app.imports.bundle import File, PacedStream, Sources
from firstpage.labeling.app.imports.pictures import from_uploads
from firstpage.labeling.app.store import projects
from firstpage.labeling.app.store import texts as stored_texts
from firstpage.labeling.app.store.connect import Store, Tx
from firstpage.labeling.app.store.staging import (
    BATCH_BYTES,
    BATCH_ROWS,
    STALE,
    Staging,
    remove_stale_imports,
)
from firstpage.labeling.app.store.tables import documents, gold_questions, images, queries
from firstpage.labeling.app.store.tables import projects as project_table
from tests.labeling.app.site import Site, jsonl
from tests.patience import PATIENCE

PNG = b"\x89PNG\r\n\x1a\n"


def rows(count: int, per_query: int = 100, **columns: Any) -> bytes:
    return jsonl(
        *(
            {"query": f"n{i // per_query}", "document": f"d{i}", "text": "x", **columns}
            for i in range(count)
        )
    )


def read(**files: bytes) -> bundle.Bundle:
    sources: Any = {name: File(f"{name}.jsonl", io.BytesIO(data)) for name, data in files.items()}
    return bundle.read(Sources(**sources))


def counts(store: Store) -> dict[str, int]:
    with store.read() as tx:
        return {
            table.name: tx.value(select(func.count()).select_from(table))
            for table in (project_table, queries, documents, gold_questions, images)
        }


def lead(site: Site) -> Any:
    return site.person("lena")


@contextmanager
def between_transactions(monkeypatch: pytest.MonkeyPatch, hook: Any) -> Iterator[None]:
    """Call `hook` between the transactions of an import, where others may write."""
    with monkeypatch.context() as patch:
        patch.setattr(texts, "Staging", partial(Staging, pause=hook))
        yield


@contextmanager
def rows_written(store: Store) -> Iterator[list[int]]:
    """Yield a list that receives the number of rows that each transaction writes."""
    counts, current = [], [0]

    def count(
        _: Any, cursor: Any, statement: str, parameters: Any, context: Any, executemany: bool
    ) -> None:
        if statement.startswith(("INSERT", "UPDATE", "DELETE")):
            current[0] += len(parameters) if executemany else max(cursor.rowcount, 0)

    def committed(_: Any) -> None:
        counts.append(current[0])
        current[0] = 0

    event.listen(store.engine, "after_cursor_execute", count)
    event.listen(store.engine, "commit", committed)
    try:
        yield counts
    finally:
        event.remove(store.engine, "after_cursor_execute", count)
        event.remove(store.engine, "commit", committed)


def test_answers_are_accepted_during_an_import(
    db_site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Answers are accepted between any two transactions, and none of these writes many rows."""
    project = db_site.project(queries=2)
    ada, task = db_site.client("ada"), db_site.task("books", "ada")
    answered = []

    def answer(_: float) -> None:
        state = ada.state(task)
        if state["question"] is not None:
            answered.append(ada.answer(state).status_code)
        assert len(db_site.client("lena").get("/api/v1/projects").json()["projects"]) == 1
        with db_site.store.read() as tx:
            assert (
                len(stored_texts.of_project(tx, project.id)) == 2
            )  # no query of the import is visible

    imported = read(documents=rows(3000))
    with between_transactions(monkeypatch, answer), rows_written(db_site.store) as written:
        import_counts = texts.add(db_site.store, project, imported, lead(db_site))
    assert (import_counts.queries, import_counts.documents) == (30, 3000)
    assert len(answered) >= 5  # all questions are answered
    assert set(answered) == {200}
    assert max(written) <= BATCH_ROWS + 2
    assert len(written) > 3000 // BATCH_ROWS
    with db_site.store.read() as tx:
        queries = stored_texts.of_project(tx, project.id)
        assert [(q["position"], q["n"]) for q in queries][:3] == [(0, 6), (1, 6), (2, 100)]
        assert [d["key"] for d in stored_texts.documents_of(tx, queries[2]["id"])][:2] == [
            "d0",
            "d1",
        ]
    assert counts(db_site.store)["projects"] == 1


def test_long_texts_make_short_transactions(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    project = site.project(queries=0, opened=False)
    size = BATCH_BYTES // 3
    sizes: list[int] = []
    add_all = Tx.add_all

    def counted(self: Any, table: Any, batch: Any) -> None:
        sizes.append(sum(len(row.get("body", "")) for row in batch))
        add_all(self, table, batch)

    monkeypatch.setattr(Tx, "add_all", counted)
    texts.add(site.store, project, read(documents=rows(20, text="x" * size)), lead(site))
    assert sum(sizes) == 20 * size
    assert max(sizes) <= BATCH_BYTES


def test_the_last_transaction_is_small_too(site: Site) -> None:
    """It updates one column per query and no documents."""
    project, person = site.project(queries=0, opened=False), lead(site)
    with (
        texts.staged(
            site.store, read(documents=rows(2000)), project.tools, project.setting, project
        ) as ready,
        rows_written(site.store) as written,
        site.store.write() as tx,
    ):
        ready.publish(tx, project, person)
    assert max(written) <= 20 + 3  # queries, two changes of the staging project, and the audit log


@pytest.mark.parametrize("most", ["MAX_QUERIES", "MAX_KNOWN", "MAX_REGRADED"])
def test_imports_are_limited(site: Site, monkeypatch: pytest.MonkeyPatch, most: str) -> None:
    project = site.project(queries=0, opened=False, tool="lists", setting={"k": 1})
    items = [{"id": "a"}]
    lists = rows(6, 2, items=items)
    texts.add(site.store, project, read(documents=lists), lead(site))
    monkeypatch.setattr(texts, most, 2)
    before = counts(site.store)
    gold = {"query": "n0", "left": "d0", "right": "d1", "outcome": 1}
    cases = {
        "MAX_QUERIES": lambda: read(documents=lists),
        "MAX_KNOWN": lambda: read(gold_questions=jsonl(gold, gold, gold)),
        "MAX_REGRADED": lambda: bundle.read(
            Sources(qrels=File("q", io.BytesIO(b"n0 0 a 3\nn1 0 a 2\n")))
        ),
    }[most]()
    with pytest.raises(DataError, match=r"per import; split the import\.$"):
        texts.add(site.store, project, cases, lead(site))
    assert counts(site.store) == before


def test_a_failed_import_leaves_nothing(db_site: Site) -> None:
    project = db_site.project(queries=1)
    before = counts(db_site.store)
    wrong = {"query": "n0", "left": "d0", "right": "nowhere", "outcome": 1}
    picture = {"query": "p", "document": "d", "text": "x", "image": "p.png"}
    imported = bundle.read(
        Sources(
            documents=File("d.jsonl", io.BytesIO(rows(600) + jsonl(picture))),
            gold_questions=File("g.jsonl", io.BytesIO(jsonl(wrong))),
            pictures=from_uploads({"p.png": io.BytesIO(PNG)}),
        )
    )
    with pytest.raises(DataError, match=r"g\.jsonl:1: query 'n0' has no document 'nowhere'"):
        texts.add(db_site.store, project, imported, lead(db_site))
    assert counts(db_site.store) == before


def test_shared_images_are_not_deleted(site: Site) -> None:
    project = site.project(queries=0, opened=False)

    def with_picture(query: str, gold: str) -> bundle.Bundle:
        row = {"query": query, "document": "d", "text": "x", "image": "p.png"}
        known = {"query": query, "left": "d", "grade": 1}
        return bundle.read(
            Sources(
                documents=File("d.jsonl", io.BytesIO(jsonl(row))),
                gold_questions=File("g.jsonl", io.BytesIO(jsonl({**known, "left": gold}))),
                pictures=from_uploads({"p.png": io.BytesIO(PNG)}),
            )
        )

    texts.add(site.store, project, with_picture("one", "d"), lead(site))
    with pytest.raises(DataError, match="no document 'x'"):
        texts.add(site.store, project, with_picture("two", "x"), lead(site))
    assert counts(site.store)["images"] == 1


KILLED = """
import os, signal, sys
from functools import partial
from firstpage.labeling.app.imports import texts
from firstpage.labeling.app.store import people, projects
from firstpage.labeling.app.store.connect import Store
from firstpage.labeling.app.store.staging import Staging
from tests.labeling.app.test_staging import read, rows

store, done = Store(sys.argv[1]), []

def pause(seconds):
    done.append(1)
    if len(done) == 3:
        os.kill(os.getpid(), signal.SIGKILL)

texts.Staging = partial(Staging, pause=pause)
with store.read() as tx:
    project, person = projects.by_slug(tx, "books"), people.by_login(tx, "lena")
texts.add(store, project, read(documents=rows(3000)), person)
"""


def test_remains_of_a_killed_import_are_hidden_and_deleted(site: Site, tmp_path: Path) -> None:
    project = site.project(queries=1, opened=False)
    before = counts(site.store)
    folder = Path(firstpage.__file__).parents[1]
    env = {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{folder.parent}"}
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path / "project")],
        env=env,
        timeout=PATIENCE,
        capture_output=True,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    left = counts(site.store)
    assert left["documents"] >= before["documents"] + BATCH_ROWS
    assert left["projects"] == before["projects"] + 1
    with site.store.read() as tx:
        assert [p.slug for p in projects.all_projects(tx)] == ["books"]
        assert len(stored_texts.of_project(tx, project.id)) == 1
    admin = site.person("root", admin=True)
    with site.store.read() as tx:
        assert [m.project.slug for m in projects.of_person(tx, admin)] == ["books"]
    import_counts = texts.add(site.store, project, read(documents=rows(200)), lead(site))
    assert import_counts.queries == 2  # the same queries can be imported immediately
    site.clock.pass_(days=20000)  # later than the killed process's last transaction
    remove_stale_imports(site.store)
    assert counts(site.store) == {
        **before,
        "queries": before["queries"] + 2,
        "documents": before["documents"] + 200,
    }


def test_a_running_import_is_not_deleted(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    project = site.project(queries=0, opened=False)

    def remove_stale(_: float) -> None:
        site.clock.pass_(minutes=STALE - 1)
        remove_stale_imports(site.store)

    with between_transactions(monkeypatch, remove_stale):
        counts = texts.add(site.store, project, read(documents=rows(3000)), lead(site))
    assert counts.documents == 3000


def test_an_import_that_was_idle_too_long_changes_nothing(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does not even change a project that reuses its id."""
    project = site.project(queries=0, opened=False)
    later: list[None] = []

    def slept(_: float) -> None:
        if not later:
            later.append(None)
            site.clock.pass_(minutes=STALE + 1)
            remove_stale_imports(site.store)
            site.project("other", queries=3, opened=False)

    with (
        between_transactions(monkeypatch, slept),
        pytest.raises(DataError, match="idle for too long"),
    ):
        texts.add(site.store, project, read(documents=rows(3000)), lead(site))
    with site.store.read() as tx:
        other = projects.by_slug(tx, "other")
        assert other is not None
        assert [q["n"] for q in stored_texts.of_project(tx, other.id)] == [6, 6, 6]
    assert counts(site.store)["projects"] == 2


def test_the_second_of_two_concurrent_imports_is_refused(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = site.project(queries=0, opened=False)
    first: list[Any] = []

    def other(_: float) -> None:
        if not first:
            first.append(None)
            texts.add(site.store, project, read(documents=rows(10)), lead(site))

    with (
        between_transactions(monkeypatch, other),
        pytest.raises(DataError, match="at the same time; import again"),
    ):
        texts.add(site.store, project, read(documents=rows(3000)), lead(site))
    assert counts(site.store)["documents"] == 10


def test_an_import_into_a_project_closed_meanwhile_is_refused(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = site.project(queries=1)
    lena = site.client("lena")
    before = counts(site.store)
    with (
        between_transactions(monkeypatch, lambda _: lena.post("/api/v1/projects/books/close")),
        pytest.raises(DataError, match="the project is closed"),
    ):
        texts.add(site.store, project, read(documents=rows(100)), lead(site))
    assert counts(site.store) == before


def test_practice_and_gold_questions_keep_their_order(db_site: Site) -> None:
    project = db_site.project(queries=1, opened=False)
    lesson = {"text": "which", "left": "a", "right": "b", "outcome": 1}
    gold = {"query": "q0", "left": "d0", "right": "d1", "outcome": 1}
    for number, query in enumerate(
        ("training 2", "other")
    ):  # a key that a practice question might have
        imported = read(
            documents=jsonl({"query": query, "document": "d", "text": "x"}),
            training=jsonl(
                {**lesson, "explanation": f"t{2 * number}"},
                {**lesson, "explanation": f"t{2 * number + 1}"},
            ),
            gold_questions=jsonl({**gold, "explanation": f"g{number}"}),
        )
        texts.add(db_site.store, project, imported, lead(db_site))
    with db_site.store.read() as tx:
        for kind, expected in (("training", ["t0", "t1", "t2", "t3"]), ("gold", ["g0", "g1"])):
            rows = stored_texts.gold_questions_of(tx, project.id, kind)
            assert [row["explanation"] for row in rows] == expected
        assert len(stored_texts.of_project(tx, project.id, "training")) == 4


@pytest.mark.parametrize("packed", [False, True])
def test_an_upload_pauses_as_long_as_it_works(packed: bool) -> None:
    """The reader pauses as long as it worked, so that answers can be processed."""
    data = rows(3000)
    stream = io.BytesIO(gzip.compress(data) if packed else data)
    clock = iter(range(1, 1_000_000))
    pauses: list[float] = []
    paced: Any = PacedStream(stream, pauses.append, lambda: next(clock) * 0.01)
    read = bundle.read(Sources(documents=File("documents.jsonl", paced)))
    assert sum(len(query.documents) for query in read.queries) == 3000
    assert pauses == pytest.approx([0.01] * len(pauses))
    assert len(pauses) > (1 if packed else len(data) // CHUNK_BYTES)


def test_uploads_are_paced(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(PacedStream.__init__, "__defaults__", (pauses.append, time.thread_time))
    client = site.client("lena")
    site.project("new")
    files = {"documents": ("documents.jsonl", rows(10))}
    client.post("/api/v1/projects/new/import", files=files).raise_for_status()
    assert pauses
