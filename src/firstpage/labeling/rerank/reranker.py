"""A budgeted reranker: the most informative questions to an assessor, until the top k is sure."""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from firstpage.core import DataError, Floats, Ints, Progress
from firstpage.core.engine import single_threaded_blas
from firstpage.core.http import RateLimiter
from firstpage.data import Run
from firstpage.data.preferences import PreferencePairs
from firstpage.labeling.assessors import DocumentText, QueryText
from firstpage.labeling.belief.choice import pair_gains
from firstpage.labeling.belief.posterior_ranks import STOPPING_SAMPLES, rank_posterior
from firstpage.labeling.belief.utilities import Utilities
from firstpage.labeling.machines.limits import Budget
from firstpage.labeling.rerank.belief import ChoiceBelief, ListChoice
from firstpage.labeling.rerank.list_assessors import (
    ListAssessor,
    ListReply,
    check_size,
    request_text,
)

Ask = Literal["pair", "best", "order"]
SIZES: Mapping[str, int] = {"pair": 2, "best": 8, "order": 20}  # default numbers of documents
REPEAT_DISCOUNT = 0.5  # factor of a pair's gain per question that showed both
Fetch = Callable[[str, str], DocumentText]  # a document by the ids of query and document


class ReplyCache:
    """Replies in a file of JSON lines, found by the digest of their requests.

    A reply is on disk before it is used. A last line that was cut, as by a killed process, is
    removed.
    """

    def __init__(self, path: Path | None) -> None:
        self._replies: dict[str, ListReply] = {}
        self._lock, self._file = threading.Lock(), None
        if path is None:
            return
        try:
            self._read(path)
            self._file = open(path, "ab", buffering=0)  # noqa: SIM115 - closed by `close`
        except OSError as error:
            raise DataError(f"{path}: {error.strerror or error}.") from error

    def _read(self, path: Path) -> None:
        raw = path.read_bytes() if path.exists() else b""
        complete = raw.rpartition(b"\n")[0]
        for number, line in enumerate(complete.split(b"\n") if complete else [], 1):
            try:
                row = json.loads(line)
                digest, ranking = str(row.pop("request")), tuple(row.pop("ranking"))
                self._replies[digest] = ListReply(ranking, **row)
            except (ValueError, KeyError, TypeError, AttributeError):
                raise DataError(
                    f"{path}:{number}: is not a stored reply; give the file that `firstpage rerank "
                    "--cache` wrote, or a new one."
                ) from None
        if len(complete) + bool(complete) < len(raw):
            os.truncate(path, len(complete) + bool(complete))

    def get(self, digest: str) -> ListReply | None:
        """Return the stored reply to a request."""
        return self._replies.get(digest)

    def put(self, digest: str, reply: ListReply) -> None:
        """Store a reply; it is durable on return."""
        with self._lock:
            self._replies[digest] = reply
            if self._file is not None:
                row = json.dumps({"request": digest, **asdict(reply)}) + "\n"
                self._file.write(row.encode())
                os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()


@dataclass
class QueryReport:
    """What reranking a query took, and how sure its top k is.

    Attributes
    ----------
    query : str
        The id of the query.
    calls : int
        Questions that were asked, stored replies included.
    cached : int
        How many of them were answered by the cache.
    malformed : int
        How many replies were not an answer.
    price : float
        What the replies cost, stored ones included.
    tokens : int
        Tokens that were read and written.
    sure : float
        The expected agreement of the returned top k with that of the assessor: the mean over c = 1
        to k of the expected fraction of the first c that are the best c.
    stopped : str
        Why no more was asked: "sure", or the budget that is used up.
    """

    query: str
    calls: int = 0
    cached: int = 0
    malformed: int = 0
    price: float = 0.0
    tokens: int = 0
    sure: float = 0.0
    stopped: str = "sure"


@dataclass(frozen=True, eq=False)
class Reranking:
    """A reranked run, what it took, and the answers.

    Attributes
    ----------
    run : Run
        The run with its top k reordered; scores are the numbers of documents below.
    queries : tuple of QueryReport
        Calls, price and confidence per query.
    answers : tuple of (str, tuple of str, int)
        Every answer: the query, the documents from best to worst, and how many of them, the first
        ones, are ordered; the others are only worse.

    Examples
    --------
    >>> import firstpage as fp
    >>> run = fp.Run.from_dict({"q": {"b": 2.0, "a": 1.0}})
    >>> result = fp.labeling.Reranking(run, (), (("q", ("b", "a"), 2),))
    >>> len(result.pairs())
    1
    """

    run: Run
    queries: tuple[QueryReport, ...]
    answers: tuple[tuple[str, tuple[str, ...], int], ...]

    def pairs(self) -> PreferencePairs:
        """Return the answers as votes on pairs, on which `firstpage train --pairs` trains.

        The best of m documents has m - 1 votes against the others. An order of m documents has a
        vote per pair, of weight 2/m, so that the weights sum to m - 1 as well.

        Returns
        -------
        PreferencePairs
            The votes.

        Raises
        ------
        DataError
            If nothing was answered.
        """
        rows = [
            (query, better, worse, 1.0 if ordered == 1 else 2.0 / len(documents))
            for query, documents, ordered in self.answers
            for at, better in enumerate(documents[:ordered])
            for worse in documents[at + 1 :]
        ]
        if not rows:
            raise DataError("no question was answered, so there are no votes.")
        query, better, worse, weight = zip(*rows, strict=True)
        return PreferencePairs.from_arrays(query, better, worse, weight=weight)


@dataclass(frozen=True)
class Reranker:
    """Reorders the top k of a run by questions to an assessor, within a budget per query.

    Each question shows the documents whose comparison is expected to tell most about the top k.
    The belief about all documents starts from the scores of the run; pairs, the best of several
    and orders of several are choices of one model (Plackett and Luce), which also estimates the
    assessor's position bias.

    Parameters
    ----------
    assessor : ListAssessor
        What compares documents; `load_list_assessor` returns one.
    k : int, default 10
        How many documents are reordered to the top.
    depth : int, default 100
        How many documents of the run are considered per query.
    ask : {"pair", "best", "order"}, default "order"
        What is asked: the better of two documents, the best of several, or their order.
    size : int, optional
        Documents per question: by default 8 for "best", 20 for "order"; 2 for "pair".
    calls : int, default 20
        Largest number of calls per query.
    max_price : float, optional
        Largest price per query.
    max_seconds : float, optional
        Time per query after which nothing more is asked.
    sure : float, default 0.95
        Stop when the expected agreement of the top k with the assessor's is at least this.
    seed : int, default 0
        Seed of the orders in which documents are shown.

    Raises
    ------
    DataError
        If a parameter is out of range.

    References
    ----------
    R. Plackett (1975). The Analysis of Permutations. Applied Statistics 24(2).

    Examples
    --------
    >>> import firstpage as fp
    >>> texts = {"a": "tea", "b": "green tea", "c": "a pot of green tea"}
    >>> def longest_first(query, documents):
    ...     return [each.key for each in sorted(documents, key=lambda d: -len(d.body))]
    >>> longest = fp.labeling.FunctionListAssessor(longest_first)
    >>> run = fp.Run.from_dict({"q": {"a": 3.0, "b": 2.0, "c": 1.0}})
    >>> result = fp.labeling.Reranker(longest, k=2).rerank(run, {"q": "tea"}, texts)
    >>> list(result.run.docids)
    ['c', 'b', 'a']
    """

    assessor: ListAssessor
    k: int = 10
    depth: int = 100
    ask: Ask = "order"
    size: int | None = None
    calls: int = 20
    max_price: float | None = None
    max_seconds: float | None = None
    sure: float = 0.95
    seed: int = 0

    def __post_init__(self) -> None:
        if self.ask not in SIZES:
            raise DataError(f"ask must be one of {', '.join(SIZES)}; got {self.ask!r}.")
        if self.ask == "pair" and self.size not in (None, 2):
            raise DataError("a question 'pair' shows two documents; leave out size.")
        check_size(self.shown, self.ask != "order")
        if not (1 <= self.k <= self.depth and self.depth > 1 and self.calls >= 0):
            raise DataError(
                "k must be from 1 to depth, depth at least 2 and calls at least 0; got "
                f"k={self.k}, depth={self.depth}, calls={self.calls}."
            )
        if not 0 < self.sure <= 1:
            raise DataError(f"sure must be above 0 and at most 1; got {self.sure}.")

    @property
    def shown(self) -> int:
        """The number of documents per question."""
        return SIZES[self.ask] if self.size is None else self.size

    def rerank(
        self,
        run: Run,
        queries: Mapping[str, str],
        texts: Mapping[str, str] | Fetch,
        cache: Path | None = None,
        concurrency: int = 1,
        progress: Progress | None = None,
    ) -> Reranking:
        """Return a run with its top k reordered.

        Parameters
        ----------
        run : Run
            The run; each query has its documents in any order, and is ranked by score.
        queries : mapping of str to str
            The text of each query by its id.
        texts : mapping of str to str, or callable
            The text of each document by its id, or a function of the ids of query and document that
            returns a `DocumentText`.
        cache : path, optional
            File in which replies are stored and found, so that an interrupted run continues and no
            question is paid for twice.
        concurrency : int, default 1
            Number of queries at a time.
        progress : callable, optional
            Function of the numbers of queries done and in all.

        Returns
        -------
        Reranking
            The run, with calls, price and confidence per query, and the answers.

        Raises
        ------
        DataError
            If a query or a document has no text, or the assessor fails.
        """
        if missing := [each for each in run.queries if each not in queries]:
            raise DataError(
                f"{len(missing)} of {len(run)} queries of the run have no text, such as "
                f"{missing[0]!r}."
            )
        fetch = texts if callable(texts) else _fetch_from(texts)
        names, offsets = list(run.queries), run.offsets.tolist()
        ids = list(run.docids)

        def one(number: int) -> tuple[QueryReport, list[str], list[tuple[tuple[str, ...], int]]]:
            rows = np.arange(offsets[number], offsets[number + 1])
            rows = rows[np.argsort(-run.values[rows], kind="stable")]
            ranked = [ids[row] for row in rows.tolist()]
            query = QueryText(names[number], queries[names[number]])
            first = [fetch(query.key, each) for each in ranked[: self.depth]]
            scores = run.values[rows[: self.depth]]
            task = QueryTask(self, replies, query, first, scores)
            order = task.finish()
            return task.report, [*(ranked[at] for at in order), *ranked[self.depth :]], task.answers

        limiter = getattr(self.assessor, "limiter", None)
        with single_threaded_blas(), closing(ReplyCache(cache)) as replies:
            done = list(_each(one, len(names), concurrency, progress, limiter))
        table = {
            report.query: {each: float(len(order) - at) for at, each in enumerate(order)}
            for report, order, _ in done
        }
        return Reranking(
            Run.from_dict(table, run.name),
            tuple(report for report, _, _ in done),
            tuple((report.query, *answer) for report, _, answers in done for answer in answers),
        )


def _fetch_from(texts: Mapping[str, str]) -> Fetch:
    def fetch(query: str, document: str) -> DocumentText:
        if document not in texts:
            raise DataError(f"the document {document!r} of query {query!r} has no text.")
        return DocumentText(document, texts[document])

    return fetch


def _each(
    function: Callable[[int], Any],
    count: int,
    concurrency: int,
    progress: Progress | None,
    limiter: RateLimiter | None,
) -> Iterator[Any]:
    """Yield the results of several calls at a time; the first error ends the others."""
    pool = ThreadPoolExecutor(max(concurrency, 1))
    try:
        waiting = [pool.submit(function, number) for number in range(count)]
        for number, each in enumerate(waiting, 1):
            yield each.result()
            if progress is not None:
                progress(number, count)
    finally:
        if limiter is not None and not all(each.done() for each in waiting):
            limiter.stop()
        pool.shutdown(cancel_futures=True)


@dataclass
class QueryTask:
    """The questions and answers about one query."""

    reranker: Reranker
    cache: ReplyCache
    query: QueryText
    documents: Sequence[DocumentText]
    scores: Floats
    report: QueryReport = field(init=False)
    answers: list[tuple[tuple[str, ...], int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.report = QueryReport(self.query.key)
        self.belief = ChoiceBelief(self.scores)
        self._together: Counter[tuple[int, int]] = Counter()
        self._shown: set[tuple[int, ...]] = set()
        self._rng = np.random.default_rng(
            [self.reranker.seed, int(hashlib.sha256(self.query.key.encode()).hexdigest()[:8], 16)]
        )
        self._budget = Budget(
            self.reranker.calls, self.reranker.max_price, self.reranker.max_seconds
        )
        self._conclude()

    def finish(self) -> list[int]:
        """Ask until the top k is sure or the budget is used up; return the final order."""
        while self.step():
            pass
        return self.order

    def step(self) -> bool:
        """Ask one question; return False if there is none, by confidence or budget."""
        if self.report.sure >= self.reranker.sure or len(self.documents) < 2:
            return False
        if not self._budget.start_question():
            self.report.stopped = str(self._budget.exhausted).replace("answers", "calls")
            return False
        shown = self._question(min(self.reranker.k, len(self.documents) - 1))
        ranking = self._answer(shown)
        if ranking:
            choice = ListChoice(tuple(shown), tuple(shown[place] for place in ranking))
            self._store(choice)
            self.belief.add(choice)
            self._conclude()
        return True

    def _conclude(self) -> None:
        """Order the documents by what is believed: the top k, then the others as they were."""
        self._believed = self.belief.utilities()
        k = min(self.reranker.k, len(self.documents))
        top, self.report.sure = expected_agreement(self._believed, k)
        rest = np.setdiff1d(np.arange(len(self.documents)), top)
        self.order: list[int] = [*top.tolist(), *rest.tolist()]

    def _question(self, k: int) -> list[int]:
        """Return the documents that are shown: the pair of greatest gain, and what adds most.

        The order is random; a pair that is asked again is shown in the other order.
        """
        candidates, gain = pair_gains(self._believed, k)
        gain = gain + gain.T
        at = {int(document): place for place, document in enumerate(candidates)}
        for (first, second), times in self._together.items():
            if first in at and second in at:
                both_orders = self.reranker.shown == 2 and times > 1
                factor = 0.0 if both_orders else REPEAT_DISCOUNT**times
                gain[at[first], at[second]] *= factor
                gain[at[second], at[first]] *= factor
        chosen = list(divmod(int(np.argmax(gain)), len(candidates)))
        if chosen[0] == chosen[1]:  # nothing is informative
            chosen = [0, 1]
        while len(chosen) < min(self.reranker.shown, len(candidates)):
            total = gain[chosen].sum(axis=0)
            total[chosen] = -np.inf
            chosen.append(int(np.argmax(total)))
        shown: list[int] = candidates[self._rng.permutation(chosen)].tolist()
        if tuple(shown) in self._shown:
            shown.reverse()
        self._shown.add(tuple(shown))
        self._together.update(
            (min(a, b), max(a, b)) for i, a in enumerate(shown) for b in shown[i + 1 :]
        )
        return shown

    def _answer(self, shown: Sequence[int]) -> tuple[int, ...]:
        """Return the ranking of the shown documents; ask a second time after a malformed reply."""
        documents = [self.documents[each] for each in shown]
        best_only = self.reranker.ask != "order"
        report, assessor = self.report, self.reranker.assessor
        for again in (False, True):
            if again and not self._budget.start_question():
                break
            request = assessor.request(self.query, documents, best_only, again)
            digest = hashlib.sha256(request_text(request).encode()).hexdigest()
            reply = self.cache.get(digest)
            report.cached += reply is not None
            if reply is None:
                reply = assessor.reply(request, self.query, documents)
                self.cache.put(digest, reply)
            self._budget.finish_question(reply.price)
            report.calls += 1
            report.price += reply.price
            report.tokens += reply.tokens
            if reply.ranking:
                return reply.ranking
            report.malformed += 1
        return ()

    def _store(self, choice: ListChoice) -> None:
        rest = [each for each in choice.shown if each not in choice.ranking]
        keys = tuple(self.documents[each].key for each in (*choice.ranking, *rest))
        self.answers.append((keys, len(choice.ranking)))


def expected_agreement(believed: Utilities, k: int) -> tuple[Ints, float]:
    """Return the k documents of greatest mean, and their expected agreement with the true top k.

    It is the mean over c = 1 .. k of the expected fraction of the first c that are the best c.
    """
    posterior = rank_posterior(believed, k, samples=STOPPING_SAMPLES)
    within = posterior.ranks.cumsum(axis=1)
    agreement = [float(within[posterior.order[: c + 1], c].mean()) for c in range(k)]
    return posterior.order, float(np.mean(agreement))
