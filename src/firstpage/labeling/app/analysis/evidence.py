"""What is known about a query: the answers of all its assessors, verdicts, and their posterior."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from firstpage.labeling.app.analysis.records import TaskJudgments, keys_by_query, task_judgments
from firstpage.labeling.app.analysis.truth import WeightedVerdict, answers_of, weighted_verdicts
from firstpage.labeling.app.store import Project, Tx, texts
from firstpage.labeling.belief.posterior_ranks import ConsensusBelief, consensus_belief
from firstpage.labeling.belief.utilities import moments
from firstpage.labeling.session.events import Judgment

# Cached, since pages with filters ask for the same posteriors again.
_cached_belief = lru_cache(maxsize=500)(consensus_belief)


@dataclass(frozen=True, eq=False)
class QueryEvidence:
    """The judgments of a query with one tool, also unfinished ones, and the verdicts on it."""

    query_id: int
    query: str
    text: str
    tool: str
    keys: tuple[str, ...]
    tasks: tuple[TaskJudgments, ...]
    verdicts: tuple[WeightedVerdict, ...]

    @cached_property
    def index(self) -> dict[str, int]:
        """The number of each document."""
        return {key: i for i, key in enumerate(self.keys)}

    @property
    def k(self) -> int:
        """The depth of the truth."""
        return max(task.k for task in self.tasks)

    @cached_property
    def fitted(self) -> ConsensusBelief:
        """The posterior of all answers and verdicts."""
        index = self.index
        return _cached_belief(
            len(self.keys),
            tuple(answers_of(task, index) for task in self.tasks),
            tuple(given.answer(index) for given in self.verdicts),
        )

    def grades(self) -> dict[int, list[int]]:
        """Return the grades of each document, by its number."""
        index = self.index
        grades: dict[int, list[int]] = {}
        for task in self.tasks:
            for judgment, _ in task.judgments:
                if judgment.right is None and not judgment.skipped and judgment.kind == "judgment":
                    grades.setdefault(index[judgment.left], []).append(judgment.outcome)
        return grades

    def probability(self, judgment: Judgment) -> float | None:
        """Return how probable the answer to a comparison is, given all answers; None for others."""
        if judgment.right is None or judgment.skipped or judgment.bad:
            return None
        first, second = (self.index[key] for key in (judgment.left, judgment.right))
        belief = self.fitted.belief
        difference = float(belief.mean[first] - belief.mean[second])
        sign = (judgment.outcome > 0) - (judgment.outcome < 0)
        variance = self.difference_variance(first, second)
        return float(np.exp(moments(difference, variance, sign, belief.margin)[0]))

    def difference_variance(self, first: int, second: int) -> float:
        """Return the posterior variance of the difference of two utilities."""
        pair = np.array([first, second])
        covariance = self.fitted.belief.covariance_of(pair, pair)
        return max(float(covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1]), 1e-12)


def evidence(tx: Tx, project: Project, tool: str) -> Iterator[QueryEvidence]:
    """Yield the evidence on every query with an answer by a tool, in working order."""
    by_query: dict[int, list[TaskJudgments]] = {}
    for task in task_judgments(tx, project):
        if task.tool == tool and task.judgments:
            by_query.setdefault(task.query_id, []).append(task)
    keys, verdicts = keys_by_query(tx, project), weighted_verdicts(tx, project, tool)
    for row in texts.of_project(tx, project.id):
        if row["id"] in by_query:
            yield QueryEvidence(
                row["id"],
                row["key"],
                row["text"],
                tool,
                tuple(keys[row["id"]]),
                tuple(by_query[row["id"]]),
                verdicts.get(row["id"], ()),
            )
