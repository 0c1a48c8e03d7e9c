"""Assignments of queries to assessors: the tasks, views of them, and unmet requirements."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from firstpage.core import DataError

MAX_NAMES = 12  # listed in a message


@dataclass(frozen=True, order=True)
class Task:
    """A query for an assessor, with a tool.

    Attributes
    ----------
    query, assessor, tool : str
        Who judges what, and how.
    replicate : int
        The number of the repetition under the same tool, counted from 0.
    """

    query: str
    assessor: str
    tool: str
    replicate: int = 0

    @property
    def key(self) -> tuple[str, str]:
        """(query, assessor): identifies a task, since nobody judges a query twice."""
        return self.query, self.assessor


@dataclass(frozen=True)
class Assignment:
    """An assignment of queries to assessors.

    Parameters
    ----------
    queries : tuple of str
        The queries in the order of work; each needs `replicates` assessors per tool.
    assessors : tuple of str
        The assessors.
    tools : tuple of str
        The tools, such as "pairs" and "grades".
    replicates : int
        Number of assessors per query and tool.
    tasks : tuple of Task
        The tasks.
    departed : tuple of str, default ()
        Assessors who left: their finished tasks stay, and no requirement applies to them.
    abandoned : tuple of Task, default ()
        Tasks that were handed back, or started by an assessor who then left: they cover no
        query, and nobody gets a query again that they have abandoned.

    Examples
    --------
    >>> import firstpage as fp
    >>> assignment = fp.labeling.make_assignment(["q1", "q2"], ["ada", "ben"], tools=["pairs"])
    >>> assignment.load()
    {'ada': 1, 'ben': 1}
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
        """Return the tasks per assessor, in the order of work; some may have none."""
        return _group(self.tasks, (*self.assessors, *self.departed), "assessor")

    def by_query(self) -> dict[str, tuple[Task, ...]]:
        """Return the tasks per query; some may have none."""
        return _group(self.tasks, self.queries, "query")

    def load(self, tool: str | None = None) -> dict[str, int]:
        """Return the number of tasks per assessor.

        Parameters
        ----------
        tool : str, optional
            Count the tasks with this tool only.

        Returns
        -------
        dict of str to int
            The number of tasks per assessor who has not left.
        """
        counts = Counter(t.assessor for t in self.tasks if tool in (None, t.tool))
        return {name: counts[name] for name in self.assessors}

    def missing(self) -> list[tuple[str, str, int]]:
        """Return each (query, tool, replicate) without a task."""
        covered = {(t.query, t.tool, t.replicate) for t in self.tasks}
        return [
            (query, tool, r)
            for r in range(self.replicates)
            for query in self.queries
            for tool in self.tools
            if (query, tool, r) not in covered
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the assignment as a dictionary for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Assignment:
        """Return the assignment that `to_dict` wrote.

        Parameters
        ----------
        record : mapping
            The dictionary.

        Returns
        -------
        Assignment
            The assignment.

        Raises
        ------
        DataError
            If the record is not an assignment.
        """
        try:
            return cls(
                tuple(map(str, record["queries"])),
                tuple(map(str, record["assessors"])),
                tuple(map(str, record["tools"])),
                int(record["replicates"]),
                tuple(Task(**row) for row in record["tasks"]),
                tuple(map(str, record.get("departed", ()))),
                tuple(Task(**row) for row in record.get("abandoned", ())),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(
                f"the record is not an assignment ({error!r}); pass what Assignment.to_dict "
                "returned."
            ) from error


def problems(assignment: Assignment) -> list[str]:
    """Return every requirement that is not met, as a sentence; empty if all are met.

    1. Every query is judged under each tool, `replicates` times. 2. No assessor judges a query
    twice, with whatever tools. 3. Every assessor uses every tool (only if there are several
    tools); Niu et al. 2012, section 4.1.1.
    """
    return [
        *_unknown_names(assignment),
        *_uncovered(assignment),
        *_seen_twice(assignment),
        *_tools_unused(assignment),
    ]


def format_names(names: Iterable[object]) -> str:
    """Return the names separated by commas; of many, the rest is only counted."""
    texts = [str(name) for name in names]
    more = f" and {len(texts) - MAX_NAMES} more" if len(texts) > MAX_NAMES else ""
    return ", ".join(texts[:MAX_NAMES]) + more


def _unknown_names(a: Assignment) -> list[str]:
    known = {
        "query": set(a.queries),
        "assessor": {*a.assessors, *a.departed},
        "tool": set(a.tools),
    }
    messages = []
    for kind, names in known.items():
        unknown = sorted({getattr(t, kind) for t in a.tasks} - names)
        if unknown:
            messages.append(
                f"tasks refer to names that are not in the assignment: {kind} "
                f"{format_names(unknown)}"
            )
    return messages


def _uncovered(a: Assignment) -> list[str]:
    assessors: dict[tuple[str, str], set[str]] = {}
    for t in a.tasks:
        assessors.setdefault((t.query, t.tool), set()).add(t.assessor)
    return [
        f"query {query} has {len(assessors.get((query, tool), ()))} of {a.replicates} assessors "
        f"under {tool}"
        for query in a.queries
        for tool in a.tools
        if len(assessors.get((query, tool), ())) < a.replicates
    ]


def _seen_twice(a: Assignment) -> list[str]:
    tools: dict[tuple[str, str], list[str]] = {}
    for t in a.tasks:
        tools.setdefault(t.key, []).append(t.tool)
    return [
        f"assessor {assessor} sees query {query} {len(used)} times ({', '.join(used)})"
        for (query, assessor), used in tools.items()
        if len(used) > 1
    ]


def _tools_unused(a: Assignment) -> list[str]:
    if len(a.tools) < 2:
        return []
    used = {(t.assessor, t.tool) for t in a.tasks}
    return [
        f"assessor {assessor} never uses {tool}"
        for assessor in a.assessors
        for tool in a.tools
        if (assessor, tool) not in used
    ]


def _group(tasks: Iterable[Task], names: Iterable[str], by: str) -> dict[str, tuple[Task, ...]]:
    groups: dict[str, list[Task]] = {name: [] for name in names}
    for task in tasks:
        groups.setdefault(getattr(task, by), []).append(task)
    return {name: tuple(rows) for name, rows in groups.items()}
