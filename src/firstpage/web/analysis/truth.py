"""One truth a query: the result of one assessor, or what fits the answers of several best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from firstpage.labeling.belief.posterior_ranks import consensus
from firstpage.labeling.strategies.strategy import (
    Answer,
    AnsweredQuestion,
    Compare,
    Grade,
    Question,
)
from firstpage.web.analysis.records import Sitting, keys_by_query, sittings
from firstpage.web.store import texts
from firstpage.web.store.connect import Tx
from firstpage.web.store.projects import Project


@dataclass(frozen=True)
class Truth:
    """The ordered top k of one query.

    `labels`: k for the best, one less for each next, 0 for the rest.  `confidence`: for each
    place, the chance that its document belongs there; `set_confidence`: that these are the top k;
    `membership`: of every document, to be among them.  None where nobody can say.  `judgments`
    counts answers and `skipped` questions without one; `unjudged` are documents that skipping has
    left without any answer: they have no place in the order, and label 0.
    """

    query: str
    text: str
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


@dataclass(frozen=True)
class NotJudged:
    """A query that somebody finished without a single answer: it has no truth."""

    query: str
    text: str
    skipped: int
    why: str = "not judged: everything was skipped"


def truths(tx: Tx, project: Project) -> list[Truth]:
    """Return every query that somebody judged under the project's own tool."""
    return judged_queries(tx, project)[0]


def judged_queries(
    tx: Tx, project: Project, tool: str | None = None
) -> tuple[list[Truth], list[NotJudged]]:
    """Return the truths, and the queries that are finished and have none."""
    wanted = tool or project.tool
    done: dict[int, list[Sitting]] = {}
    for sitting in sittings(tx, project):
        if sitting.tool == wanted and sitting.result is not None:
            done.setdefault(sitting.query_id, []).append(sitting)
    keys = keys_by_query(tx, project)
    found: list[Truth] = []
    without: list[NotJudged] = []
    for row in texts.of_project(tx, project.id):
        mine = done.get(row["id"], [])
        supported = [sitting for sitting in mine if sitting.supported]
        if supported:
            found.append(_truth(row["key"], row["text"], tuple(keys[row["id"]]), supported))
        elif mine:
            skipped = sum(sitting.skipped for sitting in mine)
            without.append(NotJudged(row["key"], row["text"], skipped))
    return found, without


def _truth(query: str, text: str, keys: tuple[str, ...], done: Sequence[Sitting]) -> Truth:
    k = max(sitting.k for sitting in done)
    unjudged = set.intersection(*(sitting.unjudged(keys) for sitting in done))
    found = _single(done[0]) if len(done) == 1 else _consensus(keys, done, k)
    order, tied, bad, confidence, set_confidence, membership = _without(unjudged, found)
    labels = dict.fromkeys(keys, 0) | {key: k - place for place, key in enumerate(order[:k])}
    return Truth(
        query, text, keys, k, order, labels, tied, bad, confidence, set_confidence, membership,
        len(done), sum(sitting.answers for sitting in done),
        sum(sitting.skipped for sitting in done), tuple(key for key in keys if key in unjudged),
    )  # fmt: skip


Found = tuple[
    tuple[str, ...], tuple[tuple[str, ...], ...], tuple[str, ...],
    tuple[float, ...] | None, float | None, dict[str, float] | None,
]  # fmt: skip


def _without(unjudged: set[str], found: Found) -> Found:
    """Return the same order without documents that no answer supports."""
    if not unjudged:
        return found
    order, tied, bad, confidence, *rest = found
    places = [place for place, key in enumerate(order) if key not in unjudged]
    groups = (tuple(key for key in group if key not in unjudged) for group in tied)
    return (
        tuple(order[place] for place in places), tuple(g for g in groups if len(g) > 1), bad,
        None if confidence is None else tuple(confidence[p] for p in places if p < len(confidence)),
        *rest,
    )  # type: ignore[return-value]  # fmt: skip


def _single(sitting: Sitting) -> Found:
    result = sitting.result
    assert result is not None
    confidence = result["confidence"]
    return (
        tuple(result["order"]), tuple(tuple(group) for group in result["tied"]),
        tuple(result["bad"]), None if confidence is None else tuple(confidence),
        result["set_confidence"], result["membership"],
    )  # fmt: skip


def _consensus(keys: tuple[str, ...], done: Sequence[Sitting], k: int) -> Found:
    """What fits the answers of all."""
    number = {key: i for i, key in enumerate(keys)}
    found = _fitted(len(keys), k, tuple(_opinion(sitting, number) for sitting in done))
    assert found.confidence is not None
    assert found.membership is not None
    return (
        tuple(keys[i] for i in found.order),
        tuple(tuple(keys[i] for i in group) for group in found.tied),
        tuple(sorted(keys[i] for i in found.bad)),
        found.confidence, found.set_confidence, dict(zip(keys, found.membership, strict=True)),
    )  # fmt: skip


# Kept, since a dashboard asks again and again.
_fitted = lru_cache(maxsize=1000)(consensus)


def _opinion(sitting: Sitting, number: dict[str, int]) -> tuple[AnsweredQuestion, ...]:
    """One person's answers by the numbers of documents; gold questions are no opinion."""
    rows: list[AnsweredQuestion] = []
    for judged, _ in sitting.judgments:
        if judged.kind == "gold":
            continue
        bad = frozenset(number[key] for key in judged.bad)
        if judged.right is None:
            asked: Question = Grade(number[judged.left])
            answer = Answer(judged.outcome, bad, judged.skipped)
        else:
            asked = Compare(number[judged.left], number[judged.right])
            sign = (judged.outcome > 0) - (judged.outcome < 0)
            answer = Answer(sign, bad, judged.skipped)
        rows.append((asked, answer))
    return tuple(rows)
