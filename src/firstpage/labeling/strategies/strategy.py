"""The interface of labeling strategies: questions, answers, the task, the result, and runs.

A strategy is an algorithm that yields questions and receives answers.  Documents are the integers
0 .. n-1 here; sessions know their names.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from firstpage.core import DataError, Floats


@dataclass(frozen=True, slots=True)
class Compare:
    """The question which of two documents is better."""

    first: int
    second: int

    @property
    def documents(self) -> tuple[int, ...]:
        """The two documents."""
        return self.first, self.second

    @property
    def pair(self) -> tuple[int, int]:
        """The two documents in ascending order: the same for both orders of the question."""
        first, second = self.first, self.second
        return (first, second) if first <= second else (second, first)


@dataclass(frozen=True, slots=True)
class Grade:
    """The question how good a document is."""

    document: int

    @property
    def documents(self) -> tuple[int, ...]:
        """The document, as a tuple."""
        return (self.document,)


@dataclass(frozen=True, slots=True)
class Answer:
    """The assessor's answer to a question.

    Attributes
    ----------
    outcome : int
        Of a comparison: 1 if the first document is better, -1 if the second one is, 0 if neither
        is. Of a grade: the grade, higher is better. 0 if skipped.
    bad : frozenset of int
        Documents of the question that are clearly irrelevant.
    skipped : bool
        Whether the assessor skipped the question. The strategy continues as after a tie (or the
        lowest grade), and the answer does not count as a judgment.
    """

    outcome: int
    bad: frozenset[int] = frozenset()
    skipped: bool = False

    def __post_init__(self) -> None:
        if self.skipped:
            object.__setattr__(self, "outcome", 0)


Question = Compare | Grade
Groups = tuple[tuple[int, ...], ...]
AnsweredQuestion = tuple[Question, Answer]


@dataclass(frozen=True)
class TopKTask:
    """The task of a strategy: find the best `k` of `n` documents, in order.

    Attributes
    ----------
    n : int
        Number of documents.
    k : int
        Number of documents to find; all of them if k exceeds n.
    seed : int
        Seed of the order in which documents are asked about.
    prior : tuple of float or None
        Score per document, higher is better, known before any answer.
    features : array of shape (n, n_features) or None
        Feature vectors of the documents.
    past : tuple of AnsweredQuestion
        Answers given before this strategy started, in order.
    """

    n: int
    k: int
    seed: int = 0
    prior: tuple[float, ...] | None = None
    features: Floats | None = None
    past: tuple[AnsweredQuestion, ...] = ()

    def __post_init__(self) -> None:
        if self.n < 1:
            raise DataError("a query without documents cannot be labeled; remove it.")
        if self.k < 1:
            raise DataError(f"k must be at least 1; got {self.k!r}.")
        if self.prior is not None and len(self.prior) != self.n:
            raise DataError(
                f"the prior must have one score per document; got {len(self.prior)} scores for "
                f"{self.n} documents."
            )
        if self.prior is not None and not np.isfinite(self.prior).all():
            raise DataError("the prior must have finite scores; it has NaN or infinity.")

    @property
    def top(self) -> int:
        """The number of documents that the result orders: k, or n if that is smaller."""
        return min(self.k, self.n)

    def shuffled(self) -> list[int]:
        """Return the documents in an order that depends on the seed and not on k."""
        return [int(i) for i in np.random.default_rng(self.seed).permutation(self.n)]

    def by_prior(self) -> list[int]:
        """Return the documents by descending prior score; shuffled if there is no prior."""
        documents = self.shuffled()
        if self.prior is not None:
            prior = self.prior
            documents.sort(key=lambda d: -prior[d])
        return documents


@dataclass(frozen=True)
class TopK:
    """The ordered top k of a query.

    Attributes
    ----------
    order : tuple of int
        The top k, best first; bad documents come last.
    rest : tuple of int
        The other documents, in no order.
    bad : frozenset of int
        Documents that were flagged as clearly irrelevant.
    tied : tuple of tuples of int
        Groups of documents that were called equal, best first; the order within a group is
        arbitrary. The last group may cross rank k: it then ends with documents of `rest`.
    undecided : frozenset of int
        The documents of a tie across rank k, or of all documents, that are not known to be better
        than any other document.
    confidence : tuple of float or None
        Per rank of `order`, the probability that its document has this rank.
    set_confidence : float or None
        The probability that these k documents, in any order, are the best.
    membership : tuple of float or None
        Per document, the probability that it is among the top k.

    Examples
    --------
    >>> from firstpage.labeling.strategies.strategy import TopK
    >>> TopK.from_order([2, 0], 4).labels(10)
    [9, 0, 10, 0]
    """

    order: tuple[int, ...]
    rest: tuple[int, ...]
    bad: frozenset[int] = frozenset()
    tied: tuple[tuple[int, ...], ...] = ()
    undecided: frozenset[int] = frozenset()
    confidence: tuple[float, ...] | None = None
    set_confidence: float | None = None
    membership: tuple[float, ...] | None = None

    @classmethod
    def from_order(cls, order: Sequence[int], n: int, **attributes: object) -> TopK:
        """Return the top k of n documents; `rest` follows from `order`."""
        top = set(order)
        rest = tuple(d for d in range(n) if d not in top)
        return cls(tuple(order), rest, **attributes)  # type: ignore[arg-type]

    def labels(self, k: int) -> list[int]:
        """Return the label per document: k for the best, k - 1 for the next, .., 0 for the rest.

        Documents that were called equal have the label of the best of them, also those outside
        of the top k. Bad and undecided documents have label 0.
        """
        labels = [0] * (len(self.order) + len(self.rest))
        for rank, document in enumerate(self.order):
            labels[document] = k - rank
        for group in self.tied:
            for document in group[1:]:
                labels[document] = labels[group[0]]
        for document in self.bad | self.undecided:
            labels[document] = 0
        return labels


Questions = Generator[Question, Answer, TopK]


class Strategy(Protocol):
    """A labeling strategy."""

    def questions(self, task: TopKTask) -> Questions:
        """Yield questions and receive answers; return the top k."""
        ...


class StrategyRun(Protocol):
    """A strategy in progress: one open question at a time.

    `question` is None once the strategy has finished; `result` is then its top k.
    """

    @property
    def question(self) -> Question | None: ...

    @property
    def result(self) -> TopK | None: ...

    def answer(self, answer: Answer) -> None:
        """Answer the open question."""
        ...

    def peek(self, answer: Answer) -> Question | None:
        """Return the question that would follow this answer; the run does not change."""
        ...


class GeneratorRun:
    """A run of any strategy: its generator and the answers so far."""

    def __init__(self, strategy: Strategy, task: TopKTask) -> None:
        self._strategy, self._task = strategy, task
        self._answers: list[Answer] = []
        self._generator = strategy.questions(task)
        self.question: Question | None = None
        self.result: TopK | None = None
        self._advance(None)

    def answer(self, answer: Answer) -> None:
        """Answer the open question."""
        self._answers.append(answer)
        self._advance(answer)

    def peek(self, answer: Answer) -> Question | None:
        """Return the next question by a second run, since a generator cannot be copied."""
        other = GeneratorRun(self._strategy, self._task)
        for earlier in [*self._answers, answer]:
            other.answer(earlier)
        return other.question

    def _advance(self, answer: Answer | None) -> None:
        try:
            self.question = (
                next(self._generator) if answer is None else self._generator.send(answer)
            )
        except StopIteration as end:
            self.question, self.result = None, end.value


def start(strategy: Strategy, task: TopKTask) -> StrategyRun:
    """Return a run of the strategy: its own kind of run if it has one, else a generator run."""
    run: StrategyRun = (
        strategy.start(task) if hasattr(strategy, "start") else GeneratorRun(strategy, task)
    )
    return run
