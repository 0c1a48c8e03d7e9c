"""Practice questions with known answers and explanations, asked before the first real question."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import RowMapping, bindparam, func, select

from firstpage.labeling.app.store import texts
from firstpage.labeling.app.store.connect import Tx
from firstpage.labeling.app.store.projects import Project, get
from firstpage.labeling.app.store.sessions import (
    OpenQuestion,
    ShownQuery,
    TaskState,
    shown_document,
    shown_options,
)
from firstpage.labeling.app.store.tables import gold_questions, queries, training_answers
from firstpage.labeling.app.store.tasks import TaskRow

ANY_QUESTION = (
    select(gold_questions.c.id)
    .where(gold_questions.c.project == bindparam("project"), gold_questions.c.kind == "training")
    .limit(1)
)
PRACTICE_FIRST = "Please answer the practice questions first."
ROUND_SEQ = 1000  # the sequence numbers of one round


@dataclass(frozen=True)
class TrainingProgress:
    """The progress of a person with the practice questions.

    `round` counts attempts, starting at 0; `answered`, `correct` and `unanswered` are those of
    this round.
    """

    needed: bool
    passed: bool
    round: int
    answered: int
    correct: int
    unanswered: tuple[RowMapping, ...]


def progress(tx: Tx, project: Project, person: int) -> TrainingProgress:
    """Return a person's progress.

    A person passes by answering the fraction that the project requires correctly in one round.
    """
    questions = texts.gold_questions_of(tx, project.id, "training")
    if not questions:
        return TrainingProgress(False, True, 0, 0, 0, ())
    own_answers = (training_answers.c.project == project.id) & (training_answers.c.person == person)
    last = tx.value(select(func.max(training_answers.c.round)).where(own_answers))
    number = 0 if last is None else int(last)
    answers = tx.all(
        select(training_answers).where(own_answers, training_answers.c.round == number)
    )
    correct = sum(bool(row["correct"]) for row in answers)
    done = {row["gold"] for row in answers}
    unanswered = tuple(row for row in questions if row["id"] not in done)
    if unanswered:
        return TrainingProgress(True, False, number, len(answers), correct, unanswered)
    if correct >= project.options.training_pass * len(answers):
        return TrainingProgress(True, True, number, len(answers), correct, ())
    return TrainingProgress(True, False, number + 1, 0, correct, tuple(questions))


def blocked(tx: Tx, task: TaskRow) -> str | None:
    """Return why a task must wait for the practice; None if it need not, or was started."""
    if task.state != "open":
        return None
    if tx.value(ANY_QUESTION, project=task.project) is None:
        return None
    return None if progress(tx, get(tx, task.project), task.person).passed else PRACTICE_FIRST


def state(tx: Tx, project: Project, person: int) -> TaskState:
    """Return the open practice question, in the form of any other task."""
    practice = progress(tx, project, person)
    question, query = None, ShownQuery("", "")
    if practice.unanswered:
        gold = practice.unanswered[0]
        row = tx.first(select(queries).where(queries.c.id == gold["query"]))
        assert row is not None
        query = ShownQuery(row["text"], row["description"])
        rtl = project.options.rtl
        docs = {d["key"]: shown_document(d, rtl) for d in texts.documents_of(tx, gold["query"])}
        right = None if gold["right"] is None else docs[gold["right"]]
        question = OpenQuestion("training", docs[gold["left"]], right)
    count, tool = len(practice.unanswered), _tool(practice, project)
    seq = practice.round * ROUND_SEQ + practice.answered
    so_far = practice.answered, (count, count), practice.passed, False
    options = shown_options(project.options)
    shown = project.slug, tool, query, seq, question
    return TaskState(0, *shown, *so_far, options, _message(practice))


def recorded(tx: Tx, project: Project, person: int, key: str) -> tuple[bool, str] | None:
    """Return the reply to an answer that was recorded under this key; None if there is none."""
    row = tx.first(
        select(training_answers.c.correct, gold_questions.c.explanation)
        .join(gold_questions, gold_questions.c.id == training_answers.c.gold)
        .where(
            training_answers.c.project == project.id,
            training_answers.c.person == person,
            training_answers.c.key == key,
        )
    )
    return None if row is None else (bool(row["correct"]), row["explanation"])


def answer(
    tx: Tx, project: Project, person: int, key: str, outcome: int, skipped: bool = False
) -> tuple[bool, str]:
    """Record an answer to the open question; return whether it is correct, and why.

    A comparison is correct if it is in the right direction, by whatever amount.
    """
    practice = progress(tx, project, person)
    gold = practice.unanswered[0]
    correct = not skipped and _same(outcome, gold["outcome"], gold["right"] is None)
    row = {"project": project.id, "person": person, "gold": gold["id"], "round": practice.round}
    answer = {"key": key, "outcome": outcome, "correct": correct}
    tx.add(training_answers, **row, **answer, recorded_at=tx.now)
    return correct, gold["explanation"]


def _same(outcome: int, expected: int, graded: bool) -> bool:
    if graded:
        return outcome == expected
    return (outcome > 0, outcome < 0) == (expected > 0, expected < 0)


def _tool(practice: TrainingProgress, project: Project) -> str:
    if practice.unanswered and practice.unanswered[0]["right"] is None:
        return "grades"
    return "pairs" if project.tool == "grades" else project.tool


def _message(practice: TrainingProgress) -> str | None:
    if not practice.needed:
        return "This project has no practice questions."
    if practice.passed:
        return "You passed the practice. Thank you."
    if practice.round and not practice.answered:
        return (
            f"{practice.correct} answers were correct, which is not enough yet; please try again."
        )
    return None
