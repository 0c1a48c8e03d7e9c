"""Assign queries to assessors, and rebalance the assignment when assessors join or leave.

The design is that of Niu et al. 2012, section 4.1.1: the queries are split into folds, every
assessor judges a fold with each tool, and nobody judges the same query twice.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, pairwise, product
from random import Random
from typing import TypeVar

from firstpage.core import DataError
from firstpage.labeling.planning.tasks import Assignment, Task, format_names, problems

Key = tuple[str, str]  # (query, assessor)
Move = TypeVar("Move")


@dataclass
class Board:
    """A mutable assignment: tasks by query and assessor, and those that are fixed.

    Attributes
    ----------
    assignment : Assignment
        The assignment to be changed.
    fixed : collection of (query, assessor)
        Tasks that must not change.
    by_query : dict of query to dict of assessor to Task
        All tasks.
    open : dict of assessor to dict of query to Task
        Tasks that may be moved, of assessors who have not left.
    used : Counter of (assessor, tool)
        Number of tasks per assessor and tool.
    abandoned : frozenset of (query, assessor)
        Queries that must not be given to an assessor again.
    """

    assignment: Assignment
    fixed: Collection[Key]
    by_query: dict[str, dict[str, Task]] = field(default_factory=dict)
    open: dict[str, dict[str, Task]] = field(default_factory=dict)
    used: Counter[Key] = field(default_factory=Counter)
    abandoned: frozenset[Key] = frozenset()

    def __post_init__(self) -> None:
        self.abandoned = frozenset(task.key for task in self.assignment.abandoned)
        self.by_query = {query: {} for query in self.assignment.queries}
        self.open = {name: {} for name in self.assignment.assessors}
        for task in self.assignment.tasks:
            self.put(task)

    def knows(self, assessor: str, query: str) -> bool:
        """Return whether the assessor has the query, or has abandoned it."""
        return assessor in self.by_query[query] or (query, assessor) in self.abandoned

    def put(self, task: Task) -> None:
        """Add a task; it replaces the assessor's task of the same query, if any."""
        before = self.by_query[task.query].get(task.assessor)
        if before is not None:
            self.used[task.assessor, before.tool] -= 1
        self.used[task.assessor, task.tool] += 1
        self.by_query[task.query][task.assessor] = task
        if task.key not in self.fixed and task.assessor in self.open:
            self.open[task.assessor][task.query] = task

    def move(self, task: Task, assessor: str) -> None:
        """Give a task to another assessor."""
        del self.by_query[task.query][task.assessor], self.open[task.assessor][task.query]
        self.used[task.assessor, task.tool] -= 1
        self.put(replace(task, assessor=assessor))

    def swap_tools(self, first: Task, second: Task) -> None:
        """Exchange the tools of two tasks."""
        self.put(replace(first, tool=second.tool, replicate=second.replicate))
        self.put(replace(second, tool=first.tool, replicate=first.replicate))

    def count(self, assessor: str, tool: str) -> int:
        """Return how many tasks with a tool an assessor has, open or not."""
        return self.used[assessor, tool]

    def tasks(self) -> tuple[Task, ...]:
        """Return all tasks by assessor, replicate, tool and query."""
        a = self.assignment
        tool = {name: i for i, name in enumerate(a.tools)}
        query = {name: i for i, name in enumerate(a.queries)}
        assessor = {name: i for i, name in enumerate((*a.assessors, *a.departed))}
        tasks = [task for row in self.by_query.values() for task in row.values()]
        return tuple(
            sorted(
                tasks,
                key=lambda t: (assessor[t.assessor], t.replicate, tool[t.tool], query[t.query]),
            )
        )


# Open work is balanced by moving tasks along chains of assessors without breaking a requirement.
# An assessor gives a task to the next one, who has not seen its query and gives another task to the
# next, and so on: only the loads of the two ends of a chain change.  When no chain leads from an
# assessor to another with two tasks fewer, no other assignment is more even (semi-matchings in
# bipartite graphs; Harvey, Ladner, Lovász and Tamir 2006).  Tools are balanced in the same way by
# chains that swap two tools at a query; with all work open every assessor then has equally many
# tasks of each tool, up to one (equitable coloring; de Werra 1971).


def rebalance(assignment: Assignment, fixed: Collection[Key] = frozenset()) -> Assignment:
    """Return an assignment that covers missing tasks and balances the open work."""
    board = Board(assignment, fixed)
    _fill(board)
    _balance_loads(board)
    couples = list(combinations(assignment.tools, 2))
    while any(_balance_tools(board, first, second) for first, second in couples):
        pass  # balancing two tools may unbalance a third
    if couples:
        _supply_tools(board)
        _balance_loads(board, keep_tools=True)
    return replace(assignment, tasks=board.tasks())


def _fill(board: Board) -> None:
    """Give missing tasks to the least busy assessors who do not know the query.

    Where all of them know it, a tool without a task takes one from a tool that has several.
    """
    for query, tool, replicate in board.assignment.missing():
        tasks = board.by_query[query]
        free = [name for name in board.open if not board.knows(name, query)]
        if free:
            assessor = min(free, key=lambda n: len(board.open[n]))
            board.put(Task(query, assessor, tool, replicate))
            continue
        count = dict.fromkeys(board.assignment.tools, 0)
        for task in tasks.values():
            count[task.tool] += 1
        surplus = [
            t
            for name, t in tasks.items()
            if query in board.open.get(name, ()) and count[t.tool] > count[tool] + 1
        ]
        if surplus:
            task = max(surplus, key=lambda t: (count[t.tool], t.replicate))
            board.put(replace(task, tool=tool, replicate=replicate))


def _balance_loads(board: Board, keep_tools: bool = False) -> None:
    """Move tasks along chains from the busiest assessors until loads differ by at most one.

    With `keep_tools` nobody gives away the only task of a tool.
    """

    def moves(name: str) -> Iterator[tuple[str, Task]]:
        for task in board.open[name].values():
            if keep_tools and board.count(name, task.tool) < 2:
                continue
            for other in board.open:
                if not board.knows(other, task.query):
                    yield other, task

    while any(_unburden(board, name, moves) for name in _busiest(board)):
        pass


def _busiest(board: Board) -> list[str]:
    """Return those with at least two open tasks more than the least busy, the busiest first."""
    fewest = min(map(len, board.open.values()), default=0)
    names = [name for name, tasks in board.open.items() if len(tasks) >= fewest + 2]
    return sorted(names, key=lambda name: -len(board.open[name]))


def _unburden(board: Board, name: str, moves: Callable[[str], Iterable[tuple[str, Task]]]) -> bool:
    """Take a task from `name` if a chain leads to an assessor with two fewer; return whether."""
    limit = len(board.open[name]) - 2
    chain = _chain(name, moves, lambda other: len(board.open[other]) <= limit)
    for assessor, task in chain:
        board.move(task, assessor)
    return bool(chain)


def _balance_tools(board: Board, first: str, second: str) -> bool:
    """Balance two tools per assessor as far as open work can be swapped; return if changed."""
    changed = False
    while True:
        surplus = {n: board.count(n, first) - board.count(n, second) for n in board.open}
        if not any(
            _reduce_surplus(board, name, first, second, surplus) for name in _unbalanced(surplus)
        ):
            return changed
        changed = True


def _unbalanced(surplus: dict[str, int]) -> list[str]:
    """Return the assessors whose surplus exceeds the smallest by more than two, greatest first."""
    return [
        n
        for n in sorted(surplus, key=lambda n: -surplus[n])
        if surplus[n] > 2 + min(surplus.values())
    ]


def _reduce_surplus(
    board: Board, name: str, first: str, second: str, surplus: dict[str, int]
) -> bool:
    """Change a task of `name` from the first tool to the second, if somebody lacks the first."""

    def moves(assessor: str) -> Iterator[tuple[str, tuple[Task, Task]]]:
        for own in board.open[assessor].values():
            if own.tool == first:
                for partner, task in board.by_query[own.query].items():
                    if task.tool == second and own.query in board.open.get(partner, ()):
                        yield partner, (own, task)

    def lacks(assessor: str) -> bool:
        return surplus[assessor] < surplus[name] - 2

    chain = _chain(name, moves, lacks)
    for _, (own, task) in chain:
        board.swap_tools(own, task)
    return bool(chain) or any(
        _exchange(board, name, partner, first, second) for partner in surplus if lacks(partner)
    )


def _exchange(board: Board, name: str, partner: str, first: str, second: str) -> bool:
    """Exchange two queries that the receivers do not know; return whether that was possible."""
    own = _transferable(board, name, first, partner)
    other = _transferable(board, partner, second, name)
    if own is None or other is None:
        return False
    board.move(own, partner)
    board.move(other, name)
    return True


def _transferable(board: Board, owner: str, tool: str, receiver: str) -> Task | None:
    """Return an open task of the owner whose query the receiver does not know, or None."""
    for task in board.open[owner].values():
        if task.tool == tool and not board.knows(receiver, task.query):
            return task
    return None


def _supply_tools(board: Board) -> None:
    """Give every assessor every tool, even if loads become less even: requirements come first.

    An assessor without a tool gets a task of it from another one, who gets one from the next, up
    to somebody who has two; either by swapping tools, or as a query that is new to the receiver.
    """
    for name, tool in product(board.open, board.assignment.tools):
        if board.count(name, tool) == 0:
            _supply_tool(board, name, tool)


def _supply_tool(board: Board, name: str, tool: str) -> None:
    def moves(assessor: str) -> Iterator[tuple[str, tuple[Task, Task | None]]]:
        for own in board.open[assessor].values():
            if board.count(assessor, own.tool) > 1:
                for partner, task in board.by_query[own.query].items():
                    if task.tool == tool and own.query in board.open.get(partner, ()):
                        yield partner, (task, own)
        for partner, tasks in board.open.items():
            for task in tasks.values():
                if task.tool == tool and not board.knows(assessor, task.query):
                    yield partner, (task, None)

    receiver = name
    for giver, (task, own) in _chain(name, moves, lambda n: board.count(n, tool) > 1):
        if own is None:
            board.move(task, receiver)
        else:
            board.swap_tools(task, own)
        receiver = giver


def _chain(
    start: str, moves: Callable[[str], Iterable[tuple[str, Move]]], ends: Callable[[str], bool]
) -> list[tuple[str, Move]]:
    """Return the shortest chain from `start` to an assessor for whom `ends` is true, or [].

    Each element is (assessor, move that leads to them).  Breadth-first search.
    """
    chains: dict[str, list[tuple[str, Move]]] = {start: []}
    queue = deque([start])
    while queue:
        current = queue.popleft()
        for following, move in moves(current):
            if following in chains:
                continue
            chains[following] = [*chains[current], (following, move)]
            if ends(following):
                return chains[following]
            queue.append(following)
    return []


__all__ = ["Assignment", "Task", "make_assignment", "problems", "rebalance"]


def make_assignment(
    queries: Iterable[str],
    assessors: Iterable[str],
    *,
    folds: int | None = None,
    tools: Sequence[str] = ("pairs", "grades"),
    replicates: int = 1,
    seed: int = 0,
) -> Assignment:
    """Assign queries to assessors.

    Every query is judged `replicates` times with each tool, nobody judges a query twice, and
    every assessor uses every tool. Assessor i judges fold i + T r + t with tool t of T in
    replicate r, all counted from 0 and modulo the number of folds. Five assessors, five folds and
    one replicate are the design of the paper; a second replicate, shifted by two folds, makes it
    possible to measure agreement.

    Parameters
    ----------
    queries : iterable of str
        The queries, each once; they are shuffled by `seed` and worked on in that order.
    assessors : iterable of str
        The assessors, each once.
    folds : int, optional
        Number of folds. Whole folds are then moved until loads differ by at most one fold. By
        default there are as many folds as assessors, and single queries are moved until loads
        differ by at most one query.
    tools : sequence of str, default ("pairs", "grades")
        The tools.
    replicates : int, default 1
        Number of assessors per query and tool.
    seed : int, default 0
        Seed of the shuffle.

    Returns
    -------
    Assignment
        The assignment.

    Raises
    ------
    DataError
        If a name occurs twice, or there are too few queries or assessors for the requirements.

    References
    ----------
    S. Niu, J. Guo, Y. Lan and X. Cheng (2012). Top-k Learning to Rank: Labeling, Ranking and
    Evaluation. SIGIR, section 4.1.1.

    Examples
    --------
    >>> import firstpage as fp
    >>> queries = [f"q{i}" for i in range(10)]
    >>> assignment = fp.labeling.make_assignment(queries, ["ada", "ben", "cleo"], tools=["pairs"])
    >>> sorted(assignment.load().values())
    [3, 3, 4]
    """
    query_names, people = _distinct(queries, "query"), _distinct(assessors, "assessor")
    tool_names = _distinct(tools, "tool")
    fold_count = min(len(people), len(query_names)) if folds is None else folds
    _check(len(query_names), len(people), fold_count, len(tool_names), replicates)
    shuffled = list(query_names)
    Random(seed).shuffle(shuffled)
    pattern = _pattern(fold_count, people, tool_names, replicates)
    if folds is not None:
        pattern = rebalance(pattern)
    expanded = _expand(pattern, _split(shuffled, fold_count), tuple(shuffled))
    return rebalance(expanded) if folds is None else expanded


def _distinct(names: Iterable[str], kind: str) -> tuple[str, ...]:
    distinct = tuple(names)
    if not distinct:
        raise DataError(f"an assignment needs at least one {kind}; got none.")
    if len(set(distinct)) < len(distinct):
        duplicates = sorted({name for name in distinct if distinct.count(name) > 1})
        raise DataError(f"each {kind} must be named once; duplicates: {format_names(duplicates)}.")
    return distinct


def _check(queries: int, assessors: int, folds: int, tools: int, replicates: int) -> None:
    """Raise a DataError if no assignment can meet the requirements.

    Each query needs tools x replicates assessors, each assessor every tool.
    """
    if replicates < 1:
        raise DataError(f"replicates must be at least 1; got {replicates}.")
    if not 1 <= folds <= queries:
        raise DataError(f"folds must be between 1 and the {queries} queries; got {folds}.")
    required = tools * replicates
    if assessors < required:
        raise DataError(
            f"{tools} tools x {replicates} replicates need at least {required} assessors, since "
            f"nobody may see a query twice; got {assessors}."
        )
    limit = folds * replicates
    if tools > 1 and assessors > limit:
        raise DataError(
            f"at most {limit} assessors can all use every tool on {folds} folds x {replicates} "
            f"replicates; got {assessors}. Use fewer assessors, or more folds or queries."
        )


def _pattern(
    folds: int, people: tuple[str, ...], tools: tuple[str, ...], replicates: int
) -> Assignment:
    """Return the design over folds, whose names are their numbers."""
    tasks = tuple(
        Task(str(fold), people[(fold - len(tools) * r - t) % len(people)], tool, r)
        for fold in range(folds)
        for r in range(replicates)
        for t, tool in enumerate(tools)
    )
    return Assignment(tuple(map(str, range(folds))), people, tools, replicates, tasks)


def _split(names: list[str], folds: int) -> list[list[str]]:
    """Return consecutive slices whose lengths differ by at most one."""
    bounds = [len(names) * i // folds for i in range(folds + 1)]
    return [names[low:high] for low, high in pairwise(bounds)]


def _expand(pattern: Assignment, folds: list[list[str]], queries: tuple[str, ...]) -> Assignment:
    """Return the assignment of the queries of each fold."""
    tasks = tuple(
        replace(task, query=query) for task in pattern.tasks for query in folds[int(task.query)]
    )
    return replace(pattern, queries=queries, tasks=tasks)
