"""Programs as assessors of a project: they come to the same desk, and write the same log."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Any
from uuid import uuid4

from sqlalchemy import RowMapping

from firstpage.labeling.assessors import Assessor, Text, Verdict
from firstpage.web.findings.choosing import following, wish
from firstpage.web.store import tasks, texts
from firstpage.web.store.connect import Store, iso
from firstpage.web.store.desk import Desk, Given
from firstpage.web.store.graded import without_grade
from firstpage.web.store.log import Timing
from firstpage.web.store.people import Person
from firstpage.web.store.projects import Project
from firstpage.web.store.state import State
from firstpage.web.store.tasks import TaskRow

Watch = Callable[[str, int], None]  # the query, answers given so far
UNSHOWN = ("script", "style", "template")


@dataclass
class Done:
    """What a program did: queries finished, answers given, and their costs added up."""

    queries: int = 0
    answers: int = 0
    seconds: float = 0.0
    tokens: int = 0
    money: float = 0.0

    def count(self, cost: Mapping[str, Any]) -> None:
        """One more answer."""
        self.answers += 1
        self.seconds += float(cost.get("seconds", 0.0))
        self.tokens += int(cost.get("tokens_in", 0)) + int(cost.get("tokens_out", 0))
        self.money += float(cost.get("money", 0.0))


def judge(
    store: Store, project: Project, person: Person, assessor: Assessor, watch: Watch | None = None
) -> Done:
    """Answer all that is open for this person; each answer is durable before the next question."""
    desk = Desk(store, wish)
    done = Done()
    for task in _work(store, project, person):
        for verdict in _judged(store, desk, person, assessor, task):
            done.count(verdict.cost)
            if watch is not None:
                watch(task.query_key, done.answers)
        done.queries += 1
    return done


def _work(store: Store, project: Project, person: Person) -> Iterator[TaskRow]:
    """Each task that is open now, once; the next one is chosen when the one before is done."""
    seen: set[int] = set()
    while True:
        with store.read() as tx:
            mine = tasks.of_person(tx, project, person.id)
            left = [t for t in mine if t.state in tasks.TO_DO and t.id not in seen]
            chosen = following(tx, project, left).task
        if chosen is None:
            return
        seen.add(chosen)
        yield next(task for task in left if task.id == chosen)


def _judged(
    store: Store, desk: Desk, person: Person, assessor: Assessor, task: TaskRow
) -> Iterator[Verdict]:
    """One task to its end; yields each verdict once it is kept."""
    with store.read() as tx:
        found = {row["key"]: text_of(row) for row in texts.whole_of(tx, task.query)}
    query = f"{task.query_text}\n{task.description}".strip()
    state = desk.state(task.id, person)
    while state.question is not None:
        left, right = state.question.left, state.question.right
        shown = iso(store.clock())
        verdict = assessor.judge(query, found[left.key], found[right.key] if right else None)
        state = desk.answer(task.id, person, _given(state, verdict, shown, iso(store.clock())))
        yield verdict


def _given(state: State, verdict: Verdict, shown: str, answered: str) -> Given:
    assert state.question is not None
    left, right = state.question.left, state.question.right
    span = {"kind": "active", "ms": round(1000 * float(verdict.cost.get("seconds", 0.0)))}
    return Given(
        state.seq, uuid4().hex, left.key, None if right is None else right.key,
        verdict.outcome, verdict.bad,
        timing=Timing(shown, answered, (span,), cost=dict(verdict.cost)),
    )  # fmt: skip


def text_of(row: RowMapping) -> Text:
    """What a program reads of a document: text without tags, a card's fields, a list's items."""
    parts = [_plain(row["body"]) if row["kind"] == "html" else row["body"]]
    fields = dict(row["fields"] or {})
    for number, item in enumerate(fields.pop("items", ()), 1):
        parts.append(
            f"{number}. " + " - ".join(map(str, filter(None, without_grade(item).values())))
        )
    parts += [f"{name}: {value}" for name, value in fields.items()]
    return Text(row["key"], "\n".join(part for part in parts if part), row["title"])


def _plain(html: str) -> str:
    reader = _Reader()
    reader.feed(html)
    reader.close()
    return " ".join("".join(reader.found).split())


class _Reader(HTMLParser):
    """The text of a page, without what a browser does not show."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self._hidden += tag in UNSHOWN
        self.found.append(" ")

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in UNSHOWN and self._hidden > 0
        self.found.append(" ")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.found.append(data)
