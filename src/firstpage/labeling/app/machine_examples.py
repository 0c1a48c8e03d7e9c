"""Examples for a model's prompt: verdicts of leads, and questions on which people agree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from firstpage.core import DataError
from firstpage.labeling.app.analysis.records import TaskJudgments, task_judgments
from firstpage.labeling.app.machines import query_texts
from firstpage.labeling.app.store import Project, Tx, adjudication
from firstpage.labeling.machines.prompts import Example

MIN_PEOPLE = 2  # who give the same answer, with nobody against it
MAX_CANDIDATES = 200  # examples among which a question chooses

Question = tuple[str, str, str | None]  # query, left and right document


def agreed_examples(tx: Tx, project: Project, tools: Sequence[str]) -> tuple[Example, ...]:
    """Return questions settled by a verdict, then those that people answered in the same way.

    Of the latter, at least two people answered, and those with the most answers come first.
    Machines do not count; raise if there are none.
    """
    judged = task_judgments(tx, project)
    ids = {task.query: task.query_id for task in judged}
    settled = _settled(tx, project, tools, {number: key for key, number in ids.items()})
    agreed = [
        (len(outcomes), question, outcomes[0])
        for question, outcomes in _answers(people_tasks(judged), tools).items()
        if len(outcomes) >= MIN_PEOPLE and len(set(outcomes)) == 1 and question not in settled
    ]
    if not settled and not agreed:
        raise DataError(
            f"there is no verdict, and no question on which at least {MIN_PEOPLE} people agree, so "
            "there are no examples; let people judge first, or ask without examples."
        )
    agreed.sort(key=lambda row: (-row[0], row[1][0], row[1][1], row[1][2] or ""))
    questions = [*settled.items(), *(row[1:] for row in agreed)]
    return tuple(_with_texts(tx, ids, questions[:MAX_CANDIDATES]))


def _settled(
    tx: Tx, project: Project, tools: Sequence[str], keys: Mapping[int, str]
) -> dict[Question, int]:
    """Return the outcomes of verdicts on questions that assessors are asked."""
    settled: dict[Question, int] = {}
    for tool in tools:
        for query, verdicts in adjudication.effective(tx, project, tool).items():
            for verdict in verdicts:
                if query in keys and (verdict.right is None) == (tool == "grades"):
                    question, outcome = _question(
                        keys[query], verdict.left, verdict.right, verdict.outcome
                    )
                    settled[question] = outcome
    return settled


def _question(key: str, left: str, right: str | None, outcome: int) -> tuple[Question, int]:
    """Return a question whose first document is on the left, and the outcome for it."""
    if right is None:
        return (key, left, None), outcome
    if right < left:
        left, right, outcome = right, left, -outcome
    return (key, left, right), (outcome > 0) - (outcome < 0)


def people_tasks(judged: Iterable[TaskJudgments]) -> list[TaskJudgments]:
    """Return the tasks of people: those without an answer of a program."""
    return [
        task for task in judged if not any(row["cost"] is not None for _, row in task.judgments)
    ]


def _answers(judged: Iterable[TaskJudgments], tools: Sequence[str]) -> dict[Question, list[int]]:
    """Return the answers of all people to each question; the first document is on the left."""
    answers: dict[Question, list[int]] = {}
    for task in judged:
        if task.tool not in tools:
            continue
        for judgment, _ in task.judgments:
            if judgment.skipped or judgment.kind != "judgment":
                continue
            question, outcome = _question(
                task.query, judgment.left, judgment.right, judgment.outcome
            )
            answers.setdefault(question, []).append(outcome)
    return answers


def _with_texts(
    tx: Tx, ids: dict[str, int], questions: Sequence[tuple[Question, int]]
) -> Iterator[Example]:
    """Yield the examples with the texts of their queries and documents."""
    read = {key: query_texts(tx, ids[key]) for key in {question[0] for question, _ in questions}}
    for (key, left, right), outcome in questions:
        query, documents = read[key]
        other = None if right is None else documents[right]
        yield Example(key, str(query), documents[left], other, outcome)
