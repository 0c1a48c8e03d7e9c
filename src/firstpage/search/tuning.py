"""Tuning of the first stage: the parameters of BM25 with the best NDCG on judged queries."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from firstpage.core import Array, DataError, Floats, Ints, Progress
from firstpage.core.kernels import text as kernel
from firstpage.data import Qrels
from firstpage.search.engine import SearchEngine
from firstpage.search.forward import ForwardIndex, Matcher
from firstpage.search.retrieval import BM25, pool

GRID_K1 = (0.4, 0.8, 1.2, 1.6, 2.0, 3.0, 5.0)
GRID_B = (0.2, 0.4, 0.6, 0.75, 0.9)
GRID_WEIGHTS = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0)
ROUNDS = 2  # over all field weights
Neighbors = Callable[[BM25], list[BM25]]


@dataclass(frozen=True, eq=False)
class Pool:
    """What tuning needs to know about a query: the engine's best documents, in order of rows.

    Attributes
    ----------
    lengths : ndarray of shape (n_documents, n_fields)
        The lengths of their text fields.
    gains : ndarray of shape (n_documents,)
        Their gains.
    match_counts : ndarray of shape (n_documents,)
        The number of query terms that each contains: its matches.
    tf : ndarray of shape (n_matches, n_fields)
        The frequency of the term of each match in the fields.
    term_weights : ndarray of shape (n_matches,)
        The weights of these terms: count in the query times inverse document frequency.
    ideal : float
        The DCG of the best order of all judged documents.
    """

    lengths: Floats
    gains: Floats
    match_counts: Ints
    tf: Floats
    term_weights: Floats
    ideal: float


class CandidatePools:
    """The pools of judged queries, on which many scorings are tried.

    Pools come from the engine with equal weights of fields.  Queries without a relevant document
    have none.
    """

    def __init__(
        self,
        forward: ForwardIndex,
        engine: SearchEngine,
        queries: Iterable[tuple[str, str]],
        qrels: Qrels,
        depth: int = 10,
    ) -> None:
        self._forward = forward
        self._source = qrels.source or "qrels"
        self._discounts = 1 / np.log2(np.arange(2, depth + 2))
        self._pools: dict[str, Pool] = {}
        judged, matcher = qrels.to_dict(), Matcher(forward)
        for name, text in queries:
            grades = judged.get(name)
            if grades and max(grades.values()) > 0:
                self._pools[name] = self._pool(engine, text, grades, matcher)

    def _pool(
        self, engine: SearchEngine, text: str, grades: dict[str, float], matcher: Matcher
    ) -> Pool:
        forward, depth = self._forward, len(self._discounts)
        query = forward.query(text)
        rows = np.sort(pool(forward, engine, query, depth, BM25()))
        weights = query.counts * forward.idf(query.terms)[-1]
        match_counts: list[Array] = []
        tf: list[Array] = []
        term_weights: list[Array] = []
        for _, counts in matcher.blocks(query, rows):
            matches = counts.any(axis=1)
            match_counts.append(matches.sum(axis=1))
            tf.append(counts.transpose(0, 2, 1)[matches].astype(float))
            term_weights.append(weights[np.nonzero(matches)[1]])
        row_of = forward.row_of
        grade_of = {row_of[name]: grade for name, grade in grades.items() if name in row_of}
        labels = np.array([grade_of.get(row, 0.0) for row in rows.tolist()])
        best = np.sort(_gains(np.array(list(grades.values()))))[::-1][:depth]
        return Pool(
            forward.lengths(rows)[:, :-1].astype(float),
            _gains(labels),
            np.concatenate(match_counts),
            np.concatenate(tf),
            np.concatenate(term_weights),
            float(best @ self._discounts[: len(best)]),
        )

    def tune(
        self, names: Collection[str] | None = None, progress: Progress | None = None
    ) -> tuple[BM25, float]:
        """Return the BM25 with the best mean NDCG on these queries (default: all), and that value.

        First k1 and b are chosen on a grid, then the weight of each field in turn, then k1 and b
        again.
        """
        value = self._objective(self._measurable(names))
        fields = self._forward.fields
        best = BM25()
        best_value = value(best)
        steps: list[Neighbors] = [_saturation_and_length]
        if len(fields) > 1:
            steps += [partial(_field_weight, name) for name in fields * ROUNDS]
            steps.append(_saturation_and_length)
        for number, step in enumerate(steps):
            for candidate in step(best):
                if not any(candidate.weights.get(name, 1.0) for name in fields):
                    continue
                candidate_value = value(candidate)
                if candidate_value > best_value:
                    best, best_value = candidate, candidate_value
            if progress is not None:
                progress(number + 1, len(steps))
        return best, best_value

    def value(self, scoring: BM25) -> float:
        """Return the mean NDCG of a scoring on all queries."""
        return self._objective(self._measurable(None))(scoring)

    def __len__(self) -> int:
        """Return the number of queries with a relevant document."""
        return len(self._pools)

    def _measurable(self, names: Collection[str] | None) -> list[Pool]:
        """Return the pools of these queries (None: all); refuse them if every NDCG would be 0."""
        pools = [p for name, p in self._pools.items() if names is None or name in names]
        if not pools:
            raise DataError(
                f"{self._source}: no query with a relevant document is among the queries; are "
                "their ids the same?"
            )
        if not any(p.gains.any() for p in pools):
            raise DataError(
                f"{self._source}: a search finds no relevant document of {len(pools)} queries, so "
                "nothing can be tuned; are the ids of documents those of the index?"
            )
        return pools

    def _objective(self, pools: list[Pool]) -> Callable[[BM25], float]:
        """Return the function from a scoring to the mean NDCG of pools."""
        forward, discounts = self._forward, self._discounts
        query_ends = np.cumsum([len(p.gains) for p in pools])
        match_ends = np.cumsum(np.concatenate([p.match_counts for p in pools]))
        lengths, gains, tf, term_weights = (
            np.concatenate([getattr(p, name) for p in pools])
            for name in ("lengths", "gains", "tf", "term_weights")
        )
        ideal = np.array([p.ideal for p in pools])
        top, out = np.empty((2, len(discounts))), np.empty(len(pools))

        def value(scoring: BM25) -> float:
            weights = scoring.field_weights(forward)
            kernel.bm25_ndcg(
                query_ends=query_ends,
                match_ends=match_ends,
                lengths=lengths,
                gains=gains,
                tf=tf,
                term_weights=term_weights,
                ideal=ideal,
                k1=float(scoring.k1),
                b=float(scoring.b),
                weights=weights,
                mean=scoring.mean_length(forward),
                discounts=discounts,
                top_scores=top[0],
                top_gains=top[1],
                out=out,
            )
            return float(out.mean())

        return value


def _gains(labels: Floats) -> Floats:
    gains: Floats = np.exp2(np.maximum(labels, 0)) - 1
    return gains


def _saturation_and_length(scoring: BM25) -> list[BM25]:
    return [replace(scoring, k1=k1, b=b) for k1, b in itertools.product(GRID_K1, GRID_B)]


def _field_weight(name: str, scoring: BM25) -> list[BM25]:
    return [replace(scoring, weights={**scoring.weights, name: w}) for w in GRID_WEIGHTS]
