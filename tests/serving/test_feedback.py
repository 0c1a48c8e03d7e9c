"""Feedback: what is stored, who may store it, and that nothing acknowledged is lost."""

from __future__ import annotations

import errno
import http.client
import json
import os
import re
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from html import unescape
from io import StringIO
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from zlib import crc32

import pytest
from click.testing import CliRunner

from firstpage.cli.dcglearn.learn import command as learn
from firstpage.cli.label.setup import command as setup
from firstpage.core.errors import DataError
from firstpage.serving.app import Serving
from firstpage.serving.feedback import FeedbackFolder, RateLimit, query_id
from firstpage.serving.limits import Refusal
from firstpage.serving.page_contents import FIRST_STAGE, MODEL, Visitor
from tests.narrow import instance
from tests.serving.conftest import TestClient
from tests.serving.test_process import Server
from tests.serving.texts import HOST, QUERIES, text_clients

Shop = tuple[Path, Path]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "feedback"


@pytest.fixture
def client(shop: Shop, folder: Path) -> Iterator[TestClient]:
    yield from text_clients(*shop, feedback=folder)


def form_of(page: str, action: str) -> dict[str, str]:
    """Return the hidden fields of a form of the page."""
    form = re.search(f'<form action="{action}".*?</form>', page, re.DOTALL)
    assert form is not None, page
    fields = re.findall('type="hidden" name="([^"]+)" value="([^"]*)"', form[0])
    return {name: unescape(value) for name, value in fields}


def vote(client: TestClient, text: str, outcome: str = "left", **changed: Any) -> Any:
    fields = form_of(client.get("/", params={"q": text}).text, "/preference")
    headers = {"origin": HOST, **changed.pop("headers", {})}
    return client.post(
        "/preference", data={**fields, "outcome": outcome, **changed}, headers=headers
    )


def rows(folder: Path, name: str) -> list[dict[str, Any]]:
    path = folder / f"{name}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_without_a_folder_nothing_is_asked(shop: Shop) -> None:
    for client in text_clients(*shop):
        response = client.get("/?q=red+shoes")
        assert '<form action="/preference"' not in response.text
        assert "set-cookie" not in response.headers
        assert client.post("/preference").status_code == 404


def test_a_preference_is_stored_with_what_was_shown(client: TestClient, folder: Path) -> None:
    page = client.get("/?q=red+shoes").text
    assert "Which page is better?" in page
    assert "Model:" not in page.partition("<main")[2]
    response = vote(client, "red shoes", "right")
    assert response.status_code == 303
    shown = client.get(response.headers["location"])
    assert "Your preference is stored" in shown.text
    assert "Model: ListNet" in shown.text
    (row,) = rows(folder, "preferences")
    assert (row["query"], row["text"], row["outcome"]) == (query_id("red shoes"), "red shoes", -1)
    model = [r["id"] for r in client.get("/search?q=red+shoes").json()["results"]]
    first = [r["id"] for r in client.get("/search?q=red+shoes&model=false").json()["results"]]
    sides = {"left": row["left"], "right": row["right"]}
    assert sides.pop(row["model_side"]) == model
    assert list(sides.values()) == [first]


def test_a_double_click_counts_once(client: TestClient, folder: Path) -> None:
    assert vote(client, "red shoes").headers["location"].endswith("note=preference")
    again = vote(client, "red shoes", "right")
    assert again.headers["location"].endswith("note=known")
    assert len(rows(folder, "preferences")) == 1
    client.cookies.clear()  # another person
    vote(client, "red shoes")
    assert len(rows(folder, "preferences")) == 2


def test_sides_are_random_and_stable(client: TestClient) -> None:
    drawn = [Visitor("s" * 43).sides(f"query {i}") for i in range(400)]
    assert drawn == [Visitor("s" * 43).sides(f"query {i}") for i in range(400)]
    assert 150 < drawn.count((MODEL, FIRST_STAGE)) < 250
    others = [Visitor("t" * 43).sides(f"query {i}") for i in range(400)]
    assert 130 < sum(a == b for a, b in zip(drawn, others, strict=True)) < 270
    assert client.get("/?q=red").text == client.get("/?q=red").text


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({"headers": {"origin": "https://evil.example"}}, 403),
        ({"headers": {"origin": "null"}}, 403),
        ({"headers": {"sec-fetch-site": "cross-site"}}, 403),
        ({"headers": {"host": "evil.example", "origin": "http://evil.example"}}, 421),
        ({"headers": {"content-type": "text/plain"}}, 415),
        ({"csrf": ""}, 403),
        ({"csrf": "0" * 64}, 403),
        ({"outcome": "both"}, 422),
        ({"shown": "other"}, 409),
        ({"q": ""}, 422),
        ({"q": "a" * 2000}, 422),
        ({"depth": "1000"}, 422),
        ({"padding": "x" * 70_000}, 413),
    ],
)
def test_what_is_refused_is_not_stored(
    client: TestClient, folder: Path, changed: dict[str, Any], status: int
) -> None:
    response = vote(client, "red shoes", **changed)
    assert response.status_code == status, response.text
    assert "\n" not in response.json()["detail"]
    assert not rows(folder, "preferences")


def test_a_form_without_its_cookie_is_refused(client: TestClient, folder: Path) -> None:
    fields = form_of(client.get("/?q=red+shoes").text, "/judge")
    client.cookies.clear()
    assert client.post("/judge", data=fields).status_code == 403
    client.cookies.set("firstpage_search", "x" * 43)
    assert client.post("/judge", data=fields).status_code == 403
    assert not rows(folder, "queries")


def test_a_browser_gets_a_page(client: TestClient) -> None:
    response = vote(client, "red shoes", csrf="", headers={"accept": "text/html"})
    assert response.status_code == 403
    assert "<h1>Not stored</h1>" in response.text
    assert "default-src 'none'" in response.headers["content-security-policy"]


def test_too_much_feedback_is_refused(client: TestClient, folder: Path) -> None:
    instance(Serving, client.app).rate = RateLimit(per_network=3)
    answers = [vote(client, text) for _, text in QUERIES[:5]]
    assert [answer.status_code for answer in answers] == [303, 303, 303, 429, 429]
    assert 1 <= int(answers[-1].headers["retry-after"]) <= 60
    assert len(rows(folder, "preferences")) == 3


def test_rates_are_per_network_and_in_all() -> None:
    limit = RateLimit(per_network=2, in_all=3)
    limit.check("a")
    limit.check("a")
    with pytest.raises(Refusal):
        limit.check("a")
    limit.check("b")
    with pytest.raises(Refusal):
        limit.check("c")


@pytest.mark.filterwarnings("ignore::firstpage.core.errors.FirstpageWarning")
def test_dcglearn_reads_the_preferences(client: TestClient, folder: Path, tmp_path: Path) -> None:
    for number, (_, text) in enumerate(QUERIES[:6]):
        assert vote(client, text, ("left", "right", "equal")[number % 3]).status_code == 303
    stored = rows(folder, "preferences")
    judged = [
        f"{row['query']} 0 {name} {crc32(name.encode()) % 3}\n"
        for row in stored
        for name in dict.fromkeys(row["left"] + row["right"])
    ]
    qrels = tmp_path / "labels.qrels"
    qrels.write_text("".join(judged))
    file = str(folder / "preferences.jsonl")
    options = ["--C", "1", "--rounds", "0", "--test-rounds", "0"]
    done = CliRunner().invoke(learn, [file, "--qrels", str(qrels), *options])
    assert done.exit_code == 0, done.output
    assert "Discounts" in done.output
    refused = CliRunner().invoke(learn, [file, *options])
    assert isinstance(refused.exception, DataError)
    assert "needs their judgments. Give them with" in str(refused.exception)


def test_label_setup_reads_the_queries_to_judge(
    client: TestClient, folder: Path, tmp_path: Path
) -> None:
    for text in ("red shoes", "hostile text", "red  SHOES"):
        fields = form_of(client.get("/", params={"q": text}).text, "/judge")
        assert client.post("/judge", data=fields).status_code == 303
    assert [row["text"] for row in rows(folder, "queries")] == ["red shoes", "hostile text"]
    stored = rows(folder, "documents")
    assert stored[0]["fields"] == {"price": stored[0]["fields"]["price"]}
    files = [
        "--queries",
        str(folder / "queries.jsonl"),
        "--documents",
        str(folder / "documents.jsonl"),
    ]
    done = CliRunner().invoke(setup, [str(tmp_path / "project"), *files])
    assert done.exit_code == 0, done.output
    assert f"2 queries, {len(stored)} documents" in done.output


def test_query_ids_are_words_without_blanks() -> None:
    assert re.fullmatch("red-shoes-[0-9a-f]{8}", query_id(" Red  shoes! ".replace("!", "")))
    assert query_id("Red shoes") == query_id("red  SHOES")
    assert query_id("red shoes") != query_id("red shoe")
    assert re.fullmatch("[0-9a-f]{8}", query_id("\u6771\u4eac"))
    assert len(query_id("word " * 200)) < 60


def test_two_servers_cannot_share_a_folder(folder: Path) -> None:
    first = FeedbackFolder(folder)
    with pytest.raises(DataError, match="another server writes its feedback here"):
        FeedbackFolder(folder)
    first.close()
    FeedbackFolder(folder).close()


def test_what_a_killed_server_left_incomplete_is_removed(folder: Path) -> None:
    store = FeedbackFolder(folder)
    store.add_preference({"id": "a", "outcome": 1})
    store.add_query("red", [{"document": "d1"}, {"document": "d2"}])
    store.close()
    with (folder / "preferences.jsonl").open("a") as file:
        file.write('{"id": "b", "outc')
    with (folder / "documents.jsonl").open("a") as file:
        file.write('{"query": "blue-1", "document": "d3"}\n{"query": "blue-1", "docu')
    store = FeedbackFolder(folder)
    assert [row["id"] for row in rows(folder, "preferences")] == ["a"]
    assert [row["document"] for row in rows(folder, "documents")] == ["d1", "d2"]
    assert not store.add_preference({"id": "a", "outcome": -1})
    assert store.add_preference({"id": "b", "outcome": -1})
    assert not store.add_query("Red", [])
    store.close()
    assert [row["id"] for row in rows(folder, "preferences")] == ["a", "b"]


def test_a_file_that_is_no_feedback_is_refused(folder: Path) -> None:
    folder.mkdir()
    (folder / "queries.jsonl").write_text("hello\n")
    with pytest.raises(DataError, match=r"queries.jsonl:1: is not a row of feedback"):
        FeedbackFolder(folder)


def test_a_full_disk_stores_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = FeedbackFolder(folder)
    store.add_preference({"id": "a"})

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(Refusal, match="No space left"):
            store.add_preference({"id": "b"})
    assert [row["id"] for row in rows(folder, "preferences")] == ["a"]
    assert store.add_preference({"id": "b"})
    store.close()
    assert [row["id"] for row in rows(folder, "preferences")] == ["a", "b"]


def test_queries_and_documents_are_stored_together(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, synced = FeedbackFolder(folder), []

    def full_at_the_second(descriptor: int) -> None:
        synced.append(descriptor)
        if len(synced) == 2:
            raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full_at_the_second)
        with pytest.raises(Refusal):
            store.add_query("red", [{"document": "d1"}])
    assert not rows(folder, "documents")
    assert not rows(folder, "queries")
    assert store.add_query("red", [{"document": "d1"}])
    store.close()


def test_concurrent_writers_in_one_server(folder: Path) -> None:
    store = FeedbackFolder(folder)
    stored = [0] * 4

    def write(thread: int) -> None:
        for number in range(25):
            row = {"id": f"{number}", "by": thread, "text": "x" * 5000}
            stored[thread] += store.add_preference(row)

    threads = [threading.Thread(target=write, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    store.close()
    assert sum(stored) == 25
    assert sorted(int(row["id"]) for row in rows(folder, "preferences")) == list(range(25))


def test_nothing_acknowledged_is_lost_when_the_server_is_killed(
    own_shop: Shop, folder: Path
) -> None:
    index, model = own_shop
    server = Server(model, "--index", str(index), "--feedback", str(folder))
    acknowledged: list[str] = []

    def person(number: int) -> None:
        connection = server.connect()
        try:
            for _, text in QUERIES[number::3]:
                connection.request("GET", f"/?{urlencode({'q': text})}")
                response = connection.getresponse()
                cookie = (response.getheader("set-cookie") or "").partition(";")[0]
                fields = form_of(response.read().decode(), "/preference")
                body = urlencode({**fields, "outcome": "left"})
                headers = {"content-type": "application/x-www-form-urlencoded", "cookie": cookie}
                connection.request("POST", "/preference", body, headers)
                response = connection.getresponse()
                response.read()
                if response.status == 303:
                    acknowledged.append(query_id(text))
                if len(acknowledged) >= 6:
                    server.process.send_signal(signal.SIGKILL)
        except (OSError, http.client.HTTPException):
            pass
        finally:
            connection.close()

    people = [threading.Thread(target=person, args=(i,)) for i in range(3)]
    for each in people:
        each.start()
    for each in people:
        each.join()
    server.process.wait()
    assert server.process.stdout is not None
    server.process.stdout.close()
    assert len(acknowledged) >= 6
    FeedbackFolder(folder).close()
    assert set(acknowledged) <= {row["query"] for row in rows(folder, "preferences")}


def test_feedback_needs_an_index(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "firstpage", "serve", "m.json", "--feedback", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "--feedback requires --index" in done.stderr


def test_files_are_private_and_looser_ones_are_reported(
    tmp_path: Path, serving_log: StringIO
) -> None:
    before = os.umask(0o022)
    try:
        FeedbackFolder(tmp_path).close()
    finally:
        os.umask(before)
    paths = [tmp_path / name for name in ("preferences.jsonl", "queries.jsonl", "documents.jsonl")]
    assert [stat.S_IMODE(path.stat().st_mode) for path in paths] == [0o600] * 3
    assert not serving_log.getvalue()
    paths[0].chmod(0o644)
    FeedbackFolder(tmp_path).close()
    (line,) = serving_log.getvalue().splitlines()
    assert "preferences.jsonl: other users of this machine may read it (mode 644)" in line
