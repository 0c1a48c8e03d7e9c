"""Quepid's CSV in and out: ratings as judgments, and labels as ratings."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pytest

from firstpage.core.errors import DataError
from firstpage.interop.read.judgments import read_quepid
from firstpage.labeling.app.exports.make import export
from firstpage.labeling.app.imports.quepid import import_ratings
from firstpage.labeling.app.store import people, projects, tasks
from firstpage.labeling.app.store.connect import Tx
from firstpage.labeling.app.store.projects import Project
from tests.labeling.app.site import Site, jsonl

RATINGS = {
    "query 0": {"d0": 4.0, "d1": 0.0, "x9": 2.0},
    "q1": {"d0": 1.0, "d1": 2.0, "d2": 3.0},
    "unknown": {"d0": 1.0},
}


def graded(site: Site, **options: Any) -> Project:
    return site.project(
        tool="grades", documents=3, assessors=("ada",), setting={"k": 2}, options=options
    )


def rows(tx: Tx, project: Project) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO("".join(export(tx, project, "quepid.csv")))))


@pytest.mark.slow
def test_ratings_in_and_out(db_site: Site, tmp_path: Path) -> None:
    project = graded(db_site)
    imported = import_ratings(db_site.store, project, "quepid", RATINGS)
    assert (imported.queries, imported.ratings, imported.unrated) == (2, 5, 1)
    assert [note.split()[0] for note in imported.notes()] == ["1", "1", "1"]
    with db_site.store.read() as tx:
        ratings = rows(tx, project)
        text = "".join(export(tx, project, "quepid.csv"))
        members = projects.members(tx, project, "assessor")
    assert {(r["query"], r["docid"]): r["rating"] for r in ratings} == {
        ("query 0", "d0"): "4",
        ("query 0", "d1"): "0",
        ("query 0", "d2"): "",
        ("query 1", "d0"): "1",
        ("query 1", "d1"): "2",
        ("query 1", "d2"): "3",
    }
    (tmp_path / "q.csv").write_text(text)
    with pytest.warns(match="without a rating"):
        again = read_quepid(tmp_path / "q.csv").to_dict()
    assert again == {"query 0": {"d0": 4, "d1": 0}, "query 1": RATINGS["q1"]}
    departed = {row["login"]: row["departed_at"] for row in members}
    assert departed["quepid"] is not None, "no further queries are assigned to it"
    url = "/api/v1/projects/books/export/quepid.csv"
    assert db_site.client("lena").get(url, params={"tool": "grades"}).text == text
    ada = db_site.client("ada")
    ada.judge(db_site.task("books", "ada"), lambda left, _: 0)
    with db_site.store.read() as tx:
        assert rows(tx, project)[0]["rating"] == "0", "the lower median of both assessors"


@pytest.mark.parametrize(
    ("ratings", "options", "words"),
    [
        ({"query 0": {"d0": 5.0}}, {}, "the rating 5 of 'd0' for 'query 0' is not a grade"),
        ({"query 0": {"d0": 0.5}}, {}, "is not a grade"),
        ({"query 0": {"d0": -1.0}}, {}, "is not a grade"),
        ({"nothing": {"d0": 1.0}}, {}, "no query of the file"),
        ({"query 0": {"d0": 2.0}}, {"grades": [{"name": "no"}, {"name": "yes"}]}, "0 = no, 1 = yes"),
        ({"query 0": {"d0": 2.0}, "q0": {"d0": 1.0}}, {}, "the ratings 2 and 1 of 'd0' for the query 'q0'"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(
    site: Site, ratings: Any, options: dict[str, Any], words: str
) -> None:
    project = graded(site, **options)
    with pytest.raises(DataError, match=words):
        import_ratings(site.store, project, "quepid", ratings)
    with site.store.read() as tx:
        assert len(projects.members(tx, project, "assessor")) == 1


@pytest.mark.parametrize("login", ["lena", "mo", "chief"])
def test_members_and_admins_are_no_login_of_a_file(site: Site, login: str) -> None:
    """A lead who has no password yet would have left the project with the import."""
    project = graded(site)
    site.person("chief", admin=True)
    with site.store.write() as tx:
        projects.join(tx, project, people.ensure(tx, "mo"), "lead")
        before = projects.members(tx, project)
    with pytest.raises(DataError, match="choose a"):
        import_ratings(site.store, project, login, RATINGS)
    with site.store.read() as tx:
        assert projects.members(tx, project) == before
        assert len(tasks.of_project(tx, project.id)) == 2


def test_a_query_by_its_text_and_its_id_is_one_query(site: Site) -> None:
    project = graded(site)
    ratings = {"query 0": {"d0": 3.0}, "q0": {"d0": 3.0, "d1": 1.0}}
    imported = import_ratings(site.store, project, "quepid", ratings)
    assert (imported.queries, imported.ratings, imported.unrated) == (1, 2, 1)
    assert not imported.unknown_documents


@pytest.mark.slow
def test_ratings_need_no_practice_and_are_not_repeated(site: Site) -> None:
    setting = {"k": 2, "repeat_rate": 0.5, "refine": 3}
    project = site.project(tool="grades", documents=9, setting=setting)
    practice = jsonl({"text": "query", "left": "a text", "grade": 4})
    files = {"training": ("t.jsonl", practice)}
    assert site.client("lena").post("/api/v1/projects/books/import", files=files).is_success
    ratings = {"query 0": {f"d{i}": i % 5 for i in range(9)}}
    imported = import_ratings(site.store, project, "quepid", ratings)
    assert (imported.ratings, imported.unrated, imported.unknown_documents) == (9, 0, 0)


def test_nothing_of_a_failed_import_stays(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    project = graded(site)

    def fail(*_: Any) -> None:
        raise DataError("no")

    monkeypatch.setattr(projects, "leave", fail)
    for _ in range(2):
        with pytest.raises(DataError, match="no"):
            import_ratings(site.store, project, "quepid", RATINGS)
    with site.store.read() as tx:
        assert people.by_login(tx, "quepid") is None
        assert len(tasks.of_project(tx, project.id)) == 2


def test_an_assessor_is_imported_once(site: Site) -> None:
    project = graded(site)
    import_ratings(site.store, project, "quepid", {"q0": {"d0": 1.0}})
    with pytest.raises(DataError, match="has judgments"):
        import_ratings(site.store, project, "quepid", {"q1": {"d0": 1.0}})
    with pytest.raises(DataError, match="has judgments"):
        import_ratings(site.store, project, "ada", {"q0": {"d0": 1.0}})
    films = site.project("films")
    with pytest.raises(DataError, match="--tool grades"):
        import_ratings(site.store, films, "quepid", {"q0": {"d0": 1.0}})
