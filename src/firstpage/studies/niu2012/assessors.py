"""Five simulated people who label as in section 4.1: pairs until the top ten stands, or grades.

Each sees a document's utility with noise of their own, and answers by what they see: the heap's
result is then the order of the ten that look best to them.  The numbers of `Crowd` are such that
two of them agree on top-k labels as the paper's five did.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from firstpage.labeling.planning.assignment import make_assignment
from firstpage.labeling.planning.tasks import Assignment
from firstpage.labeling.simulate import Respond, drive
from firstpage.labeling.statistics.people import Crowd
from firstpage.labeling.strategies.base import Answer, Compare, Question, Task
from firstpage.labeling.strategies.names import strategy
from firstpage.types import Floats

QUERIES, DOCUMENTS, K, FOLDS = 50, 50, 10, 5
PEOPLE = ("U1", "U2", "U3", "U4", "U5")


@dataclass(frozen=True, eq=False)
class Labelled:
    """What two people found of a query, one by each tool."""

    top: tuple[int, ...]  # documents, the best first
    grades: Floats
    asked: int


def plan(queries: Sequence[str], replicates: int, seed: int) -> Assignment:
    """U_i does fold i with pairs and fold i + 1 with grades; a second time shifted by two."""
    return make_assignment(queries, PEOPLE, folds=FOLDS, replicates=replicates, seed=seed)


def assignment(queries: Sequence[str], replicates: int, seed: int) -> dict[str, str]:
    """The fold of each query, by the name of who labels its top."""
    found = plan(queries, replicates, seed)
    return {t.query: t.assessor for t in found.tasks if t.tool == "pairs" and t.replicate == 0}


def labelled(crowd: Crowd, utility: Floats, rng: np.random.Generator) -> Labelled:
    """A query judged by one person with pairs, and by another one with grades."""
    top, asked = by_pairs(crowd.seen(utility, rng), "heap", int(rng.integers(2**31)))
    return Labelled(top, crowd.grades(utility, rng), asked)


def by_pairs(view: Floats, how: str, seed: int, k: int = K) -> tuple[tuple[int, ...], int]:
    """The top k that a strategy finds with a person of this view, and how many pairs it asks."""
    end = drive(strategy(how), Task(len(view), k, seed), _sure(view))[0]
    return end.found.order, end.asked


def _sure(view: Floats) -> Respond:
    def respond(question: Question) -> Answer:
        assert isinstance(question, Compare)
        return Answer(int(np.sign(view[question.first] - view[question.second])))

    return respond
