"""Labeling projects of the web application, created and judged by simulated people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from sqlalchemy import event

from firstpage.core import Progress
from firstpage.core.engine import single_threaded_blas
from firstpage.data.preferences import Utility
from firstpage.labeling import (
    SECONDS_PER_JUDGMENT,
    Assessor,
    AssessorAnswer,
    DocumentText,
    QueryText,
)
from firstpage.labeling.app import LOCAL, judge
from firstpage.labeling.app.imports import File, Sources, bundle, texts
from firstpage.labeling.app.store import (
    Person,
    Project,
    Store,
    Tx,
    add_task,
    of_project,
    people,
    projects,
    tasks,
)
from firstpage.search import Index

Grades = Mapping[str, Mapping[str, float]]  # by question and document
ASSESSOR_ERROR_SD = 0.5  # of the perceived relevance; the step between grades is 1
BAD_THRESHOLD = 0.5  # documents perceived below it are called clearly irrelevant
TIME_LOG_SD = 0.5  # of the logarithm of the seconds per answer
# The utility of the users for whom editors judge: every correct answer helps, and few users read
# beyond the first ranks.
EDITOR_UTILITY = Utility.from_gains([0.0, 0.6, 0.85, 1.0], [1.0, 0.55, 0.3, 0.15, 0.1])
EDITOR_ERROR_SD = 0.1  # of a difference; a page with one perfect first result has utility 1
TIE_THRESHOLD = 0.03  # smaller perceived differences are called ties


@dataclass
class _TimedAssessor:
    """Base of simulated people: answers take about as long as published ones."""

    seed: int
    tool: str
    rng: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng([self.seed, 0])

    def seconds(self) -> float:
        """Return a lognormal time with the published mean."""
        normal = float(self.rng.standard_normal())
        return SECONDS_PER_JUDGMENT[self.tool] * float(
            np.exp(TIME_LOG_SD * normal - TIME_LOG_SD * TIME_LOG_SD / 2)
        )


@dataclass
class SimulatedAssessor(_TimedAssessor):
    """Perceives the true relevance with a fixed error per document, and so is consistent."""

    answers: Grades
    perceived: dict[tuple[str, str], float] = field(default_factory=dict)

    def judge(self, query: str, left: DocumentText, right: DocumentText | None) -> AssessorAnswer:
        """Return which document is better; documents of little relevance are called bad."""
        assert right is not None
        left_value, right_value = (self._perceive(query, text.key) for text in (left, right))
        bad = tuple(
            t.key for t, v in ((left, left_value), (right, right_value)) if v < BAD_THRESHOLD
        )
        outcome = 0 if len(bad) == 2 else 1 if left_value > right_value else -1
        return AssessorAnswer(outcome, bad, {"seconds": self.seconds()})

    def _perceive(self, query: str, key: str) -> float:
        if (query, key) not in self.perceived:
            stream = crc32(f"{query}\n{key}".encode())  # independent of earlier questions
            error = np.random.default_rng([self.seed, 1, stream]).standard_normal()
            relevance = self.answers.get(query_key(query), {}).get(key, 0.0)
            self.perceived[query, key] = relevance + ASSESSOR_ERROR_SD * float(error)
        return self.perceived[query, key]


@dataclass
class SimulatedEditor(_TimedAssessor):
    """Compares two first pages by `EDITOR_UTILITY`, with an error per answer."""

    answers: Grades

    def judge(self, query: str, left: DocumentText, right: DocumentText | None) -> AssessorAnswer:
        """Return which page is better; 0 if the perceived difference is small."""
        assert right is not None
        difference = self._utility(query, left) - self._utility(query, right)
        perceived = difference + EDITOR_ERROR_SD * float(self.rng.standard_normal())
        outcome = 0 if abs(perceived) < TIE_THRESHOLD else 1 if perceived > 0 else -1
        return AssessorAnswer(outcome, cost={"seconds": self.seconds()})

    def _utility(self, query: str, page: DocumentText) -> float:
        grades = self.answers.get(query_key(query), {})
        return page_utility([int(grades.get(str(item["id"]), 0)) for item in page.items])


def query_key(query: str) -> str:
    """Return the id of a query that a project asks about."""
    assert isinstance(query, QueryText)
    return query.key


def page_utility(grades: Sequence[int]) -> float:
    """Return the editors' utility of a page."""
    table = EDITOR_UTILITY.table()
    return float(sum(table[rank, grade] for rank, grade in enumerate(grades)))


QUESTIONS, PAGES = "questions", "pages"
SLUGS = (QUESTIONS, PAGES)
TEAM = ("ada", "ben", "cleo")


def open_store(path: Path) -> Store:
    """Return the demo's store, which syncs to disk less often.

    Simulated answers can be computed again, so they need not be on disk before the next question;
    the answers of people, which a server accepts, are.
    """
    store = Store(path)
    event.listen(store.engine, "connect", _reduce_syncs)
    return store.prepare()


def _reduce_syncs(connection: Any, record: object) -> None:
    connection.execute("PRAGMA synchronous=NORMAL").close()


def create_project(
    store: Store,
    slug: str,
    title: str,
    guidelines: str,
    index: Index,
    queries: Path,
    *,
    runs: Sequence[Path] = (),
    qrels: Path | None = None,
    depth: int,
    tool: str = "pairs",
    setting: Mapping[str, Any],
) -> Project:
    """Create a project as `label setup` does, with three assessors and the reader as lead.

    With the tool `lists` the first pages of the runs are compared; otherwise the candidates of the
    index are judged.
    """
    with ExitStack() as stack:

        def opened(path: Path) -> File:
            return File(str(path), stack.enter_context(path.open("rb")))

        sources = Sources(
            queries=opened(queries),
            runs=tuple(map(opened, runs)),
            index=index,
            qrels=None if qrels is None else opened(qrels),
            depth=depth,
            pages=tool == "lists",
        )
        contents = bundle.read(sources)
    source = {"index": {"path": str(index.path.resolve()), "fingerprint": index.fingerprint}}
    checked = projects.setting_of(setting)
    with texts.staged(store, contents, (tool,), checked) as staged, store.write() as tx:
        you = people.ensure(tx, LOCAL, "You", admin=True)
        project = projects.create(
            tx,
            slug,
            title,
            guidelines=guidelines,
            tool=tool,
            setting=setting,
            source=source,
            by=you,
        )
        staged.publish(tx, project, you)
        for login in TEAM:
            person = people.ensure(tx, login, f"{login.title()} (simulated)")
            projects.join(tx, project, person, "assessor", by=you)
        return projects.set_state(tx, project, "open", you)


def query_keys(store: Store, project: Project) -> list[str]:
    """Return the ids of a project's queries."""
    with store.read() as tx:
        return [row["key"] for row in of_project(tx, project.id)]


def add_tasks(store: Store, project: Project, assessors: Mapping[str, Sequence[str]]) -> int:
    """Add a task per query and login; return the number of tasks."""
    count = 0
    with store.write() as tx:
        for row in of_project(tx, project.id):
            for number, login in enumerate(assessors.get(row["key"], ())):
                person = _member(tx, project, login)
                add_task(tx, project, row["id"], person.id, project.tool, number, row["position"])
                count += 1
    return count


def _member(tx: Tx, project: Project, login: str) -> Person:
    """Return the person with this login, who joins the project if necessary."""
    person = people.ensure(tx, login)
    if not projects.is_assessor(tx, project.id, person.id):
        projects.join(tx, project, person, "assessor")
    return person


def run_assessors(
    store: Store,
    project: Project,
    team: Mapping[str, Assessor],
    total: int,
    progress: Progress | None,
) -> None:
    """Let each simulated assessor complete their open tasks through the judging service."""
    finished = 0
    for login, assessor in team.items():
        with store.read() as tx:
            person = people.by_login(tx, login)
            assert person is not None
            own = len(tasks.of_person(tx, project, person.id))

        def report(answered: int, expected: int, before: int = finished, own: int = own) -> None:
            if progress is not None:
                progress(before + own * answered // expected, total)

        with single_threaded_blas():
            judge(store, project, person, assessor, report)
        finished += own


def finished_queries(store: Store, project: Project, login: str) -> set[str]:
    """Return the queries that a person has completed."""
    with store.read() as tx:
        person = people.by_login(tx, login)
        own = [] if person is None else tasks.of_person(tx, project, person.id)
    return {task.query_key for task in own if task.state == "done"}


def assign_team(queries: Iterable[str], double_every: int | None) -> dict[str, list[str]]:
    """Return the assessor per query in rotation; every n-th query gets a second one.

    The queries with two assessors show how far assessors agree.
    """
    assessors = {}
    for number, key in enumerate(queries):
        first = number % len(TEAM)
        second = first
        if double_every:
            second = (first + 1 + number // double_every % (len(TEAM) - 1)) % len(TEAM)
        double = double_every and number % double_every == 0
        assessors[key] = [TEAM[first], TEAM[second]] if double else [TEAM[first]]
    return assessors
