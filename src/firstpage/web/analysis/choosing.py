"""Which query comes next: in the order of work, or the pair of lists that teaches most.

Nothing is kept of a choice.  It follows from the log alone, so any server makes the same, and an
answer, an undo or another person's answer changes the next one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from firstpage.data.preferences.preferences import Preferences
from firstpage.dcglearn.active import choose
from firstpage.dcglearn.advice import FEWEST
from firstpage.web.analysis.measure import Grades, Learned, learned, lists_of
from firstpage.web.store import projects
from firstpage.web.store.connect import Tx
from firstpage.web.store.projects import Project
from firstpage.web.store.tasks import TaskRow

ORDER = "order"
ALIKE = "the lists that are open have the same grades on both sides."
Pair = tuple[Grades, Grades]


@dataclass(frozen=True)
class Choice:
    """The task to do next; `by` tells how it was found, `why` what kept a wish from coming true."""

    task: int | None
    by: str = ORDER
    why: str | None = None


def following(tx: Tx, project: Project, mine: Sequence[TaskRow]) -> Choice:
    """Of one person's tasks; a query that was begun is finished first, and other tools keep their
    turn."""
    begun = [task.id for task in mine if task.state == "started"]
    waiting = [task for task in mine if task.state == "open"]
    if begun or not waiting:
        return Choice(begun[0] if begun else None)
    if project.options.choose == ORDER or waiting[0].tool != "lists":
        return Choice(waiting[0].id)
    found = learned(tx, project)
    why = held_up(project, found)
    if why is None:
        pairs = list(_open(tx, project, waiting))
        row = _most_teaching(found, [pair for _, pair in pairs], project.options.choose)
        if row is not None:
            return Choice(pairs[row][0], project.options.choose)
    return Choice(waiting[0].id, ORDER, why or ALIKE)


def held_up(project: Project, found: Learned) -> str | None:
    """Why queries come in the order of work although another choice is wished; for leads."""
    if project.options.choose == ORDER:
        return None
    if found.learner is None:
        return found.why
    if found.pairs < FEWEST:
        return f"{found.pairs} judgments teach something so far; choosing begins with {FEWEST}."
    return None


def told(project: Project, found: Learned) -> dict[str, Any]:
    """The same for a page or for JSON."""
    wish = project.options.choose
    why = held_up(project, found)
    return {"wish": wish, "by": ORDER if why else wish, "why": why}


def wish(tx: Tx, task: TaskRow, choices: Sequence[tuple[str, str]]) -> tuple[str, str] | None:
    """Which of a query's open pairs comes next; None: as the strategy would."""
    project = projects.get(tx, task.project)
    if project.options.choose == ORDER:
        return None
    found = learned(tx, project)
    if held_up(project, found) is not None:
        return None
    lists = lists_of(tx, project).get(task.query, {})
    pairs = [(lists.get(left, ()), lists.get(right, ())) for left, right in choices]
    row = _most_teaching(found, pairs, project.options.choose)
    return None if row is None else choices[row]


def _open(tx: Tx, project: Project, waiting: Iterable[TaskRow]) -> Iterator[tuple[int, Pair]]:
    """Tasks that nobody has begun, each with every pair of its lists."""
    lists = lists_of(tx, project)
    for task in waiting:
        if task.tool == "lists":
            for pair in combinations(lists.get(task.query, {}).values(), 2):
                yield task.id, pair


def _most_teaching(found: Learned, pairs: Sequence[Pair], how: Any) -> int | None:
    """The row that the measure would learn most from; None where both lists of all are alike."""
    if not pairs or found.learner is None:
        return None
    left, right = ([pair[side] for pair in pairs] for side in (0, 1))
    pool = Preferences.from_grades(left, right, grades=found.learner.given_.grades)
    rows = choose(found.learner, pool, 1, how)
    return rows[0] if rows else None
