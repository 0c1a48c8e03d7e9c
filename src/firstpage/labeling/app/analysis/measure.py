"""Judgments of pairs of lists, and the measure that is learned from them.

The measure is cached until there are new judgments.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Generic, TypeVar

from sqlalchemy import RowMapping, and_, func, select

from firstpage.core import DataError, plain_text
from firstpage.data.preferences import Preferences, Utility
from firstpage.evaluation.dcglearn import (
    DEFAULT_C,
    MIN_ADAPTIVE_PAIRS,
    DCGComparison,
    DCGLearn,
    Intervals,
    LearningCurve,
    advice,
    compare_with_dcg,
    intervals,
    truncation_notes,
    unjudged_notes,
)
from firstpage.labeling.app.analysis.records import current_judgments
from firstpage.labeling.app.store import Project, Tx, texts
from firstpage.labeling.app.store.tables import audit, documents, events, people, queries, tasks
from firstpage.labeling.session.events import Judgment

MAX_CACHED = 32  # projects
Cached = TypeVar("Cached")


class ProjectCache(Generic[Cached]):
    """A value per project; `version` identifies the state of the database it was computed from.

    Concurrent callers wait for a value instead of computing it twice.  Every server has its own
    cache.
    """

    def __init__(self) -> None:
        self._values: OrderedDict[tuple[str, int], tuple[Hashable, Cached]] = OrderedDict()
        self._lock = threading.Lock()

    def get(
        self, tx: Tx, project: Project, version: Hashable, compute: Callable[[], Cached]
    ) -> Cached:
        """Return the value of this version, computed now if it is not cached."""
        key = str(tx.connection.engine.url), project.id
        with self._lock:
            entry = self._values.get(key)
            if entry is None or entry[0] != version:
                entry = version, compute()
                self._values[key] = entry
            self._values.move_to_end(key)
            while len(self._values) > MAX_CACHED:
                self._values.popitem(last=False)
            return entry[1]


Grades = tuple[int | None, ...]  # of a list, in rank order; None: not judged
Lists = Mapping[int, Mapping[str, Grades]]  # by query and document


@dataclass(frozen=True)
class ListJudgment:
    """A judgment of two lists; outcome 2 or 1: the left list is better, 0: equal, -1 or -2."""

    query: str
    left: Grades
    right: Grades
    outcome: int
    assessor: str


@dataclass(frozen=True)
class DocumentJudgment:
    """A judgment of two lists, with the ids of their documents in rank order."""

    query: str
    left: tuple[str, ...]
    right: tuple[str, ...]
    outcome: int
    assessor: str


def list_judgments(tx: Tx, project: Project) -> Iterator[ListJudgment]:
    """Yield the current judgments of all assessors, by task.

    Skipped questions, hidden repeats, which would count an opinion twice, and gold questions are
    left out.
    """
    all_lists = lists_of(tx, project)
    for query, key, login, judgment in _compared_lists(tx, project):
        lists = all_lists.get(query, {})
        sides = lists.get(judgment.left, ()), lists.get(judgment.right or "", ())
        yield ListJudgment(key, *sides, judgment.outcome, login)


def document_judgments(tx: Tx, project: Project) -> Iterator[DocumentJudgment]:
    """Yield the judgments of `list_judgments` with documents; raise if an item has no id."""
    ids = {
        (row["query"], row["key"]): texts.item_ids_of(row["fields"])
        for row in _list_rows(tx, project)
    }
    for query, key, login, judgment in _compared_lists(tx, project):
        sides = ids[query, judgment.left], ids[query, judgment.right or ""]
        if not all(map(all, sides)):
            raise DataError(
                f"an item of the lists of query {key!r} has neither a grade nor an id; import "
                "qrels that grade the items, or lists whose items have an 'id'."
            )
        yield DocumentJudgment(key, *sides, judgment.outcome, login)


def _compared_lists(tx: Tx, project: Project) -> Iterator[tuple[int, str, str, Judgment]]:
    """Yield the query, its key, the assessor and the judgment of each compared pair."""
    for (query, key, login), log in _logs(tx, project).items():
        for judgment, _ in current_judgments(log):
            if judgment.kind == "judgment" and judgment.right is not None and not judgment.skipped:
                yield query, key, login, judgment


def has_grades(tx: Tx, project: Project) -> bool:
    """Return whether an item of the project's lists has a grade."""
    lists = lists_of(tx, project).values()
    return any(g is not None for of_query in lists for grades in of_query.values() for g in grades)


def skipped_lists(tx: Tx, project: Project) -> int:
    """Return the number of skipped judgments of lists."""
    logs = _logs(tx, project).values()
    return sum(judgment.skipped for log in logs for judgment, _ in current_judgments(log))


def _logs(tx: Tx, project: Project) -> dict[tuple[int, str, str], list[RowMapping]]:
    """Return the events of each task with lists."""
    logs: dict[tuple[int, str, str], list[RowMapping]] = {}
    for row in tx.all(
        select(events.c.event, tasks.c.query, queries.c.key, people.c.login)
        .join(tasks, tasks.c.id == events.c.task)
        .join(queries, queries.c.id == tasks.c.query)
        .join(people, people.c.id == tasks.c.person)
        .where(tasks.c.project == project.id, tasks.c.tool == "lists", queries.c.archived.is_(None))
        .order_by(events.c.task, events.c.seq)
    ):
        logs.setdefault((row["query"], row["key"], row["login"]), []).append(row)
    return logs


_LISTS: ProjectCache[Lists] = ProjectCache()


def lists_of(tx: Tx, project: Project) -> Lists:
    """Return the grades of every list of the project's queries; read again after an import."""
    return _LISTS.get(tx, project, texts_version(tx, project), lambda: _read_lists(tx, project))


def _read_lists(tx: Tx, project: Project) -> Lists:
    lists: dict[int, dict[str, Grades]] = {}
    for row in _list_rows(tx, project):
        lists.setdefault(row["query"], {})[row["key"]] = texts.grades_of(row["fields"])
    return lists


def _list_rows(tx: Tx, project: Project) -> Sequence[RowMapping]:
    """Return query, key and fields of the project's lists."""
    conditions = queries.c.project == project.id, queries.c.purpose == "work"
    return tx.all(
        select(documents.c.query, documents.c.key, documents.c.fields)
        .join(queries, queries.c.id == documents.c.query)
        .where(*conditions, documents.c.kind == "list", documents.c.archived.is_(None))
        .order_by(documents.c.query, documents.c.position)
    )


def texts_version(tx: Tx, project: Project) -> Hashable:
    """Return a value that changes with every import, which adds a row to the audit log."""
    last = select(func.max(audit.c.id)).where(audit.c.project == project.id)
    count = (
        select(func.count(documents.c.id))
        .join(queries, queries.c.id == documents.c.query)
        .where(queries.c.project == project.id)
    )
    return tx.value(last), tx.value(count)


def log_version(tx: Tx, project: Project) -> Hashable:
    """Return a value that changes with every event; ids may be out of order, so it also counts."""
    condition = and_(tasks.c.project == project.id, tasks.c.tool == "lists")
    row = tx.first(
        select(func.max(events.c.id).label("last"), func.count().label("n"))
        .select_from(events.join(tasks, tasks.c.id == events.c.task))
        .where(condition)
    )
    return None if row is None else (row["last"], row["n"])


MAX_RANKS = 10  # of a list that are learned from
ROUNDS = 100  # bootstrap samples of the intervals
SOURCE = "the judgments"
NO_LISTS = "this project does not compare lists; use the tool 'lists' for that."
NO_JUDGMENTS = "nobody has compared lists yet."
NO_GRADES = "no item of the lists has a grade; import qrels for them, or give the items a 'grade'."


class MeasureLearner(DCGLearn):
    """A DCGLearn that collects its notes for the page instead of issuing warnings."""

    def _warn(self, note: str) -> None:
        self.notes_.append(note)

    @cached_property
    def notes_(self) -> list[str]:
        return []


@dataclass(frozen=True, eq=False)
class ProjectMeasure:
    """The measure learned from the judgments; `reason` says why there is none.

    `judgments` counts all current ones, also those whose lists have the same grades.
    """

    judgments: int
    reason: str | None = None
    learner: MeasureLearner | None = None

    @property
    def pairs(self) -> int:
        """The number of informative judgments, whose lists differ in grades."""
        return 0 if self.learner is None else len(self.learner.pairs_)

    @cached_property
    def utility(self) -> Utility | None:
        """The measure, which includes its comparison with DCG."""
        if self.learner is None or self.comparison is None:
            return None
        utility = self.learner.utility_
        about = {**utility.about, "dcg_comparison": self.comparison.to_dict()}
        return replace(utility, about=about)

    @cached_property
    def comparison(self) -> DCGComparison | None:
        """The accuracy of the measure and of DCG on held-out judgments."""
        return None if self.learner is None else compare_with_dcg(self.learner)

    @cached_property
    def advice(self) -> LearningCurve | None:
        """Whether more judgments would improve the measure."""
        return None if self.learner is None else advice(self.learner, repeats=1)

    @cached_property
    def intervals(self) -> Intervals | None:
        """Confidence intervals of gains and discounts; None if all judgments are of one query."""
        if self.learner is None or len(set(self.learner.groups_.tolist())) < 2:
            return None
        return intervals(self.learner, ROUNDS)

    def require_utility(self) -> Utility:
        """Return the measure; raise with the reason if there is none."""
        if self.utility is None:
            raise DataError(f"there is no measure yet: {self.reason}")
        return self.utility


_LEARNED: ProjectCache[ProjectMeasure] = ProjectCache()


def learned_measure(tx: Tx, project: Project) -> ProjectMeasure:
    """Return the measure of a project, learned again only after new judgments or imports."""
    if "lists" not in project.tools:
        return ProjectMeasure(0, NO_LISTS)
    version = log_version(tx, project), texts_version(tx, project)
    return _LEARNED.get(
        tx,
        project,
        version,
        lambda: learn(list(list_judgments(tx, project)), lists_of(tx, project)),
    )


def learn(judgments: list[ListJudgment], lists: Lists) -> ProjectMeasure:
    """Learn a measure from judgments, with the grades of all lists of the project.

    Discounts are constrained not to increase with the rank: otherwise few judgments could give a
    lower rank a thousand times the weight of the first.
    """
    if not judgments:
        return ProjectMeasure(0, NO_JUDGMENTS)
    all_grades = [grades for of_query in lists.values() for grades in of_query.values()]
    if all(grade is None for grades in all_grades for grade in grades):
        return ProjectMeasure(len(judgments), NO_GRADES)
    try:
        grades = Preferences.from_grades(all_grades, all_grades, source=SOURCE).grades
        data = preferences(judgments, grades)
        ranks = min(MAX_RANKS, data.n_positions)
        enough = len(judgments) >= MIN_ADAPTIVE_PAIRS
        learner = MeasureLearner(ranks, C="cv" if enough else DEFAULT_C, threads=1, decreasing=True)
        learner.fit(data)
        learner.notes_.extend(truncation_notes(data, ranks))
        learner.notes_.extend(unjudged_notes(data, ranks, learner.unjudged))
    except DataError as error:
        return ProjectMeasure(len(judgments), plain_text(error))
    return ProjectMeasure(len(judgments), None, learner)


def preferences(
    judgments: list[ListJudgment], grades: tuple[int, ...] | None = None
) -> Preferences:
    """Return judgments as preferences of weight one, grouped by query."""
    return Preferences.from_grades(
        [j.left for j in judgments],
        [j.right for j in judgments],
        [j.outcome for j in judgments],
        query=[j.query for j in judgments],
        grades=grades,
        source=SOURCE,
    )
