"""All answers of all assessors, with filters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from statistics import median
from typing import Any, Literal

from sqlalchemy import RowMapping

from firstpage.labeling.app.analysis.evidence import QueryEvidence, evidence
from firstpage.labeling.app.analysis.figures import nan_to_none
from firstpage.labeling.app.analysis.records import active_seconds
from firstpage.labeling.app.store import Project, Tx, texts
from firstpage.labeling.session.events import Judgment

Speed = Literal["", "fast", "slow"]
Order = Literal["newest", "fastest", "slowest", "least probable"]
PAGE_ROWS = 50
UNEXPECTED = 0.5  # an answer that is less probable is contradicted by the other answers
SPEED_FACTOR = 4.0  # fast and slow: by this factor from the assessor's median with the tool


@dataclass(frozen=True)
class AnswerFilter:
    """Which answers are shown, and in which order.

    Attributes
    ----------
    query, document : str
        Part of a query's id or text; part of a document's id or title.
    assessor : str
        Login of an assessor.
    disagreement : bool
        Only answers to questions that another assessor answered otherwise.
    speed : {"", "fast", "slow"}
        Only answers in less than a quarter, or more than four times, of the median of the
        assessor's times with the tool.
    unexpected : bool
        Only answers with a probability below one half, given all answers.
    skipped, comment : bool
        Only skipped questions; only answers with a comment.
    order : str
        newest, fastest, slowest, or least probable first.
    page : int
        Number of the page, from 1.
    """

    query: str = ""
    assessor: str = ""
    document: str = ""
    disagreement: bool = False
    speed: Speed = ""
    unexpected: bool = False
    skipped: bool = False
    comment: bool = False
    order: Order = "newest"
    page: int = 1


def answers(tx: Tx, project: Project, wanted: AnswerFilter) -> dict[str, Any]:
    """Return a page of the answers that pass a filter, and how many there are, for JSON."""
    rows = [
        row
        for tool in project.tools
        for known in evidence(tx, project, tool)
        if _mentions(wanted.query, known.query, known.text)
        for row in _rows(tx, known)
    ]
    medians = _medians(rows)
    selected = [row for row in rows if _passes(row, wanted, medians)]
    key, reverse = SORT_KEYS[wanted.order]
    selected.sort(key=key, reverse=reverse)
    first = (wanted.page - 1) * PAGE_ROWS
    return nan_to_none(
        {
            "total": len(selected),
            "page": wanted.page,
            "pages": -(-len(selected) // PAGE_ROWS),
            "answers": selected[first : first + PAGE_ROWS],
        }
    )


SORT_KEYS: dict[str, tuple[Callable[[dict[str, Any]], Any], bool]] = {  # key, reversed
    "newest": (lambda row: row["answered_at"], True),
    "fastest": (lambda row: row["seconds"], False),
    "slowest": (lambda row: row["seconds"], True),
    "least probable": (
        lambda row: 2.0 if row["probability"] is None else row["probability"],
        False,
    ),
}


def answer_as_shown(tx: Tx, project: Project, task: int, seq: int) -> dict[str, Any] | None:
    """Return one answer with the documents as its assessor saw them; None if there is none."""
    for tool in project.tools:
        for known in evidence(tx, project, tool):
            if all(one.task != task for one in known.tasks):
                continue
            rows = [row for row in _rows(tx, known) if row["task"] == task]
            for number, row in enumerate(rows):
                if row["seq"] == seq:
                    neighbors = [
                        rows[i]["seq"] if 0 <= i < len(rows) else None
                        for i in (number - 1, number + 1)
                    ]
                    return {
                        **row,
                        "previous": neighbors[0],
                        "next": neighbors[1],
                        "number": number + 1,
                        "count": len(rows),
                        "description": texts.query(tx, known.query_id)["description"],
                        "others": [
                            other
                            for other in _rows(tx, known)
                            if other["task"] != task and _question(other) == _question(row)
                        ],
                    }
    return None


def _rows(tx: Tx, known: QueryEvidence) -> Iterator[dict[str, Any]]:
    documents = texts.titles_and_ids(tx, known.query_id)
    given = _given(known)
    grades = {known.keys[i]: votes for i, votes in known.grades().items()}
    for task in known.tasks:
        for judgment, row in task.judgments:
            outcomes = given.get(_documents(judgment), {})
            yield {
                "task": task.task,
                "seq": row["seq"],
                "query": known.query,
                "text": known.text,
                "assessor": task.assessor,
                "name": task.name,
                "tool": known.tool,
                "kind": judgment.kind,
                "outcome": judgment.outcome,
                "bad": list(judgment.bad),
                "skipped": judgment.skipped,
                "seconds": active_seconds(row),
                "answered_at": row["answered_at"] or row["recorded_at"],
                "comment": row["comment"],
                "first_answer": _first_answer(judgment, row),
                "disagreement": not judgment.skipped
                and any(
                    assessor != task.assessor and outcome != _sign(judgment)
                    for assessor, outcome in outcomes.items()
                ),
                "probability": known.probability(judgment)
                if judgment.right is not None
                else _grade_share(judgment, grades.get(judgment.left, [])),
                **{
                    side: None if key is None else {"key": key, **documents[key]}
                    for side, key in (("left", judgment.left), ("right", judgment.right))
                },
            }


def _first_answer(judgment: Judgment, row: RowMapping) -> int | None:
    """Return the outcome before a revision; None if the answer was not revised."""
    first = row["event"]["outcome"]
    return int(first) if first != judgment.outcome else None


def _given(known: QueryEvidence) -> dict[tuple[str, ...], dict[str, int]]:
    """Return, by the documents of a question, the last answer of each assessor."""
    given: dict[tuple[str, ...], dict[str, int]] = {}
    for task in known.tasks:
        for judgment, _ in task.judgments:
            if not judgment.skipped:
                given.setdefault(_documents(judgment), {})[task.assessor] = _sign(judgment)
    return given


def _documents(judgment: Judgment) -> tuple[str, ...]:
    return (judgment.left,) if judgment.right is None else tuple(sorted(_pair(judgment)))


def _pair(judgment: Judgment) -> tuple[str, str]:
    assert judgment.right is not None
    return judgment.left, judgment.right


def _sign(judgment: Judgment) -> int:
    """Return the grade, or the outcome from the view of the first document by name."""
    if judgment.right is None:
        return judgment.outcome
    sign = (judgment.outcome > 0) - (judgment.outcome < 0)
    return sign if judgment.left < judgment.right else -sign


def _grade_share(judgment: Judgment, votes: list[int]) -> float | None:
    """Return the fraction of the assessors who gave this grade; None if there is only one."""
    if judgment.skipped or len(votes) < 2:
        return None
    return votes.count(judgment.outcome) / len(votes)


def _question(row: dict[str, Any]) -> frozenset[str]:
    return frozenset(row[side]["key"] for side in ("left", "right") if row[side])


def _medians(rows: Iterable[dict[str, Any]]) -> dict[tuple[str, str], float]:
    times: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        if not row["skipped"]:
            times.setdefault((row["assessor"], row["tool"]), []).append(row["seconds"])
    return {key: median(seconds) for key, seconds in times.items()}


def _passes(
    row: dict[str, Any], wanted: AnswerFilter, medians: dict[tuple[str, str], float]
) -> bool:
    usual = medians.get((row["assessor"], row["tool"]), 0.0)
    sides = [row[side] for side in ("left", "right") if row[side]]
    return (
        wanted.assessor in ("", row["assessor"])
        and any(_mentions(wanted.document, side["key"], side["title"]) for side in sides)
        and (row["disagreement"] or not wanted.disagreement)
        and (row["skipped"] or not wanted.skipped)
        and (bool(row["comment"]) or not wanted.comment)
        and (
            not wanted.unexpected
            or (row["probability"] is not None and row["probability"] < UNEXPECTED)
        )
        and (wanted.speed != "fast" or row["seconds"] * SPEED_FACTOR < usual)
        and (wanted.speed != "slow" or row["seconds"] > usual * SPEED_FACTOR)
    )


def _mentions(part: str, *names: str) -> bool:
    return not part or any(part.casefold() in name.casefold() for name in names)
