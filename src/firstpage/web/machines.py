"""Programs as assessors of a project: they use the judging service and write the same log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from uuid import uuid4

from sqlalchemy import RowMapping

from firstpage.errors import DataError
from firstpage.labeling.assessors import (
    Assessor,
    AssessorAnswer,
    DocumentText,
    InvalidReplyError,
    QueryText,
)
from firstpage.types import Progress
from firstpage.web.analysis.choosing import choose_next_task, choose_pair
from firstpage.web.sanitize import plain_text
from firstpage.web.store import projects, tasks, texts, training
from firstpage.web.store.connect import Store, Tx, iso
from firstpage.web.store.judging import JudgingService, SubmittedAnswer
from firstpage.web.store.log import Timing
from firstpage.web.store.people import Person
from firstpage.web.store.projects import Project
from firstpage.web.store.sessions import TaskState
from firstpage.web.store.tasks import TaskRow
from firstpage.web.store.texts import without_grade

CLOSED = {"draft": "not open yet", "closed": "closed"}
NO_TIES = "a tie, which this project does not allow"
UNREADABLE = "the answer could not be parsed"
MAX_UNREADABLE = 3  # consecutive answers that cannot be parsed before judging is aborted


@dataclass
class JudgingReport:
    """Finished queries, answers, and the total cost of all questions.

    `skipped` counts questions without an answer, by reason; `truncated` are documents of which
    the program read only the beginning, `pictures` those of which it read only the title.
    """

    queries: int = 0
    answers: int = 0
    practice: int = 0
    seconds: float = 0.0
    tokens: int = 0
    price: float = 0.0
    skipped: Counter[str] = field(default_factory=Counter)
    truncated: set[str] = field(default_factory=set)
    pictures: set[str] = field(default_factory=set)
    unreadable: int = 0  # consecutive answers that could not be parsed

    @property
    def questions(self) -> int:
        """The number of questions, answered or skipped."""
        return self.answers + self.skipped.total()

    def count(self, verdict: AssessorAnswer) -> None:
        """Add the verdict of one question."""
        self.answers += verdict.skipped is None
        cost = verdict.cost
        self.seconds += float(cost.get("seconds", 0.0))
        self.tokens += int(cost.get("input_tokens", 0)) + int(cost.get("output_tokens", 0))
        self.price += float(cost.get("price", 0.0))
        self.truncated.update(cost.get("truncated", ()))
        if verdict.skipped is not None:
            self.skipped[verdict.skipped] += 1


def judge(
    store: Store, project: Project, person: Person, assessor: Assessor,
    progress: Progress | None = None,
) -> JudgingReport:  # fmt: skip
    """Let a program answer all open questions of a person; return the report.

    Each answer is durable before the next question.  Practice questions come first, as for people;
    failing them is an error.  `progress` is called with the number of questions so far and the
    expected total.
    """
    report = JudgingReport()
    _check_open(store, project, person)
    _practice(store, project, person, assessor, report)
    service = JudgingService(store, choose_pair)
    expected = _expected(store, service, project, person) if progress else 0
    for task in _open_tasks(store, project, person):
        for verdict in _judge_task(store, service, person, assessor, task, report):
            report.count(verdict)
            if progress is not None:
                progress(report.questions, max(expected, report.questions))
        report.queries += 1
    return report


def _expected(store: Store, service: JudgingService, project: Project, person: Person) -> int:
    """Return the estimated maximum number of questions of the open tasks."""
    with store.read() as tx:
        rows = tasks.of_person(tx, project, person.id)
    return sum(service.questions_remaining(task)[1] for task in rows)


def _check_open(store: Store, project: Project, person: Person) -> None:
    """Raise if the person is no assessor, or the project is not open."""
    with store.read() as tx:
        if not projects.is_assessor(tx, project.id, person.id):
            raise DataError(
                f"{person.login!r} is not an assessor of the project {project.slug!r}; "
                "add them first."
            )
    if project.state != "open":
        raise DataError(
            f"the project {project.slug!r} is {CLOSED[project.state]}; open it on its page "
            "'Assign and open'."
        )


def _practice(
    store: Store, project: Project, person: Person, assessor: Assessor, report: JudgingReport
) -> None:
    """Answer one round of the practice questions, unless they are passed; raise if it fails."""
    with store.read() as tx:
        practice = training.progress(tx, project, person.id)
        started = any(t.state == "started" for t in tasks.of_person(tx, project, person.id))
    if practice.passed or started:
        return
    correct = practice.correct if practice.answered else 0
    total = practice.answered + len(practice.unanswered)
    for gold in practice.unanswered:
        with store.read() as tx:
            query, documents = _texts(tx, gold["query"])
        right = documents[gold["right"]] if gold["right"] else None
        verdict = assessor.judge(query, documents[gold["left"]], right)
        report.practice += 1
        with store.write() as tx:
            is_correct, _ = training.answer(tx, project, person.id, uuid4().hex, verdict.outcome)
        correct += is_correct
    with store.read() as tx:
        passed = training.progress(tx, project, person.id).passed
    if not passed:
        raise DataError(
            f"{person.login!r} answered {correct} of {total} practice questions correctly; this "
            f"project requires {project.options.training_pass:.0%}, so nothing was judged. Run "
            "it again for another round, or change the practice questions."
        )


def _open_tasks(store: Store, project: Project, person: Person) -> Iterator[TaskRow]:
    """Yield each open task once; the next one is chosen when the one before is done."""
    seen: set[int] = set()
    while True:
        with store.read() as tx:
            rows = tasks.of_person(tx, project, person.id)
            remaining = [t for t in rows if t.state in tasks.TO_DO and t.id not in seen]
            chosen = choose_next_task(tx, project, remaining).task
        if chosen is None:
            return
        seen.add(chosen)
        yield next(task for task in remaining if task.id == chosen)


def _judge_task(
    store: Store,
    service: JudgingService,
    person: Person,
    assessor: Assessor,
    task: TaskRow,
    report: JudgingReport,
) -> Iterator[AssessorAnswer]:
    """Judge one task to its end; yield each verdict once it is stored."""
    with store.read() as tx:
        query, documents = _texts(tx, task.query)
    report.pictures |= {key for key, text in documents.items() if text.kind == "image"}
    state = service.state(task.id, person)
    while state.question is not None:
        left, right = state.question.left, state.question.right
        shown_at = iso(store.clock())
        try:
            other = documents[right.key] if right else None
            verdict = _without_tie(task, state, assessor.judge(query, documents[left.key], other))
            report.unreadable = 0
        except InvalidReplyError as error:
            report.unreadable += 1
            if report.unreadable == MAX_UNREADABLE:
                raise
            verdict = AssessorAnswer(0, cost=error.cost, skipped=UNREADABLE)
        state = service.answer(
            task.id, person, _submitted(state, verdict, shown_at, iso(store.clock()))
        )
        yield verdict
    if not state.done:
        raise DataError(f"query {task.query_key}: {state.message}")


def _texts(tx: Tx, query: int) -> tuple[QueryText, dict[str, DocumentText]]:
    """Return a query and its documents by key, as a program reads them."""
    row = texts.query(tx, query)
    documents = {row["key"]: text_of(row) for row in texts.full_documents_of(tx, query)}
    return QueryText(row["key"], row["text"], row["description"]), documents


def _without_tie(task: TaskRow, state: TaskState, verdict: AssessorAnswer) -> AssessorAnswer:
    """Return the verdict, with a tie as a skipped question if the project has no ties."""
    tie = verdict.outcome == 0 and not verdict.bad and verdict.skipped is None
    if tie and task.tool == "pairs" and not state.options["ties"]:
        return replace(verdict, skipped=NO_TIES)
    return verdict


def _submitted(
    state: TaskState, verdict: AssessorAnswer, shown_at: str, answered_at: str
) -> SubmittedAnswer:
    assert state.question is not None
    left, right = state.question.left, state.question.right
    span = {"kind": "active", "ms": round(1000 * float(verdict.cost.get("seconds", 0.0)))}
    return SubmittedAnswer(
        state.seq, uuid4().hex, left.key, None if right is None else right.key,
        verdict.outcome, verdict.bad, verdict.skipped is not None,
        Timing(shown_at, answered_at, (span,), verdict.skipped, dict(verdict.cost)),
    )  # fmt: skip


def text_of(row: RowMapping) -> DocumentText:
    """Return a document as a program reads it.

    The text is that of the page without tags, and the fields of a card or the items of a list, one
    per line.
    """
    lines = [plain_text(row["body"]) if row["kind"] == "html" else row["body"]]
    fields = dict(row["fields"] or {})
    items = [without_grade(item) for item in fields.pop("items", ())]
    for number, item in enumerate(items, 1):
        words = [str(value) for value in item.values() if value not in (None, "")]
        lines.append(f"{number}. {' - '.join(words)}")
    lines += [f"{name}: {value}" for name, value in fields.items()]
    return DocumentText(
        row["key"], "\n".join(line for line in lines if line), row["title"], kind=row["kind"],
        fields=fields, items=items, url=row.get("url"),
    )  # fmt: skip
