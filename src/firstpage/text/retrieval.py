"""First-stage retrieval: the engine's best documents, scored again by BM25 over weighted fields.

The engine scores with fixed parameters.  Its best documents are scored again with the parameters of
a `BM25`, from the forward index, and the best of these are the candidates of a query.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from firstpage.data.formats.trec import Qrels
from firstpage.errors import DataError
from firstpage.text.engine import Engine
from firstpage.text.forward import ForwardIndex, Matcher, Query
from firstpage.types import Array, Floats, Ints, Progress

MIN_POOL = 1000  # documents of the engine that are scored again
POOL_FACTOR = 10  # at least this many times the depth


@dataclass(frozen=True)
class BM25:
    """BM25 over weighted fields (Robertson, Zaragoza and Taylor 2004).

    The frequency of a term, and the length of a document, are sums over the text fields with their
    weights.  With equal weights this is BM25 of all fields together.  The inverse document
    frequency is ln(1 + (N - df + 0.5) / (df + 0.5)).

    Parameters
    ----------
    k1 : float, default 1.2
        How slowly the weight of a term saturates with its frequency; at least 0.
    b : float, default 0.75
        How strongly the length of documents matters; between 0 and 1.
    weights : mapping of str to float, optional
        The weights of text fields, 1 where a field is not named.

    Raises
    ------
    DataError
        If a parameter is out of range.

    Examples
    --------
    >>> from firstpage.text.retrieval import BM25
    >>> BM25(k1=0.9, weights={"title": 2.0}).b
    0.75
    """

    k1: float = 1.2
    b: float = 0.75
    weights: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 0 <= self.k1 < np.inf:
            raise DataError(f"k1 of BM25 must be a number of at least 0; got {self.k1}.")
        if not 0 <= self.b <= 1:
            raise DataError(f"b of BM25 must be between 0 and 1; got {self.b}.")
        bad = [name for name, weight in self.weights.items() if not 0 <= weight < np.inf]
        if bad:
            raise DataError(f"the weight of field {bad[0]!r} must be a number of at least 0.")

    def field_weights(self, forward: ForwardIndex) -> Floats:
        """Return the weight of each text field; refuse fields that the index does not have.

        Parameters
        ----------
        forward : ForwardIndex
            The forward index.

        Returns
        -------
        ndarray of shape (n_fields,)
            The weights.
        """
        unknown = [name for name in self.weights if name not in forward.fields]
        if unknown:
            raise DataError(
                f"the index has no text field {unknown[0]!r}; it has {', '.join(forward.fields)}."
            )
        weights = np.array([self.weights.get(name, 1.0) for name in forward.fields])
        if not weights.any():
            raise DataError("at least one text field must have a weight above 0.")
        return weights

    def scores(self, forward: ForwardIndex, query: Query, rows: Ints, tf: Array) -> Floats:
        """Return the scores of documents.

        Parameters
        ----------
        forward : ForwardIndex
            The forward index.
        query : Query
            The terms of the query.
        rows : ndarray of shape (n_documents,)
            The documents.
        tf : ndarray of shape (n_documents, n_fields, n_terms)
            How often each field contains each term of the query (`Matcher.counts`).

        Returns
        -------
        ndarray of shape (n_documents,)
            The scores.
        """
        weights = self.field_weights(forward)
        lengths = forward.lengths(rows)[:, :-1] @ weights
        mean = float(forward.n_occurrences[:-1] @ weights) / max(1, forward.n_documents)
        frequencies = np.tensordot(tf, weights, axes=([1], [0]))
        saturation = self.k1 * (1 - self.b + self.b * lengths / mean) if mean > 0 else lengths
        term_weights = query.counts * forward.idf(query.terms)[-1]
        parts = frequencies * (self.k1 + 1)
        np.divide(parts, frequencies + saturation[:, None], out=parts, where=frequencies > 0)
        scores: Floats = parts @ term_weights
        return scores

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters as JSON."""
        return {"k1": self.k1, "b": self.b, "weights": dict(self.weights)}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> BM25:
        """Return the scoring of stored parameters.

        Parameters
        ----------
        stored : mapping
            The parameters as JSON.

        Returns
        -------
        BM25
            The scoring.
        """
        return cls(stored["k1"], stored["b"], stored["weights"])

    def __str__(self) -> str:
        weights = "".join(f", {name}^{weight:g}" for name, weight in self.weights.items())
        return f"BM25(k1={self.k1:g}, b={self.b:g}{weights})"


def retrieve(
    forward: ForwardIndex, engine: Engine, query: Query, depth: int, scoring: BM25, matcher: Matcher
) -> tuple[Ints, Floats]:
    """Return the rows and scores of the best documents; ties are in the order of the rows."""
    rows, tf = pool(forward, engine, query, depth, scoring, matcher)
    scores = scoring.scores(forward, query, rows, tf)
    best = np.lexsort((rows, -scores))[:depth]
    return rows[best], scores[best]


def pool(
    forward: ForwardIndex, engine: Engine, query: Query, depth: int, scoring: BM25, matcher: Matcher
) -> tuple[Ints, Array]:
    """Return the rows that the engine finds best, and how often they contain the query's terms."""
    terms = [forward.terms.terms[number] for number in query.terms]
    limit = max(MIN_POOL, POOL_FACTOR * depth)
    boosts = scoring.field_weights(forward).tolist()
    rows, _ = engine.search(terms, query.counts.tolist(), boosts, limit)
    return rows, matcher.counts(query, rows)


# --- tuning

GRID_K1 = (0.4, 0.8, 1.2, 1.6, 2.0, 3.0, 5.0)
GRID_B = (0.2, 0.4, 0.6, 0.75, 0.9)
GRID_WEIGHTS = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0)
ROUNDS = 2  # over all field weights
Step = Callable[[BM25], list[BM25]]


@dataclass(frozen=True, eq=False)
class Pooled:
    """What tuning needs to know about a query: its pool, the counts in it, and its grades."""

    query: Query
    rows: Ints
    tf: Array
    gains: Floats
    ideal: float


def tune(
    forward: ForwardIndex,
    engine: Engine,
    queries: Iterable[tuple[str, str]],
    qrels: Qrels,
    depth: int = 10,
    progress: Progress | None = None,
) -> tuple[BM25, float]:
    """Return the BM25 with the best mean NDCG at `depth` on judged queries, and that value.

    First k1 and b are chosen on a grid, then the weight of each field in turn, then k1 and b again.
    Pools come from the engine with equal weights.
    """
    pooled = _pools(forward, engine, queries, qrels, depth)
    if not pooled:
        raise DataError(
            f"{qrels.source or 'qrels'}: no query with a relevant document is among the queries; "
            "are their ids the same?"
        )
    discounts = 1 / np.log2(np.arange(2, depth + 2))

    def value(scoring: BM25) -> float:
        return float(np.mean([_ndcg(forward, scoring, each, discounts) for each in pooled]))

    best = BM25()
    best_value = value(best)
    steps: list[Step] = [_saturation_and_length]
    if len(forward.fields) > 1:
        steps += [partial(_field_weight, name) for name in forward.fields * ROUNDS]
        steps.append(_saturation_and_length)
    for number, step in enumerate(steps):
        for candidate in step(best):
            if not any(candidate.weights.get(name, 1.0) for name in forward.fields):
                continue
            candidate_value = value(candidate)
            if candidate_value > best_value:
                best, best_value = candidate, candidate_value
        if progress is not None:
            progress(number + 1, len(steps))
    return best, best_value


def _saturation_and_length(scoring: BM25) -> list[BM25]:
    return [replace(scoring, k1=k1, b=b) for k1, b in itertools.product(GRID_K1, GRID_B)]


def _field_weight(name: str, scoring: BM25) -> list[BM25]:
    return [replace(scoring, weights={**scoring.weights, name: w}) for w in GRID_WEIGHTS]


def _pools(
    forward: ForwardIndex,
    engine: Engine,
    queries: Iterable[tuple[str, str]],
    qrels: Qrels,
    depth: int,
) -> list[Pooled]:
    judged, matcher = qrels.to_dict(), Matcher(forward)
    pooled = []
    discounts = 1 / np.log2(np.arange(2, depth + 2))
    for name, text in queries:
        grades = judged.get(name)
        if not grades or max(grades.values()) <= 0:
            continue
        query = forward.query(text)
        rows, tf = pool(forward, engine, query, depth, BM25(), matcher)
        labels = np.array([grades.get(forward.ids[row], 0.0) for row in rows.tolist()])
        ideal = np.sort(np.exp2(np.maximum(list(grades.values()), 0)) - 1)[::-1][:depth]
        gains = np.exp2(np.maximum(labels, 0)) - 1
        pooled.append(Pooled(query, rows, tf, gains, float(ideal @ discounts[: len(ideal)])))
    return pooled


def _ndcg(forward: ForwardIndex, scoring: BM25, pooled: Pooled, discounts: Floats) -> float:
    scores = scoring.scores(forward, pooled.query, pooled.rows, pooled.tf)
    best = np.lexsort((pooled.rows, -scores))[: len(discounts)]
    return float(pooled.gains[best] @ discounts[: len(best)]) / pooled.ideal
