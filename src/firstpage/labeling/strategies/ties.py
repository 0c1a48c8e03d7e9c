"""Ties of a top k: documents that were called equal share a level, also across rank k.

A strategy needs an order and takes a tie as "not better".  Which of two equal documents comes
first, and which one is outside of the top k, is then an accident of the order in which they were
shown.  The answers themselves say what was distinguished: two documents are equal if ties connect
them and no chain of strict answers ranks one above the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from firstpage.labeling.strategies.strategy import AnsweredQuestion, Compare, TopK

Outcomes = Mapping[tuple[int, int], int]  # per pair (smaller, greater): 1, 0 or -1 for the smaller
Graph = dict[int, set[int]]


def last_outcomes(answers: Iterable[AnsweredQuestion]) -> dict[tuple[int, int], int]:
    """Return the last outcome of each pair that was compared; skipped questions have none."""
    outcomes: dict[tuple[int, int], int] = {}
    for question, answer in answers:
        if isinstance(question, Compare) and not answer.skipped:
            swapped = question.first > question.second
            outcomes[question.pair] = -answer.outcome if swapped else answer.outcome
    return outcomes


def top_k_of(
    order: Sequence[int], n: int, outcomes: Outcomes, bad: frozenset[int] = frozenset()
) -> TopK:
    """Return the top k of n documents with its ties; bad documents come last in `order`."""
    equal, better = _graphs({p: o for p, o in outcomes.items() if bad.isdisjoint(p)})
    levels: list[_Level] = []
    connected: set[int] = set()  # to the last level, by ties
    for document in order:
        if document in bad or (document in connected and levels[-1].take(document)):
            continue
        levels.append(_Level(document, better))
        connected = _reachable(document, equal)
    undecided: frozenset[int] = frozenset()
    if levels:
        last, top = levels[-1].members, {*order}
        for document in last:  # grows while it is read: the nearest documents come first
            outside = sorted(equal.get(document, set()).difference(top, last))
            outside.sort(key=lambda d: -len(_reachable(d, better)))  # a worse one would exclude it
            for other in outside:
                levels[-1].take(other)
        if not (bad or top.issuperset(last) or levels[-1].is_above_any()):
            undecided = frozenset(last)
    if not (bad or better):  # nothing but ties: one may hold every document that was judged
        judged = equal.keys()
        undecided |= judged if any(judged <= {*level.members} for level in levels) else set()
    tied = tuple(tuple(level.members) for level in levels if len(level.members) > 1)
    return TopK.from_order(order, n, bad=bad, tied=tied, undecided=undecided)


class _Level:
    """Documents that are equal; `better` has the documents that each one was preferred to."""

    def __init__(self, document: int, better: Graph) -> None:
        self.members = [document]
        self._better = better
        self._below = _reachable(document, better)

    def take(self, document: int) -> bool:
        """Add a document unless strict answers rank it above or below a member."""
        below = _reachable(document, self._better)
        if document in self._below or not below.isdisjoint(self.members):
            return False
        self.members.append(document)
        self._below |= below
        return True

    def is_above_any(self) -> bool:
        """Return whether a member was preferred to a document that is not in the level."""
        return not self._below.issubset(self.members)


def _graphs(outcomes: Outcomes) -> tuple[Graph, Graph]:
    """Return the documents that each document is equal to, and those that it is better than."""
    equal: Graph = {}
    better: Graph = {}
    for (low, high), outcome in outcomes.items():
        if outcome >= 0:
            (better if outcome else equal).setdefault(low, set()).add(high)
        if outcome <= 0:
            (better if outcome else equal).setdefault(high, set()).add(low)
    return equal, better


def _reachable(start: int, edges: Graph) -> set[int]:
    """Return the documents that a chain of edges from `start` reaches."""
    reached: set[int] = set()
    waiting = [start]
    while waiting:
        new = edges.get(waiting.pop(), set()) - reached
        reached |= new
        waiting += new
    return reached
