"""Rehearse a strategy: how many questions it asks, and how good the top k is that it finds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from firstpage.errors import DataError
from firstpage.labeling.session.estimate import guess
from firstpage.labeling.strategies.exhaustive import GRADES
from firstpage.labeling.strategies.registry import strategy
from firstpage.labeling.strategies.strategy import (
    Answer,
    AnsweredQuestion,
    Compare,
    Question,
    Strategy,
    TopK,
    TopKTask,
)
from firstpage.measures.evaluate import evaluate
from firstpage.types import Floats, Progress

if TYPE_CHECKING:
    from firstpage.labeling.simulation.votes import Votes

Responder = Callable[[Question], Answer]


@dataclass(frozen=True)
class SimulatedQueries:
    """Made-up queries: `n` documents in a random order of merit, and one who judges them.

    `noise`: the chance of an answer to be wrong.  `ties`: this share of the documents is equally
    bad, and the assessor says so.  `grades`: merit has only so many levels.  `prior_tau`: there is
    an order beforehand whose Kendall's tau with the truth is about this.
    """

    n: int = 50
    noise: float = 0.0
    ties: float = 0.0
    grades: int | None = None
    prior_tau: float | None = None

    def __post_init__(self) -> None:
        for name, low, high in (("noise", 0, 1), ("ties", 0, 1), ("prior_tau", -1, 1)):
            value = getattr(self, name)
            if value is not None and not low <= value <= high:
                raise DataError(f"{name} is a number from {low} to {high}; got {value!r}.")
        if self.n < 1 or (self.grades is not None and self.grades < 1):
            raise DataError("n and grades are whole numbers from 1 on.")

    def merit(self, rng: np.random.Generator) -> Floats:
        """How good each document is; equal numbers are ties."""
        if self.grades is not None:
            return rng.integers(self.grades, size=self.n).astype(np.float64)
        places = rng.permutation(self.n).astype(np.float64)
        return np.maximum(places, np.floor(self.ties * self.n))

    def prior(self, merit: Floats, rng: np.random.Generator) -> tuple[float, ...] | None:
        """Normal scores correlated with those of the truth: rho = sin(pi tau / 2)."""
        if self.prior_tau is None:
            return None
        rho = np.sin(np.pi / 2 * self.prior_tau)
        normal = np.empty(self.n)
        normal[np.argsort(merit, kind="stable")] = np.sort(rng.standard_normal(self.n))
        blurred = rho * normal + np.sqrt(1 - rho * rho) * rng.standard_normal(self.n)
        return tuple(float(x) for x in blurred)

    def responder(self, merit: Floats, rng: np.random.Generator) -> Responder:
        """One who knows the merit, and errs as often as `noise` says."""
        share = np.argsort(np.argsort(merit, kind="stable")) / self.n

        def respond(question: Question) -> Answer:
            wrong = bool(self.noise) and rng.random() < self.noise
            if isinstance(question, Compare):
                outcome = int(np.sign(merit[question.first] - merit[question.second]))
                return Answer(-outcome if wrong else outcome)
            grade = int(share[question.document] * len(GRADES))
            off = int(rng.choice([-1, 1])) if wrong else 0
            return Answer(min(max(grade + off, 0), len(GRADES) - 1))

        return respond


@dataclass(frozen=True)
class Simulation:
    """What runs of one strategy gave: an entry a run."""

    strategy: str
    k: int
    question_counts: Floats
    recall: Floats
    kndcg: Floats | None  # None where the truth itself has ties
    groups: tuple[str, ...] = ()  # whose run it was, where queries are given

    def to_dict(self) -> dict[str, Any]:
        """Means over runs; `sd` of the number of questions, standard errors of the qualities."""
        found: dict[str, Any] = {
            "strategy": self.strategy,
            "k": self.k,
            "runs": len(self.question_counts),
            "mean": float(self.question_counts.mean()),
            "sd": float(self.question_counts.std(ddof=1)) if len(self.question_counts) > 1 else 0.0,
            "min": int(self.question_counts.min()),
            "max": int(self.question_counts.max()),
            "recall": float(self.recall.mean()),
            "recall_se": self._error(self.recall),
        }
        if self.kndcg is not None:
            found |= {f"kNDCG@{self.k}": float(self.kndcg.mean())}
            found |= {"kndcg_se": self._error(self.kndcg)}
        if self.groups:
            found["topics"] = {
                group: float(self.recall[np.array(self.groups) == group].mean())
                for group in dict.fromkeys(self.groups)
            }
        return found

    def _error(self, values: Floats) -> float:
        """Of the mean, over queries where these are given: runs of one are not independent."""
        if self.groups:
            names = np.array(self.groups)
            values = np.array([values[names == g].mean() for g in dict.fromkeys(self.groups)])
        return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


@dataclass(frozen=True)
class StrategyResult:
    """Where a run stands after some questions."""

    top_k: TopK
    questions: int


def run_strategy(
    how: Strategy, task: TopKTask, respond: Responder, budgets: Sequence[int | None] = (None,)
) -> list[StrategyResult]:
    """Ask until the strategy is done, and tell what was found at each budget, in rising order.

    Where the budget ends before the strategy does, the answers so far make a best guess.
    """
    steps = how.questions(task)
    asked: list[AnsweredQuestion] = []
    found: list[StrategyResult] = []
    try:
        question = next(steps)
        for budget in budgets:
            while budget is None or len(asked) < budget:
                answer = respond(question)
                asked.append((question, answer))
                question = steps.send(answer)
            found.append(StrategyResult(guess(task, asked), len(asked)))
    except StopIteration as end:
        found += [StrategyResult(end.value, len(asked))] * (len(budgets) - len(found))
    return found


def simulate(
    how: str | Strategy,
    k: int = 10,
    *,
    queries: SimulatedQueries | None = None,
    votes: Sequence[Votes] | None = None,
    runs: int = 2000,
    budgets: Sequence[int | None] = (None,),
    equal: str = "tie",
    seed: int = 0,
    progress: Progress | None = None,
    name: str = "",
) -> list[Simulation]:
    """Run a strategy many times: on made-up queries, or `runs` times on each query with votes.

    One result a budget.  recall: the share of the top k that is found; kNDCG@k counts order too.
    """
    if runs < 1:
        raise DataError(f"runs is a whole number from 1 on; got {runs!r}.")
    chosen = _unhurried(strategy(how), budgets)
    ended: list[list[StrategyResult]] = []
    merits: list[Floats] = []
    groups: list[str] = []
    total = runs * (1 if votes is None else len(votes))
    for merit, task, respond, group in _queries(queries, votes, runs, k, equal, seed):
        ended.append(run_strategy(chosen, task, respond, budgets))
        merits.append(merit)
        groups.append(group)
        if progress is not None:
            progress(len(ended), total)
    name = name or (how if isinstance(how, str) else type(how).__name__)
    named = tuple(groups) if votes is not None else ()
    return [
        _measured(name, k, [run[i] for run in ended], merits, named) for i in range(len(budgets))
    ]


def _unhurried(how: Strategy, budgets: Sequence[int | None]) -> Strategy:
    """A strategy with a budget of its own gets the largest one that is asked for."""
    largest = max((b for b in budgets if b is not None), default=None)
    if largest is None or not hasattr(how, "budget"):
        return how
    return replace(how, budget=largest, confidence=None)  # type: ignore[type-var]


def _measured(
    name: str,
    k: int,
    runs: Sequence[StrategyResult],
    merits: Sequence[Floats],
    groups: tuple[str, ...],
) -> Simulation:
    scores = [np.array(run.top_k.labels(k), np.float64) for run in runs]
    recall = np.array([_recall(s, m, k) for s, m in zip(scores, merits, strict=True)])
    asked = np.array([run.questions for run in runs], np.float64)
    return Simulation(name, k, asked, recall, _kndcg(scores, merits, k), groups)


def _queries(
    queries: SimulatedQueries | None,
    votes: Sequence[Votes] | None,
    runs: int,
    k: int,
    equal: str,
    seed: int,
) -> Iterator[tuple[Floats, TopKTask, Responder, str]]:
    """Each run's truth, task and assessor; a run depends on the seed and its number alone."""
    if votes is None:
        made = queries or SimulatedQueries()
        for run in range(runs):
            rng = np.random.default_rng([seed, run])
            merit = made.merit(rng)
            task = TopKTask(made.n, k, int(rng.integers(2**31)), made.prior(merit, rng))
            yield merit, task, made.responder(merit, rng), ""
        return
    for number, topic in enumerate(votes):
        merit = topic.merit
        for run in range(runs):
            rng = np.random.default_rng([seed, number, run])
            task = TopKTask(len(topic.documents), k, int(rng.integers(2**31)))
            yield merit, task, topic.responder(rng, equal), topic.query


def _recall(scores: Floats, merit: Floats, k: int) -> float:
    """The share of what was found that belongs there; a document as good as the k-th does."""
    top = min(k, len(merit))
    least = np.sort(merit)[-top]
    return float((merit[scores > 0] >= least).sum() / top)


def _kndcg(scores: Sequence[Floats], merits: Sequence[Floats], k: int) -> Floats | None:
    """Of all runs at once; None if a truth does not order its first k places."""
    for merit in merits:
        best = np.sort(merit)[::-1][: k + 1]
        if (best[1:] == best[:-1]).any():
            return None
    labels = [np.maximum(k - np.argsort(np.argsort(-merit, kind="stable")), 0) for merit in merits]
    qid = np.repeat(np.arange(len(merits)), [len(merit) for merit in merits])
    name = f"kNDCG@{k}"
    found = evaluate(np.concatenate(scores), np.concatenate(labels), qid=qid, measures=[name])
    return np.asarray(found.values[0], np.float64)
