"""Double Thompson sampling: a dueling bandit whose arms are the documents of a query."""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import numpy as np

from firstpage.core import Floats, check_number
from firstpage.labeling.strategies.adaptive import Adaptive
from firstpage.labeling.strategies.sorting import Comparisons, Memory, Sorting
from firstpage.labeling.strategies.strategy import Compare, TopKTask

MAX_DRAWS = 50  # in a row without a pair to ask, after which the strategy stops


@dataclass(frozen=True)
class Duels(Sorting):
    """Double Thompson sampling for the top k.

    The probability that a document beats another one has a beta posterior. The first document of
    a question is drawn by Thompson sampling: it has the best Copeland score (number of documents
    that it beats) under a sample of these probabilities, among those that can still have the best
    one. The second is the one most likely to beat it under a second sample, among those not known
    to lose against it. For k > 1, a rank up to k is drawn first, and the documents that the sample
    puts above it are passed over; k = 1 is the algorithm of the paper. Documents are returned by
    Copeland score, then by their mean probability to win. A tie is half a win for each.

    Parameters
    ----------
    memory : None
        Each question is asked as often as the algorithm chooses it; other values are not useful.
    alpha : float, default 0.51
        Width of the confidence bounds; smaller values exclude pairs sooner.
    repeats : int, default 3
        Maximum number of answers per pair.
    budget : int, optional
        Maximum number of questions; by default that of `Adaptive`.

    Raises
    ------
    DataError
        If a parameter is out of range.

    References
    ----------
    X. Yan, C. Luo, C. L. A. Clarke, N. Craswell, E. M. Voorhees and P. Castells (2022). Human
    Preferences as Dueling Bandits. SIGIR.

    H. Wu and X. Liu (2016). Double Thompson Sampling for Dueling Bandits. NeurIPS.

    Examples
    --------
    >>> from firstpage.labeling.simulation.simulate import SimulatedQueries, simulate
    >>> [result] = simulate("duels(budget=40)", k=1, queries=SimulatedQueries(n=8), runs=5)
    >>> float(result.question_counts.max())
    40.0
    """

    memory: Memory = None
    alpha: float = 0.51
    repeats: int = 3
    budget: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number(self, "alpha", minimum=0.0)
        check_number(self, "repeats", minimum=1, integer=True)
        if self.budget is not None:
            check_number(self, "budget", minimum=0, integer=True)

    def _algorithm(self, task: TopKTask) -> Comparisons[list[int]]:
        budget = Adaptive(self.budget).max_questions(task.n, task.k)
        return double_thompson(task.shuffled(), task.top, self, budget, task.seed)


def double_thompson(
    items: list[int], k: int, settings: Duels, budget: int, seed: int
) -> Comparisons[list[int]]:
    """Return the top k after `budget` questions, or when no pair remains to be asked."""
    rng, n = np.random.default_rng([seed, 2]), len(items)
    wins = np.zeros((n, n))
    for asked in range(budget):
        for _ in range(MAX_DRAWS):
            pair = _draw(wins, int(rng.integers(k)), settings, asked + 1, rng)
            if pair is not None:
                break
        else:
            break
        first, second = pair
        outcome = yield Compare(items[first], items[second])
        wins[first, second] += 0.5 + outcome / 2
        wins[second, first] += 0.5 - outcome / 2
    mean = (wins + 1.0) / (wins + wins.T + 2.0)
    copeland = (mean > 0.5).sum(axis=1) + 0.5 * (mean == 0.5).sum(axis=1)
    return [items[i] for i in np.lexsort((-mean.sum(axis=1), -copeland))[:k]]


def _draw(
    wins: Floats, skipped: int, settings: Duels, time: int, rng: np.random.Generator
) -> tuple[int, int] | None:
    """Return the next pair, passing over the `skipped` best documents of the first sample."""
    games = wins + wins.T
    width = np.sqrt(settings.alpha * log(time + 1) / np.maximum(games, 1.0))
    rate = np.where(games > 0, wins / np.maximum(games, 1.0), 0.5)
    upper = np.where(games > 0, rate + width, 1.0)
    np.fill_diagonal(upper, 0.0)
    theta = rng.beta(wins + 1.0, wins.T + 1.0)
    sampled = np.triu(theta, 1) + np.tril(1.0 - theta.T, -1)  # one draw per pair
    scores = (sampled > 0.5).sum(axis=1) + rng.random(len(wins))  # ties at random
    remaining = np.argsort(-scores, kind="stable")[skipped:]
    bound = (upper > 0.5).sum(axis=1)[remaining]
    first = int(remaining[np.argmax(bound == bound.max())])
    against = rng.beta(wins[:, first] + 1.0, wins[first] + 1.0)
    lower = np.where(games[:, first] > 0, rate[:, first] - width[:, first], 0.0)
    against[(lower > 0.5) | (games[:, first] >= settings.repeats)] = -1.0
    against[first] = -1.0
    second = int(np.argmax(against))
    return None if against[second] < 0.0 else (first, second)
