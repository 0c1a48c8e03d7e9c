"""Programs as assessors of a project: they come to the same desk, and write the same log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from uuid import uuid4

from sqlalchemy import RowMapping

from firstpage.errors import DataError
from firstpage.labeling.assessors import Assessor, QueryText, Text, Unreadable, Verdict
from firstpage.types import Progress
from firstpage.web.analysis.choosing import following, wish
from firstpage.web.sanitize import plain_text
from firstpage.web.store import projects, tasks, texts, training
from firstpage.web.store.connect import Store, Tx, iso
from firstpage.web.store.judging import Desk, Given
from firstpage.web.store.log import Timing
from firstpage.web.store.people import Person
from firstpage.web.store.projects import Project
from firstpage.web.store.sessions import State
from firstpage.web.store.tasks import TaskRow
from firstpage.web.store.texts import without_grade

CLOSED = {"draft": "not open yet", "closed": "closed"}
NO_TIES = "a tie, and this project has none"
UNREADABLE = "the answer could not be read"
MAX_UNREADABLE = 3  # answers in a row that cannot be read: the program is not fit for this


@dataclass
class Done:
    """What a program did: queries finished, answers given, and the costs of all questions.

    `skipped` counts questions without an answer, by reason; `truncated` are documents of which
    the program read only the beginning, `pictures` those of which it saw only the title.
    """

    queries: int = 0
    answers: int = 0
    practice: int = 0
    seconds: float = 0.0
    tokens: int = 0
    money: float = 0.0
    skipped: Counter[str] = field(default_factory=Counter)
    truncated: set[str] = field(default_factory=set)
    pictures: set[str] = field(default_factory=set)
    unreadable: int = 0  # answers in a row that could not be read

    @property
    def questions(self) -> int:
        """How many questions were asked: those answered and those skipped."""
        return self.answers + self.skipped.total()

    def count(self, verdict: Verdict) -> None:
        """Add one question."""
        self.answers += verdict.skipped is None
        cost = verdict.cost
        self.seconds += float(cost.get("seconds", 0.0))
        self.tokens += int(cost.get("tokens_in", 0)) + int(cost.get("tokens_out", 0))
        self.money += float(cost.get("money", 0.0))
        self.truncated.update(cost.get("truncated", ()))
        if verdict.skipped is not None:
            self.skipped[verdict.skipped] += 1


def judge(
    store: Store, project: Project, person: Person, assessor: Assessor,
    progress: Progress | None = None,
) -> Done:  # fmt: skip
    """Answer all that is open for this person; each answer is durable before the next question.

    Practice questions come first, as for people; what keeps a program from working is an error.
    `progress` is told the questions asked, and those expected in all.
    """
    done = Done()
    _check_open(store, project, person)
    _practice(store, project, person, assessor, done)
    desk = Desk(store, wish)
    expected = _expected(store, desk, project, person) if progress else 0
    for task in _work(store, project, person):
        for verdict in _judged(store, desk, person, assessor, task, done):
            done.count(verdict)
            if progress is not None:
                progress(done.questions, max(expected, done.questions))
        done.queries += 1
    return done


def _expected(store: Store, desk: Desk, project: Project, person: Person) -> int:
    """Return how many questions the open tasks have, at most as far as one can say."""
    with store.read() as tx:
        mine = tasks.of_person(tx, project, person.id)
    return sum(desk.questions_remaining(task)[1] for task in mine)


def _check_open(store: Store, project: Project, person: Person) -> None:
    """Refuse in one line where nothing could be answered."""
    with store.read() as tx:
        if not projects.assesses(tx, project.id, person.id):
            raise DataError(
                f"{person.login!r} is no assessor of the project {project.slug!r}; add them first."
            )
    if project.state != "open":
        raise DataError(
            f"the project {project.slug!r} is {CLOSED[project.state]}; open it on its page "
            "'Deal out and open'."
        )


def _practice(
    store: Store, project: Project, person: Person, assessor: Assessor, done: Done
) -> None:
    """Answer one round of the practice questions, if there are any that are not passed yet."""
    with store.read() as tx:
        standing = training.standing(tx, project, person.id)
        begun = any(t.state == "started" for t in tasks.of_person(tx, project, person.id))
    if standing.passed or begun:
        return
    correct = standing.correct if standing.answered else 0
    asked = standing.answered + len(standing.unanswered)
    for gold in standing.unanswered:
        with store.read() as tx:
            query, found = _texts(tx, gold["query"])
        other = found[gold["right"]] if gold["right"] else None
        verdict = assessor.judge(query, found[gold["left"]], other)
        done.practice += 1
        with store.write() as tx:
            is_correct, _ = training.answer(tx, project, person.id, uuid4().hex, verdict.outcome)
        correct += is_correct
    with store.read() as tx:
        passed = training.standing(tx, project, person.id).passed
    if not passed:
        raise DataError(
            f"{person.login!r} answered {correct} of {asked} practice questions as expected; this "
            f"project asks for {project.options.training_pass:.0%}, so nothing was judged. Run "
            "it again for another round, or change the practice."
        )


def _work(store: Store, project: Project, person: Person) -> Iterator[TaskRow]:
    """Each task that is open now, once; the next one is chosen when the one before is done."""
    seen: set[int] = set()
    while True:
        with store.read() as tx:
            mine = tasks.of_person(tx, project, person.id)
            remaining = [t for t in mine if t.state in tasks.TO_DO and t.id not in seen]
            chosen = following(tx, project, remaining).task
        if chosen is None:
            return
        seen.add(chosen)
        yield next(task for task in remaining if task.id == chosen)


def _judged(
    store: Store, desk: Desk, person: Person, assessor: Assessor, task: TaskRow, done: Done
) -> Iterator[Verdict]:
    """Judge one task to its end; yields each verdict once it is kept."""
    with store.read() as tx:
        query, found = _texts(tx, task.query)
    done.pictures |= {key for key, text in found.items() if text.kind == "image"}
    state = desk.state(task.id, person)
    while state.question is not None:
        left, right = state.question.left, state.question.right
        shown = iso(store.clock())
        try:
            other = found[right.key] if right else None
            verdict = _without_tie(task, state, assessor.judge(query, found[left.key], other))
            done.unreadable = 0
        except Unreadable as error:
            done.unreadable += 1
            if done.unreadable == MAX_UNREADABLE:
                raise
            verdict = Verdict(0, cost=error.cost, skipped=UNREADABLE)
        state = desk.answer(task.id, person, _given(state, verdict, shown, iso(store.clock())))
        yield verdict
    if not state.done:
        raise DataError(f"query {task.query_key}: {state.message}")


def _texts(tx: Tx, query: int) -> tuple[QueryText, dict[str, Text]]:
    row = texts.query(tx, query)
    documents = {row["key"]: text_of(row) for row in texts.whole_of(tx, query)}
    return QueryText(row["key"], row["text"], row["description"]), documents


def _without_tie(task: TaskRow, state: State, verdict: Verdict) -> Verdict:
    """Return a tie as a skipped question where the project has no ties."""
    tie = verdict.outcome == 0 and not verdict.bad and verdict.skipped is None
    if tie and task.tool == "pairs" and not state.options["ties"]:
        return replace(verdict, skipped=NO_TIES)
    return verdict


def _given(state: State, verdict: Verdict, shown: str, answered: str) -> Given:
    assert state.question is not None
    left, right = state.question.left, state.question.right
    span = {"kind": "active", "ms": round(1000 * float(verdict.cost.get("seconds", 0.0)))}
    return Given(
        state.seq, uuid4().hex, left.key, None if right is None else right.key,
        verdict.outcome, verdict.bad, verdict.skipped is not None,
        Timing(shown, answered, (span,), verdict.skipped, dict(verdict.cost)),
    )  # fmt: skip


def text_of(row: RowMapping) -> Text:
    """Return what a program reads of a document.

    Its text is that of the page without tags, with a card's fields or a list's items in lines.
    """
    parts = [plain_text(row["body"]) if row["kind"] == "html" else row["body"]]
    fields = dict(row["fields"] or {})
    items = [without_grade(item) for item in fields.pop("items", ())]
    for number, item in enumerate(items, 1):
        words = [str(value) for value in item.values() if value not in (None, "")]
        parts.append(f"{number}. {' - '.join(words)}")
    parts += [f"{name}: {value}" for name, value in fields.items()]
    return Text(
        row["key"], "\n".join(part for part in parts if part), row["title"], kind=row["kind"],
        fields=fields, items=items, url=row.get("url"),
    )  # fmt: skip
