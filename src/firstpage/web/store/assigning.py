"""Who judges what: tasks dealt out, and dealt again when somebody comes or goes.

The tasks in the database are the assignment; the engine's form is made from them when needed,
with people by their ids, which stay when names go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlalchemy import delete, func, select

from firstpage.errors import DataError
from firstpage.labeling.planning.assignment import (
    Assignment,
    Task,
    leveled,
    make_assignment,
    problems,
)
from firstpage.labeling.session.events import Setting
from firstpage.labeling.statistics.effort import Prediction, predicted_effort
from firstpage.web.store import audit, projects, tasks, texts
from firstpage.web.store.connect import Tx
from firstpage.web.store.people import Person
from firstpage.web.store.projects import Project
from firstpage.web.store.sessions import settle
from firstpage.web.store.tables import spans
from firstpage.web.store.tables import tasks as task_table
from firstpage.web.store.tasks import TaskRow


@dataclass(frozen=True)
class Load:
    """What one person has to do; `done` and `started` count tasks that are behind or begun."""

    person: int
    name: str
    tasks: int
    judgments: float
    hours: float
    done: int = 0
    started: int = 0
    departed: bool = False


@dataclass(frozen=True)
class Plan:
    """Tasks as they are or would be, what is wrong with them, and what they cost.

    `idle` are the names of assessors who are present and have no task.
    """

    assignment: Assignment
    problems: list[str]
    judgments: float
    hours: float
    loads: list[Load]
    idle: list[str]


@dataclass(frozen=True)
class Deal:
    """The deal as it is (None before the first), and what dealing out would make of it.

    `why` says in a line why nothing can be dealt out, where nothing can.
    """

    current: Plan | None
    next: Plan | None
    why: str = ""

    @property
    def changes(self) -> bool:
        """Return whether dealing out again would give or take a task."""
        if self.current is None or self.next is None:
            return self.next is not None
        return set(self.current.assignment.tasks) != set(self.next.assignment.tasks)

    @property
    def moves(self) -> list[tuple[str, int, int]]:
        """Return (name, tasks now, tasks after dealing out) of everyone."""
        before = {load.person: load.tasks for load in self.current.loads} if self.current else {}
        after = self.next.loads if self.next else []
        return [(load.name, before.get(load.person, 0), load.tasks) for load in after]


def overview(tx: Tx, project: Project) -> Deal:
    """Return the deal as it is and as it would be; nothing is written."""
    now = current_plan(tx, project) if tasks.of_project(tx, project.id) else None
    try:
        return Deal(now, plan(tx, project))
    except DataError as error:
        return Deal(now, None, str(error))


def current_plan(tx: Tx, project: Project) -> Plan:
    """Return the tasks as they are, with what they leave uncovered."""
    return _told(tx, project, current(tx, project))


def plan(tx: Tx, project: Project) -> Plan:
    """Return what dealing out would give: anew where nobody has begun, else what is open."""
    return _told(tx, project, _planned(tx, project))


def deal(tx: Tx, project: Project, by: Person) -> Plan:
    """Deal the open work out; what somebody present has begun, or anybody finished, stays."""
    wanted = _planned(tx, project)
    _write(tx, project, wanted)
    audit.note(tx, "work dealt out", person=by.id, project=project.id, tasks=len(wanted))
    return _told(tx, project, wanted)


def leave_project(tx: Tx, project: Project, person: Person, by: Person) -> None:
    """Deal the open and begun work of somebody who has left to the others.

    What they judged stays in the log, and their finished tasks stay theirs.
    """
    mine = tasks.of_person(tx, project, person.id)
    if any(row.state in tasks.TO_DO for row in mine):
        pass_on(tx, project, person, by)


def pass_on(tx: Tx, project: Project, person: Person, by: Person) -> None:
    """Deal again what nobody covers since this person went; a closed project stays as it is."""
    if project.state == "closed":
        return
    _write(tx, project, leveled(current(tx, project), _fixed(tx, project)))
    audit.note(tx, "open work passed on", person=by.id, project=project.id, who=person.id)


def hand_on(tx: Tx, row: TaskRow) -> None:
    """A query that somebody handed back goes to whoever has least to do and has not seen it."""
    project = projects.get(tx, row.project)
    everyone = tasks.of_project(tx, project.id)
    seen = {t.person for t in everyone if t.query == row.query}
    free = [p for p in present_assessors(tx, project) if p not in seen]
    if not free:
        return
    load = {
        p: sum(t.person == p and t.state in ("open", "started") for t in everyone) for p in free
    }
    _add(
        tx, project, row.query, min(free, key=lambda p: (load[p], p)), row.tool, row.replicate,
        _last(tx, project) + 1,
    )  # fmt: skip


def work_alone(tx: Tx, project: Project, person: Person) -> None:
    """One person does it all: joins as assessor, gets every query; a draft with texts is opened."""
    if not projects.assesses(tx, project.id, person.id):
        projects.join(tx, project, person, "assessor", by=person)
    give_all(tx, project, person)
    if project.state == "draft" and texts.of_project(tx, project.id):
        projects.set_state(tx, project, "open", person)


def give_all(tx: Tx, project: Project, person: Person) -> int:
    """Every query to one person, under the project's tool; for those who work alone."""
    have = {(t.query, t.tool) for t in tasks.of_person(tx, project, person.id)}
    count = 0
    for row in texts.of_project(tx, project.id):
        if (row["id"], project.tool) not in have:
            _add(tx, project, row["id"], person.id, project.tool, 0, row["position"])
            count += 1
    audit.note(tx, "tasks given", person=person.id, project=project.id, tasks=count)
    return count


def current(tx: Tx, project: Project) -> Assignment:
    """Return the tasks as they are; queries stand in the order of work.

    Tasks that cover a query are those done by anybody, and those open or begun of people who are
    present.  Handed back ones, and those begun by people who left, are abandoned; what people who
    left had not begun is nobody's.
    """
    rows = tasks.of_project(tx, project.id)
    keys = dict.fromkeys(row.query_key for row in rows)
    keys |= dict.fromkeys(row["key"] for row in texts.of_project(tx, project.id))
    present = present_assessors(tx, project)
    others = dict.fromkeys(str(row.person) for row in rows if row.person not in present)
    return Assignment(
        tuple(keys), tuple(map(str, present)), project.tools, project.options.replicates,
        tuple(_task(row) for row in rows if tasks.covers(row, present)), tuple(others),
        tuple(_task(row) for row in rows if tasks.abandoned(row, present)),
    )  # fmt: skip


def _task(row: TaskRow) -> Task:
    return Task(row.query_key, str(row.person), row.tool, row.replicate)


def effort_of(setting: Setting, tool: str, n: int, seconds: float | None = None) -> Prediction:
    """What to expect of one query of n documents."""
    return predicted_effort(
        n, setting.k, tool=tool, strategy=setting.strategy, refine=setting.refine, seconds=seconds
    )


def _planned(tx: Tx, project: Project) -> Assignment:
    keys = [row["key"] for row in texts.of_project(tx, project.id)]
    people = [str(p) for p in present_assessors(tx, project)]
    if not keys:
        raise DataError("there are no queries yet; import some first.")
    if not people:
        raise DataError("there are no assessors yet; invite some first.")
    if all(row.state == "open" for row in tasks.of_project(tx, project.id)):
        return make_assignment(
            keys, people, folds=project.options.folds, tools=project.tools,
            replicates=project.options.replicates, seed=project.setting.seed,
        )  # fmt: skip
    return leveled(current(tx, project), _fixed(tx, project))


def _told(tx: Tx, project: Project, assignment: Assignment) -> Plan:
    sizes = {row["key"]: row["n"] for row in texts.of_project(tx, project.id)}
    names = _names(tx, project)
    states = {
        (r.query_key, str(r.person), r.tool): r.state for r in tasks.of_project(tx, project.id)
    }
    effort: dict[str, list[tuple[float, float]]] = {name: [] for name in assignment.assessors}
    counts: Counter[tuple[str, str]] = Counter()
    for task in assignment.tasks:
        each = effort_of(project.setting, task.tool, sizes[task.query], project.options.seconds)
        effort.setdefault(task.assessor, []).append((each.judgments, each.hours))
        counts[task.assessor, states.get((task.query, task.assessor, task.tool), "open")] += 1
    loads = [
        Load(
            int(p), names.get(p, p), len(c), sum(a for a, _ in c), sum(b for _, b in c),
            counts[p, "done"], counts[p, "started"], p in assignment.gone,
        )
        for p, c in effort.items()
    ]  # fmt: skip
    return Plan(
        assignment, problems(_named(assignment, names)), sum(x.judgments for x in loads),
        sum(x.hours for x in loads), loads,
        [x.name for x in loads if not x.tasks],
    )  # fmt: skip


def _names(tx: Tx, project: Project) -> dict[str, str]:
    """Return what people are called, by id as text; two of one name have their logins beside."""
    called = {
        str(row["person"]): (row["name"], row["login"]) for row in projects.members(tx, project)
    }
    count = Counter(name for name, _ in called.values())
    return {
        person: name if count[name] == 1 else f"{name} ({login})"
        for person, (name, login) in called.items()
    }


def _named(assignment: Assignment, names: Mapping[str, str]) -> Assignment:
    """Return the same assignment with people by what they are called."""

    def called(rows: Sequence[Task]) -> tuple[Task, ...]:
        return tuple(replace(t, assessor=names.get(t.assessor, t.assessor)) for t in rows)

    return replace(
        assignment, assessors=tuple(names.get(p, p) for p in assignment.assessors),
        gone=tuple(names.get(p, p) for p in assignment.gone), tasks=called(assignment.tasks),
        abandoned=called(assignment.abandoned),
    )  # fmt: skip


def _write(tx: Tx, project: Project, wanted: Assignment) -> None:
    """Open tasks that are not wanted go; those wanted and absent come."""
    rows = {(r.query_key, str(r.person), r.tool): r for r in tasks.of_project(tx, project.id)}
    keep = {(t.query, t.assessor, t.tool) for t in wanted.tasks}
    gone = [r.id for key, r in rows.items() if key not in keep and r.state == "open"]
    for start in range(0, len(gone), 500):
        part = gone[start : start + 500]
        tx.run(delete(spans).where(spans.c.task.in_(part)))
        tx.run(delete(task_table).where(task_table.c.id.in_(part)))
    queries = {row["key"]: row["id"] for row in texts.of_project(tx, project.id)}
    place = {key: i for i, key in enumerate(wanted.queries)}
    for task in wanted.tasks:
        if (task.query, task.assessor, task.tool) not in rows:
            _add(
                tx, project, queries[task.query], int(task.assessor), task.tool, task.replicate,
                place[task.query],
            )  # fmt: skip


def _add(tx: Tx, project: Project, query: int, person: int, tool: str, *place: int) -> None:
    """A task; one with nothing to ask is done at once."""
    settle(tx, tasks.add(tx, project, query, person, tool, *place))


def _fixed(tx: Tx, project: Project) -> list[tuple[str, str]]:
    """Return (query, person) of covering tasks that are begun or finished."""
    present = present_assessors(tx, project)
    rows = tasks.of_project(tx, project.id)
    return [
        (r.query_key, str(r.person)) for r in rows if r.state != "open" and tasks.covers(r, present)
    ]


def present_assessors(tx: Tx, project: Project) -> list[int]:
    """Return the ids of the assessors who have not left, in the order of coming."""
    rows = projects.members(tx, project, "assessor")
    return [row["person"] for row in rows if row["departed_at"] is None]


def _last(tx: Tx, project: Project) -> int:
    last = select(func.max(task_table.c.position)).where(task_table.c.project == project.id)
    return int(tx.value(last) or 0)
