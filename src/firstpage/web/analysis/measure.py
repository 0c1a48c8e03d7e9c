"""Which of two lists people found better, and the measure that these judgments teach.

It is kept at hand until there are new judgments.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Generic, TypeVar

from sqlalchemy import RowMapping, and_, func, select

from firstpage.data.preferences.preferences import Preferences
from firstpage.data.preferences.utility import Utility
from firstpage.dcglearn.advice import FEWEST, Advice, DCGComparison, advice, against_dcg
from firstpage.dcglearn.intervals import Intervals, intervals
from firstpage.dcglearn.learn import FALLBACK, DCGLearn
from firstpage.dcglearn.pairs import places_cut, places_unjudged
from firstpage.errors import DataError
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


PLACES = 10  # that count at most
ROUNDS = 100  # of the resampling behind the intervals
SOURCE = "the judgments"
NO_LISTS = "this project compares no lists; take the tool 'lists' for it."
NOBODY = "nobody has compared lists yet."
NO_GRADES = (
    "no item of the lists has a grade; import qrels for them, or give the items a 'grade'."
)  # fmt: skip


class Learner(DCGLearn):
    """Keeps what it has to say for the page: warnings would be printed beside the server."""

    def _say(self, note: str, above: int = 4) -> None:
        self.notes_.append(note)

    @cached_property
    def notes_(self) -> list[str]:
        return []


@dataclass(frozen=True, eq=False)
class Learned:
    """What the judgments teach; `why` says in a line why there is no measure, where there is none.

    `judgments`: all that stand.  Those whose lists differ in no grade teach nothing.
    """

    judgments: int
    why: str | None = None
    learner: Learner | None = None

    @property
    def pairs(self) -> int:
        """Judgments that teach."""
        return 0 if self.learner is None else len(self.learner.pairs_)

    @cached_property
    def utility(self) -> Utility | None:
        """The measure; it says of itself how it compares with DCG."""
        if self.learner is None or self.comparison is None:
            return None
        made = self.learner.utility_
        about = {**made.about, "against_dcg": self.comparison.to_dict()}
        return replace(made, about=about)

    @cached_property
    def comparison(self) -> DCGComparison | None:
        """How it and DCG agree with judgments that neither learned from."""
        return None if self.learner is None else against_dcg(self.learner)

    @cached_property
    def advice(self) -> Advice | None:
        """Whether more judgments would pay."""
        return None if self.learner is None else advice(self.learner, repeats=1)

    @cached_property
    def intervals(self) -> Intervals | None:
        """How sure gains and discounts are; None where all judgments are of one query."""
        if self.learner is None or len(set(self.learner.groups_.tolist())) < 2:
            return None
        return intervals(self.learner, ROUNDS)

    def known(self) -> Utility:
        """The measure, or the reason why there is none."""
        if self.utility is None:
            raise DataError(f"there is no measure yet: {self.why}")
        return self.utility


_LEARNED: Kept[Learned] = Kept()


def learned(tx: Tx, project: Project) -> Learned:
    """Learned anew only if judgments, texts or grades have come since."""
    if "lists" not in project.tools:
        return Learned(0, NO_LISTS)
    mark = log_mark(tx, project), texts_mark(tx, project)
    return _LEARNED.get(
        tx, project, mark, lambda: learn(list(compared(tx, project)), lists_of(tx, project))
    )


def learn(found: list[Compared], lists: Lists) -> Learned:
    """Learn from judgments, with the grades that any list of the project has.

    Discounts must not grow with the place: without that, few judgments can make a place come out
    as worth a thousand times the first one.
    """
    if not found:
        return Learned(0, NOBODY)
    every = [grades for mine in lists.values() for grades in mine.values()]
    if all(grade is None for grades in every for grade in grades):
        return Learned(len(found), NO_GRADES)
    try:
        grades = Preferences.from_grades(every, every, source=SOURCE).grades
        given = preferences(found, grades)
        places = min(PLACES, given.n_positions)
        enough = len(found) >= FEWEST
        learner = Learner(places, C="cv" if enough else FALLBACK, threads=1, decreasing=True)
        learner.fit(given)
        learner.notes_.extend(places_cut(given, places))
        learner.notes_.extend(places_unjudged(given, places, learner.unjudged))
    except DataError as error:
        return Learned(len(found), str(error))
    return Learned(len(found), None, learner)


def preferences(found: list[Compared], grades: tuple[int, ...] | None = None) -> Preferences:
    """Judgments as the learner takes them: each counts one, those of a query stay together."""
    return Preferences.from_grades(
        [c.left for c in found], [c.right for c in found], [c.outcome for c in found],
        query=[c.query for c in found], grades=grades, source=SOURCE,
    )  # fmt: skip
