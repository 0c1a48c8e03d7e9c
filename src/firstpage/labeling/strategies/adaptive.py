"""The adaptive strategy: a knockout, then the most informative questions by a posterior.

`Refined` spends such questions near rank k after another strategy has finished.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterable
from dataclasses import dataclass, field, replace
from math import ceil, log2
from typing import ClassVar

import numpy as np

from firstpage.core import DataError, Floats, Ints, check_number
from firstpage.labeling.belief.choice import Pair, next_pair
from firstpage.labeling.belief.posterior_ranks import is_confident, rank_posterior
from firstpage.labeling.belief.utilities import PRIOR_CORRELATION, BeliefEnsemble, Utilities
from firstpage.labeling.strategies.strategy import (
    Answer,
    AnsweredQuestion,
    Compare,
    Question,
    Questions,
    Strategy,
    TopK,
    TopKTask,
)
from firstpage.labeling.strategies.ties import last_outcomes, top_k_of

PLAYERS = 2  # of the opening with a prior, as a multiple of k: those that it ranks first
BUDGET_FACTOR = 1.5  # default budget, relative to a knockout with answers that never err


@dataclass
class BeliefState:
    """The state of the adaptive strategy; it follows from the task and the answers.

    Attributes
    ----------
    ensemble : BeliefEnsemble
        Posteriors of the utilities under several prior standard deviations.
    tie_break : array of int
        The rank of each document by the prior, random without one, to break ties.
    counts : Counter of pairs
        How often each pair was asked.
    last : pair or None
        The pair that was asked last.
    bad : frozenset of int
        Documents flagged as clearly irrelevant.
    outcomes : dict of pair to int
        The last answer of each pair, for its smaller document; without those that flag one as bad.
    wins : array of int or None
        The opening knockout: comparisons won per document, -1 once it lost; `tie_break` decides
        ties. None without an opening.
    """

    ensemble: BeliefEnsemble
    tie_break: Ints
    counts: Counter[Pair] = field(default_factory=Counter)
    last: Pair | None = None
    bad: frozenset[int] = frozenset()
    outcomes: dict[Pair, int] = field(default_factory=dict)
    wins: Ints | None = None

    @classmethod
    def from_task(
        cls, task: TopKTask, prior_correlation: float = PRIOR_CORRELATION, opening: bool = False
    ) -> BeliefState:
        """Return the initial state, updated with the task's past answers."""
        tie_break = np.argsort(task.by_prior()).astype(np.int64)
        players = task.n if len(set(task.prior or ())) < 2 else PLAYERS * task.top
        state = cls(
            BeliefEnsemble.from_prior(task.n, task.prior, task.features, prior_correlation),
            tie_break,
            wins=np.where(tie_break < players, 0, -1) if opening else None,
        )
        state.learn_all(task.past)
        return state

    def learn_all(self, answers: Iterable[AnsweredQuestion]) -> None:
        """Update the state with earlier comparisons."""
        for question, answer in answers:
            if isinstance(question, Compare):
                self.learn(question, answer)

    def learn(self, question: Compare, answer: Answer) -> None:
        """Update the state with an answer.

        A skipped question only becomes less likely to be asked again. An answer about a bad
        document does not update the utilities: that the other document is better is known.
        """
        self.bad |= answer.bad
        if self.wins is not None:
            first, second = question.documents
            tied = self.tie_break[second] - self.tie_break[first]
            bad = (second in answer.bad) - (first in answer.bad)
            winner, loser = (
                (first, second) if (bad or answer.outcome or tied) > 0 else (second, first)
            )
            self.wins = self.wins.copy()
            self.wins[winner] += self.wins[winner] >= 0
            self.wins[loser] = -1
        self.counts[question.pair] += 1
        self.last = question.pair
        informative = not (answer.skipped or answer.bad) and question.first != question.second
        if informative:
            self.outcomes |= last_outcomes([(question, answer)])
            self.ensemble = self.ensemble.updated(question.first, question.second, answer.outcome)

    @property
    def good(self) -> Ints:
        """The documents that were not flagged as bad."""
        good = np.ones(len(self.tie_break), bool)
        good[list(self.bad)] = False
        return np.flatnonzero(good)

    @property
    def belief(self) -> Utilities:
        """The posterior of the utilities with the greatest evidence."""
        return self.ensemble.best

    def next_question(self, k: int) -> Compare | None:
        """Return the next question of the opening, then the most informative one; None at the end.

        The opening completes one branch of the knockout after the other, so that winners are known
        early: it compares two documents that won equally often, as many times as possible.
        """
        pair = self._opening_pair() or next_pair(
            self.ensemble.exploratory, k, self.good, self.tie_break, self.counts, self.last
        )
        return None if pair is None else Compare(*pair)

    def _opening_pair(self) -> Pair | None:
        if self.wins is None:
            return None
        undefeated = self.good[self.wins[self.good] >= 0]
        undefeated = undefeated[np.lexsort((self.tie_break[undefeated], self.wins[undefeated]))]
        if len(undefeated) < 2:
            return None
        equal = np.flatnonzero(np.diff(self.wins[undefeated]) == 0)
        level = self.wins[undefeated[equal[-1]]] if len(equal) else -1
        first, second = undefeated[self.wins[undefeated] >= level][:2].tolist()
        return first, second

    def is_confident(self, k: int, confidence: float | None) -> bool:
        """Return whether the top k as a set is known with at least this probability."""
        good = self.good
        if confidence is None or len(good) <= k:
            return False
        return is_confident(confidence, self.belief, k, good)

    def top_k(self, task: TopKTask) -> TopK:
        """Return good documents by mean utility; bad documents fill the ranks that remain."""
        posterior = rank_posterior(self.belief, task.top, self.good)
        order = [int(d) for d in posterior.order]
        bad = sorted(self.bad, key=lambda d: (-float(self.belief.mean[d]), int(self.tie_break[d])))
        missing = task.top - len(order)
        return replace(
            top_k_of(order + bad[:missing], task.n, self.outcomes, self.bad),
            confidence=(*(float(c) for c in posterior.confidence), *[1.0] * missing),
            set_confidence=posterior.set_confidence,
            membership=self._membership(posterior.membership, bad[:missing]),
        )

    def _membership(self, probabilities: Floats, certain: list[int]) -> tuple[float, ...]:
        probabilities = probabilities.copy()
        probabilities[certain] = 1.0
        return tuple(float(p) for p in probabilities)


@dataclass(frozen=True)
class Adaptive:
    """Bayesian active learning: asks the pair that most reduces the uncertainty of the top k.

    The uncertainty is that of which documents are the top k, and in which order; the model is
    Thurstone's with ties. It begins with a knockout of all documents, or of the first 2 k by the
    prior, which finds candidates for the first rank. The strategy stops when the budget is spent or
    the set is known with probability `confidence`. Answers may contradict each other: the result
    fits all of them best.

    Parameters
    ----------
    budget : int, optional
        Maximum number of questions, answers from before the strategy started included. By
        default 1.5 times the questions of a knockout tournament, rounded up:
        1.5 (n - 1 + (k - 1) log2 n), 150 for the top 10 of 50 documents.
    confidence : float or None, default 0.95
        Posterior probability of the set at which to stop, from 0 to below 1; None stops at the
        budget only.
    prior_correlation : float, default 0.5
        Assumed correlation of the prior scores with the true utilities, from 0 to below 1.
    opening : bool, default True
        Whether to begin with a knockout.

    Raises
    ------
    DataError
        If a parameter is out of range.

    References
    ----------
    T. Minka (2001). Expectation Propagation for Approximate Bayesian Inference. UAI.

    W. A. Glenn and H. A. David (1960). Ties in Paired-Comparison Experiments Using a Modified
    Thurstone-Mosteller Model. Biometrics 16(1).

    Examples
    --------
    >>> import firstpage as fp
    >>> setting = fp.labeling.Setting("adaptive(budget=12)", k=2)
    >>> session = fp.labeling.Session(list("abcdefgh"), setting)
    >>> while (question := session.question) is not None:
    ...     _ = session.answer(1 if question.left < question.right else -1)
    >>> session.order
    ('a', 'b')
    """

    memoryless: ClassVar[bool] = True  # answers in `task.past` lead to the same questions

    budget: int | None = None
    confidence: float | None = 0.95
    prior_correlation: float = PRIOR_CORRELATION
    opening: bool = True

    def __post_init__(self) -> None:
        if self.budget is not None:
            check_number(self, "budget", minimum=0, integer=True)
        for name in ("confidence", "prior_correlation"):
            value = getattr(self, name)
            if name == "confidence" and value is None:
                continue
            check_number(self, name, minimum=0.0)
            if value >= 1:
                raise DataError(f"{name} must be less than 1; got {value!r}.")

    def questions(self, task: TopKTask) -> Questions:
        """Yield comparisons until the budget is spent or the set is known; return the top k."""
        run = self.start(task)
        while run.question is not None:
            run.answer((yield run.question))
        return run.result

    def start(self, task: TopKTask) -> AdaptiveRun:
        """Return a run whose `peek` updates one answer instead of replaying all of them."""
        return AdaptiveRun(self, task)

    def max_questions(self, n: int, k: int) -> int:
        """Return the budget for the top k of n documents."""
        if self.budget is not None:
            return self.budget
        k = min(k, n)
        return ceil(BUDGET_FACTOR * (n - 1 + (k - 1) * log2(max(n, 2)))) if n > 1 else 0

    def remaining(self, n: int, k: int, answered: int) -> tuple[int, int]:
        """Return the least and greatest number of remaining questions."""
        high = max(self.max_questions(n, k) - answered, 0)
        return (min(1, high) if self.confidence is not None else high), high


class AdaptiveRun:
    """A run of the adaptive strategy."""

    def __init__(self, strategy: Adaptive, task: TopKTask) -> None:
        self._strategy, self._task = strategy, task
        self._state = BeliefState.from_task(task, strategy.prior_correlation, strategy.opening)
        self.question = self._next_question(self._state)

    @property
    def result(self) -> TopK:
        """The top k given the answers so far."""
        return self._state.top_k(self._task)

    def answer(self, answer: Answer) -> None:
        """Answer the open question."""
        assert self.question is not None
        self._state.learn(self.question, answer)
        self.question = self._next_question(self._state)

    def peek(self, answer: Answer) -> Compare | None:
        """Return the question that would follow this answer."""
        assert self.question is not None
        state = replace(
            self._state, counts=Counter(self._state.counts), outcomes=dict(self._state.outcomes)
        )
        state.learn(self.question, answer)
        return self._next_question(state)

    def _next_question(self, state: BeliefState) -> Compare | None:
        strategy, task = self._strategy, self._task
        spent = state.counts.total() >= strategy.max_questions(task.n, task.k)
        if spent or state.is_confident(task.top, strategy.confidence):
            return None
        return state.next_question(task.top)


@dataclass(frozen=True)
class Refined:
    """Another strategy, followed by extra adaptive questions near rank k.

    The result fits all answers best, so that early errors can be corrected. Asks the questions
    of `base` and `extra` more.

    Parameters
    ----------
    base : Strategy
        The strategy that finds a first top k.
    extra : int, default 20
        Number of additional comparisons; a pair may be asked again.

    Examples
    --------
    >>> import firstpage as fp
    >>> setting = fp.labeling.Setting("tournament", k=1, refine=3)
    >>> session = fp.labeling.Session(list("abcdefgh"), setting)
    >>> while (question := session.question) is not None:
    ...     _ = session.answer(1 if question.left < question.right else -1)
    >>> len(session.judgments)  # 7 of the tournament and 3 more
    10
    """

    base: Strategy
    extra: int = 20

    def __post_init__(self) -> None:
        check_number(self, "extra", minimum=0, integer=True)

    def questions(self, task: TopKTask) -> Questions:
        """Yield the questions of the base, then the extra ones; return the top k."""
        answered: list[AnsweredQuestion] = []
        top_k = yield from record_answers(self.base.questions(task), answered)
        if not self.extra:
            return top_k
        past = (*task.past, *answered)
        refinement = Adaptive(len(past) + self.extra, confidence=None, opening=False)
        return (yield from refinement.questions(replace(task, past=past)))


def record_answers(
    questions: Questions, answered: list[AnsweredQuestion]
) -> Generator[Question, Answer, TopK]:
    """Yield the same questions and append each, with its answer, to `answered`."""
    try:
        question = next(questions)
        while True:
            answer = yield question
            answered.append((question, answer))
            question = questions.send(answer)
    except StopIteration as end:
        top_k: TopK = end.value
        return top_k
