"""Choice of the next query: in working order, or the most informative pair of lists.

A choice is not stored.  It follows from the log alone, so every server makes the same, and any
answer or undo, also of another person, can change the next one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from firstpage.data.preferences import Preferences
from firstpage.evaluation.dcglearn import MIN_ADAPTIVE_PAIRS, choose
from firstpage.labeling.app.analysis.measure import (
    Grades,
    ProjectMeasure,
    learned_measure,
    lists_of,
)
from firstpage.labeling.app.store import Project, TaskRow, Tx, projects

ORDER = "order"
SAME_GRADES = "the open lists have the same grades on both sides."
Pair = tuple[Grades, Grades]


@dataclass(frozen=True)
class Choice:
    """The next task, the method that chose it, and the reason for a fallback to working order."""

    task: int | None
    method: str = ORDER
    fallback_reason: str | None = None


def choose_next_task(tx: Tx, project: Project, rows: Sequence[TaskRow]) -> Choice:
    """Choose the next of a person's tasks.

    A started query is finished first; tasks with other tools keep their position.
    """
    started = [task.id for task in rows if task.state == "started"]
    waiting = [task for task in rows if task.state == "open"]
    if started or not waiting:
        return Choice(started[0] if started else None)
    if project.options.list_selection == ORDER or waiting[0].tool != "lists":
        return Choice(waiting[0].id)
    learned = learned_measure(tx, project)
    reason = fallback_reason(project, learned)
    if reason is None:
        pairs = list(_open_pairs(tx, project, waiting))
        row = _most_informative(
            learned, [pair for _, pair in pairs], project.options.list_selection
        )
        if row is not None:
            return Choice(pairs[row][0], project.options.list_selection)
    return Choice(waiting[0].id, ORDER, reason or SAME_GRADES)


def fallback_reason(project: Project, learned: ProjectMeasure) -> str | None:
    """Return why queries come in working order although the lead chose another method."""
    if project.options.list_selection == ORDER:
        return None
    if learned.learner is None:
        return learned.reason
    if learned.pairs < MIN_ADAPTIVE_PAIRS:
        return (
            f"there are {learned.pairs} informative judgments; choosing starts at "
            f"{MIN_ADAPTIVE_PAIRS}."
        )
    return None


def choice_report(project: Project, learned: ProjectMeasure) -> dict[str, Any]:
    """Return the selection method of the project and the one in use, for JSON."""
    configured = project.options.list_selection
    reason = fallback_reason(project, learned)
    return {
        "configured_method": configured,
        "method": ORDER if reason else configured,
        "fallback_reason": reason,
    }


def choose_pair(
    tx: Tx, task: TaskRow, choices: Sequence[tuple[str, str]]
) -> tuple[str, str] | None:
    """Return which of a query's open pairs comes next; None leaves it to the strategy."""
    project = projects.get(tx, task.project)
    if project.options.list_selection == ORDER:
        return None
    learned = learned_measure(tx, project)
    if fallback_reason(project, learned) is not None:
        return None
    lists = lists_of(tx, project).get(task.query, {})
    pairs = [(lists.get(left, ()), lists.get(right, ())) for left, right in choices]
    row = _most_informative(learned, pairs, project.options.list_selection)
    return None if row is None else choices[row]


def _open_pairs(tx: Tx, project: Project, waiting: Iterable[TaskRow]) -> Iterator[tuple[int, Pair]]:
    """Yield each unstarted task with every pair of its lists."""
    lists = lists_of(tx, project)
    for task in waiting:
        if task.tool == "lists":
            for pair in combinations(lists.get(task.query, {}).values(), 2):
                yield task.id, pair


def _most_informative(learned: ProjectMeasure, pairs: Sequence[Pair], method: Any) -> int | None:
    """Return the number of the most informative pair; None if no pair differs in grades."""
    if not pairs or learned.learner is None:
        return None
    left, right = ([pair[side] for pair in pairs] for side in (0, 1))
    pool = Preferences.from_grades(left, right, grades=learned.learner.preferences_.grades)
    rows = choose(learned.learner, pool, 1, method)
    return rows[0] if rows else None
