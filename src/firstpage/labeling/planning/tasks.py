"""Who judges which query with which tool: the rows, views of them, and what is wrong with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from firstpage.errors import DataError

MANY = 12  # names format_names in one message at most


@dataclass(frozen=True, order=True)
class Task:
    """One query for one assessor, under one tool; `replicate` counts from 0."""

    query: str
    assessor: str
    tool: str
    replicate: int = 0

    @property
    def key(self) -> tuple[str, str]:
        """(query, assessor): enough to name a task, since nobody sees a query twice."""
        return self.query, self.assessor


@dataclass(frozen=True)
class Assignment:
    """What was asked for (queries, assessors, tools, replicates) and the tasks that give it.

    Queries stand in the order in which they are worked on; each wants `replicates` assessors
    under each tool.  `departed` are those who left: their finished tasks stay, and no requirement
    is held against them.  `abandoned` are tasks that were handed back, or begun by somebody who
    then left: they cover nothing, but nobody gets a query again that they have abandoned.
    """

    queries: tuple[str, ...]
    assessors: tuple[str, ...]
    tools: tuple[str, ...]
    replicates: int
    tasks: tuple[Task, ...]
    departed: tuple[str, ...] = ()
    abandoned: tuple[Task, ...] = ()

    def __len__(self) -> int:
        return len(self.tasks)

    def by_assessor(self) -> dict[str, tuple[Task, ...]]:
        """The tasks of everyone, in the order of work; those without work too."""
        return _grouped(self.tasks, (*self.assessors, *self.departed), "assessor")

    def by_query(self) -> dict[str, tuple[Task, ...]]:
        """The tasks of every query; a query that nobody judges has none."""
        return _grouped(self.tasks, self.queries, "query")

    def load(self, tool: str | None = None) -> dict[str, int]:
        """How many queries each present assessor has, in all or under one tool."""
        found = Counter(t.assessor for t in self.tasks if tool in (None, t.tool))
        return {name: found[name] for name in self.assessors}

    def missing(self) -> list[tuple[str, str, int]]:
        """(query, tool, replicate) that nobody has."""
        had = {(t.query, t.tool, t.replicate) for t in self.tasks}
        return [
            (query, tool, r)
            for r in range(self.replicates)
            for query in self.queries
            for tool in self.tools
            if (query, tool, r) not in had
        ]

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and numbers, for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Assignment:
        """From what `to_dict` gave."""
        try:
            return cls(
                tuple(map(str, given["queries"])),
                tuple(map(str, given["assessors"])),
                tuple(map(str, given["tools"])),
                int(given["replicates"]),
                tuple(Task(**row) for row in given["tasks"]),
                tuple(map(str, given.get("departed", ()))),
                tuple(Task(**row) for row in given.get("abandoned", ())),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(
                f"this is no assignment ({error!r}); give what Assignment.to_dict wrote."
            ) from error


def problems(assignment: Assignment) -> list[str]:
    """Every requirement that is not kept, in words; empty where all is fine.

    1. every query is judged under each tool, `replicates` times; 2. no assessor sees a query
    twice, under whatever tools; 3. every assessor uses every tool (asked only where there are
    several tools); Niu et al. 2012, section 4.1.1.
    """
    return [
        *_strangers(assignment),
        *_uncovered(assignment),
        *_seen_twice(assignment),
        *_tools_unused(assignment),
    ]


def format_names(names: Iterable[object]) -> str:
    """Names with commas between; the rest of many is only counted."""
    given = [str(name) for name in names]
    more = f" and {len(given) - MANY} more" if len(given) > MANY else ""
    return ", ".join(given[:MANY]) + more


def _strangers(a: Assignment) -> list[str]:
    known = {
        "query": set(a.queries), "assessor": {*a.assessors, *a.departed}, "tool": set(a.tools),
    }  # fmt: skip
    found = []
    for what, names in known.items():
        odd = sorted({getattr(t, what) for t in a.tasks} - names)
        if odd:
            found.append(f"tasks name what is not in the assignment: {what} {format_names(odd)}")
    return found


def _uncovered(a: Assignment) -> list[str]:
    people: dict[tuple[str, str], set[str]] = {}
    for t in a.tasks:
        people.setdefault((t.query, t.tool), set()).add(t.assessor)
    return [
        f"query {query} has {len(people.get((query, tool), ()))} of {a.replicates} assessors "
        f"under {tool}"
        for query in a.queries
        for tool in a.tools
        if len(people.get((query, tool), ())) < a.replicates
    ]


def _seen_twice(a: Assignment) -> list[str]:
    tools: dict[tuple[str, str], list[str]] = {}
    for t in a.tasks:
        tools.setdefault(t.key, []).append(t.tool)
    return [
        f"assessor {who} sees query {query} {len(used)} times ({', '.join(used)})"
        for (query, who), used in tools.items()
        if len(used) > 1
    ]


def _tools_unused(a: Assignment) -> list[str]:
    if len(a.tools) < 2:
        return []
    used = {(t.assessor, t.tool) for t in a.tasks}
    return [
        f"assessor {who} never uses {tool}"
        for who in a.assessors
        for tool in a.tools
        if (who, tool) not in used
    ]


def _grouped(tasks: Iterable[Task], names: Iterable[str], by: str) -> dict[str, tuple[Task, ...]]:
    found: dict[str, list[Task]] = {name: [] for name in names}
    for task in tasks:
        found.setdefault(getattr(task, by), []).append(task)
    return {name: tuple(rows) for name, rows in found.items()}
