"""Archiving, restoring and deleting, in the application and on the command line; the migration."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from sqlalchemy import func, select, text, update

from firstpage.cli import app
from firstpage.labeling.app.store import connect, projects, tasks
from firstpage.labeling.app.store.connect import Store
from firstpage.labeling.app.store.tables import documents, metadata
from tests.labeling.app.pages.test_pages import token
from tests.labeling.app.site import Clock, Site, jsonl

API = "/api/v1/projects/books"


def count(site: Site) -> dict[str, int]:
    """Return the number of rows of every table that has some."""
    with site.store.read() as tx:
        rows = {
            t.name: tx.value(select(func.count()).select_from(t)) for t in metadata.sorted_tables
        }
    return {name: n for name, n in rows.items() if n and name not in ("audit", "logins")}


def test_an_archived_query_is_hidden_and_restored(db_site: Site) -> None:
    db_site.project(queries=2)
    ada, lena = db_site.client("ada"), db_site.client("lena")
    task = db_site.task("books", "ada", 0)
    ada.judge(task)
    body = {"queries": ["q0"]}
    shown = ada.get(f"/api/v1/tasks/{task}/judgments").json()["judgments"][0]["left"]["url"]
    assert ada.get(shown).status_code == 200
    assert lena.post(f"{API}/queries/archive", json=body).status_code == 204
    assert (ada.get(shown).status_code, lena.get(shown).status_code) == (404, 200)
    assert ada.get(f"/api/v1/tasks/{task}").status_code == 404
    assert [t["query"] for t in ada.get(f"{API}/work").json()["tasks"]] == ["query 1"]
    assert lena.get(f"{API}/consensus").json()["truths"] == []
    assert [q["query"] for q in lena.get(f"{API}/progress").json()["queries"]] == ["q1"]
    listed = lena.get(f"{API}/queries").json()["queries"]
    assert [(q["query"], q["state"]) for q in listed] == [("q1", "open"), ("q0", "archived")]
    assert lena.post(f"{API}/queries/restore", json=body).status_code == 204
    assert len(lena.get(f"{API}/consensus").json()["truths"]) == 1
    assert ada.state(task)["done"]


def test_a_query_is_deleted_with_everything_that_refers_to_it(db_site: Site) -> None:
    db_site.project(queries=1)
    before = count(db_site)
    db_site.project("films", queries=1)
    db_site.client("ada").judge(db_site.task("films", "ada"))
    lena, films = db_site.client("lena"), "/api/v1/projects/films"
    verdict = {"key": "k", "query": "q0", "left": "d0", "right": "d1", "outcome": 1, "reason": "x"}
    assert lena.post(f"{films}/verdicts", json=verdict).status_code == 204
    refused = lena.post(f"{films}/queries/delete", json={"queries": ["q0"]})
    assert "archive the query 'q0' before" in refused.json()["detail"]
    lena.post(f"{films}/queries/archive", json={"queries": ["q0"]})
    assert lena.post(f"{films}/queries/delete", json={"queries": ["q0"]}).status_code == 204
    assert "archive the project" in lena.delete(films).json()["detail"]
    assert lena.post(f"{films}/archive").json()["archived"]
    assert "is archived" in lena.post(f"{films}/open").json()["detail"]
    assert [
        p["slug"] for p in db_site.client("ada").get("/api/v1/projects").json()["projects"]
    ] == ["books"]
    assert lena.delete(films).status_code == 204
    assert lena.get(films).status_code == 404
    assert count(db_site) == before, "nothing is left, and the other project is whole"


def test_a_restored_project_is_opened_again(site: Site) -> None:
    site.project(queries=1)
    lena, ada, task = site.client("lena"), site.client("ada"), site.task("books", "ada")
    lena.post(f"{API}/archive")
    assert ada.state(task)["message"] == "This project is closed. Thank you for your work."
    assert lena.post(f"{API}/restore").json()["state"] == "closed"
    assert lena.post(f"{API}/open").status_code == 200
    assert ada.judge(task)["done"]


def test_an_archived_project_is_hidden_from_assessors(site: Site) -> None:
    site.project(queries=1)
    lena, ada = site.client("lena"), site.client("ada")
    task = site.task("books", "ada")
    document = ada.state(task)["question"]["left"]["url"]
    paths = (API, f"{API}/work", "/p/books", "/p/books/guidelines", f"/tasks/{task}", document)
    assert [ada.get(path).status_code for path in paths] == [200] * 6
    lena.post(f"{API}/archive")
    assert [ada.get(path).status_code for path in paths] == [404] * 6
    assert lena.get(API).json()["archived"]
    assert lena.get(document).status_code == 200
    lena.post(f"{API}/restore")
    assert ada.get(API).status_code == 200


@pytest.mark.parametrize("opened", [True, False])
def test_nothing_is_imported_into_an_archived_project(site: Site, opened: bool) -> None:
    site.project(queries=1, opened=opened)
    lena = site.client("lena")
    lena.post(f"{API}/archive")
    rows = jsonl(*({"query": "x", "document": f"d{i}", "text": "t"} for i in range(2)))
    refused = lena.post(f"{API}/import", files={"documents": ("d.jsonl", rows)})
    assert refused.status_code == 400
    assert "is archived; restore it first" in refused.json()["detail"]


def test_documents_change_until_the_first_answer(site: Site) -> None:
    """Also in a session that a server has in memory."""
    site.project(queries=1, documents=4, setting={"k": 3, "strategy": "heap"})
    lena, ada, task = site.client("lena"), site.client("ada"), site.task("books", "ada")
    ada.state(task)
    for action in ("archive", "restore", "archive"):
        body = {"query": "q0", "documents": ["d0"]}
        assert lena.post(f"{API}/documents/{action}", json=body).status_code == 204
    refused = lena.post(f"{API}/documents/archive", json={"query": "q0", "documents": ["d1", "d2"]})
    assert "would have 1 documents" in refused.json()["detail"]
    ada.judge(task)
    (truth,) = lena.get(f"{API}/consensus").json()["truths"]
    assert truth["order"] == ["d1", "d2", "d3"]
    refused = lena.post(f"{API}/documents/restore", json={"query": "q0", "documents": ["d0"]})
    assert "answers are based on them" in refused.json()["detail"]


def test_documents_with_a_verdict_do_not_change(site: Site) -> None:
    site.project(queries=1, documents=4)
    lena, ada = site.client("lena"), site.client("ada")
    verdict = {"key": "k", "query": "q0", "left": "d3", "right": "d2", "outcome": 1, "reason": "x"}
    assert lena.post(f"{API}/verdicts", json=verdict).status_code == 204
    body = {"query": "q0", "documents": ["d3"]}
    refused = lena.post(f"{API}/documents/archive", json=body)
    assert "verdicts (1) are based on them; undo these first" in refused.json()["detail"]
    with site.store.write() as tx:  # as a version without the check stored it
        tx.run(update(documents).where(documents.c.key == "d3").values(archived=tx.now))
    ada.judge(site.task("books", "ada"))
    (truth,) = lena.get(f"{API}/consensus").json()["truths"]
    assert (truth["order"], truth["verdicts"]) == (["d0", "d1", "d2"], 0)
    assert [v["left"]["key"] for v in lena.get(f"{API}/disputes").json()["settled"]] == ["d3"]
    for name in ("truth.qrels", "pairs.csv", "report.html"):
        assert lena.get(f"{API}/export/{name}").status_code == 200
    withdrawn = {"key": "w", "query": "q0", "index": 0}
    assert lena.post(f"{API}/verdicts/withdraw", json=withdrawn).status_code == 204


def test_a_verdict_that_is_undone_lets_documents_change(site: Site) -> None:
    site.project(queries=1, documents=4)
    lena = site.client("lena")
    verdict = {"key": "k", "query": "q0", "left": "d3", "right": "d2", "outcome": 1, "reason": "x"}
    lena.post(f"{API}/verdicts", json=verdict)
    lena.post(f"{API}/verdicts/withdraw", json={"key": "w", "query": "q0", "index": 0})
    body = {"query": "q0", "documents": ["d3"]}
    assert lena.post(f"{API}/documents/archive", json=body).status_code == 204


def test_the_pages_of_queries(site: Site) -> None:
    site.project(queries=3)
    lena = site.client("lena")
    page = lena.get("/p/books/queries", params={"search": "QUERY 2"})
    assert "1 query" in page.text
    assert "query 1" not in page.text
    form: dict[str, Any] = {"csrf": token(lena, "/p/books/setup"), "action": "archive"}
    assert "Choose at least one query" in lena.post("/p/books/queries", data=form).text
    lena.post("/p/books/queries", data={**form, "query": ["q0", "q1"]})
    listed = lena.get(f"{API}/queries").json()["queries"]
    assert [q["state"] for q in listed] == ["open", "archived", "archived"]
    path = f"/p/books/queries/{listed[0]['id']}"
    assert "6 documents" in lena.get(path).text
    assert "1 archived" in lena.post(path, data={**form, "document": "d5"}).text
    lena.post("/p/books/archive", data=form)
    page = lena.post("/p/books/delete", data={**form, "name": "other"})
    assert "Type books to delete the project" in page.text
    lena.post("/p/books/delete", data={**form, "name": "books"})
    assert lena.get("/p/books/queries").status_code == 404


@pytest.fixture
def store_folder(site: Site) -> str:
    """Return a store with a project in which one of two queries is done, and one begun."""
    site.project(queries=2, documents=5)
    ada = site.client("ada")
    ada.judge(site.task("books", "ada", 0))
    ada.answer(ada.state(site.task("books", "ada", 1)))
    return str(Path(str(site.store.url.database)).parent)


def label(*words: object, code: int = 0) -> str:
    done = CliRunner().invoke(app, ["label", *map(str, words)])
    assert done.exit_code == code, done.output
    return done.output + str(done.exception or "")


def test_the_shell_lists_and_removes_queries(store_folder: str, tmp_path: Path) -> None:
    rows = json.loads(label("queries", store_folder, "--json"))
    assert [(r["query"], r["state"], r["done"]) for r in rows] == [
        ("q0", "done", 1),
        ("q1", "started", 0),
    ]
    assert 0 < rows[1]["confidence"] < rows[0]["confidence"] <= 1
    table = label("queries", store_folder, "--search", "query 1")
    assert "q1" in table
    assert "q0" not in table
    label("remove", store_folder, "--query", "q0")
    assert "q0" in label("queries", store_folder, "--state", "archived")
    label("remove", store_folder, "--query", "q0", "--restore")
    assert "--yes" in label("remove", store_folder, "--query", "q0", "--delete", code=2)
    kept = tmp_path / "kept"
    label("remove", store_folder, "--delete", "--export", kept, "--yes")
    assert len((kept / "books-log.jsonl").read_text().splitlines()) > 5
    assert "none yet" in label("queries", store_folder, code=1)


def test_unfinished_queries_have_a_truth_when_asked(store_folder: str, tmp_path: Path) -> None:
    label("export", store_folder, "-o", tmp_path / "truth.jsonl")
    assert len((tmp_path / "truth.jsonl").read_text().splitlines()) == 1
    output = label("export", store_folder, "--partial", "-o", tmp_path / "all.jsonl")
    assert "1 of 2 queries are not finished" in output
    whole, partial = map(json.loads, (tmp_path / "all.jsonl").read_text().splitlines())
    assert (whole["finished"], partial["finished"]) == (True, False)
    assert len(partial["order"]) == 2, "the two documents that were compared"
    assert len(partial["unjudged"]) == 3
    assert 0 < partial["set_confidence"] < whole["set_confidence"]
    output = label(
        "export", store_folder, "--content", "log", "--partial", "-o", tmp_path / "l.csv", code=2
    )
    assert "--partial" in output


def test_the_shell_shows_what_cannot_change(store_folder: str) -> None:
    output = label("settings", store_folder)
    assert "k, strategy, seed, refine and rates cannot change any more" in output
    assert "answers were given to questions that depend on these settings" in output
    assert "3" in label("settings", store_folder, "--verdict-weight", 3)
    refused = label("settings", store_folder, "--probe-rate", 0.1, code=1)
    assert "probe rate of the project 'books' cannot change" in refused


def test_a_database_of_the_first_version_is_upgraded(
    location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Answers from before are replayed, and the new columns are empty."""
    from alembic import command

    store = Store(location, Clock())
    config = connect.alembic_config()
    with store.write() as tx:
        config.attributes["connection"] = tx.connection
        command.upgrade(config, "0001")
        old = (
            "INSERT INTO projects (slug, title, guidelines, tool, setting, options, state, created)"
            " VALUES ('books', 'Books', '', 'pairs', '{\"strategy\": \"heap\", \"k\": 3, \"seed\": 0,"
            ' "refine": 0, "repeat_rate": 0.0, "gold_rate": 0.0}\', \'{}\', \'open\','
            " '2026-01-01T00:00:00Z')"
        )
        tx.connection.execute(text(old.replace(":", "\\:")))
    store.prepare()
    with store.read() as tx:
        project = projects.find_project(tx)
        assert (project.slug, project.archived) == ("books", None)
        assert project.setting.probe_rate == 0
        assert project.options.verdict_weight == 10
        assert tasks.of_project(tx, project.id) == []
    store.close()
