"""Labeling projects of the web application, made and judged as people would."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from sqlalchemy import event

from firstpage.data.preferences.utility import Utility
from firstpage.engine.threads import quiet_blas
from firstpage.labeling.assessors import Assessor, Text, Verdict
from firstpage.labeling.statistics.effort import SECONDS
from firstpage.types import Progress
from firstpage.web.app import LOCAL
from firstpage.web.imports import bundle, texts
from firstpage.web.imports.bundle import File, Sources
from firstpage.web.machines import judge
from firstpage.web.store import people, projects, tasks
from firstpage.web.store.connect import Store, Tx
from firstpage.web.store.people import Person
from firstpage.web.store.projects import Project
from firstpage.web.store.texts import of_project

Worth = Mapping[tuple[str, str], float]  # of (question, document)
SIGMA = 0.5  # of an assessor's error, where a step between grades is 1
BAD = 0.5  # what seems worth less than this is called clearly irrelevant
HASTE = 0.5  # spread of the logarithm of the seconds that an answer takes
# Whom the editors speak for: any right answer will do, and few read beyond the first places.
TASTE = Utility.from_gains([0.0, 0.6, 0.85, 1.0], [1.0, 0.55, 0.3, 0.15, 0.1])
BLUR = 0.1  # of an editor's error; the worth of a page with one perfect first result is 1
ALIKE = 0.03  # pages nearer than this are called equally good


@dataclass
class _Person:
    """Somebody with a clock: answers take about as long as published ones did."""

    seed: int
    tool: str
    rng: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng([self.seed, 0])

    def seconds(self) -> float:
        """Lognormal, with the published mean."""
        normal = float(self.rng.standard_normal())
        return SECONDS[self.tool] * float(np.exp(HASTE * normal - HASTE * HASTE / 2))


@dataclass
class SimulatedAssessor(_Person):
    """Has a noisy copy of the true worth: what seems better to this person always does."""

    worth: Worth
    seems: dict[tuple[str, str], float] = field(default_factory=dict)

    def judge(self, query: str, left: Text, right: Text | None) -> Verdict:
        """Which of the two; documents that seem worth nothing are called bad."""
        assert right is not None
        one, two = (self._of(query, text.key) for text in (left, right))
        bad = tuple(t.key for t, v in ((left, one), (right, two)) if v < BAD)
        outcome = 0 if len(bad) == 2 else 1 if one > two else -1
        return Verdict(outcome, bad, {"seconds": self.seconds()})

    def _of(self, query: str, key: str) -> float:
        if (query, key) not in self.seems:
            mark = crc32(f"{query}\n{key}".encode())  # whatever was asked before
            error = np.random.default_rng([self.seed, 1, mark]).standard_normal()
            self.seems[query, key] = self.worth[query, key] + SIGMA * float(error)
        return self.seems[query, key]


@dataclass
class SimulatedEditor(_Person):
    """Compares two first pages by a taste that nobody else knows, and errs."""

    grades: Mapping[tuple[str, str], Sequence[int]]  # of (question, page), from the top

    def judge(self, query: str, left: Text, right: Text | None) -> Verdict:
        """Which page; 0 where they seem about as good."""
        assert right is not None
        apart = worth_of(self.grades[query, left.key]) - worth_of(self.grades[query, right.key])
        seems = apart + BLUR * float(self.rng.standard_normal())
        outcome = 0 if abs(seems) < ALIKE else 1 if seems > 0 else -1
        return Verdict(outcome, cost={"seconds": self.seconds()})


def worth_of(grades: Sequence[int]) -> float:
    """What a page is worth to the editors."""
    table = TASTE.table()
    return float(sum(table[place, grade] for place, grade in enumerate(grades)))


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
    store: Store,
    project: Project,
    everyone: Mapping[str, Assessor],
    total: int,
    progress: Progress | None,
) -> None:
    """Each answers all that is open for them, at the application's own desk."""
    before = 0
    for login, assessor in everyone.items():
        with store.read() as tx:
            person = people.by_login(tx, login)
            assert person is not None
            mine = len(tasks.of_person(tx, project, person.id))

        def watch(asked: int, expected: int, before: int = before, mine: int = mine) -> None:
            if progress is not None:
                progress(before + mine * asked // expected, total)

        with quiet_blas():
            judge(store, project, person, assessor, watch)
        before += mine


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
