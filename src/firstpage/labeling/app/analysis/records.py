"""The log as records for the statistics: current judgments and final results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, RowMapping, select

from firstpage.labeling.app.store.connect import Tx, from_row
from firstpage.labeling.app.store.projects import Project
from firstpage.labeling.app.store.tables import (
    documents,
    events,
    gold_questions,
    people,
    queries,
    tasks,
)
from firstpage.labeling.session.events import Judgment, from_dict, replay
from firstpage.labeling.statistics.records import Record
from firstpage.labeling.strategies.strategy import Answer, AnsweredQuestion, Compare, Grade, TopK
from firstpage.labeling.strategies.ties import last_outcomes, top_k_of


@dataclass(frozen=True)
class NamedTopK:
    """The ordered top k of a query, documents by key; see `TopK` for its attributes."""

    order: tuple[str, ...]
    tied: tuple[tuple[str, ...], ...]
    undecided: tuple[str, ...]
    bad: tuple[str, ...]
    confidence: tuple[float, ...] | None = None
    set_confidence: float | None = None
    membership: dict[str, float] | None = None

    @classmethod
    def of(cls, top_k: TopK, keys: Sequence[str]) -> NamedTopK:
        """Return a top k with the keys of its documents."""
        return cls(
            tuple(keys[d] for d in top_k.order),
            tuple(tuple(keys[d] for d in group) for group in top_k.tied),
            tuple(sorted(keys[d] for d in top_k.undecided)),
            tuple(sorted(keys[d] for d in top_k.bad)),
            top_k.confidence,
            top_k.set_confidence,
            None if top_k.membership is None else dict(zip(keys, top_k.membership, strict=True)),
        )

    def without(self, unjudged: set[str]) -> NamedTopK:
        """Return the top k without documents that have no answer."""
        ranks = [rank for rank, key in enumerate(self.order) if key not in unjudged]
        known = self.confidence
        confidence = None if known is None else tuple(known[r] for r in ranks if r < len(known))
        return replace(self, order=tuple(self.order[r] for r in ranks), confidence=confidence)

    def labels(self, documents: Iterable[str], k: int) -> dict[str, int]:
        """Return the label per document, as `TopK.labels` does."""
        labels = dict.fromkeys(documents, 0)
        labels |= {key: k - rank for rank, key in enumerate(self.order[:k])}
        for group in self.tied:
            labels |= dict.fromkeys(group, labels[group[0]])
        return labels | dict.fromkeys((*self.undecided, *self.bad), 0)


@dataclass(frozen=True)
class TaskJudgments:
    """A task with its current judgments, in order."""

    task: int
    query: str
    query_id: int
    assessor: str
    tool: str
    k: int
    result: dict[str, Any] | None
    judgments: tuple[tuple[Judgment, RowMapping], ...]
    name: str = ""

    @property
    def answers(self) -> int:
        """The number of answered questions."""
        return len(self.judgments) - self.skipped

    @property
    def skipped(self) -> int:
        """The number of skipped questions."""
        return sum(judgment.skipped for judgment, _ in self.judgments)

    @property
    def supported(self) -> bool:
        """Whether the result is based on an answer, or needed no question."""
        return any_answer(judgment for judgment, _ in self.judgments)

    def top_k(self, documents: Iterable[str]) -> NamedTopK:
        """Return the result of a finished task, with the ties that its answers imply.

        Ties are computed from the answers, as earlier versions stored only some of them.
        """
        result = self.result
        assert result is not None
        keys = list(dict.fromkeys([*documents, *result["order"], *result["bad"]]))
        index = {key: i for i, key in enumerate(keys)}
        own = [judgment for judgment, _ in self.judgments if judgment.kind == "judgment"]
        top_k = top_k_of(
            [index[key] for key in result["order"]],
            len(keys),
            last_outcomes(answered_questions(own, index)),
            frozenset(index[key] for key in result["bad"]),
        )
        confidence = result["confidence"]
        return replace(
            NamedTopK.of(top_k, keys),
            confidence=None if confidence is None else tuple(confidence),
            set_confidence=result["set_confidence"],
            membership=result["membership"],
        )

    def unjudged(self, documents: Iterable[str], finished: bool = True) -> set[str]:
        """Return the documents of the query that have no answer because of skipped questions.

        Of a query that is not finished, those that have no answer yet.
        """
        if not self.skipped and finished:
            return set()
        rows = [j for j, _ in self.judgments if j.kind == "judgment" and not j.skipped]
        return set(documents) - {key for j in rows for key in (j.left, j.right)}


def answered_questions(
    judgments: Iterable[Judgment], index: Mapping[str, int]
) -> Iterator[AnsweredQuestion]:
    """Yield judgments as questions and answers, documents by index."""
    for judgment in judgments:
        bad = frozenset(index[key] for key in judgment.bad)
        if judgment.right is None:
            yield Grade(index[judgment.left]), Answer(judgment.outcome, bad, judgment.skipped)
        else:
            sign = (judgment.outcome > 0) - (judgment.outcome < 0)
            question = Compare(index[judgment.left], index[judgment.right])
            yield question, Answer(sign, bad, judgment.skipped)


def any_answer(judgments: Iterable[Judgment]) -> bool:
    """Return whether a question of the strategy was answered; True if it asked none."""
    questions = [judgment for judgment in judgments if judgment.kind == "judgment"]
    return not questions or not all(judgment.skipped for judgment in questions)


def task_judgments(tx: Tx, project: Project) -> list[TaskJudgments]:
    """Return all tasks with events, or with a result without any."""
    logs = _logs(tx, project)
    rows = tx.all(
        select(
            *(tasks.c.tool, tasks.c.result, tasks.c.setting, tasks.c.id.label("task")),
            *(tasks.c.query.label("query_id"), queries.c.key.label("query")),
            *(people.c.login.label("assessor"), people.c.name),
        )
        .join(queries, queries.c.id == tasks.c.query)
        .join(people, people.c.id == tasks.c.person)
        .where(tasks.c.project == project.id, queries.c.archived.is_(None))
        .order_by(tasks.c.id)
    )
    judged = []
    for row in rows:
        log = logs.get(row["task"], [])
        if log or row["result"] is not None:
            judgments = tuple(current_judgments(log))
            judged.append(from_row(TaskJudgments, row, k=_k(row, log), judgments=judgments))
    return judged


def _logs(
    tx: Tx, project: Project, *conditions: ColumnElement[bool]
) -> dict[int, list[RowMapping]]:
    """Return the events of a project's tasks for which these hold, in order."""
    logs: dict[int, list[RowMapping]] = {}
    for row in tx.all(
        select(events)
        .join(tasks, tasks.c.id == events.c.task)
        .where(tasks.c.project == project.id, *conditions)
        .order_by(events.c.task, events.c.seq)
    ):
        logs.setdefault(row["task"], []).append(row)
    return logs


def _k(row: RowMapping, log: Sequence[RowMapping]) -> int:
    """Return the k of the last switch, or the initial one."""
    switched = [e["event"]["setting"]["k"] for e in log if e["event"]["event"] == "switched"]
    return int(switched[-1] if switched else row["setting"]["k"])


def current_judgments(log: Sequence[RowMapping]) -> list[tuple[Judgment, RowMapping]]:
    """Return judgments that were not undone, with revised answers, each with its row."""
    return replay((from_dict(row["event"]), row) for row in log)


def records(
    tx: Tx, project: Project, judged_tasks: Sequence[TaskJudgments] | None = None
) -> list[Record]:
    """Return a record of every current judgment that was not skipped."""
    expected = _expected(tx, project)
    return [
        _record(task, judgment, row, expected)
        for task in (task_judgments(tx, project) if judged_tasks is None else judged_tasks)
        for judgment, row in task.judgments
        if not judgment.skipped
    ]


def skipped(judged_tasks: Sequence[TaskJudgments]) -> int:
    """Return the number of skipped questions, which are in no record."""
    return sum(task.skipped for task in judged_tasks)


def skipping_tasks(tx: Tx, project: Project) -> dict[int, list[Judgment]]:
    """Return the current judgments of each task in which a question was ever skipped."""
    skipping = select(events.c.task).where(events.c.event["skipped"].as_boolean().is_(True))
    logs = _logs(tx, project, events.c.task.in_(skipping))
    return {
        task: [judgment for judgment, _ in current_judgments(log)] for task, log in logs.items()
    }


def results(
    tx: Tx, project: Project, judged_tasks: Sequence[TaskJudgments] | None = None
) -> dict[tuple[str, str, str], dict[str, float]]:
    """Return the final labels of each finished task: k..1 and 0, or its grades.

    Documents that were judged equal have the same label.  Tasks whose questions were all skipped,
    and documents without an answer, have no labels.
    """
    keys = keys_by_query(tx, project)
    results = {}
    for task in task_judgments(tx, project) if judged_tasks is None else judged_tasks:
        if task.result is None or not task.supported:
            continue
        unjudged = task.unjudged(keys[task.query_id])
        judged_keys = [key for key in keys[task.query_id] if key not in unjudged]
        labels = (
            {
                j.left: float(j.outcome)
                for j, _ in task.judgments
                if j.kind == "judgment" and not j.skipped
            }
            if task.tool == "grades"
            else _float_labels(task, judged_keys, unjudged)
        )
        results[task.query, task.assessor, task.tool] = labels
    return results


def _float_labels(
    task: TaskJudgments, documents: Sequence[str], unjudged: set[str]
) -> dict[str, float]:
    top_k = task.top_k([*documents, *unjudged])  # skipped questions name these, too
    labels = top_k.without(unjudged).labels(documents, task.k)
    return {key: float(labels[key]) for key in documents}


def keys_by_query(tx: Tx, project: Project) -> dict[int, list[str]]:
    """Return the document keys of every query, in order."""
    keys: dict[int, list[str]] = {}
    for row in tx.all(
        select(documents.c.query, documents.c.key)
        .join(queries, queries.c.id == documents.c.query)
        .where(queries.c.project == project.id, documents.c.archived.is_(None))
        .order_by(documents.c.query, documents.c.position)
    ):
        keys.setdefault(row["query"], []).append(row["key"])
    return keys


def _expected(tx: Tx, project: Project) -> dict[tuple[int, str, str | None], int]:
    rows = tx.all(
        select(gold_questions).where(
            gold_questions.c.project == project.id, gold_questions.c.kind == "gold"
        )
    )
    return {(r["query"], r["left"], r["right"]): r["outcome"] for r in rows}


def _record(
    task: TaskJudgments,
    judgment: Judgment,
    row: RowMapping,
    expected: dict[tuple[int, str, str | None], int],
) -> Record:
    pair = judgment.right is not None
    sign = (judgment.outcome > 0) - (judgment.outcome < 0)
    gold_outcome = expected.get((task.query_id, judgment.left, judgment.right))
    if pair and gold_outcome is not None:
        gold_outcome = (gold_outcome > 0) - (gold_outcome < 0)
    return Record(
        query=task.query,
        assessor=task.assessor,
        tool=task.tool,
        left=judgment.left,
        right=judgment.right,
        outcome=sign if pair else None,
        grade=None if pair else judgment.outcome,
        bad=judgment.bad,
        active=active_seconds(row),
        paused=(row["paused_ms"] or 0) / 1000,
        away=(row["away_ms"] or 0) / 1000,
        answered_at=_seconds(row["answered_at"] or row["recorded_at"]),
        kind=judgment.kind,
        expected=gold_outcome if judgment.kind == "gold" else None,
        adjusted=bool(row["event"].get("adjusted_times")),
    )


def active_seconds(row: RowMapping) -> float:
    """Return the active seconds of a judgment, or the time from being shown to the answer."""
    if row["active_ms"] is not None:
        return float(row["active_ms"]) / 1000
    if row["shown_at"] and row["answered_at"]:
        return max(0.0, _seconds(row["answered_at"]) - _seconds(row["shown_at"]))
    return 0.0


def _seconds(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp()
