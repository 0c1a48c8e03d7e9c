"""`firstpage label` setup, export, backup and restore on the command line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from firstpage.cli import app
from firstpage.core.errors import FirstpageError
from firstpage.labeling.app.store.connect import Store
from tests.labeling.app.load import Server
from tests.labeling.app.served import browser
from tests.labeling.app.site import PASSWORD, Clock, Site, jsonl
from tests.narrow import present


def call(*words: object, code: int = 0) -> Result:
    done = CliRunner().invoke(app, ["label", *map(str, words)])
    assert done.exit_code == code, done.output
    return done


def documents(folder: Path) -> Path:
    rows = [
        {"query": f"q{q}", "document": f"d{d}", "text": "x"} for q in range(4) for d in range(5)
    ]
    (folder / "d.jsonl").write_bytes(jsonl(*rows))
    return folder / "d.jsonl"


def test_from_files_to_truth(tmp_path: Path) -> None:
    project = tmp_path / "project"
    output = call(
        "setup",
        project,
        "--documents",
        documents(tmp_path),
        "--k",
        2,
        "--strategy",
        "heap",
        "--assessor",
        "ada",
        "--assessor",
        "bob",
        "--replicates",
        2,
        "--lead",
        "lena",
        "--name",
        "books",
    ).output
    assert "4 queries, 20 documents" in output
    assert len(re.findall(r"signs in here \(once\): http://127.0.0.1:8210/reset/\S+", output)) == 3
    assert "ada: 4 queries" in output
    site = Site(Store(project, Clock()), Clock())
    for login in ("ada", "bob"):
        for number in range(4):
            site.client(login).judge(site.task("books", login, number))
    site.store.close()
    call("export", project, "-o", tmp_path / "t.qrels")
    assert "q0 0 d0 2\n" in (tmp_path / "t.qrels").read_text()
    call("export", project, "--content", "log", "--format", "csv", "-o", tmp_path / "log.csv")
    assert len((tmp_path / "log.csv").read_text().splitlines()) > 8
    call("export", project, "--content", "report", "-o", tmp_path / "r.html")
    call("backup", project, "-o", tmp_path / "copy.db")
    call("restore", tmp_path / "copy.db", tmp_path / "other")
    call("export", tmp_path / "other", "-o", tmp_path / "again.qrels")
    assert (tmp_path / "again.qrels").read_text() == (tmp_path / "t.qrels").read_text()


def links(text: str) -> dict[str, str]:
    """Return the path of the last printed link of each person."""
    return dict(re.findall(r"(\w+) signs in here \(once\):\s+http://[^/]+(\S+)", text))


def test_printed_links_work_after_the_server_has_started(tmp_path: Path) -> None:
    """`setup` runs before the server, often twice, and the links are mailed in between."""
    people = ("--lead", "lena", "--assessor", "ada", "--documents", documents(tmp_path), "--k", 2)
    location = str(tmp_path / "project")
    first = links(call("setup", location, *people).output)
    again = links(call("setup", location, *people, "--name", "more").output)
    server = Server(location, log=tmp_path / "log")
    server.start()
    server.stop()
    started = links((tmp_path / "log").read_text())
    server.start()
    printed = links((tmp_path / "log").read_text())
    assert list(started) == list(printed) == ["lena"]
    assert len({page["lena"] for page in (first, again, started, printed)}) == 4
    try:
        for login, page in (("lena", "Dashboard"), ("ada", "My queries")):
            with browser(server.address, "10.0.0.1") as client:
                token = present(
                    re.search(r'name="csrf" value="(\w+)"', client.get(first[login]).text)
                )[1]
                form = {"csrf": token, "password": PASSWORD}
                assert client.post(first[login], data=form).status_code == 303
                assert page in client.get("/p/more", follow_redirects=True).text
                for other in (again, started, printed):  # the account has its password now
                    if login in other:
                        assert client.get(other[login]).status_code == 400
    finally:
        server.stop()


def test_queries_of_a_run_without_topics_are_reported(tmp_path: Path) -> None:
    run = "".join(f"{query} Q0 d{i} {i} {9 - i} x\n" for query in "ab" for i in range(3))
    (tmp_path / "run").write_text(run)
    (tmp_path / "topics").write_text("a\tfirst\nc\tthird\n")
    (tmp_path / "c.jsonl").write_bytes(jsonl(*({"id": f"d{i}", "text": "x"} for i in range(3))))
    output = call(
        "setup",
        tmp_path / "project",
        "--topics",
        tmp_path / "topics",
        "--run",
        tmp_path / "run",
        "--collection",
        tmp_path / "c.jsonl",
        "--depth",
        2,
    )
    assert "1 query, 2 documents" in output.stdout
    notes = [
        error_line
        for error_line in output.stderr.splitlines()
        if error_line.startswith("firstpage: note: ")
    ]
    assert len(notes) == 4
    assert "('c') left out" in notes[0]
    assert "('b') of" in notes[1]
    assert "only the best 2 documents are imported" in notes[2]
    assert "firstpage label serve" in notes[3]


def test_too_many_documents_give_a_one_line_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("firstpage.labeling.strategies.registry.MAX_COMPARED", 500)
    rows = [{"query": "q", "document": f"d{i}", "text": "x"} for i in range(501)]
    (tmp_path / "d.jsonl").write_bytes(jsonl(*rows))
    message = error_output("setup", tmp_path / "project", "--documents", tmp_path / "d.jsonl")
    assert "query 'q' has 501 documents, and adaptive takes at most 500 per query; " in message
    assert "pool to a smaller depth" in message
    call(
        "setup", tmp_path / "project", "--documents", tmp_path / "d.jsonl", "--tool", "grades"
    )  # the failed attempt left nothing; five-grade allows more documents


def test_queries_that_ask_nothing_are_reported(tmp_path: Path) -> None:
    rows = [{"query": q, "document": d, "text": "x"} for q, d in ("ax", "ay", "bx")]
    (tmp_path / "d.jsonl").write_bytes(jsonl(*rows))
    words = ("--documents", tmp_path / "d.jsonl", "--tool")
    note = "1 queries (such as b) have a single document"
    assert note in call("setup", tmp_path / "p", *words, "pairs").stderr
    assert note not in call("setup", tmp_path / "q", *words, "grades").stderr


def error_output(*words: object) -> str:
    """Return the output of a command that fails."""
    done = CliRunner().invoke(app, ["label", *map(str, words)])
    assert done.exit_code != 0
    return f"{done.output} {done.exception}"


def test_mistakes_give_one_line_errors(tmp_path: Path) -> None:
    assert "no labeling project" in error_output("export", tmp_path, "-o", "-")
    assert not list(tmp_path.iterdir()), "the command creates nothing"
    wrong = error_output(
        "setup", tmp_path / "p", "--documents", documents(tmp_path), "--strategy", "none"
    )
    assert "no labeling strategy" in wrong
    call("setup", tmp_path / "p")
    assert "already" in error_output("setup", tmp_path / "p")
    assert "written as" in error_output("export", tmp_path / "p", "--format", "csv", "-o", "-")
    assert "this machine only" in error_output("serve", tmp_path, "--open", "--host", "0.0.0.0")


def test_a_truncated_backup_creates_nothing(tmp_path: Path) -> None:
    call("setup", tmp_path / "p", "--documents", documents(tmp_path))
    call("backup", tmp_path / "p", "-o", tmp_path / "copy.jsonl.gz")
    whole = (tmp_path / "copy.jsonl.gz").read_bytes()
    (tmp_path / "cut.gz").write_bytes(whole[:-30])
    assert "damaged or truncated" in error_output("restore", tmp_path / "cut.gz", tmp_path / "new")
    assert not (tmp_path / "new").exists()


def error_line(*words: object) -> str:
    """Return the message of a command that fails: one line, or a usage error."""
    done = CliRunner().invoke(app, ["label", *map(str, words)])
    if done.exit_code == 2:
        return done.output
    assert isinstance(done.exception, FirstpageError), repr(done.exception)
    assert len(str(done.exception).splitlines()) == 1
    return str(done.exception)


@pytest.mark.parametrize(("data", "words"), [
    (b"fine\n\xff\xfe", ":2: is not UTF-8"), (b"\n\na\0b", ":3: contains the character NUL"),
    (b"x" * 200_001, "at most 200,000"),
])  # fmt: skip
def test_guidelines_that_cannot_be_stored_are_refused(
    tmp_path: Path, data: bytes, words: str
) -> None:
    (tmp_path / "g.md").write_bytes(data)
    assert words in error_line("setup", tmp_path / "p", "--guidelines", tmp_path / "g.md")
    assert not (tmp_path / "p").exists(), "an invalid command creates nothing"


@pytest.mark.parametrize("verb", [
    ("serve", "--port", "0"), ("stats",), ("export", "-o", "-"), ("backup", "-o", "x.db"), ("setup",),
    ("backup", "-o", "x.jsonl"),
])  # fmt: skip
def test_a_file_that_is_not_a_database_is_refused(tmp_path: Path, verb: tuple[str, ...]) -> None:
    (tmp_path / "firstpage.db").write_bytes(b"garbage " * 1000)
    assert "is not a database" in error_line(verb[0], tmp_path, *verb[1:])


def test_a_damaged_database_is_refused(tmp_path: Path) -> None:
    call("setup", tmp_path / "p", "--documents", documents(tmp_path))
    path = tmp_path / "p" / "firstpage.db"
    data = bytearray(path.read_bytes())
    data[3 * 4096 :] = b"\xff" * (len(data) - 3 * 4096)
    path.write_bytes(data)
    for words in (("stats",), ("export", "-o", "-"), ("backup", "-o", tmp_path / "x.jsonl")):
        assert "malformed" in error_line(words[0], tmp_path / "p", *words[1:])


@pytest.mark.parametrize(("url", "words"), [
    ("postgresql://ada:secret@h:notaport/x", "not a database URL"),
    ("postgresql://127.0.0.1:1/x?bogus=1", "bogus"),
    ("sqlite://", "names no file"), ("sqlite:///:memory:", "names no file"),
    ("foo://:::", "URL|SQLite or PostgreSQL"), ("mysql://h/x", "SQLite or PostgreSQL"),
    ("sqlite:////no/such/folder/x.db", "cannot be opened"), ("://", "not a database URL"),
])  # fmt: skip
def test_invalid_database_urls_are_refused(url: str, words: str) -> None:
    for verb in (("setup", url), ("stats", url), ("serve", url, "--port", "0")):
        message = error_line(*verb)
        assert re.search(words, message), message
        assert "secret" not in message


@pytest.mark.parametrize(("words", "message"), [
    (("serve", "--port", "99999"), "--port"), (("serve", "--port", "-1"), "--port"),
    (("setup", "--depth", "-5"), "--depth"), (("setup", "--depth", "0"), "--depth"),
    (("setup", "--images", "/no/such/folder"), "is not a folder"),
    (("setup", "--title", "\udcff"), "lone surrogate"),
    (("setup", "--assessor", "\udcff"), "lone surrogate"),
])  # fmt: skip
def test_options_out_of_range_are_refused(
    tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    assert message in error_line(words[0], tmp_path / "p", *words[1:])
    assert not (tmp_path / "p").exists()
