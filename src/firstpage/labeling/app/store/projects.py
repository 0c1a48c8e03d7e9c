"""Projects, their members, and who may manage whose account."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, get_args

from sqlalchemy import RowMapping, Select, and_, bindparam, func, select, update

from firstpage.core import DataError
from firstpage.labeling.app.store import audit
from firstpage.labeling.app.store.connect import Tx, from_row
from firstpage.labeling.app.store.options import Options, Tool, read_options
from firstpage.labeling.app.store.people import Person
from firstpage.labeling.app.store.scales import shown_scale
from firstpage.labeling.app.store.tables import (
    adjudications,
    documents,
    events,
    gold_questions,
    logins,
    memberships,
    people,
    projects,
    queries,
    tasks,
)
from firstpage.labeling.session.events import (
    DEFAULT_STRATEGY,
    LeadVerdict,
    Setting,
    adjudication_from_dict,
    setting_from_dict,
)
from firstpage.labeling.strategies.exhaustive import FiveGrade
from firstpage.labeling.strategies.registry import STRATEGY_OF, check_documents, strategy

TOOLS = get_args(Tool)
STATES = ("draft", "open", "closed")
ROLES = ("lead", "assessor")
MAX_TITLE, MAX_GUIDELINES = 300, 200_000  # characters
PRESENT = memberships.c.departed_at.is_(None)
# Prepared once: it runs before every answer.
ASSESSOR_ROW = select(memberships.c.person).where(
    memberships.c.project == bindparam("project"),
    memberships.c.person == bindparam("person"),
    memberships.c.role == "assessor",
    PRESENT,
)
VISIBLE = projects.c.state.in_(STATES)  # not the staging project of an import
SEED_RANGE = 2**31
OPENED = "the tool of a project cannot change once it was opened; create another project."
SLUG = re.compile(r"[a-z0-9][a-z0-9\-]{0,63}")


@dataclass(frozen=True)
class Project:
    """A labeling project; `options` include defaults.

    `source` describes where the documents come from: {"index": {"path", "fingerprint"}} or
    {"letor": {"path"}}; None if it is not known.
    """

    id: int
    slug: str
    title: str
    guidelines: str
    tool: str
    setting: Setting
    options: Options
    state: str
    created: str
    source: dict[str, Any] | None = None
    archived: str | None = None

    @property
    def tools(self) -> tuple[str, ...]:
        """The tools that assessors use; one unless the options name several."""
        return tuple(self.options.tools or (self.tool,))


@dataclass(frozen=True)
class Member:
    """A person in a project, with all their roles there."""

    person: Person
    project: Project
    roles: tuple[str, ...]

    @property
    def is_lead(self) -> bool:
        """Whether the person is a lead of the project, or an admin."""
        return "lead" in self.roles or self.person.admin


def create(
    tx: Tx,
    slug: str,
    title: str = "",
    *,
    tool: str = "pairs",
    guidelines: str = "",
    setting: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    source: Mapping[str, Any] | None = None,
    by: Person | None = None,
) -> Project:
    """Create a project in draft; `by` becomes its lead."""
    if not SLUG.fullmatch(slug):
        raise DataError(
            "a short name must be 1 to 64 of a-z, 0-9 and -, not starting with -; "
            f"got {slug[:70]!r}."
        )
    if tx.value(select(projects.c.id).where(projects.c.slug == slug)):
        raise DataError(f"a project named {slug!r} exists already; choose another short name.")
    stored_options = read_options(options or {}).to_dict()
    row = tx.add(
        projects,
        slug=slug,
        title=_check_title(title.strip()) or slug,
        guidelines=_check_guidelines(guidelines),
        tool=_check_tool(tool),
        setting=asdict(setting_of(setting or {})),
        options={name: stored_options[name] for name in options or {}},
        state="draft",
        source=None if source is None else dict(source),
        created=tx.now,
    )
    project = get(tx, row)
    _check_first_tool(project)
    check_strategy(project.setting, project.tools)
    audit.note(tx, "project created", by, row, slug=slug)
    if by is not None:
        join(tx, project, by, "lead", by=by)
    return project


def setting_of(record: Mapping[str, Any]) -> Setting:
    """Return the setting of a record, with a strategy that exists."""
    try:
        setting = setting_from_dict({"strategy": DEFAULT_STRATEGY, **record})
    except TypeError as error:
        raise DataError(f"this setting cannot be read ({error}).") from error
    strategy(setting.strategy)  # raises if it does not exist
    return setting


def check_strategy(setting: Setting, tools: Sequence[str]) -> None:
    """Refuse a strategy that asks questions which the tools do not show."""
    graded = isinstance(strategy(setting.strategy), FiveGrade)
    if graded and "pairs" in tools:
        raise DataError("the strategy five-grade asks for grades; use it with the tool 'grades'.")


def check_size(query: str, count: int, setting: Setting, tools: Sequence[str]) -> None:
    """Refuse a query with more documents than the strategy of a tool supports."""
    for tool in tools:
        check_documents(query, count, STRATEGY_OF.get(tool, setting.strategy), setting.refine)


def _size_limits(project: Project) -> tuple[object, ...]:
    """Return the settings on which the maximum number of documents depends."""
    return project.setting.strategy, project.setting.refine, project.tools


def _check_largest(tx: Tx, project: Project) -> None:
    """Refuse a setting whose strategy does not support the largest query of the project."""
    count = func.count().label("n")
    largest = tx.first(
        select(queries.c.key, count)
        .join(documents, documents.c.query == queries.c.id)
        .where(
            queries.c.project == project.id,
            queries.c.purpose == "work",
            queries.c.archived.is_(None),
            documents.c.archived.is_(None),
        )
        .group_by(queries.c.id, queries.c.key)
        .order_by(count.desc(), queries.c.id)
        .limit(1)
    )
    if largest is not None:
        check_size(largest["key"], largest["n"], project.setting, project.tools)


def change(tx: Tx, project: Project, changes: Mapping[str, Any], by: Person | None) -> Project:
    """Change title, guidelines, tool, setting or options.

    The tool can change only in draft, the setting until the first judgment.
    """
    if changes.get("tool") is not None and project.state != "draft":
        raise DataError(OPENED)
    if changes.get("setting") is not None:
        _check_unjudged(tx, project, changes["setting"])
    new: dict[str, Any] = {}
    if changes.get("title") is not None:
        new["title"] = _check_title(str(changes["title"]))
    if changes.get("guidelines") is not None:
        new["guidelines"] = _check_guidelines(str(changes["guidelines"]))
    if changes.get("tool") is not None:
        new["tool"] = _check_tool(changes["tool"])
    if changes.get("setting") is not None:
        new["setting"] = asdict(setting_of({**asdict(project.setting), **changes["setting"]}))
    if changes.get("options") is not None:
        options = read_options({**project.options.to_dict(), **changes["options"]})
        _check_scale(tx, project, options)
        new["options"] = options.to_dict()
    if new:
        tx.run(update(projects).where(projects.c.id == project.id).values(**new))
        audit.note(tx, "project changed", by, project, **new)
    changed = get(tx, project.id)
    if (changed.tool, changed.tools) != (project.tool, project.tools):
        _check_changed_tools(project, changed)
    if changed.setting != project.setting:
        _update_tasks(tx, changed)
    check_strategy(changed.setting, changed.tools)
    if _size_limits(changed) != _size_limits(project):
        _check_largest(tx, changed)
    return changed


def _check_changed_tools(project: Project, changed: Project) -> None:
    """Refuse other tools once the project was opened: answers belong to a tool."""
    if project.state != "draft":
        raise DataError(OPENED)
    _check_first_tool(changed)


def _check_first_tool(project: Project) -> None:
    """Refuse several tools of which the project's own tool is not the first."""
    if project.tool != project.tools[0]:
        raise DataError(
            f"the tool of a project must be the first of its tools; got {project.tool!r}, and the "
            f"tools {', '.join(project.tools)}."
        )


def answer_count(tx: Tx, project: Project) -> int:
    """Return the number of events in the logs of a project."""
    return tx.count(events.join(tasks, tasks.c.id == events.c.task), tasks.c.project == project.id)


def fixed_settings(tx: Tx, project: Project) -> dict[str, str]:
    """Return why parts of a project, `tool` and `setting`, cannot change any more."""
    fixed = {}
    if project.state != "draft":
        fixed["tool"] = "The project was opened with this tool; create another project for others."
    answers = answer_count(tx, project)
    if answers:
        fixed["setting"] = (
            f"{answers:,} answers were given to questions that depend on these settings. Switch "
            "single queries on the page People, or create another project."
        )
    return fixed


def _check_unjudged(tx: Tx, project: Project, setting: Mapping[str, Any]) -> None:
    """Refuse to change settings with which something was judged."""
    old = asdict(project.setting)
    names = [name.replace("_", " ") for name, value in setting.items() if value != old.get(name)]
    tx.all(select(tasks.c.id).where(tasks.c.project == project.id).with_for_update())
    judgments = answer_count(tx, project)
    if names and judgments:
        raise DataError(
            f"{', '.join(names)} of the project {project.slug!r} cannot change any more: there "
            f"are {judgments:,} answers to questions that depend on it; switch single queries on "
            "the page People, or create another project."
        )


def _check_scale(tx: Tx, project: Project, options: Options) -> None:
    """Refuse another number of grades once documents were graded; names may change.

    Known answers allow more grades, and fewer down to the highest of theirs.
    """
    before, after = (len(shown_scale(o.grades)) for o in (project.options, options))
    if before == after:
        return
    graded = select(tasks.c.id).where(
        tasks.c.project == project.id, tasks.c.tool == "grades", tasks.c.judgments > 0
    )
    if tx.value(graded.limit(1)) is not None or _has_grade_verdict(tx, project):
        raise DataError(
            f"the number of grades of the project {project.slug!r} cannot change from {before} to "
            f"{after}: documents were graded; their names, keys and colors can change."
        )
    highest = tx.value(
        select(func.max(gold_questions.c.outcome)).where(
            gold_questions.c.project == project.id, gold_questions.c.right.is_(None)
        )
    )
    if highest is not None and highest >= after:
        raise DataError(
            f"the project {project.slug!r} needs at least {highest + 1} grades, since a known "
            f"answer has the grade {highest}, counted from 0; got {after}."
        )


def _has_grade_verdict(tx: Tx, project: Project) -> bool:
    """Return whether a lead settled a grade; a verdict that was withdrawn does not count."""
    rows = tx.all(
        select(adjudications.c.event)
        .join(queries, queries.c.id == adjudications.c.query)
        .where(queries.c.project == project.id, adjudications.c.tool == "grades")
    )
    log = [adjudication_from_dict(row["event"]) for row in rows]
    return sum(1 if isinstance(event, LeadVerdict) else -1 for event in log) > 0


def _update_tasks(tx: Tx, project: Project) -> None:
    """Give the tasks of a project, none of which has an answer, its new setting."""
    rows = select(tasks.c.id, tasks.c.query, tasks.c.person, tasks.c.tool)
    for row in tx.all(rows.where(tasks.c.project == project.id)):
        setting = asdict(task_setting(project, row["tool"], row["query"], row["person"]))
        tx.run(update(tasks).where(tasks.c.id == row["id"]).values(setting=setting))


def task_setting(project: Project, tool: str, query: int, person: int) -> Setting:
    """Return a task's own setting: a tool may fix the strategy, and every task has its own seed."""
    setting = project.setting
    number = query * 31 + person  # a number that depends on nothing else
    return replace(
        setting,
        strategy=STRATEGY_OF.get(tool, setting.strategy),
        seed=(setting.seed * 1_000_003 + number) % SEED_RANGE,
    )


def set_state(tx: Tx, project: Project, state: str, by: Person) -> Project:
    """Set the state of a project: draft, open or closed."""
    assert state in STATES
    if project.archived is not None:
        raise DataError(f"the project {project.slug!r} is archived; restore it first.")
    tx.run(update(projects).where(projects.c.id == project.id).values(state=state))
    audit.note(tx, f"project {state}", by, project)
    return get(tx, project.id)


def get(tx: Tx, project: int) -> Project:
    """Return the project with this id, which must exist."""
    row = tx.first(select(projects).where(projects.c.id == project))
    assert row is not None, f"no project {project}"
    return _project(row)


def all_projects(tx: Tx) -> list[Project]:
    """Return all projects, the oldest first."""
    rows = select(projects).where(VISIBLE).order_by(projects.c.id)
    return [_project(row) for row in tx.all(rows)]


def by_slug(tx: Tx, slug: str) -> Project | None:
    """Return the project with this short name; None if there is none."""
    row = tx.first(select(projects).where(projects.c.slug == slug, VISIBLE))
    return None if row is None else _project(row)


def of_person(tx: Tx, person: Person) -> list[Member]:
    """Return the projects that a person may see, oldest first; an admin sees all.

    Archived projects are shown to their leads only.
    """
    statement: Select[Any] = (
        select(projects, memberships.c.role).where(VISIBLE).order_by(projects.c.id)
    )
    same = memberships.c.project == projects.c.id, memberships.c.person == person.id
    rows = tx.all(statement.join(memberships, and_(*same, PRESENT), isouter=person.admin))
    roles: dict[int, list[str]] = {}
    for row in rows:
        roles.setdefault(row["id"], []).extend([row["role"]] if row["role"] else [])
    by_id = {row["id"]: row for row in rows}
    found = [Member(person, _project(row), tuple(sorted(roles[i]))) for i, row in by_id.items()]
    return [member for member in found if member.is_lead or member.project.archived is None]


def member(tx: Tx, slug: str, person: Person) -> Member | None:
    """Return a person's membership; None if they are no member, or there is no such project.

    An archived project exists for its leads only.
    """
    project = by_slug(tx, slug)
    if project is None:
        return None
    same = memberships.c.project == project.id, memberships.c.person == person.id
    roles = tx.column(select(memberships.c.role).where(*same, PRESENT))
    membership = Member(person, project, tuple(sorted(roles)))
    visible = membership.is_lead or (bool(roles) and project.archived is None)
    return membership if visible else None


def join(tx: Tx, project: Project, person: Person, role: str, by: Person | None = None) -> None:
    """Add a person to a project, or let them return."""
    if role not in ROLES:
        raise DataError(f"a role must be one of {', '.join(ROLES)}; got {role!r}.")
    key = {"project": project.id, "person": person.id, "role": role}
    same = and_(*(memberships.c[name] == value for name, value in key.items()))
    if not tx.run(update(memberships).where(same).values(departed_at=None)):
        tx.add(memberships, **key, joined=tx.now)
    audit.note(tx, "joined", by or person, project, account=person.id, role=role)


def leave(tx: Tx, project: Project, person: Person, by: Person) -> bool:
    """Remove a person from a project; return whether they were a member.  Judgments stay."""
    if present(tx, project.id, "lead") == [person.id] and not by.admin:
        raise DataError(
            "you are the only lead of this project; invite another lead before you leave."
        )
    same = memberships.c.project == project.id, memberships.c.person == person.id
    departed = tx.run(update(memberships).where(*same, PRESENT).values(departed_at=tx.now))
    if departed:
        audit.note(tx, "departed", by, project, account=person.id)
    return departed > 0


def present(tx: Tx, project: int, role: str) -> list[int]:
    """Return the ids of the people with a role who have not left, in the order of joining."""
    rows = select(memberships.c.person).where(memberships.c.project == project, PRESENT)
    order = memberships.c.joined, memberships.c.person
    return tx.column(rows.where(memberships.c.role == role).order_by(*order))


def is_assessor(tx: Tx, project: int, person: int) -> bool:
    """Return whether this person is an assessor of the project who has not left."""
    return tx.value(ASSESSOR_ROW, project=project, person=person) is not None


def members(tx: Tx, project: Project, role: str | None = None) -> Sequence[RowMapping]:
    """Return person, login, name, role, joined and departed_at of all, in the order of joining."""
    rows = (
        select(
            memberships.c.person,
            people.c.login,
            people.c.name,
            memberships.c.role,
            memberships.c.joined,
            memberships.c.departed_at,
        )
        .join(people, people.c.id == memberships.c.person)
        .where(memberships.c.project == project.id)
        .order_by(memberships.c.joined, memberships.c.person, memberships.c.role)
    )
    return tx.all(rows if role is None else rows.where(memberships.c.role == role))


def last_activity(tx: Tx, project: Project) -> dict[int, dict[str, str | None]]:
    """Return when each member was last `seen` on the server, and last `answered` here."""
    ids = select(memberships.c.person).where(memberships.c.project == project.id)
    seen = tx.all(
        select(logins.c.person, func.max(logins.c.last_seen).label("time"))
        .where(logins.c.person.in_(ids))
        .group_by(logins.c.person)
    )
    answered = tx.all(
        select(events.c.person, func.max(events.c.recorded_at).label("time"))
        .join(tasks, tasks.c.id == events.c.task)
        .where(tasks.c.project == project.id)
        .group_by(events.c.person)
    )
    activity: dict[int, dict[str, str | None]] = {}
    for name, rows in (("seen", seen), ("answered", answered)):
        for row in rows:
            times = activity.setdefault(row["person"], {"seen": None, "answered": None})
            times[name] = row["time"]
    return {
        person: {**times, "seen": max(filter(None, times.values()), default=None)}
        for person, times in activity.items()
    }


def _check_title(title: str) -> str:
    if len(title) > MAX_TITLE:
        raise DataError(f"a title may have at most {MAX_TITLE} characters; got {len(title):,}.")
    return title


def _check_guidelines(guidelines: str) -> str:
    if len(guidelines) > MAX_GUIDELINES:
        raise DataError(
            f"guidelines may have at most {MAX_GUIDELINES:,} characters; got {len(guidelines):,}."
        )
    return guidelines


def _check_tool(name: str) -> str:
    if name not in TOOLS:
        raise DataError(f"a tool must be one of {', '.join(TOOLS)}; got {name!r}.")
    return name


def _project(row: RowMapping) -> Project:
    setting, options = setting_from_dict(row["setting"]), read_options(row["options"])
    return from_row(Project, row, setting=setting, options=options)


def find_project(tx: Tx, slug: str | None = None) -> Project:
    """Return the project with this short name, or the only project of the store."""
    slugs = [project.slug for project in all_projects(tx) if project.archived is None]
    if slug is None and len(slugs) != 1:
        listed = ", ".join(slugs) or "none yet"
        raise DataError(
            f"this store holds several projects or none ({listed}); choose one with --name."
        )
    project = by_slug(tx, slug or slugs[0])
    if project is None:
        raise DataError(f"there is no project {slug!r} here (there are: {', '.join(slugs)}).")
    return project


def may_manage(tx: Tx, by: Person, target: Person) -> bool:
    """Return whether `by` may reset the password or delete the data of `target`.

    An admin may.  A lead may if `target` leads no project and `by` leads all projects, past and
    present, of `target`: otherwise leading one project would give access to others.
    """
    if by.admin:
        return True
    if target.admin or by.id == target.id or projects_of(tx, target.id, "lead"):
        return False
    shared = projects_of(tx, target.id)
    return bool(shared) and shared <= projects_of(tx, by.id, "lead")


def may_add(tx: Tx, by: Person, target: Person, project: Project) -> bool:
    """Return whether `by`, a lead of the project, may add `target` without their consent.

    That holds for members of it and for people whom `by` manages; others accept an invitation.
    """
    if by.id == target.id or may_manage(tx, by, target):
        return True
    return any(project.id in projects_of(tx, target.id, role) for role in ("lead", "assessor"))


def projects_of(tx: Tx, person: int, role: str | None = None) -> set[int]:
    """Return the ids of a person's past and present projects, or where they have a role now."""
    rows = select(memberships.c.project).where(memberships.c.person == person)
    if role is not None:
        rows = rows.where(memberships.c.role == role, PRESENT)
    return set(tx.column(rows))
