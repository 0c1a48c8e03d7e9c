"""The truth of each query: the result of one assessor, or the consensus of several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from statistics import median_low

from firstpage.labeling.belief.posterior_ranks import consensus
from firstpage.labeling.strategies.strategy import (
    Answer,
    AnsweredQuestion,
    Compare,
    Grade,
    Question,
)
from firstpage.web.analysis.records import TaskJudgments, keys_by_query, task_judgments
from firstpage.web.store import texts
from firstpage.web.store.connect import Tx
from firstpage.web.store.projects import Project


@dataclass(frozen=True)
class QueryTruth:
    """The ordered top k of one query, or its grades.

    With the tool `grades`, `labels` are the grades: the median of several assessors, and the
    lower one of two middle grades. With the other tools they are k for the best document, one
    less for each next, and 0 for the rest and for bad documents. `confidence` is, for each
    rank, the probability that its document belongs there, `set_confidence` that of the top-k
    set, and `membership` that of every document to be in it; None if unknown. `judgments`
    counts answers and `skipped` questions without one; `unjudged` are documents without an
    answer because of skipped questions: they have no rank, and label 0.
    """

    query: str
    text: str
    tool: str
    documents: tuple[str, ...]
    k: int
    order: tuple[str, ...]
    labels: dict[str, int]
    tied: tuple[tuple[str, ...], ...]
    bad: tuple[str, ...]
    confidence: tuple[float, ...] | None
    set_confidence: float | None
    membership: dict[str, float] | None
    assessors: int
    judgments: int
    skipped: int
    unjudged: tuple[str, ...]

    @property
    def shared_labels(self) -> dict[str, int]:
        """The labels, where documents that were judged equal have that of the best of them."""
        shared = (dict.fromkeys(group, max(self.labels[k] for k in group)) for group in self.tied)
        return self.labels | {key: label for group in shared for key, label in group.items()}

    @property
    def splits_ties(self) -> bool:
        """Whether documents that were judged equal have different labels."""
        return any(len({self.labels[key] for key in group}) > 1 for group in self.tied)


@dataclass(frozen=True)
class NotJudged:
    """A query that was finished without an answer: it has no truth."""

    query: str
    text: str
    skipped: int
    reason: str = "not judged: everything was skipped"


def truths(tx: Tx, project: Project, tool: str | None = None) -> list[QueryTruth]:
    """Return the truth of every query that was judged with a tool, by default the first."""
    return judged_queries(tx, project, tool)[0]


def judged_queries(
    tx: Tx, project: Project, tool: str | None = None
) -> tuple[list[QueryTruth], list[NotJudged]]:
    """Return the truths, and the finished queries that have none."""
    tool_name = tool or project.tool
    done: dict[int, list[TaskJudgments]] = {}
    for task in task_judgments(tx, project):
        if task.tool == tool_name and task.result is not None:
            done.setdefault(task.query_id, []).append(task)
    keys = keys_by_query(tx, project)
    truths: list[QueryTruth] = []
    not_judged: list[NotJudged] = []
    for row in texts.of_project(tx, project.id):
        finished = done.get(row["id"], [])
        supported = [task for task in finished if task.supported]
        if supported:
            documents = tuple(keys[row["id"]])
            truths.append(_truth(row["key"], row["text"], tool_name, documents, supported))
        elif finished:
            skipped = sum(task.skipped for task in finished)
            not_judged.append(NotJudged(row["key"], row["text"], skipped))
    return truths, not_judged


def _truth(
    query: str, text: str, tool: str, keys: tuple[str, ...], done: Sequence[TaskJudgments]
) -> QueryTruth:
    k = max(task.k for task in done)
    unjudged = set.intersection(*(task.unjudged(keys) for task in done))
    result = _single(done[0]) if len(done) == 1 else _consensus(keys, done, k)
    order, tied, bad, confidence, set_confidence, membership = _without(unjudged, result)
    if tool == "grades":
        labels = dict.fromkeys(keys, 0) | _grades(done)
        tied = _equal_labels(order, labels)
    else:
        ranks = {key: k - rank for rank, key in enumerate(order[:k]) if key not in bad}
        labels = dict.fromkeys(keys, 0) | ranks
    return QueryTruth(
        query, text, tool, keys, k, order, labels, tied, bad, confidence, set_confidence,
        membership, len(done), sum(task.answers for task in done),
        sum(task.skipped for task in done), tuple(key for key in keys if key in unjudged),
    )  # fmt: skip


def _grades(done: Sequence[TaskJudgments]) -> dict[str, int]:
    """Return the grade of each document: the median of the assessors, the lower one of two."""
    grades: dict[str, list[int]] = {}
    for task in done:
        for judgment, _ in task.judgments:
            if judgment.kind == "judgment" and judgment.right is None and not judgment.skipped:
                grades.setdefault(judgment.left, []).append(judgment.outcome)
    return {key: median_low(of_key) for key, of_key in grades.items()}


def _equal_labels(order: Sequence[str], labels: dict[str, int]) -> tuple[tuple[str, ...], ...]:
    """Return the groups of consecutive documents with the same label."""
    groups = (tuple(group) for _, group in groupby(order, key=labels.__getitem__))
    return tuple(group for group in groups if len(group) > 1)


# Order, tied groups, bad documents, confidence, set confidence, membership.
TopKResult = tuple[
    tuple[str, ...], tuple[tuple[str, ...], ...], tuple[str, ...],
    tuple[float, ...] | None, float | None, dict[str, float] | None,
]  # fmt: skip


def _without(unjudged: set[str], result: TopKResult) -> TopKResult:
    """Return the result without the unjudged documents."""
    if not unjudged:
        return result
    order, tied, bad, confidence, *rest = result
    ranks = [rank for rank, key in enumerate(order) if key not in unjudged]
    groups = (tuple(key for key in group if key not in unjudged) for group in tied)
    return (
        tuple(order[rank] for rank in ranks), tuple(g for g in groups if len(g) > 1), bad,
        None if confidence is None else tuple(confidence[r] for r in ranks if r < len(confidence)),
        *rest,
    )  # type: ignore[return-value]  # fmt: skip


def _single(task: TaskJudgments) -> TopKResult:
    """Return the result of a single assessor."""
    result = task.result
    assert result is not None
    confidence = result["confidence"]
    return (
        tuple(result["order"]), tuple(tuple(group) for group in result["tied"]),
        tuple(result["bad"]), None if confidence is None else tuple(confidence),
        result["set_confidence"], result["membership"],
    )  # fmt: skip


def _consensus(keys: tuple[str, ...], done: Sequence[TaskJudgments], k: int) -> TopKResult:
    """Return the result that fits the answers of all assessors best."""
    index = {key: i for i, key in enumerate(keys)}
    fit = _cached_consensus(len(keys), k, tuple(_answers(task, index) for task in done))
    assert fit.confidence is not None
    assert fit.membership is not None
    return (
        tuple(keys[i] for i in fit.order),
        tuple(tuple(keys[i] for i in group) for group in fit.tied),
        tuple(sorted(keys[i] for i in fit.bad)),
        fit.confidence, fit.set_confidence, dict(zip(keys, fit.membership, strict=True)),
    )  # fmt: skip


# Cached, since a dashboard is reloaded often.
_cached_consensus = lru_cache(maxsize=1000)(consensus)


def _answers(task: TaskJudgments, index: dict[str, int]) -> tuple[AnsweredQuestion, ...]:
    """Return the answers of one task by document index, without gold questions."""
    rows: list[AnsweredQuestion] = []
    for judgment, _ in task.judgments:
        if judgment.kind == "gold":
            continue
        bad = frozenset(index[key] for key in judgment.bad)
        if judgment.right is None:
            question: Question = Grade(index[judgment.left])
            answer = Answer(judgment.outcome, bad, judgment.skipped)
        else:
            question = Compare(index[judgment.left], index[judgment.right])
            sign = (judgment.outcome > 0) - (judgment.outcome < 0)
            answer = Answer(sign, bad, judgment.skipped)
        rows.append((question, answer))
    return tuple(rows)
