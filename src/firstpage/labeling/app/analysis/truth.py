"""The truth of each query: the result of one assessor, or the consensus of several.

Verdicts of leads count as the project weighs them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby

from firstpage.labeling.app.analysis.records import (
    NamedTopK,
    TaskJudgments,
    answered_questions,
    keys_by_query,
    task_judgments,
)
from firstpage.labeling.app.store import Project, Tx, adjudication, texts
from firstpage.labeling.belief.posterior_ranks import WeightedAnswer, consensus, weighted_median
from firstpage.labeling.session.events import LeadVerdict
from firstpage.labeling.strategies.strategy import Answer, AnsweredQuestion, Compare, Grade


@dataclass(frozen=True)
class QueryTruth:
    """The ordered top k of one query, or its grades.

    With the tool `grades`, `labels` are the grades: the median of several assessors, and the
    lower one of two middle grades. With the other tools they are k for the best document, one
    less for each next, and 0 for the rest and for bad documents; documents that were judged equal
    (`tied`) have the label of the best of them. Those of a tie across rank k that are not known to
    be better than any document are `undecided`, with label 0. `confidence` is, for each
    rank, the probability that its document belongs there, `set_confidence` that of the top-k
    set, and `membership` that of every document to be in it; None if unknown. `judgments`
    counts answers and `skipped` questions without one; `unjudged` are documents without an
    answer because of skipped questions: they have no rank, and label 0.  `verdicts` counts those
    that have a weight.  A query that nobody has `finished` has a truth if that is asked for.
    """

    query: str
    text: str
    tool: str
    documents: tuple[str, ...]
    k: int
    order: tuple[str, ...]
    labels: dict[str, int]
    tied: tuple[tuple[str, ...], ...]
    undecided: tuple[str, ...]
    bad: tuple[str, ...]
    confidence: tuple[float, ...] | None
    set_confidence: float | None
    membership: dict[str, float] | None
    assessors: int
    judgments: int
    skipped: int
    unjudged: tuple[str, ...]
    verdicts: int = 0
    finished: bool = True

    @property
    def equal_outside(self) -> tuple[str, ...]:
        """The documents outside of the top k that are equal to one inside, and have its label."""
        outside = (key for group in self.tied for key in group if key not in self.order)
        return tuple(key for key in outside if self.labels[key])


@dataclass(frozen=True)
class NotJudged:
    """A query that was finished without an answer: it has no truth."""

    query: str
    text: str
    skipped: int
    reason: str = "not judged: everything was skipped"


@dataclass(frozen=True)
class WeightedVerdict:
    """A verdict, and how many answers it counts as."""

    verdict: LeadVerdict
    weight: float

    def answer(self, index: Mapping[str, int]) -> WeightedAnswer:
        """Return the verdict by document index."""
        verdict = self.verdict
        bad = frozenset(index[key] for key in verdict.bad)
        if verdict.right is None:
            return Grade(index[verdict.left]), Answer(verdict.outcome, bad), self.weight
        sign = (verdict.outcome > 0) - (verdict.outcome < 0)
        question = Compare(index[verdict.left], index[verdict.right])
        return question, Answer(sign, bad), self.weight


def truths(
    tx: Tx, project: Project, tool: str | None = None, partial: bool = False
) -> list[QueryTruth]:
    """Return the truth of every query that was judged with a tool, by default the first."""
    return judged_queries(tx, project, tool, partial)[0]


def judged_queries(
    tx: Tx, project: Project, tool: str | None = None, partial: bool = False
) -> tuple[list[QueryTruth], list[NotJudged]]:
    """Return the truths, and the finished queries that have none.

    With `partial`, queries that nobody has finished have the truth of the answers so far.
    """
    tool_name = tool or project.tool
    done: dict[int, list[TaskJudgments]] = {}
    started: dict[int, list[TaskJudgments]] = {}
    for task in task_judgments(tx, project):
        if task.tool == tool_name:
            group = started if task.result is None else done
            group.setdefault(task.query_id, []).append(task)
    if partial:
        for query, tasks in started.items():
            answered = [task for task in tasks if task.answers]
            if query not in done and answered:
                done[query] = answered
    verdicts = weighted_verdicts(tx, project, tool_name)
    keys = keys_by_query(tx, project)
    truths: list[QueryTruth] = []
    not_judged: list[NotJudged] = []
    for row in texts.of_project(tx, project.id):
        finished = done.get(row["id"], [])
        supported = [task for task in finished if task.supported]
        if supported:
            documents = tuple(keys[row["id"]])
            given = verdicts.get(row["id"], ())
            truths.append(_truth(row["key"], row["text"], tool_name, documents, supported, given))
        elif finished:
            skipped = sum(task.skipped for task in finished)
            not_judged.append(NotJudged(row["key"], row["text"], skipped))
    return truths, not_judged


def weighted_verdicts(
    tx: Tx, project: Project, tool: str
) -> dict[int, tuple[WeightedVerdict, ...]]:
    """Return the verdicts by query, each with the project's weight; none if that is 0.

    A verdict on a document that was archived later, which older versions allowed, does not count.
    """
    weight = project.options.verdict_weight
    effective = adjudication.effective(tx, project, tool) if weight else {}
    if not effective:
        return {}
    keys = keys_by_query(tx, project)
    return {
        query: tuple(
            WeightedVerdict(verdict, float(weight))
            for verdict in verdicts
            if verdict.documents <= set(keys.get(query, ()))
        )
        for query, verdicts in effective.items()
    }


def _truth(
    query: str,
    text: str,
    tool: str,
    keys: tuple[str, ...],
    done: Sequence[TaskJudgments],
    verdicts: Sequence[WeightedVerdict],
) -> QueryTruth:
    k = max(task.k for task in done)
    decided = {key for given in verdicts for key in given.verdict.documents}
    finished = all(task.result is not None for task in done)
    unjudged = set.intersection(*(task.unjudged(keys, finished) for task in done)) - decided
    is_result = len(done) == 1 and not verdicts and done[0].result is not None
    ranked = None if finished else tuple(key for key in keys if key not in unjudged)
    result = done[0].top_k(keys) if is_result else _consensus(keys, done, k, verdicts, ranked)
    result = result.without(unjudged)
    labels = result.labels(keys, k)
    if tool == "grades":
        labels = dict.fromkeys(keys, 0) | _grades(done, verdicts)
        result = replace(result, tied=_equal_labels(result.order, labels), undecided=())
    return QueryTruth(
        query,
        text,
        tool,
        keys,
        k,
        labels=labels,
        **vars(result),
        assessors=len(done),
        judgments=sum(task.answers for task in done),
        skipped=sum(task.skipped for task in done),
        unjudged=tuple(key for key in keys if key in unjudged),
        verdicts=len(verdicts),
        finished=finished,
    )


def _grades(done: Sequence[TaskJudgments], verdicts: Sequence[WeightedVerdict]) -> dict[str, int]:
    """Return the grade of each document: the median of the assessors, the lower one of two."""
    grades: dict[str, list[tuple[int, float]]] = {}
    for task in done:
        for judgment, _ in task.judgments:
            if judgment.kind == "judgment" and judgment.right is None and not judgment.skipped:
                grades.setdefault(judgment.left, []).append((judgment.outcome, 1.0))
    for given in verdicts:
        if given.verdict.right is None:
            vote = given.verdict.outcome, given.weight
            grades.setdefault(given.verdict.left, []).append(vote)
    return {key: weighted_median(votes) for key, votes in grades.items()}


def _equal_labels(order: Sequence[str], labels: dict[str, int]) -> tuple[tuple[str, ...], ...]:
    """Return the groups of consecutive documents with the same label."""
    groups = (tuple(group) for _, group in groupby(order, key=labels.__getitem__))
    return tuple(group for group in groups if len(group) > 1)


def _consensus(
    keys: tuple[str, ...],
    done: Sequence[TaskJudgments],
    k: int,
    verdicts: Sequence[WeightedVerdict],
    ranked: Sequence[str] | None = None,
) -> NamedTopK:
    """Return the result that fits the answers of all assessors, and the verdicts, best.

    With `ranked` the order has these documents only.
    """
    index = {key: i for i, key in enumerate(keys)}
    top_k = _cached_consensus(
        len(keys),
        k,
        tuple(answers_of(task, index) for task in done),
        tuple(given.answer(index) for given in verdicts),
        None if ranked is None else frozenset(index[key] for key in ranked),
    )
    return NamedTopK.of(top_k, keys)


# Cached, since a dashboard is reloaded often.
_cached_consensus = lru_cache(maxsize=1000)(consensus)


def answers_of(task: TaskJudgments, index: Mapping[str, int]) -> tuple[AnsweredQuestion, ...]:
    """Return the answers of one task by document index, without gold questions."""
    opinions = (judgment for judgment, _ in task.judgments if judgment.kind != "gold")
    return tuple(answered_questions(opinions, index))
