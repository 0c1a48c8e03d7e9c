"""Projects, who belongs to them, and who may manage whose account."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, get_args

from sqlalchemy import RowMapping, Select, and_, bindparam, func, select, update

from firstpage.errors import DataError
from firstpage.labeling.session.events import DEFAULT_STRATEGY, Setting, setting_from
from firstpage.labeling.strategies.exhaustive import FiveGrade
from firstpage.labeling.strategies.registry import STRATEGY_OF, check_documents, strategy
from firstpage.web.store import audit
from firstpage.web.store.connect import Tx
from firstpage.web.store.options import Options, Tool, read_options
from firstpage.web.store.people import Person
from firstpage.web.store.tables import documents, memberships, people, projects, queries

TOOLS = get_args(Tool)
STATES = ("draft", "open", "closed")
ROLES = ("lead", "assessor")
MAX_TITLE, MAX_GUIDELINES = 300, 200_000  # characters
# Prepared once: it is asked before every answer.
ASSESSES = select(memberships.c.person).where(
    memberships.c.project == bindparam("project"), memberships.c.person == bindparam("person"),
    memberships.c.role == "assessor", memberships.c.departed_at.is_(None),
)  # fmt: skip
SEEN = projects.c.state.in_(STATES)  # not the place where an import is being written
SLUG = re.compile(r"[a-z0-9][a-z0-9\-]{0,63}")


@dataclass(frozen=True)
class Project:
    """One labeling project; `options` have defaults where none were given."""

    id: int
    slug: str
    title: str
    guidelines: str
    tool: str
    setting: Setting
    options: Options
    state: str
    created: str

    @property
    def tools(self) -> tuple[str, ...]:
        """All that its assessors use; one unless the options name several."""
        return tuple(self.options.tools or (self.tool,))


@dataclass(frozen=True)
class Member:
    """Somebody in a project, with all roles there."""

    person: Person
    project: Project
    roles: tuple[str, ...]

    @property
    def leads(self) -> bool:
        return "lead" in self.roles or self.person.admin


def create(
    tx: Tx, slug: str, title: str = "", *, tool: str = "pairs", guidelines: str = "",
    setting: Mapping[str, Any] | None = None, options: Mapping[str, Any] | None = None,
    by: Person | None = None,
) -> Project:  # fmt: skip
    """A new project in draft; who makes it leads it."""
    if not SLUG.fullmatch(slug):
        raise DataError(
            f"a project's short name has 1 to 64 of a-z, 0-9 and -, not - first; got {slug[:70]!r}."
        )
    if tx.value(select(projects.c.id).where(projects.c.slug == slug)):
        raise DataError(f"there is a project {slug!r} already; choose another short name.")
    row = tx.add(
        projects, slug=slug, title=_short(title.strip()) or slug,
        guidelines=_readable(guidelines),
        tool=_tool(tool), setting=asdict(setting_of(setting or {})),
        options=read_options(options or {}).model_dump(exclude_unset=True),
        state="draft", created=tx.now,
    )  # fmt: skip
    made = get(tx, row)
    check_fit(made.setting, made.tools)
    audit.note(tx, "project created", person=by.id if by else None, project=row, slug=slug)
    if by is not None:
        join(tx, made, by, "lead", by=by)
    return made


def setting_of(record: Mapping[str, Any]) -> Setting:
    """A setting whose strategy exists, checked before anybody works by it."""
    try:
        found = setting_from({"strategy": DEFAULT_STRATEGY, **record})
    except TypeError as error:
        raise DataError(f"this setting cannot be read ({error}).") from error
    strategy(found.strategy)
    return found


def check_fit(setting: Setting, tools: Sequence[str]) -> None:
    """Refuse a strategy that asks other questions than the tool shows."""
    graded = isinstance(strategy(setting.strategy), FiveGrade)
    if graded and "pairs" in tools:
        raise DataError("five-grade asks for grades; take the tool 'grades' for it.")


def check_size(query: str, count: int, setting: Setting, tools: Sequence[str]) -> None:
    """Refuse a query with more documents than the strategy of one of the tools takes."""
    for tool in tools:
        check_documents(query, count, STRATEGY_OF.get(tool, setting.strategy), setting.refine)


def _asks(project: Project) -> tuple[object, ...]:
    """All that the number of documents is limited by."""
    return project.setting.strategy, project.setting.refine, project.tools


def _check_largest(tx: Tx, project: Project) -> None:
    """Refuse a setting that the largest query of a project is too large for."""
    count = func.count().label("n")
    largest = tx.first(
        select(queries.c.key, count)
        .join(documents, documents.c.query == queries.c.id)
        .where(queries.c.project == project.id, queries.c.purpose == "work")
        .group_by(queries.c.id, queries.c.key)
        .order_by(count.desc(), queries.c.id)
        .limit(1)
    )
    if largest is not None:
        check_size(largest["key"], largest["n"], project.setting, project.tools)


def change(tx: Tx, project: Project, changes: Mapping[str, Any], by: Person) -> Project:
    """Other title, guidelines, tool, setting or options; tool and setting only in draft."""
    fixed = [name for name in ("tool", "setting") if changes.get(name) is not None]
    if fixed and project.state != "draft":
        raise DataError(
            f"the {fixed[0]} of a project is fixed once it was opened; "
            "switch single tasks, or make another project."
        )
    new: dict[str, Any] = {}
    if changes.get("title") is not None:
        new["title"] = _short(str(changes["title"]))
    if changes.get("guidelines") is not None:
        new["guidelines"] = _readable(str(changes["guidelines"]))
    if changes.get("tool") is not None:
        new["tool"] = _tool(changes["tool"])
    if changes.get("setting") is not None:
        new["setting"] = asdict(setting_of({**asdict(project.setting), **changes["setting"]}))
    if changes.get("options") is not None:
        new["options"] = read_options(
            {**project.options.model_dump(), **changes["options"]}
        ).model_dump()
    if new:
        tx.run(update(projects).where(projects.c.id == project.id).values(**new))
        audit.note(tx, "project changed", person=by.id, project=project.id, **new)
    changed = get(tx, project.id)
    check_fit(changed.setting, changed.tools)
    if _asks(changed) != _asks(project):
        _check_largest(tx, changed)
    return changed


def set_state(tx: Tx, project: Project, state: str, by: Person) -> Project:
    assert state in STATES
    tx.run(update(projects).where(projects.c.id == project.id).values(state=state))
    audit.note(tx, f"project {state}", person=by.id, project=project.id)
    return get(tx, project.id)


def get(tx: Tx, project: int) -> Project:
    row = tx.first(select(projects).where(projects.c.id == project))
    assert row is not None, f"no project {project}"
    return _project(row)


def every_project(tx: Tx) -> list[Project]:
    """All there are, the oldest first."""
    found = select(projects).where(SEEN).order_by(projects.c.id)
    return [_project(row) for row in tx.all(found)]


def by_slug(tx: Tx, slug: str) -> Project | None:
    row = tx.first(select(projects).where(projects.c.slug == slug, SEEN))
    return None if row is None else _project(row)


def of_person(tx: Tx, person: Person) -> list[Member]:
    """The projects that one may see, oldest first; an admin sees all."""
    found: Select[Any] = select(projects, memberships.c.role).where(SEEN).order_by(projects.c.id)
    mine = and_(
        memberships.c.project == projects.c.id,
        memberships.c.person == person.id,
        memberships.c.departed_at.is_(None),
    )
    rows = tx.all(found.join(memberships, mine, isouter=person.admin))
    roles: dict[int, list[str]] = {}
    for row in rows:
        roles.setdefault(row["id"], []).extend([row["role"]] if row["role"] else [])
    kept = {row["id"]: row for row in rows}
    return [Member(person, _project(row), tuple(sorted(roles[i]))) for i, row in kept.items()]


def member(tx: Tx, slug: str, person: Person) -> Member | None:
    """Somebody's place in a project; None where there is none, or no such project."""
    project = by_slug(tx, slug)
    if project is None:
        return None
    rows = tx.all(
        select(memberships.c.role).where(
            memberships.c.project == project.id,
            memberships.c.person == person.id,
            memberships.c.departed_at.is_(None),
        )
    )
    roles = tuple(sorted(row["role"] for row in rows))
    return Member(person, project, roles) if roles or person.admin else None


def join(tx: Tx, project: Project, person: Person, role: str, by: Person | None = None) -> None:
    """Somebody comes, or comes back."""
    if role not in ROLES:
        raise DataError(f"a role is one of {', '.join(ROLES)}; got {role!r}.")
    key = {"project": project.id, "person": person.id, "role": role}
    same = and_(*(memberships.c[name] == value for name, value in key.items()))
    if not tx.run(update(memberships).where(same).values(departed_at=None)):
        tx.add(memberships, **key, joined=tx.now)
    audit.note(
        tx, "joined", person=by.id if by else person.id, project=project.id,
        who=person.id, role=role,
    )  # fmt: skip


def leave(tx: Tx, project: Project, person: Person, by: Person) -> bool:
    """Somebody goes; what they judged stays.  False where they were not there."""
    if _leads(tx, project) == {person.id} and not by.admin:
        raise DataError("you are the only lead here; invite another one before you go.")
    here = and_(
        memberships.c.project == project.id,
        memberships.c.person == person.id,
        memberships.c.departed_at.is_(None),
    )
    gone = tx.run(update(memberships).where(here).values(departed_at=tx.now))
    if gone:
        audit.note(tx, "departed", person=by.id, project=project.id, who=person.id)
    return gone > 0


def _leads(tx: Tx, project: Project) -> set[int]:
    return {r["person"] for r in members(tx, project, "lead") if r["departed_at"] is None}


def assesses(tx: Tx, project: int, person: int) -> bool:
    """Is this person an assessor of the project, and has not left?"""
    return tx.value(ASSESSES, project=project, person=person) is not None


def members(tx: Tx, project: Project, role: str | None = None) -> Sequence[RowMapping]:
    """Rows of person, login, name, role, joined, departed_at; in the order of coming."""
    found = (
        select(
            memberships.c.person, people.c.login, people.c.name,
            memberships.c.role, memberships.c.joined, memberships.c.departed_at,
        )
        .join(people, people.c.id == memberships.c.person)
        .where(memberships.c.project == project.id)
        .order_by(memberships.c.joined, memberships.c.person, memberships.c.role)
    )  # fmt: skip
    return tx.all(found if role is None else found.where(memberships.c.role == role))


def _short(title: str) -> str:
    if len(title) > MAX_TITLE:
        raise DataError(f"a title has at most {MAX_TITLE} characters; got {len(title):,}.")
    return title


def _readable(guidelines: str) -> str:
    if len(guidelines) > MAX_GUIDELINES:
        raise DataError(
            f"guidelines have at most {MAX_GUIDELINES:,} characters; got {len(guidelines):,}."
        )
    return guidelines


def _tool(name: str) -> str:
    if name not in TOOLS:
        raise DataError(f"a tool is one of {', '.join(TOOLS)}; got {name!r}.")
    return name


def _project(row: RowMapping) -> Project:
    return Project(
        row["id"], row["slug"], row["title"], row["guidelines"], row["tool"],
        setting_from(row["setting"]), read_options(row["options"]), row["state"], row["created"],
    )  # fmt: skip


def the_project(tx: Tx, slug: str | None = None) -> Project:
    """The one of this short name, or the only one there is."""
    have = [project.slug for project in every_project(tx)]
    if slug is None and len(have) != 1:
        listed = ", ".join(have) or "none yet"
        raise DataError(
            f"this store holds several projects or none ({listed}); choose one by --name."
        )
    found = by_slug(tx, slug or have[0])
    if found is None:
        raise DataError(f"there is no project {slug!r} here (there are: {', '.join(have)}).")
    return found


def may_manage(tx: Tx, by: Person, whom: Person) -> bool:
    """May `by` reset the password or delete the data of `whom`?

    An admin may.  A lead may for an assessor who leads nothing and whose projects, past and
    present, this lead leads all: otherwise leading one project would open the others.
    """
    if by.admin:
        return True
    if whom.admin or by.id == whom.id or projects_of(tx, whom.id, "lead"):
        return False
    theirs = projects_of(tx, whom.id)
    return bool(theirs) and theirs <= projects_of(tx, by.id, "lead")


def may_add(tx: Tx, by: Person, whom: Person, project: Project) -> bool:
    """May `by`, who leads the project, add `whom` without their consent?

    Those who are in it, and those whom `by` manages; others consent by accepting an invitation.
    """
    if by.id == whom.id or may_manage(tx, by, whom):
        return True
    return any(project.id in projects_of(tx, whom.id, role) for role in ("lead", "assessor"))


def projects_of(tx: Tx, person: int, role: str | None = None) -> set[int]:
    """Return the projects that somebody is or was in; with a role, where they have it now."""
    found = select(memberships.c.project).where(memberships.c.person == person)
    if role is not None:
        found = found.where(memberships.c.role == role, memberships.c.departed_at.is_(None))
    return {row["project"] for row in tx.all(found)}
