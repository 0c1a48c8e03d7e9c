"""Simulated assessors who agree as those of Niu et al. (2012) did, and label as in section 4.1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from firstpage.errors import DataError
from firstpage.labeling.planning.assignment import make_assignment
from firstpage.labeling.planning.tasks import Assignment
from firstpage.labeling.simulation.simulate import Respond, drive
from firstpage.labeling.strategies.registry import strategy
from firstpage.labeling.strategies.strategy import Answer, Compare, Question, Task
from firstpage.types import Floats


@dataclass(frozen=True)
class Crowd:
    """How people see: `noise` is the sd of a utility (itself of sd 1), `jitter` that of the lines.

    `lines` between grades are quantiles of a query's utilities.
    """

    noise: float = 0.5
    jitter: float = 0.35
    lines: tuple[float, ...] = (0.5, 0.7, 0.85, 0.95)

    def __post_init__(self) -> None:
        if self.noise < 0 or self.jitter < 0:
            raise DataError("noise and jitter must be numbers from 0 on.")
        if list(self.lines) != sorted(self.lines) or not all(0 <= x <= 1 for x in self.lines):
            raise DataError(f"lines must ascend between 0 and 1; got {self.lines}.")

    def seen(self, utility: Floats, rng: np.random.Generator) -> Floats:
        """One person's view of the documents."""
        return utility + self.noise * rng.standard_normal(len(utility))

    def grades(self, utility: Floats, rng: np.random.Generator) -> Floats:
        """One person's grades, 0 the worst; the lines move together."""
        lines = np.quantile(utility, self.lines) + self.jitter * rng.standard_normal()
        return np.digitize(self.seen(utility, rng), lines).astype(np.float64)


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
