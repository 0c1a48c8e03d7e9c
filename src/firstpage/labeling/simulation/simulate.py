"""Simulate a strategy: how many questions it asks, and how good the top k is that it finds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from firstpage.core import DataError, Floats, Ints, Progress
from firstpage.evaluation.measures import evaluate
from firstpage.labeling.session.estimate import provisional_top_k
from firstpage.labeling.strategies import registry
from firstpage.labeling.strategies.exhaustive import GRADES
from firstpage.labeling.strategies.strategy import (
    Answer,
    AnsweredQuestion,
    Compare,
    Question,
    Strategy,
    TopK,
    TopKTask,
)

if TYPE_CHECKING:
    from firstpage.labeling.simulation.votes import Votes

Responder = Callable[[Question], Answer]


@dataclass(frozen=True)
class SimulatedQueries:
    """Random queries with documents of known merit, and an assessor who errs at random.

    Parameters
    ----------
    n : int, default 50
        Number of documents per query.
    noise : float, default 0.0
        Probability that an answer is wrong, from 0 to 1.
    ties : float, default 0.0
        Fraction of the documents that are equally bad, from 0 to 1; the assessor calls them equal.
    grades : int, optional
        Number of levels of merit; by default all documents differ, apart from `ties`.
    prior_tau : float, optional
        Approximate Kendall's tau between a prior order and the truth, from -1 to 1; by default
        there is no prior order.

    Raises
    ------
    DataError
        If a parameter is out of range.

    Examples
    --------
    >>> from firstpage.labeling.simulation.simulate import SimulatedQueries, simulate
    >>> [result] = simulate("tournament", k=3, queries=SimulatedQueries(n=10), runs=20)
    >>> float(result.recall.mean())
    1.0
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
                raise DataError(f"{name} must be between {low} and {high}; got {value!r}.")
        if self.n < 1 or (self.grades is not None and self.grades < 1):
            raise DataError("n and grades must be integers of at least 1.")

    def merit(self, rng: np.random.Generator) -> Floats:
        """Return the merit per document, higher is better; equal values are ties."""
        if self.grades is not None:
            return rng.integers(self.grades, size=self.n).astype(np.float64)
        ranks = rng.permutation(self.n).astype(np.float64)
        return np.maximum(ranks, np.floor(self.ties * self.n))

    def prior(self, merit: Floats, rng: np.random.Generator) -> tuple[float, ...] | None:
        """Return normal scores whose correlation with those of the merit is sin(pi tau / 2)."""
        if self.prior_tau is None:
            return None
        rho = np.sin(np.pi / 2 * self.prior_tau)
        normal = np.empty(self.n)
        normal[np.argsort(merit, kind="stable")] = np.sort(rng.standard_normal(self.n))
        noisy = rho * normal + np.sqrt(1 - rho * rho) * rng.standard_normal(self.n)
        return tuple(float(x) for x in noisy)

    def responder(self, merit: Floats, rng: np.random.Generator) -> Responder:
        """Return an assessor who knows the merit and errs with probability `noise`."""
        quantile = np.searchsorted(np.sort(merit), merit) / self.n  # equal documents, one grade

        def respond(question: Question) -> Answer:
            wrong = bool(self.noise) and rng.random() < self.noise
            if isinstance(question, Compare):
                outcome = int(np.sign(merit[question.first] - merit[question.second]))
                return Answer(-outcome if wrong else outcome)
            grade = int(quantile[question.document] * len(GRADES))
            error = int(rng.choice([-1, 1])) if wrong else 0
            return Answer(min(max(grade + error, 0), len(GRADES) - 1))

        return respond


@dataclass(frozen=True)
class Simulation:
    """The results of the runs of one strategy at one budget.

    Attributes
    ----------
    strategy : str
        Name of the strategy.
    k : int
        Number of documents to find.
    question_counts : array of shape (n_runs,)
        Number of questions per run.
    recall : array of shape (n_runs,)
        Fraction of the top k that was found, per run.
    kndcg : array of shape (n_runs,) or None
        kNDCG@k per run, which also counts the order; None where the truth has ties.
    groups : tuple of str
        The query of each run, where recorded votes are used; else empty.
    prior_ndcg : array of shape (2, n_runs) or None
        NDCG@k of the prior order per run, by the labels of the strategy and by those of complete
        judgments; NaN where all documents have the same label. None without a prior order. The
        means differ if the labels favor the prior order, or disfavor it.

    Examples
    --------
    >>> from firstpage.labeling.simulation.simulate import SimulatedQueries, simulate
    >>> [result] = simulate("tournament", k=3, queries=SimulatedQueries(n=10), runs=20)
    >>> result.to_dict()["runs"], result.to_dict()["recall"]
    (20, 1.0)
    """

    strategy: str
    k: int
    question_counts: Floats
    recall: Floats
    kndcg: Floats | None
    groups: tuple[str, ...] = ()
    prior_ndcg: Floats | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return means over runs, the standard deviation of questions and standard errors."""
        counts = self.question_counts
        summary: dict[str, Any] = {
            "strategy": self.strategy,
            "k": self.k,
            "runs": len(counts),
            "mean_questions": float(counts.mean()),
            "sd_questions": float(counts.std(ddof=1)) if len(counts) > 1 else 0.0,
            "min_questions": int(counts.min()),
            "max_questions": int(counts.max()),
            "recall": float(self.recall.mean()),
            "recall_se": self._standard_error(self.recall),
        }
        if self.kndcg is not None:
            summary |= {f"kNDCG@{self.k}": float(self.kndcg.mean())}
            summary |= {"kndcg_se": self._standard_error(self.kndcg)}
        if self.prior_ndcg is not None:
            by_labels, by_truth = (_mean_or_none(values) for values in self.prior_ndcg)
            summary |= {"prior_ndcg": by_labels, "prior_ndcg_complete": by_truth}
        if self.groups:
            summary["recall_by_query"] = {
                group: float(self.recall[np.array(self.groups) == group].mean())
                for group in dict.fromkeys(self.groups)
            }
        return summary

    def _standard_error(self, values: Floats) -> float:
        """Return the standard error of the mean; over queries, whose runs are not independent."""
        if self.groups:
            names = np.array(self.groups)
            values = np.array([values[names == g].mean() for g in dict.fromkeys(self.groups)])
        return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


@dataclass(frozen=True)
class StrategyResult:
    """The top k of a run and the number of questions asked."""

    top_k: TopK
    questions: int


def run_strategy(
    strategy: Strategy, task: TopKTask, respond: Responder, budgets: Sequence[int | None] = (None,)
) -> list[StrategyResult]:
    """Run a strategy to its end; return the result at each budget, budgets in ascending order.

    Where a budget ends before the strategy, the result is the best estimate from the answers.
    """
    questions = strategy.questions(task)
    answered: list[AnsweredQuestion] = []
    results: list[StrategyResult] = []
    try:
        question = next(questions)
        for budget in budgets:
            while budget is None or len(answered) < budget:
                answer = respond(question)
                answered.append((question, answer))
                question = questions.send(answer)
            results.append(StrategyResult(provisional_top_k(task, answered), len(answered)))
    except StopIteration as end:
        results += [StrategyResult(end.value, len(answered))] * (len(budgets) - len(results))
    return results


def simulate(
    strategy: str | Strategy,
    k: int = 10,
    *,
    queries: SimulatedQueries | None = None,
    votes: Sequence[Votes] | None = None,
    runs: int = 2000,
    budgets: Sequence[int | None] = (None,),
    equal_votes: str = "tie",
    seed: int = 0,
    progress: Progress | None = None,
    name: str = "",
) -> list[Simulation]:
    """Run a strategy many times against simulated assessors or recorded votes.

    Parameters
    ----------
    strategy : str or Strategy
        The strategy, or its name such as ``"heap"`` or ``"adaptive(budget=80)"``.
    k : int, default 10
        Number of documents to find.
    queries : SimulatedQueries, optional
        How random queries and their assessor are drawn; ``SimulatedQueries()`` by default. Not
        used with `votes`.
    votes : sequence of Votes, optional
        Recorded votes of people per query; a random vote on the pair answers each question.
    runs : int, default 2000
        Number of runs; with `votes`, per query.
    budgets : sequence of int or None, default (None,)
        Numbers of questions, ascending, after which the result is measured; None is the end of
        the strategy.
    equal_votes : {"tie", "random"}, default "tie"
        With `votes`, what a recorded "equal" answers: a tie, or a random winner.
    seed : int, default 0
        Random seed; a run depends only on the seed and its number.
    progress : callable, optional
        Called as ``progress(done, total)`` after each run.
    name : str, default ""
        Name of the strategy in the results; by default the given name or the class name.

    Returns
    -------
    list of Simulation
        One result per budget.

    Raises
    ------
    DataError
        If `runs` is less than 1, or the strategy asks for grades and `votes` are given.

    Examples
    --------
    >>> from firstpage.labeling.simulation.simulate import SimulatedQueries, simulate
    >>> few, all_ = simulate("insertion", k=3, queries=SimulatedQueries(n=10), runs=20,
    ...                      budgets=[5, None])
    >>> bool(few.recall.mean() < all_.recall.mean())
    True
    """
    if runs < 1:
        raise DataError(f"runs must be at least 1; got {runs!r}.")
    chosen = _with_budget(registry.strategy(strategy), budgets)
    results: list[list[StrategyResult]] = []
    merits: list[Floats] = []
    priors: list[tuple[float, ...] | None] = []
    groups: list[str] = []
    total = runs * (1 if votes is None else len(votes))
    for merit, task, respond, group in _tasks(queries, votes, runs, k, equal_votes, seed):
        results.append(run_strategy(chosen, task, respond, budgets))
        merits.append(merit)
        priors.append(task.prior)
        groups.append(group)
        if progress is not None:
            progress(len(results), total)
    name = name or (strategy if isinstance(strategy, str) else type(strategy).__name__)
    run_groups = tuple(groups) if votes is not None else ()
    return [
        _simulation(name, k, [run[i] for run in results], merits, priors, run_groups)
        for i in range(len(budgets))
    ]


def _with_budget(strategy: Strategy, budgets: Sequence[int | None]) -> Strategy:
    """Return the strategy; one with its own budget gets the greatest of `budgets`."""
    greatest = max((b for b in budgets if b is not None), default=None)
    if greatest is None or not hasattr(strategy, "budget"):
        return strategy
    return replace(strategy, budget=greatest, confidence=None)  # type: ignore[type-var]


def _simulation(
    name: str,
    k: int,
    runs: Sequence[StrategyResult],
    merits: Sequence[Floats],
    priors: Sequence[tuple[float, ...] | None],
    groups: tuple[str, ...],
) -> Simulation:
    scores = [_rank_scores(run.top_k, k) for run in runs]
    recall = np.array([_recall(s, m, k) for s, m in zip(scores, merits, strict=True)])
    question_counts = np.array([run.questions for run in runs], np.float64)
    return Simulation(
        name,
        k,
        question_counts,
        recall,
        _kndcg(scores, merits, k),
        groups,
        _prior_ndcg(priors, [run.top_k for run in runs], merits, k),
    )


def _rank_scores(top_k: TopK, k: int) -> Floats:
    """Return k for the first document of the order, k - 1 for the next, .., 0 for the rest."""
    scores = np.zeros(len(top_k.order) + len(top_k.rest))
    scores[list(top_k.order)] = k - np.arange(len(top_k.order))
    return scores


def _tasks(
    queries: SimulatedQueries | None,
    votes: Sequence[Votes] | None,
    runs: int,
    k: int,
    equal_votes: str,
    seed: int,
) -> Iterator[tuple[Floats, TopKTask, Responder, str]]:
    """Yield the merit, the task, the assessor and the query of each run."""
    if votes is None:
        recipe = queries or SimulatedQueries()
        for run in range(runs):
            rng = np.random.default_rng([seed, run])
            merit = recipe.merit(rng)
            task = TopKTask(recipe.n, k, int(rng.integers(2**31)), recipe.prior(merit, rng))
            yield merit, task, recipe.responder(merit, rng), ""
        return
    for number, topic in enumerate(votes):
        merit = topic.merit
        for run in range(runs):
            rng = np.random.default_rng([seed, number, run])
            task = TopKTask(len(topic.documents), k, int(rng.integers(2**31)))
            yield merit, task, topic.responder(rng, equal_votes), topic.query


def _recall(scores: Floats, merit: Floats, k: int) -> float:
    """Return the fraction of the top k that was found; a document as good as the k-th counts."""
    top = min(k, len(merit))
    threshold = np.sort(merit)[-top]
    return float((merit[scores > 0] >= threshold).sum() / top)


def _kndcg(scores: Sequence[Floats], merits: Sequence[Floats], k: int) -> Floats | None:
    """Return kNDCG@k of all runs; None if a truth does not order its first k + 1 documents."""
    for merit in merits:
        best = np.sort(merit)[::-1][: k + 1]
        if (best[1:] == best[:-1]).any():
            return None
    labels = [np.maximum(k - np.argsort(np.argsort(-merit, kind="stable")), 0) for merit in merits]
    return _values(scores, labels, f"kNDCG@{k}")


def _prior_ndcg(
    priors: Sequence[tuple[float, ...] | None],
    results: Sequence[TopK],
    merits: Sequence[Floats],
    k: int,
) -> Floats | None:
    """Return NDCG@k of the prior orders by the labels of the results and by complete ones."""
    scores = [np.array(prior) for prior in priors if prior is not None]
    if len(scores) < len(priors):
        return None
    by_labels = [np.array(top_k.labels(k)) for top_k in results]
    complete = [_complete_labels(merit, k) for merit in merits]
    values = np.stack([_values(scores, labels, f"NDCG@{k}") for labels in (by_labels, complete)])
    undecided = [not (a.any() and b.any()) for a, b in zip(by_labels, complete, strict=True)]
    values[:, undecided] = np.nan
    return values


def _complete_labels(merit: Floats, k: int) -> Ints:
    """Return the labels if all pairs were compared: k minus the number of better documents.

    They are 0 below rank k, and for a tie across rank k above no document.
    """
    better = (merit[:, None] < merit).sum(axis=1)
    labels: Ints = np.maximum(k - better, 0)
    worst = merit == merit.min()
    if better[worst][0] < k < len(merit) and worst.sum() > 1:
        labels[worst] = 0
    return labels


def _mean_or_none(values: Floats) -> float | None:
    """Return the mean of the finite values; None if there are none."""
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if len(finite) else None


def _values(scores: Sequence[Floats], labels: Sequence[Floats | Ints], measure: str) -> Floats:
    """Return the value of a measure per run."""
    qid = np.repeat(np.arange(len(scores)), [len(values) for values in scores])
    report = evaluate(np.concatenate(scores), np.concatenate(labels), qid=qid, measures=[measure])
    return np.array(report.values[0], np.float64)
