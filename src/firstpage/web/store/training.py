"""Training questions, whose answers are known and explained, before the first real one."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import RowMapping, bindparam, func, select

from firstpage.web.store import texts
from firstpage.web.store.connect import Tx
from firstpage.web.store.projects import Project, get
from firstpage.web.store.sessions import Asked, QueryText, State, doc, shown_options
from firstpage.web.store.tables import golds, queries, trained
from firstpage.web.store.tasks import TaskRow

ANY = (
    select(golds.c.id)
    .where(golds.c.project == bindparam("project"), golds.c.kind == "training")
    .limit(1)
)
FIRST = "Please answer the training questions first."


@dataclass(frozen=True)
class Standing:
    """How far somebody is: `round` counts attempts from 0, `unanswered` are questions of this one."""

    needed: bool
    passed: bool
    round: int
    answered: int
    correct: int
    unanswered: tuple[RowMapping, ...]


def standing(tx: Tx, project: Project, person: int) -> Standing:
    """Passed is whoever got the share that the project asks for right, in one whole round."""
    asked = texts.golds_of(tx, project.id, "training")
    if not asked:
        return Standing(False, True, 0, 0, 0, ())
    mine = (trained.c.project == project.id) & (trained.c.person == person)
    last = tx.value(select(func.max(trained.c.round)).where(mine))
    number = 0 if last is None else int(last)
    given = tx.all(select(trained).where(mine, trained.c.round == number))
    correct = sum(bool(row["correct"]) for row in given)
    done = {row["gold"] for row in given}
    unanswered = tuple(row for row in asked if row["id"] not in done)
    if unanswered:
        return Standing(True, False, number, len(given), correct, unanswered)
    if correct >= project.options.training_pass * len(given):
        return Standing(True, True, number, len(given), correct, ())
    return Standing(True, False, number + 1, 0, correct, tuple(asked))


def barred(tx: Tx, task: TaskRow) -> str | None:
    """Why a task must wait; a task that was begun need not."""
    if task.state != "open":
        return None
    if tx.value(ANY, project=task.project) is None:
        return None
    return None if standing(tx, get(tx, task.project), task.person).passed else FIRST


def state(tx: Tx, project: Project, person: int) -> State:
    """The open training question, in the shape of any other."""
    now = standing(tx, project, person)
    question, query = None, QueryText("", "")
    if now.unanswered:
        gold = now.unanswered[0]
        row = tx.first(select(queries).where(queries.c.id == gold["query"]))
        assert row is not None
        query = QueryText(row["text"], row["description"])
        rtl = project.options.rtl
        docs = {d["key"]: doc(d, rtl) for d in texts.documents_of(tx, gold["query"])}
        right = None if gold["right"] is None else docs[gold["right"]]
        question = Asked("training", docs[gold["left"]], right)
    many = len(now.unanswered)
    return State(
        0, project.slug, _tool(now, project), query, now.round * 1000 + now.answered, question,
        now.answered, (many, many), now.passed, False, shown_options(project.options), _say(now),
    )  # fmt: skip


def kept(tx: Tx, project: Project, person: int, key: str) -> tuple[bool, str] | None:
    """What was said to an answer that came before under this key."""
    before = tx.first(
        select(trained.c.correct, golds.c.explanation)
        .join(golds, golds.c.id == trained.c.gold)
        .where(trained.c.project == project.id, trained.c.person == person, trained.c.key == key)
    )
    return None if before is None else (bool(before["correct"]), before["explanation"])


def answer(tx: Tx, project: Project, person: int, key: str, outcome: int) -> tuple[bool, str]:
    """Keep an answer to the open question; whether it was right, and why."""
    now = standing(tx, project, person)
    gold = now.unanswered[0]
    correct = outcome == gold["outcome"]
    tx.add(
        trained, project=project.id, person=person, gold=gold["id"], round=now.round, key=key,
        outcome=outcome, correct=correct, at=tx.now,
    )  # fmt: skip
    return correct, gold["explanation"]


def _tool(now: Standing, project: Project) -> str:
    if now.unanswered and now.unanswered[0]["right"] is None:
        return "grades"
    return "pairs" if project.tool == "grades" else project.tool


def _say(now: Standing) -> str | None:
    if not now.needed:
        return "There are no training questions here."
    if now.passed:
        return "You passed the training. Thank you."
    if now.round and not now.answered:
        return f"{now.correct} were right, which is not enough yet; please try once more."
    return None
