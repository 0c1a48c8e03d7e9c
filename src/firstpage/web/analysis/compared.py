"""Which of two lists people found better: the judgments that stand, with the items' grades."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from sqlalchemy import RowMapping, and_, func, select

from firstpage.web.analysis.records import standing
from firstpage.web.store import texts
from firstpage.web.store.connect import Tx
from firstpage.web.store.projects import Project
from firstpage.web.store.tables import audit, documents, events, people, queries, tasks

MOST = 32  # projects at hand
Made = TypeVar("Made")


class Kept(Generic[Made]):
    """One thing a project.  `mark` tells the state of the database that it was made from.

    Who comes while it is being made waits, instead of making it a second time.  Every server has
    its own, and the mark decides for each of them.
    """

    def __init__(self) -> None:
        self._made: OrderedDict[tuple[str, int], tuple[Hashable, Made]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, tx: Tx, project: Project, mark: Hashable, make: Callable[[], Made]) -> Made:
        """As it was made from this state, or made now."""
        key = str(tx.connection.engine.url), project.id
        with self._lock:
            old = self._made.get(key)
            if old is None or old[0] != mark:
                old = mark, make()
                self._made[key] = old
            self._made.move_to_end(key)
            while len(self._made) > MOST:
                self._made.popitem(last=False)
            return old[1]


Grades = tuple[int | None, ...]  # of a list, from the first place on; None: not judged
Lists = Mapping[int, Mapping[str, Grades]]  # by query and document


@dataclass(frozen=True)
class Compared:
    """One judgment; outcome 2, 1: the left list is better, 0, -1, -2."""

    query: str
    left: Grades
    right: Grades
    outcome: int
    assessor: str


def compared(tx: Tx, project: Project) -> Iterator[Compared]:
    """All that stand, of all assessors, by task.

    Skipped ones say nothing.  Hidden repeats ask a person twice and would count an opinion twice;
    known answers are no opinion.
    """
    every = lists_of(tx, project)
    for (query, key, login), log in _logs(tx, project).items():
        lists = every.get(query, {})
        for judged, _ in standing(log):
            if judged.skipped or judged.kind != "judgment" or judged.right is None:
                continue
            sides = lists.get(judged.left, ()), lists.get(judged.right, ())
            yield Compared(key, *sides, judged.outcome, login)


def skipped_lists(tx: Tx, project: Project) -> int:
    """Return how many judgments of lists were skipped, and so say nothing."""
    logs = _logs(tx, project).values()
    return sum(judged.skipped for log in logs for judged, _ in standing(log))


def _logs(tx: Tx, project: Project) -> dict[tuple[int, str, str], list[RowMapping]]:
    """The events of each task with lists: the least of them that says what stands."""
    found: dict[tuple[int, str, str], list[RowMapping]] = {}
    for row in tx.all(
        select(events.c.event, tasks.c.query, queries.c.key, people.c.login)
        .join(tasks, tasks.c.id == events.c.task)
        .join(queries, queries.c.id == tasks.c.query)
        .join(people, people.c.id == tasks.c.person)
        .where(tasks.c.project == project.id, tasks.c.tool == "lists")
        .order_by(events.c.task, events.c.seq)
    ):
        found.setdefault((row["query"], row["key"], row["login"]), []).append(row)
    return found


_LISTS: Kept[Lists] = Kept()


def lists_of(tx: Tx, project: Project) -> Lists:
    """The grades of every list of the project's own queries; read again when texts have come."""
    return _LISTS.get(tx, project, texts_mark(tx, project), lambda: _read(tx, project))


def _read(tx: Tx, project: Project) -> Lists:
    found: dict[int, dict[str, Grades]] = {}
    mine = queries.c.project == project.id, queries.c.purpose == "work"
    for row in tx.all(
        select(documents.c.query, documents.c.key, documents.c.fields)
        .join(queries, queries.c.id == documents.c.query)
        .where(*mine, documents.c.kind == "list")
        .order_by(documents.c.query, documents.c.position)
    ):
        found.setdefault(row["query"], {})[row["key"]] = texts.grades_of(row["fields"])
    return found


def texts_mark(tx: Tx, project: Project) -> Hashable:
    """Changes whenever lists or their grades come: each import leaves a row in the audit."""
    last = select(func.max(audit.c.id)).where(audit.c.project == project.id)
    count = (
        select(func.count(documents.c.id))
        .join(queries, queries.c.id == documents.c.query)
        .where(queries.c.project == project.id)
    )
    return tx.value(last), tx.value(count)


def log_mark(tx: Tx, project: Project) -> Hashable:
    """Changes with every event.  Numbers alone might come out of turn, so they are counted too."""
    mine = and_(tasks.c.project == project.id, tasks.c.tool == "lists")
    row = tx.first(
        select(func.max(events.c.id).label("last"), func.count().label("n"))
        .select_from(events.join(tasks, tasks.c.id == events.c.task))
        .where(mine)
    )
    return None if row is None else (row["last"], row["n"])
