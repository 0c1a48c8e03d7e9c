"""First-stage retrieval: the engine's best documents, scored again by BM25 over weighted fields.

The engine scores with fixed parameters.  Its best documents are scored again with the parameters of
a `BM25`, from the forward index, and the best of these are the candidates of a query.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from firstpage.core import Array, DataError, Floats, Ints
from firstpage.search.engine import SearchEngine
from firstpage.search.forward import ForwardIndex, Matcher, Query

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
    >>> from firstpage.search.retrieval import BM25
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

    def mean_length(self, forward: ForwardIndex) -> float:
        """Return the mean weighted length of documents.

        Parameters
        ----------
        forward : ForwardIndex
            The forward index.

        Returns
        -------
        float
            The mean.
        """
        total = float(forward.n_occurrences[:-1] @ self.field_weights(forward))
        return total / max(1, forward.n_documents)

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
        mean = self.mean_length(forward)
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
    forward: ForwardIndex,
    engine: SearchEngine,
    query: Query,
    depth: int,
    scoring: BM25,
    matcher: Matcher,
) -> tuple[Ints, Floats]:
    """Return the rows and scores of the best documents; ties are in the order of the rows."""
    if depth < 1:
        raise DataError(f"depth must be at least 1; got {depth}.")
    rows = pool(forward, engine, query, depth, scoring)
    scores = first_stage_scores(forward, query, rows, scoring, matcher)
    best = np.lexsort((rows, -scores))[:depth]
    return rows[best], scores[best]


def first_stage_scores(
    forward: ForwardIndex, query: Query, rows: Ints, scoring: BM25, matcher: Matcher
) -> Floats:
    """Return the scores of documents."""
    blocks = matcher.blocks(query, rows)
    return np.concatenate([scoring.scores(forward, query, part, tf) for part, tf in blocks])


def pool(
    forward: ForwardIndex, engine: SearchEngine, query: Query, depth: int, scoring: BM25
) -> Ints:
    """Return the rows that the engine finds best."""
    terms = [forward.terms.terms[number] for number in query.terms]
    limit = min(max(MIN_POOL, POOL_FACTOR * depth), max(1, forward.n_rows))
    boosts = scoring.field_weights(forward).tolist()
    return engine.search(terms, query.counts.tolist(), boosts, limit)[0]
