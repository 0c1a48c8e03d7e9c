"""Webhooks: signed messages to a real server, retries, bounds, and no way into private networks."""

from __future__ import annotations

import hashlib
import hmac
import json
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

import pytest
from sqlalchemy import delete, update

from firstpage.core.errors import DataError
from firstpage.labeling.app import webhooks as sending
from firstpage.labeling.app.store import people, projects, webhooks
from firstpage.labeling.app.store.tables import deliveries
from firstpage.labeling.app.webhooks import WebhookSender, is_public
from tests.labeling.app.site import Client, Site
from tests.patience import PATIENCE


@dataclass
class Receiver:
    """A server that answers with the given status codes, and then with 204."""

    url: str = ""
    statuses: list[int] = field(default_factory=list)
    received: list[tuple[dict[str, str], bytes]] = field(default_factory=list)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    target = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            target.received.append((dict(self.headers), body))
            status = target.statuses.pop(0) if target.statuses else 204
            self.send_response(status)
            if status == 302:
                self.send_header("Location", target.url + "elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    target.url = f"http://localhost:{server.server_address[1]}/hook?a=1"
    yield target
    server.shutdown()
    server.server_close()


def hooked(site: Site, url: str, **options: Any) -> str:
    """Create a project with a webhook, which may be private; return the secret."""
    site.project(documents=2, **options)
    site.app.state.settings = replace(site.settings, private_webhooks=True)
    reply = site.client("lena").put("/api/v1/projects/books/webhook", json={"url": url})
    assert reply.status_code == 200, reply.text
    return str(reply.json()["secret"])


def messages(site: Site) -> list[dict[str, Any]]:
    reply = site.client("lena").get("/api/v1/projects/books/webhook")
    rows: list[dict[str, Any]] = reply.json()["messages"]
    return rows


def sender(site: Site) -> WebhookSender:
    return WebhookSender(site.store, allow_private=True)


def test_a_finished_query_is_one_signed_message(db_site: Site, receiver: Receiver) -> None:
    """The last assessor finishes it; the same result is not sent twice."""
    site = db_site
    secret = hooked(site, receiver.url, assessors=("ada", "ben"), queries=1)
    assert secret not in site.client("lena").get("/api/v1/projects/books/webhook").text
    site.client("ada").judge(site.task("books", "ada"))
    assert messages(site) == [], "ben has not finished it"
    ben, task = site.client("ben"), site.task("books", "ben")
    state = ben.judge(task)
    assert sender(site).send_next()
    assert not sender(site).send_next()
    [(headers, body)] = receiver.received
    timestamp, _, signed = headers["X-Firstpage-Signature"].partition(",v1=")
    moment = timestamp.removeprefix("t=")
    expected = hmac.new(secret.encode(), f"{moment}.".encode() + body, hashlib.sha256).hexdigest()
    assert signed == expected
    assert abs(time.time() - int(moment)) < PATIENCE
    sent = json.loads(body)
    assert (
        sent.items()
        >= {
            "event": "query.finished",
            "project": "books",
            "query": "q0",
            "text": "query 0",
            "tool": "pairs",
            "assessors": 2,
            "judgments": 2,
        }.items()
    )
    assert headers["X-Firstpage-Delivery"] == sent["id"]
    assert messages(site)[0]["delivered"] is not None
    outcome = ben.get(f"/api/v1/tasks/{task}/judgments").json()["judgments"][0]["outcome"]
    revise = {"seq": state["seq"], "key": "again", "index": 0, "outcome": outcome}
    assert ben.post(f"/api/v1/tasks/{task}/revise", json=revise).status_code == 200
    assert len(messages(site)) == 1, "the same result"
    revise |= {"seq": state["seq"] + 1, "key": "other", "outcome": -outcome}
    assert ben.post(f"/api/v1/tasks/{task}/revise", json=revise).status_code == 200
    assert len(messages(site)) == 2, "another result"


URL = "https://example.org/hook"


@pytest.mark.parametrize("end", ["returned", "departed", "anonymize", "remove"])
@pytest.mark.parametrize("started", [True, False])
def test_a_query_is_finished_when_its_last_task_ends(site: Site, end: str, started: bool) -> None:
    """Ada has done the first of two queries, and Ben none."""
    hooked(site, URL, assessors=("ada", "ben"), queries=2)
    site.client("ada").judge(site.task("books", "ada"))
    lena, ben, task = site.client("lena"), site.client("ben"), site.task("books", "ben")
    if started:
        state = ben.judge(task)
        ben.post(f"/api/v1/tasks/{task}/undo", json={"seq": state["seq"], "key": "u"})
        with site.store.write() as tx:
            tx.run(delete(deliveries))
    assert messages(site) == []
    person = site.person("ben").id
    reply = {
        "returned": lambda: ben.post(f"/api/v1/tasks/{task}/skip", json={"reason": "x"}),
        "departed": lambda: lena.delete(f"/api/v1/projects/books/people/{person}"),
    }.get(
        end,
        lambda: lena.request("DELETE", f"/api/v1/people/{person}/data", json={"judgments": end}),
    )()
    assert reply.is_success, reply.text
    assert [row["query"] for row in messages(site)] == ["q0"]


def test_a_returned_query_is_not_finished_if_it_is_reassigned_or_has_no_answers(site: Site) -> None:
    hooked(site, URL, assessors=("ada", "ben"), queries=2)
    with site.store.write() as tx:
        project = projects.find_project(tx, "books")
        projects.join(tx, project, people.ensure(tx, "cy"), "assessor")
    ada, ben, cy = (site.client(name) for name in ("ada", "ben", "cy"))

    def skip(client: Client, login: str, number: int) -> None:
        task = site.task("books", login, number)
        assert client.post(f"/api/v1/tasks/{task}/skip", json={"reason": "x"}).is_success

    ada.judge(site.task("books", "ada", 0))
    skip(ben, "ben", 0)
    assert messages(site) == [], "it was assigned to Cy"
    skip(cy, "cy", 0)
    assert [row["query"] for row in messages(site)] == ["q0"]
    skip(ada, "ada", 1)
    skip(ben, "ben", 1)
    skip(cy, "cy", 1)
    assert len(messages(site)) == 1, "the second query has no finished task"


def test_failures_are_retried_and_given_up(site: Site, receiver: Receiver) -> None:
    receiver.statuses = [500, 302, 404, 400, 503, 500]
    hooked(site, receiver.url, queries=1)
    site.client("ada").judge(site.task("books", "ada"))
    outbox = sender(site)
    for delay in (*webhooks.DELAYS, 0):
        assert outbox.send_next()
        assert not outbox.send_next(), "not before its time"
        site.clock.pass_(seconds=delay)
    assert len(receiver.received) == len(webhooks.DELAYS) + 1
    assert not outbox.send_next(), "given up"
    [row] = messages(site)
    assert (row["delivered"], row["next"], row["error"]) == (None, None, "answered with status 500")


def test_a_message_is_not_sent_by_two_processes(db_site: Site, receiver: Receiver) -> None:
    hooked(db_site, receiver.url, queries=1)
    db_site.client("ada").judge(db_site.task("books", "ada"))
    with db_site.store.write() as tx:
        claimed = webhooks.claim(tx)
        assert claimed is not None
    assert not sender(db_site).send_next(), "the other process sends it"
    db_site.clock.pass_(seconds=webhooks.LEASE + 1)
    assert sender(db_site).send_next(), "the other process was killed"
    assert len(receiver.received) == 1


def test_judging_does_not_wait(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """A receiver that accepts and never answers delays nobody, and is ended after the limit."""
    monkeypatch.setattr(sending, "TIMEOUT", 0.3)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(5)
        hooked(site, f"http://127.0.0.1:{silent.getsockname()[1]}/", queries=2)
        ada = site.client("ada")
        ada.judge(site.task("books", "ada", 0))
        thread = threading.Thread(target=sender(site).send_next)
        thread.start()
        ada.judge(site.task("books", "ada", 1))
        thread.join(PATIENCE)
        assert not thread.is_alive()
    errors = {row["query"]: row["error"] for row in messages(site)}
    assert errors["q0"].startswith("no answer")
    assert errors["q1"] is None


def test_a_slow_answer_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """A receiver that sends a byte now and then cannot hold the sender."""
    monkeypatch.setattr(sending, "TIMEOUT", 0.4)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(1)

        def drip() -> None:
            connection, _ = listener.accept()
            with connection:
                for _ in range(600):
                    try:
                        connection.sendall(b"H")
                    except OSError:
                        return
                    time.sleep(0.1)

        threading.Thread(target=drip, daemon=True).start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        start = time.monotonic()
        with pytest.raises(sending.DeliveryError, match="no answer"):
            sending.send(webhooks.Message(1, "k", {}, 1, url, "s"), True, 0.0)
        assert time.monotonic() - start < 30


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("93.184.216.34", True), ("2606:4700::1111", True), ("127.0.0.1", False), ("10.1.2.3", False),
        ("192.168.0.1", False), ("172.16.5.5", False), ("169.254.169.254", False), ("0.0.0.0", False),
        ("100.64.0.1", False), ("224.0.0.1", False), ("255.255.255.255", False), ("::1", False),
        ("::", False), ("fe80::1%eth0", False), ("fc00::1", False), ("::ffff:127.0.0.1", False),
        ("64:ff9b::7f00:1", False), ("2002:7f00:1::", False), ("2001:0:53aa:64c:0:0:0:1", False),
        ("ff02::1", False),
    ],
)  # fmt: skip
def test_public_addresses(address: str, public: bool) -> None:
    assert is_public(address) is public


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]", "0x7f.1", "2130706433"])
def test_private_addresses_are_refused(site: Site, receiver: Receiver, host: str) -> None:
    url = receiver.url.replace("localhost", host)
    hooked(site, url, queries=1)
    site.client("ada").judge(site.task("books", "ada"))
    assert WebhookSender(site.store).send_next()
    assert receiver.received == []
    assert (
        "not public" in messages(site)[0]["error"]
        or "cannot be found" in messages(site)[0]["error"]
    )


PRIVATE = [
    "localhost", "localhost.", "127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "0.0.0.0",
    "[::]", "10.0.0.1", "172.31.0.1", "192.168.1.1", "169.254.169.254", "[fd00:ec2::254]", "[fe80::1]",
    "[fec0::1]", "[64:ff9b::a9fe:a9fe]", "0x7f.1", "2130706433", "127.1", "user.localhost",
]  # fmt: skip


@pytest.mark.parametrize("host", PRIVATE)
def test_private_addresses_cannot_be_set(site: Site, host: str) -> None:
    resolved = sending._addresses(urlsplit(f"http://{host}/").hostname or "", 80)
    if not resolved:
        pytest.skip("this system does not know the name")
    site.project(documents=2)
    lena, url = site.client("lena"), f"http://{host}/hook"
    refused = lena.put("/api/v1/projects/books/webhook", json={"url": url})
    assert refused.status_code == 400
    assert "is not public" in refused.text
    assert "--private-webhooks" in refused.text
    assert lena.get("/api/v1/projects/books/webhook").json()["url"] is None
    form = {"csrf": lena.headers["X-CSRF-Token"], "url": url}
    page = lena.post("/p/books/setup/webhook", data=form)
    assert page.status_code == 400
    assert "is not public" in page.text


def test_a_name_that_becomes_private_is_refused_when_sending(
    site: Site, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = "93.184.216.34"
    port = urlsplit(receiver.url).port
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [(0, 0, 0, "", (address, port))])
    site.project(documents=2, queries=1)
    url = {"url": f"http://rebinding.example.org:{port}/hook"}
    reply = site.client("lena").put("/api/v1/projects/books/webhook", json=url)
    assert reply.status_code == 200
    site.client("ada").judge(site.task("books", "ada"))
    address = "127.0.0.1"
    assert WebhookSender(site.store).send_next()
    assert "is not public" in messages(site)[0]["error"]
    assert receiver.received == []


def test_the_checked_address_is_the_one_connected_to(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every further lookup would give another address."""
    port = urlsplit(receiver.url).port
    answers = iter([[(2, 1, 6, "", ("127.0.0.1", port))]])
    lookup = socket.getaddrinfo

    def resolve(host: str, *args: Any, **settings: Any) -> Any:
        return next(answers) if host == "rebinding.example.org" else lookup(host, *args, **settings)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    url = f"http://rebinding.example.org:{port}/hook"
    sending.send(webhooks.Message(1, "k", {}, 1, url, "s"), True, 0.0)
    assert len(receiver.received) == 1


def test_one_private_address_of_several_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    def resolve(host: str, port: int, **_: Any) -> list[Any]:
        return [(0, 0, 0, "", (ip, port)) for ip in ("93.184.216.34", "10.0.0.1")]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    with pytest.raises(sending.DeliveryError, match="not public"):
        sending.checked_address("example.org", 80, False)


@pytest.mark.parametrize(
    "url", ["ftp://x/", "https://", "x", "http://u:p@x/", "http://x:0/", "http://x:y/", "http://x/ y",
            "http://x/é", "http://x/\r\nA: b", "file:///etc/passwd", "http://x/" + "a" * 2000],
)  # fmt: skip
def test_wrong_addresses_are_refused(url: str) -> None:
    with pytest.raises(DataError, match="webhook"):
        webhooks.check_url(url)


def test_the_queue_is_bounded_and_removed(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhooks, "MAX_PENDING", 1)
    hooked(site, "https://example.org/hook", queries=2)
    ada, lena = site.client("ada"), site.client("lena")
    for number in range(2):
        ada.judge(site.task("books", "ada", number))
    assert [row["query"] for row in messages(site)] == ["q0"]
    with site.store.write() as tx:
        tx.run(update(deliveries).values(due=None, created="2000"))
        message = webhooks.Message(0, "k", {}, 1, "", "")
        webhooks.finish(tx, message, None)
    assert messages(site) == [], "old messages are deleted"
    assert lena.delete("/api/v1/projects/books/webhook").status_code == 204
    assert lena.delete("/api/v1/projects/books/webhook").status_code == 404
    with site.store.read() as tx:
        project = projects.by_slug(tx, "books")
        assert project is not None
        assert webhooks.find(tx, project.id) is None


def test_the_thread_sends(site: Site, receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "POLL_INTERVAL", 0.01)
    hooked(site, receiver.url, queries=1)
    with sender(site):
        site.client("ada").judge(site.task("books", "ada"))
        end = time.monotonic() + PATIENCE
        while not receiver.received and time.monotonic() < end:
            time.sleep(0.01)
    assert len(receiver.received) == 1
    assert "webhooks" not in {thread.name for thread in threading.enumerate()}


def test_two_who_finish_at_the_same_time_are_one_message(db_site: Site) -> None:
    """Neither transaction sees the other's result unless they wait for each other."""
    hooked(db_site, "https://example.org/hook", assessors=("ada", "ben"), queries=1)
    start = threading.Barrier(2)

    def finish(login: str) -> None:
        client, task = db_site.client(login), db_site.task("books", login)
        state = client.state(task)
        start.wait(PATIENCE)
        client.answer(state)

    threads = [threading.Thread(target=finish, args=(login,)) for login in ("ada", "ben")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert [row["query"] for row in messages(db_site)] == ["q0"]
