"""Deal queries out to assessors; `levelled` deals again when somebody comes or goes.

The design is that of Niu et al. 2012, section 4.1.1: queries in folds, everyone a fold with
each tool, nobody the same query twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from random import Random

from firstpage.errors import DataError
from firstpage.labeling.planning.leveling import levelled
from firstpage.labeling.planning.tasks import Assignment, Task, listed, problems

__all__ = ["Assignment", "Task", "levelled", "make_assignment", "problems"]


def make_assignment(
    queries: Iterable[str],
    assessors: Iterable[str],
    *,
    folds: int | None = None,
    tools: Sequence[str] = ("pairs", "grades"),
    replicates: int = 1,
    seed: int = 0,
) -> Assignment:
    """Every query `replicates` times under each tool, nobody a query twice, everyone every tool.

    Queries are shuffled by `seed` into folds, and stay in that order.  Assessor i does fold
    i + T*r + t with tool t (of T) in replicate r, all counted from 0 and around.  Five
    assessors, five folds and one replicate are the paper's design; a second replicate, the
    shift by two, lets agreement be measured.  Other numbers of folds start from the same
    pattern, and whole folds are moved until loads differ by one fold at most.  Without `folds`
    there are as many as assessors, and single queries are moved until loads differ by one.
    """
    names, people = _distinct(queries, "query"), _distinct(assessors, "assessor")
    kinds = _distinct(tools, "tool")
    parts = min(len(people), len(names)) if folds is None else folds
    _check(len(names), len(people), parts, len(kinds), replicates)
    shuffled = list(names)
    Random(seed).shuffle(shuffled)
    pattern = _pattern(parts, people, kinds, replicates)
    if folds is not None:
        pattern = levelled(pattern)
    laid = _laid_out(pattern, _cut(shuffled, parts), tuple(shuffled))
    return levelled(laid) if folds is None else laid


def _distinct(names: Iterable[str], what: str) -> tuple[str, ...]:
    found = tuple(names)
    if not found:
        raise DataError(f"an assignment needs at least one {what}; got none.")
    if len(set(found)) < len(found):
        twice = sorted({name for name in found if found.count(name) > 1})
        raise DataError(f"each {what} must be named once; twice or more came: {listed(twice)}.")
    return found


def _check(queries: int, assessors: int, folds: int, tools: int, replicates: int) -> None:
    """Possible at all?  Each query needs tools x replicates people, each person every tool."""
    if replicates < 1:
        raise DataError(f"replicates must be a whole number from 1 on; got {replicates}.")
    if not 1 <= folds <= queries:
        raise DataError(f"folds must be from 1 to the {queries} queries; got {folds}.")
    needed = tools * replicates
    if assessors < needed:
        raise DataError(
            f"{tools} tools x {replicates} replicates need at least {needed} assessors, since "
            f"nobody may see a query twice; got {assessors}."
        )
    most = folds * replicates
    if tools > 1 and assessors > most:
        raise DataError(
            f"at most {most} assessors can all use every tool on {folds} folds x {replicates} "
            f"replicates; got {assessors}. Take fewer of them, or more folds or queries."
        )


def _pattern(
    folds: int, people: tuple[str, ...], tools: tuple[str, ...], replicates: int
) -> Assignment:
    """The design over folds, whose names are their numbers."""
    tasks = tuple(
        Task(str(fold), people[(fold - len(tools) * r - t) % len(people)], tool, r)
        for fold in range(folds)
        for r in range(replicates)
        for t, tool in enumerate(tools)
    )
    return Assignment(tuple(map(str, range(folds))), people, tools, replicates, tasks)


def _cut(names: list[str], parts: int) -> list[list[str]]:
    """Runs of names whose lengths differ by one at most."""
    bounds = [len(names) * i // parts for i in range(parts + 1)]
    return [names[low:high] for low, high in pairwise(bounds)]


def _laid_out(pattern: Assignment, parts: list[list[str]], queries: tuple[str, ...]) -> Assignment:
    tasks = tuple(
        replace(task, query=query) for task in pattern.tasks for query in parts[int(task.query)]
    )
    return replace(pattern, queries=queries, tasks=tasks)
