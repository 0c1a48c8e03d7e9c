"""One truth a query: the result of one assessor, or what fits the answers of several best."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import numpy as np

from firstpage.labeling.standing import Standing, standing
from firstpage.labeling.utilities import fit, prior
from firstpage.web.findings.records import Sitting, keys_by_query, sittings
from firstpage.web.store import texts
from firstpage.web.store.connect import Tx
from firstpage.web.store.projects import Project


@dataclass(frozen=True)
class Truth:
    """The ordered top k of one query.

    `labels`: k for the best, one less for each next, 0 for the rest.  `confidence`: for each
    place, the chance that its document belongs there; `set_confidence`: that these are the top k;
    `membership`: of every document, to be among them.  None where nobody can say.
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


def truths(tx: Tx, project: Project, tool: str | None = None) -> list[Truth]:
    """Every query that somebody finished under the tool, the project's own if none is named."""
    wanted = tool or project.tool
    done: dict[int, list[Sitting]] = {}
    for sitting in sittings(tx, project):
        if sitting.tool == wanted and sitting.result is not None:
            done.setdefault(sitting.query_id, []).append(sitting)
    keys = keys_by_query(tx, project)
    return [
        _truth(row["key"], row["text"], tuple(keys[row["id"]]), done[row["id"]])
        for row in texts.of_project(tx, project.id)
        if row["id"] in done
    ]


def _truth(query: str, text: str, keys: tuple[str, ...], done: Sequence[Sitting]) -> Truth:
    k = max(sitting.k for sitting in done)
    judgments = sum(len(sitting.judgments) for sitting in done)
    found = _single(done[0]) if len(done) == 1 else _consensus(keys, done, k)
    order, tied, bad, confidence, set_confidence, membership = found
    labels = dict.fromkeys(keys, 0) | {key: k - place for place, key in enumerate(order[:k])}
    return Truth(
        query, text, keys, k, order, labels, tied, bad, confidence, set_confidence, membership,
        len(done), judgments,
    )  # fmt: skip


Found = tuple[
    tuple[str, ...], tuple[tuple[str, ...], ...], tuple[str, ...],
    tuple[float, ...] | None, float | None, dict[str, float] | None,
]  # fmt: skip


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
    """Utilities fitted to the answers of all; documents that most call bad come last."""
    number = {key: i for i, key in enumerate(keys)}
    called = Counter(key for s in done for key in (s.result or {})["bad"])
    bad = tuple(key for key in keys if 2 * called[key] > len(done))
    good = tuple(i for i, key in enumerate(keys) if key not in bad)
    found, mean = _fitted(len(keys), k, good, tuple(_answers(done, number)))
    last = sorted((number[key] for key in bad), key=lambda i: -mean[i])
    order = [*found.order.tolist(), *last][: min(k, len(keys))]
    sure = (*found.confidence.tolist(), *([1.0] * len(last)))[: len(order)]
    return (
        tuple(keys[i] for i in order), (), bad, tuple(float(x) for x in sure),
        float(found.set_confidence), {key: float(found.membership[i]) for key, i in number.items()},
    )  # fmt: skip


Answer = tuple[int, int, int, float]  # first, second, outcome, weight


@lru_cache(maxsize=1000)
def _fitted(
    n: int, k: int, good: tuple[int, ...], answers: tuple[Answer, ...]
) -> tuple[Standing, tuple[float, ...]]:
    """Where the fit leaves the documents; kept, since a dashboard asks again and again."""
    firsts, seconds, outcomes, weights = zip(*answers, strict=True) if answers else ((),) * 4
    belief = fit(prior(n), (firsts, seconds, outcomes), weights)
    return standing(belief, k, np.array(good, np.int64)), tuple(belief.mean.tolist())


def _answers(done: Sequence[Sitting], number: dict[str, int]) -> list[Answer]:
    """Every comparison; n grades are n(n-1)/2 comparisons that count n together."""
    rows: list[Answer] = []
    for sitting in done:
        counted = [j for j, _ in sitting.judgments if j.kind != "gold" and not j.skipped]
        for judged in counted:
            if judged.right is not None:
                sign = (judged.outcome > 0) - (judged.outcome < 0)
                rows.append((number[judged.left], number[judged.right], sign, 1.0))
        graded = [(number[j.left], j.outcome) for j in counted if j.right is None]
        for (one, high), (other, low) in combinations(graded, 2):
            rows.append((one, other, (high > low) - (high < low), 2 / len(graded)))
    return rows
