"""Labelling projects of the web application, made and judged as people would."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from sqlalchemy import event

from firstpage.demo.tell import Tick
from firstpage.engine.threads import quiet_blas
from firstpage.labeling.assessors import Assessor
from firstpage.web.app import LOCAL
from firstpage.web.imports import bundle, texts
from firstpage.web.imports.bundle import File, Sources
from firstpage.web.machines import judge
from firstpage.web.store import people, projects, tasks
from firstpage.web.store.connect import Store, Tx
from firstpage.web.store.people import Person
from firstpage.web.store.projects import Project
from firstpage.web.store.texts import of_project

QUESTIONS, PAGES = "questions", "pages"
SLUGS = (QUESTIONS, PAGES)
TEAM = ("ada", "ben", "cleo")


def opened(path: Path) -> Store:
    """The demo's store.  What programs answer can be made again, so it need not be on disk before
    the next question: people's answers, which a server takes, are."""
    store = Store(path)
    event.listen(store.engine, "connect", _hasten)
    return store.prepare()


def _hasten(raw: Any, record: object) -> None:
    raw.execute("PRAGMA synchronous=NORMAL").close()


def make(
    store: Store, slug: str, title: str, guidelines: str, files: Mapping[str, Path], **how: Any
) -> Project:
    """As `firstpage label setup` does: texts from files, three assessors, and you to lead it."""
    with ExitStack() as opened:
        given: dict[str, Any] = {
            name: File(str(path), opened.enter_context(path.open("rb")))
            for name, path in files.items()
        }
        read = bundle.read(Sources(**given))
    setting = projects.setting_of(how.get("setting") or {})
    with (
        texts.staged(store, read, (how.get("tool", "pairs"),), setting) as ready,
        store.write() as tx,
    ):
        you = people.ensure(tx, LOCAL, "You", admin=True)
        made = projects.create(tx, slug, title, guidelines=guidelines, by=you, **how)
        ready.publish(tx, made, you)
        for login in TEAM:
            person = people.ensure(tx, login, f"{login.title()} (simulated)")
            projects.join(tx, made, person, "assessor", by=you)
        return projects.set_state(tx, made, "open", you)


def deal(store: Store, project: Project, wanted: Mapping[str, Sequence[str]]) -> int:
    """Tasks by query: the logins of those who judge it; how many tasks that makes."""
    count = 0
    with store.write() as tx:
        for row in of_project(tx, project.id):
            for number, login in enumerate(wanted.get(row["key"], ())):
                person = _member(tx, project, login)
                tasks.add(tx, project, row["id"], person.id, project.tool, number, row["position"])
                count += 1
    return count


def _member(tx: Tx, project: Project, login: str) -> Person:
    person = people.ensure(tx, login)
    if not projects.assesses(tx, project.id, person.id):
        projects.join(tx, project, person, "assessor")
    return person


def work(
    store: Store, project: Project, everyone: Mapping[str, Assessor], total: int, tick: Tick | None
) -> None:
    """Each answers all that is open for them, at the application's own desk."""
    seen: set[tuple[str, str]] = set()
    for login, assessor in everyone.items():
        with store.read() as tx:
            person = people.by_login(tx, login)
        assert person is not None

        def watch(query: str, answers: int, login: str = login) -> None:
            seen.add((login, query))
            if tick is not None:
                tick(len(seen) - 1, total)

        with quiet_blas():
            judge(store, project, person, assessor, watch)


def finished(store: Store, project: Project, login: str) -> set[str]:
    """The queries that somebody has judged to the end."""
    with store.read() as tx:
        person = people.by_login(tx, login)
        mine = [] if person is None else tasks.of_person(tx, project, person.id)
    return {task.query_key for task in mine if task.state == "done"}


def team_of(keys: Iterable[str], double: int | None) -> dict[str, list[str]]:
    """One assessor a query in turn; every so many get a second one, to tell agreement by."""
    found = {}
    for number, key in enumerate(keys):
        first = number % len(TEAM)
        second = (first + 1 + number // double % (len(TEAM) - 1)) % len(TEAM) if double else first
        both = double and number % double == 0
        found[key] = [TEAM[first], TEAM[second]] if both else [TEAM[first]]
    return found
