"""An application in memory with people, a project and texts, for web tests."""

from __future__ import annotations

import atexit
import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any
from uuid import uuid4

from anyio.from_thread import BlockingPortal, start_blocking_portal
from sqlalchemy import RowMapping, select
from starlette.applications import Starlette

from firstpage.labeling.app.app import attach, create_app
from firstpage.labeling.app.security import COOKIE, ServeSettings
from firstpage.labeling.app.store import logins, people, projects, tasks, texts
from firstpage.labeling.app.store.connect import Store, Tx
from firstpage.labeling.app.store.people import Person
from firstpage.labeling.app.store.projects import Project
from firstpage.labeling.app.store.tables import documents, events, queries
from firstpage.labeling.app.store.texts import DocumentRecord, QueryRecord

with warnings.catch_warnings():  # a deprecation warning about its HTTP library
    warnings.simplefilter("ignore")
    from starlette.testclient import TestClient

HOST = "testserver"
PASSWORD = "correct horse battery"


def add_query(tx: Tx, project: int, query: QueryRecord, position: int) -> int:
    """Add a query with its documents, and return its id."""
    row = tx.add(
        queries,
        project=project,
        key=query.key,
        text=query.text,
        description=query.description,
        purpose="work",
        position=position,
    )
    add_documents(tx, row, query.documents)
    return row


def add_documents(tx: Tx, query: int, records: Sequence[DocumentRecord], start: int = 0) -> None:
    tx.add_all(documents, [texts.document_row(query, start + i, d) for i, d in enumerate(records)])


def log_rows(tx: Tx, task: int) -> Sequence[RowMapping]:
    """Return the log of a task as it is stored."""
    return tx.all(select(events).where(events.c.task == task).order_by(events.c.seq))


class Clock:
    """A clock that advances only by `pass_`."""

    def __init__(self) -> None:
        self.now = datetime(2026, 3, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def pass_(self, **time: float) -> None:
        self.now += timedelta(**time)


@cache
def portal() -> BlockingPortal:
    """Return one event loop for the applications of all tests, in a thread of this process."""
    context = start_blocking_portal()
    opened = context.__enter__()
    atexit.register(context.__exit__, None, None, None)
    return opened


DEFAULT = ServeSettings(hosts=(HOST,))
IDLE: list[Starlette] = []  # with the default settings; a new one takes 0.1 s at its first request


@dataclass
class Site:
    """A store and an application; people are created by name and signed in in the database."""

    store: Store
    clock: Clock
    settings: ServeSettings = DEFAULT
    app: Starlette = field(init=False)

    def __post_init__(self) -> None:
        if self.settings == DEFAULT and IDLE:
            self.app = IDLE.pop()
            attach(self.app, self.store, self.settings)
        else:
            self.app = create_app(self.store, self.settings)
        self._own = self.app

    def close(self) -> None:
        """Close the store; the application may serve another site."""
        self.store.close()
        if self.settings == DEFAULT:
            IDLE.append(self._own)

    def person(self, login: str, admin: bool = False) -> Person:
        with self.store.write() as tx:
            return people.ensure(tx, login, login.title(), admin=admin)

    def client(self, login: str | None = None) -> Client:
        """Return a client, signed in if there is a login."""
        client = Client(self.app, base_url=f"http://{HOST}", raise_server_exceptions=True)
        client.portal = portal()  # otherwise every request starts a thread and an event loop
        if login is not None:
            person = self.person(login)
            with self.store.write() as tx:
                token, row = logins.start(tx, person)
            client.cookies.set(COOKIE, token)
            client.headers["X-CSRF-Token"] = row.csrf
        return client

    def project(
        self,
        slug: str = "books",
        *,
        lead: str = "lena",
        assessors: tuple[str, ...] = ("ada",),
        queries: int = 2,
        documents: int = 6,
        tool: str = "pairs",
        opened: bool = True,
        setting: dict[str, Any] | None = None,
        options: dict[str, Any] | None = None,
    ) -> Project:
        """Create a project in which every query is assigned to every assessor."""
        lead_person, team = self.person(lead), [self.person(name) for name in assessors]
        with self.store.write() as tx:
            project = projects.create(
                tx,
                slug,
                tool=tool,
                setting=setting or {"k": 3, "strategy": "heap"},
                options=options,
                by=lead_person,
            )
            for number in range(queries):
                row = add_query(tx, project.id, query(number, documents), number)
                for person in team:
                    tasks.add(tx, project, row, person.id, tool, 0, number)
            for person in team:
                projects.join(tx, project, person, "assessor")
            if opened:
                project = projects.set_state(tx, project, "open", lead_person)
        return project

    def task(self, slug: str, login: str, number: int = 0) -> int:
        """Return the id of a person's task."""
        return self.tasks(slug, login)[number]

    def tasks(self, slug: str, login: str) -> list[int]:
        """Return the ids of a person's tasks in working order."""
        with self.store.read() as tx:
            project, person = projects.by_slug(tx, slug), people.by_login(tx, login)
            assert project is not None
            assert person is not None
            return [task.id for task in tasks.of_person(tx, project, person.id)]


class Client(TestClient):
    """A test client with methods for judging."""

    def state(self, task: int) -> dict[str, Any]:
        response = self.get(f"/api/v1/tasks/{task}")
        assert response.status_code == 200, response.text
        state: dict[str, Any] = response.json()
        return state

    def answer(self, state: dict[str, Any], outcome: int = 1, **fields: Any) -> Any:
        """Answer the open question of a state."""
        return self.post(
            f"/api/v1/tasks/{state['task']}/answers", json=body(state, outcome, **fields)
        )

    def judge(self, task: int, better: Any = None) -> dict[str, Any]:
        """Judge a whole query by `better(left, right)`, by default in the order of the keys."""
        state = self.state(task)
        while state["question"] is not None:
            left, right = state["question"]["left"], state["question"]["right"]
            outcome = _outcome(left["key"], right and right["key"], better)
            reply = self.answer(state, outcome)
            assert reply.status_code == 200, reply.text
            state = reply.json()
        return state


def body(state: dict[str, Any], outcome: int = 1, **fields: Any) -> dict[str, Any]:
    question = state["question"]
    return {
        "seq": state["seq"],
        "key": uuid4().hex,
        "left": question["left"]["key"],
        "right": question["right"] and question["right"]["key"],
        "outcome": outcome,
        **fields,
    }


def query(number: int, documents: int = 6) -> QueryRecord:
    """Return a query with documents d0, d1, .., from best to worst for simulated assessors."""
    return QueryRecord(
        f"q{number}",
        f"query {number}",
        "what is wanted",
        tuple(
            DocumentRecord(f"d{i}", f"Title {i}", body=f"Body {i} of {number}")
            for i in range(documents)
        ),
    )


def jsonl(*rows: Mapping[str, object]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def _outcome(left: str, right: str | None, better: Any) -> int:
    if better is not None:
        return int(better(left, right))
    if right is None:
        return max(0, 4 - int(left.removeprefix("d")))
    return 1 if left < right else -1
