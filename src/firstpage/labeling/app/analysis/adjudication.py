"""The queue of disputes: pairs and documents, by what settling them would change in the truth."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from itertools import combinations
from math import sqrt
from typing import Any

import numpy as np
import scipy  # its modules are loaded when they are first used
from sqlalchemy import RowMapping

from firstpage.labeling.app.analysis.evidence import QueryEvidence, evidence
from firstpage.labeling.app.analysis.figures import nan_to_none
from firstpage.labeling.app.analysis.records import TaskJudgments, active_seconds, results
from firstpage.labeling.app.store import Project, Tx, adjudication, texts
from firstpage.labeling.app.store.options import Options
from firstpage.labeling.app.store.scales import shown_scale
from firstpage.labeling.session.events import Judgment
from firstpage.labeling.statistics.adjudication import bad_value, grade_value, pair_values

MAX_DISPUTES = 100  # of a project on the page and in JSON
MAX_PAIRS = 2000  # of a query that are evaluated, the most uncertain ones
MIN_VALUE = 1e-4
IMPROBABLE = 0.5  # an answer below this probability contradicts the others
Dispute = dict[str, Any]
Labels = dict[tuple[str, str, str], dict[str, float]]  # by query, assessor and tool


def queue(
    tx: Tx, project: Project, query: str | None = None, limit: int = MAX_DISPUTES
) -> dict[str, Any]:
    """Return the disputes of a project, the most valuable first, and the verdicts, for JSON.

    A dispute is a pair that assessors answered or ordered in opposite ways, or with an answer that
    the others contradict, or a document that they graded or flagged differently.  Its value is the
    expected change of the top k of the truth if a verdict with the project's weight settles it
    (see `labeling.statistics.adjudication`).
    """
    weight = float(project.options.verdict_weight)
    settled = _settled(tx, project)
    labels = results(tx, project)
    disputes: list[Dispute] = []
    for tool in project.tools:
        for known in evidence(tx, project, tool):
            if query in (None, known.query):
                same = [v for v in settled if (v["query"], v["tool"]) == (known.query, tool)]
                done = {frozenset(_keys(verdict)) for verdict in same}
                open_disputes = _disputes(known, labels, weight, project.options)
                disputes += [d for d in open_disputes if frozenset(_keys(d)) not in done]
    disputes.sort(key=lambda d: -d["value"])
    shown = disputes[:limit]
    _add_documents(tx, project, [*shown, *settled])
    return nan_to_none(
        {"weight": weight, "total": len(disputes), "disputes": shown, "settled": settled}
    )


def _disputes(
    known: QueryEvidence, labels: Labels, weight: float, options: Options
) -> Iterator[Dispute]:
    """Yield the disputes of one query that a verdict could change."""
    if known.tool == "grades":
        rows = _graded_disputes(known, weight, len(shown_scale(options.grades)))
    else:
        rows = [*_pair_disputes(known, labels, weight, options.ties), *_bad_disputes(known, weight)]
    for row in rows:
        if row["value"] >= MIN_VALUE:
            yield row


def _pair_disputes(
    known: QueryEvidence, labels: Labels, weight: float, ties: bool
) -> list[Dispute]:
    derived = {
        task.assessor: labels[known.query, task.assessor, known.tool]
        for task in known.tasks
        if (known.query, task.assessor, known.tool) in labels
    }
    pairs = _candidate_pairs(known, derived)
    belief, index = known.fitted.belief, known.index
    numbers = [(index[left], index[right]) for left, right in pairs]
    values = pair_values(
        belief,
        numbers,
        min(known.k, len(known.keys)),
        weight,
        known.fitted.good,
        ties or known.tool == "lists",
    )
    rows = []
    for (left, right), (first, second), value in zip(pairs, numbers, values, strict=True):
        difference = float(belief.mean[first] - belief.mean[second])
        rows.append(
            {
                **_head(known, left, right),
                "value": float(value),
                "probability": float(
                    scipy.special.ndtr(difference / known.difference_variance(first, second) ** 0.5)
                ),
                "opinions": list(_opinions(known, left, right, derived)),
            }
        )
    return rows


def _candidate_pairs(
    known: QueryEvidence, derived: dict[str, dict[str, float]]
) -> list[tuple[str, str]]:
    """Return the disputed pairs that may change the top k.

    Their answers, or the final orders of assessors, are in opposite ways; or an answer contradicts
    what the others imply, so that it has a probability below one half.
    """
    index, belief = known.index, known.fitted.belief
    near = set(_near_top(known))
    pairs = {*_contradicted(known), *_opposed(known.keys, list(derived.values()))}
    chosen = [p for p in pairs if index[p[0]] in near or index[p[1]] in near]

    def uncertainty(pair: tuple[str, str]) -> float:
        first, second = index[pair[0]], index[pair[1]]
        difference = abs(float(belief.mean[first] - belief.mean[second]))
        return difference / sqrt(known.difference_variance(first, second))

    return sorted(chosen, key=lambda p: (uncertainty(p), p))[:MAX_PAIRS]


def _contradicted(known: QueryEvidence) -> Iterator[tuple[str, str]]:
    """Yield the pairs with different answers, and those with an improbable answer."""
    index = known.index
    signs: dict[tuple[str, str], set[int]] = {}
    for task in known.tasks:
        for judgment, _ in task.judgments:
            if judgment.right is None or judgment.skipped or judgment.kind == "gold":
                continue
            left, right = judgment.left, judgment.right
            sign = (judgment.outcome > 0) - (judgment.outcome < 0)
            if index[left] > index[right]:
                left, right, sign = right, left, -sign
            given = signs.setdefault((left, right), set())
            given.add(sign)
            probability = known.probability(judgment)
            if len(given) > 1 or (probability is not None and probability < IMPROBABLE):
                yield left, right


def _near_top(known: QueryEvidence) -> list[int]:
    """Return the documents within four standard deviations of the k-th best."""
    belief, good = known.fitted.belief, known.fitted.good
    if not len(good):
        return []
    deviation = 4.0 * np.sqrt(belief.variance[good])
    low = np.sort(belief.mean[good] - deviation)[::-1]
    threshold = low[min(known.k, len(good)) - 1]
    return [int(d) for d in good[belief.mean[good] + deviation >= threshold]]


def _opposed(keys: Iterable[str], orders: list[dict[str, float]]) -> Iterator[tuple[str, str]]:
    """Yield the pairs that two final orders have in opposite ways."""
    if len(orders) < 2:
        return
    common = [key for key in keys if all(key in labels for labels in orders)]
    values = np.array([[labels[key] for key in common] for labels in orders])
    for first, second in combinations(range(len(common)), 2):
        signs = np.sign(values[:, first] - values[:, second])
        if signs.min() < 0 < signs.max():
            yield common[first], common[second]


def _bad_disputes(known: QueryEvidence, weight: float) -> list[Dispute]:
    """Return the documents that some assessors flagged as bad and others saw without a flag."""
    flagged: dict[str, set[str]] = {}
    seen: dict[str, set[str]] = {}
    for task in known.tasks:
        for judgment, _ in task.judgments:
            if not judgment.skipped and judgment.right is not None:
                for key in (judgment.left, judgment.right):
                    seen.setdefault(key, set()).add(task.assessor)
                for key in judgment.bad:
                    flagged.setdefault(key, set()).add(task.assessor)
    fitted = known.fitted
    return [
        {
            **_head(known, key, None),
            "probability": None,
            "value": bad_value(
                fitted.belief.mean,
                known.index[key],
                min(known.k, len(known.keys)),
                fitted.bad,
                len(people),
                len(known.tasks),
                weight,
            ),
            "opinions": [
                _opinion(task, None, None, {"bad": task.assessor in people})
                for task in known.tasks
                if task.assessor in seen[key]
            ],
        }
        for key, people in flagged.items()
        if len(people) < len(seen[key])
    ]


def _graded_disputes(known: QueryEvidence, weight: float, levels: int) -> list[Dispute]:
    grades = known.grades()
    rows = []
    for number, votes in grades.items():
        if len(set(votes)) > 1:
            key = known.keys[number]
            value = grade_value(
                grades, number, len(known.keys), min(known.k, len(known.keys)), levels, weight
            )
            opinions = [
                _opinion(task, judgment, row, {"grade": judgment.outcome})
                for task in known.tasks
                for judgment, row in task.judgments
                if judgment.left == key and not judgment.skipped and judgment.kind == "judgment"
            ]
            head = _head(known, key, None)
            rows.append({**head, "probability": None, "value": value, "opinions": opinions})
    return rows


def _head(known: QueryEvidence, left: str, right: str | None) -> Dispute:
    query = {"query": known.query, "text": known.text, "tool": known.tool}
    return {**query, "left": left, "right": right}


def _opinions(
    known: QueryEvidence, left: str, right: str, derived: dict[str, dict[str, float]]
) -> Iterator[dict[str, Any]]:
    """Yield what each assessor says about a pair: their last answer, or their final order."""
    for task in known.tasks:
        answers = [
            (judgment, row)
            for judgment, row in task.judgments
            if {judgment.left, judgment.right} == {left, right} and not judgment.skipped
        ]
        if answers:
            judgment, row = answers[-1]
            outcome = judgment.outcome if judgment.left == left else -judgment.outcome
            yield _opinion(task, judgment, row, {"outcome": outcome, "asked": True})
            continue
        labels = derived.get(task.assessor, {})
        if left in labels and right in labels:
            sign = (labels[left] > labels[right]) - (labels[left] < labels[right])
            yield _opinion(task, None, None, {"outcome": sign, "asked": False})


def _opinion(
    task: TaskJudgments, judgment: Judgment | None, row: RowMapping | None, said: dict[str, Any]
) -> dict[str, Any]:
    return {
        "assessor": task.assessor,
        "name": task.name,
        "task": task.task,
        "seq": None if row is None else row["seq"],
        "seconds": None if row is None else active_seconds(row),
        "comment": None if row is None else row["comment"],
        "bad": [] if judgment is None else list(judgment.bad),
        **said,
    }


def _settled(tx: Tx, project: Project) -> list[dict[str, Any]]:
    """Return the active verdicts, newest first."""
    names = {row["id"]: row for row in texts.of_project(tx, project.id)}
    rows = [
        {
            "query": names[given.query]["key"],
            "text": names[given.query]["text"],
            "tool": given.tool,
            "index": given.index,
            **asdict(given.verdict),
            "person": given.person,
            "reason": given.reason,
            "recorded_at": given.recorded_at,
        }
        for given in adjudication.recorded(tx, project)
        if given.query in names
    ]
    return sorted(rows, key=lambda row: row["recorded_at"], reverse=True)


def _keys(row: dict[str, Any]) -> list[str]:
    return [row[side] for side in ("left", "right") if row[side] is not None]


def _add_documents(tx: Tx, project: Project, rows: list[dict[str, Any]]) -> None:
    """Replace the keys of documents by their keys, titles and ids."""
    ids = {row["key"]: row["id"] for row in texts.of_project(tx, project.id)}
    documents = {key: texts.titles_and_ids(tx, ids[key]) for key in {row["query"] for row in rows}}
    for row in rows:
        for side in ("left", "right"):
            key = row[side]
            if key is not None:
                known = documents[row["query"]].get(key, {"title": key, "id": None})
                row[side] = {"key": key, **known}
