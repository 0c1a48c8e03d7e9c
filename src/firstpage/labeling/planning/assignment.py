"""Deal queries out to assessors; `rebalance` deals again when somebody comes or goes.

The design is that of Niu et al. 2012, section 4.1.1: queries in folds, everyone a fold with
each tool, nobody the same query twice.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, pairwise, product
from random import Random
from typing import TypeVar

from firstpage.errors import DataError
from firstpage.labeling.planning.tasks import Assignment, Task, format_names, problems

Key = tuple[str, str]  # (query, assessor)
Step = TypeVar("Step")


@dataclass
class Board:
    """The tasks while they are moved about: by query and person, with those that are fixed."""

    assignment: Assignment
    fixed: Collection[Key]
    people: dict[str, dict[str, Task]] = field(default_factory=dict)  # query: person: task
    open: dict[str, dict[str, Task]] = field(default_factory=dict)  # person: query: task
    used: Counter[Key] = field(default_factory=Counter)  # (person, tool): tasks
    abandoned: frozenset[Key] = frozenset()

    def __post_init__(self) -> None:
        self.abandoned = frozenset(task.key for task in self.assignment.abandoned)
        self.people = {query: {} for query in self.assignment.queries}
        self.open = {name: {} for name in self.assignment.assessors}
        for task in self.assignment.tasks:
            self.put(task)

    def knows(self, name: str, query: str) -> bool:
        """Return whether this person has the query, or has abandoned it."""
        return name in self.people[query] or (query, name) in self.abandoned

    def put(self, task: Task) -> None:
        """Lay a task down, in place of the one that this person had of this query, if any."""
        before = self.people[task.query].get(task.assessor)
        if before is not None:
            self.used[task.assessor, before.tool] -= 1
        self.used[task.assessor, task.tool] += 1
        self.people[task.query][task.assessor] = task
        if task.key not in self.fixed and task.assessor in self.open:
            self.open[task.assessor][task.query] = task

    def move(self, task: Task, to: str) -> None:
        del self.people[task.query][task.assessor], self.open[task.assessor][task.query]
        self.used[task.assessor, task.tool] -= 1
        self.put(replace(task, assessor=to))

    def swap_tools(self, one: Task, other: Task) -> None:
        self.put(replace(one, tool=other.tool, replicate=other.replicate))
        self.put(replace(other, tool=one.tool, replicate=one.replicate))

    def count(self, name: str, tool: str) -> int:
        """How many tasks of a tool somebody has, open or not."""
        return self.used[name, tool]

    def tasks(self) -> tuple[Task, ...]:
        """All tasks; each person's in order of replicate, tool and query."""
        a = self.assignment
        tool = {name: i for i, name in enumerate(a.tools)}
        query = {name: i for i, name in enumerate(a.queries)}
        who = {name: i for i, name in enumerate((*a.assessors, *a.departed))}
        found = [task for held in self.people.values() for task in held.values()]
        return tuple(
            sorted(
                found, key=lambda t: (who[t.assessor], t.replicate, tool[t.tool], query[t.query])
            )
        )


# Open work is dealt out evenly by moving tasks along chains of people, never against the
# requirements.  A person gives a task to the next one, who has not seen its query, who gives
# another to the next, and so on: only the two ends of a chain change their load.  When no chain
# leads from a person to another with two tasks less, no other assignment is more even (loads of a
# bipartite graph; Harvey, Ladner, Lovász and Tamir 2006).  The tools are leveled in the same way by
# chains that swap two tools at a query; with all work open every assessor then has equally many of
# each tool, but for one (equitable coloring; de Werra 1971).


def rebalance(assignment: Assignment, fixed: Collection[Key] = frozenset()) -> Assignment:
    """Return the same demand, with missing tasks given to somebody and open work dealt evenly.

    `fixed` names (query, assessor) of tasks that stay as they are.  What cannot be covered
    stays missing; `problems` tells it.
    """
    board = Board(assignment, fixed)
    _fill(board)
    _level_loads(board)
    couples = list(combinations(assignment.tools, 2))
    while any(_level_tools(board, one, other) for one, other in couples):
        pass  # what evens two tools may leave a third to be evened
    if couples:
        _supply(board)
        _level_loads(board, keep_tools=True)
    return replace(assignment, tasks=board.tasks())


def _fill(board: Board) -> None:
    """Missing tasks go to the least busy who do not know the query.

    Where everybody knows it, a tool without anyone takes a person from one that has several.
    """
    for query, tool, replicate in board.assignment.missing():
        people = board.people[query]
        free = [name for name in board.open if not board.knows(name, query)]
        if free:
            name = min(free, key=lambda n: len(board.open[n]))
            board.put(Task(query, name, tool, replicate))
            continue
        count = dict.fromkeys(board.assignment.tools, 0)
        for task in people.values():
            count[task.tool] += 1
        spare = [
            t for name, t in people.items()
            if query in board.open.get(name, ()) and count[t.tool] > count[tool] + 1
        ]  # fmt: skip
        if spare:
            task = max(spare, key=lambda t: (count[t.tool], t.replicate))
            board.put(replace(task, tool=tool, replicate=replicate))


def _level_loads(board: Board, keep_tools: bool = False) -> None:
    """Chains from the busiest to people with at least two open tasks less, while there are any.

    With `keep_tools` nobody gives away the only task of a tool.
    """

    def steps(name: str) -> Iterator[tuple[str, Task]]:
        for task in board.open[name].values():
            if keep_tools and board.count(name, task.tool) < 2:
                continue
            for other in board.open:
                if not board.knows(other, task.query):
                    yield other, task

    while any(_unburden(board, name, steps) for name in _busiest(board)):
        pass


def _busiest(board: Board) -> list[str]:
    """Those with at least two open tasks more than the least busy, the busiest first."""
    least = min(map(len, board.open.values()), default=0)
    found = [name for name, tasks in board.open.items() if len(tasks) >= least + 2]
    return sorted(found, key=lambda name: -len(board.open[name]))


def _unburden(board: Board, name: str, steps: Callable[[str], Iterable[tuple[str, Task]]]) -> bool:
    """One task less for `name`, if a chain leads to somebody with two less."""
    most = len(board.open[name]) - 2
    way = _chain(name, steps, lambda other: len(board.open[other]) <= most)
    for to, task in way:
        board.move(task, to)
    return bool(way)


def _level_tools(board: Board, one: str, other: str) -> bool:
    """Nobody has much more of one tool than of the other, as far as open work can be swapped."""
    changed = False
    while True:
        tilt = {n: board.count(n, one) - board.count(n, other) for n in board.open}
        if not any(_tilt_less(board, name, one, other, tilt) for name in _tilted(tilt)):
            return changed
        changed = True


def _tilted(tilt: dict[str, int]) -> list[str]:
    return [n for n in sorted(tilt, key=lambda n: -tilt[n]) if tilt[n] > 2 + min(tilt.values())]


def _tilt_less(board: Board, name: str, one: str, other: str, tilt: dict[str, int]) -> bool:
    """Move one task of `name` from tool `one` to the other, if somebody lacks the former more."""

    def steps(who: str) -> Iterator[tuple[str, tuple[Task, Task]]]:
        for mine in board.open[who].values():
            if mine.tool == one:
                for partner, task in board.people[mine.query].items():
                    if task.tool == other and mine.query in board.open.get(partner, ()):
                        yield partner, (mine, task)

    def lacks(who: str) -> bool:
        return tilt[who] < tilt[name] - 2

    way = _chain(name, steps, lacks)
    for _, (mine, task) in way:
        board.swap_tools(mine, task)
    return bool(way) or any(_exchange(board, name, n, one, other) for n in tilt if lacks(n))


def _exchange(board: Board, name: str, partner: str, one: str, other: str) -> bool:
    """Two people give each other a query that the receiver does not know."""
    given = _free_for(board, name, one, partner)
    got = _free_for(board, partner, other, name)
    if given is None or got is None:
        return False
    board.move(given, partner)
    board.move(got, name)
    return True


def _free_for(board: Board, owner: str, tool: str, taker: str) -> Task | None:
    for task in board.open[owner].values():
        if task.tool == tool and not board.knows(taker, task.query):
            return task
    return None


def _supply(board: Board) -> None:
    """Everyone gets every tool, even where loads become less even: a requirement goes first.

    Somebody without a tool gets a task of it from a person who gets another one from the next,
    up to somebody who has two; either by swapping tools, or as a query not seen before.
    """
    for name, tool in product(board.open, board.assignment.tools):
        if board.count(name, tool) == 0:
            _supplied(board, name, tool)


def _supplied(board: Board, name: str, tool: str) -> None:
    def steps(who: str) -> Iterator[tuple[str, tuple[Task, Task | None]]]:
        for mine in board.open[who].values():
            if board.count(who, mine.tool) > 1:
                for partner, task in board.people[mine.query].items():
                    if task.tool == tool and mine.query in board.open.get(partner, ()):
                        yield partner, (task, mine)
        for partner, tasks in board.open.items():
            for task in tasks.values():
                if task.tool == tool and not board.knows(who, task.query):
                    yield partner, (task, None)

    taker = name
    for giver, (task, mine) in _chain(name, steps, lambda who: board.count(who, tool) > 1):
        if mine is None:
            board.move(task, taker)
        else:
            board.swap_tools(task, mine)
        taker = giver


def _chain(
    start: str, steps: Callable[[str], Iterable[tuple[str, Step]]], ends: Callable[[str], bool]
) -> list[tuple[str, Step]]:
    """The shortest way from `start` to somebody for whom `ends` holds; empty if there is none.

    Each part of it is (who gets something, by which step).
    """
    ways: dict[str, list[tuple[str, Step]]] = {start: []}
    queue = deque([start])
    while queue:
        here = queue.popleft()
        for there, step in steps(here):
            if there in ways:
                continue
            ways[there] = [*ways[here], (there, step)]
            if ends(there):
                return ways[there]
            queue.append(there)
    return []


__all__ = ["Assignment", "Task", "rebalance", "make_assignment", "problems"]


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
        pattern = rebalance(pattern)
    laid = _laid_out(pattern, _cut(shuffled, parts), tuple(shuffled))
    return rebalance(laid) if folds is None else laid


def _distinct(names: Iterable[str], what: str) -> tuple[str, ...]:
    found = tuple(names)
    if not found:
        raise DataError(f"an assignment needs at least one {what}; got none.")
    if len(set(found)) < len(found):
        twice = sorted({name for name in found if found.count(name) > 1})
        raise DataError(
            f"each {what} must be named once; twice or more came: {format_names(twice)}."
        )
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
