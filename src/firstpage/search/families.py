"""Families of features of a query and its candidates.

A stream is a text field, or all text fields together (`document`).  In the formulas, tf is the
number of occurrences of a query term in the stream of a document; l the number of terms of the
stream, and avgl its mean over documents; N the number of documents; df the number of documents with
the term in the stream; cf the number of its occurrences in the collection, and C that of all terms;
V the number of distinct terms of all streams.  Sums over query terms count repeated terms
repeatedly; terms that no document contains do not count, unless this is said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from firstpage.core import Array, Floats, Ints
from firstpage.core.kernels import text as kernel
from firstpage.evaluation.aggregation import StageFusion
from firstpage.search.first_stage import EncodedDocuments
from firstpage.search.forward import WHOLE, ForwardIndex, Matcher, Query
from firstpage.search.latent import LatentSpace, cosines

K1, B = 1.2, 0.75  # of BM25
DISCOUNT = 0.7  # of the language model with absolute discounting
COLLECTION_WEIGHT = 0.5  # of the language model of Jelinek and Mercer
FEEDBACK_DOCUMENTS = 10  # of the first stage, assumed relevant
LATENT_RANKS = (32, 128)


@dataclass(frozen=True, eq=False)
class Candidates:
    """A query and its candidates, in the order of the first stage; shared values are computed once.

    Their order, and `scores`, are those of the index's BM25, whichever way the candidates were
    retrieved, so that the same features can be computed when the index is searched.
    """

    forward: ForwardIndex
    query: Query
    rows: Ints
    scores: Floats
    matcher: Matcher
    idf_all: Floats  # of the whole document, per term
    space: LatentSpace | None
    vectors: Array
    dense: EncodedDocuments | None
    fusion: StageFusion

    @cached_property
    def tf(self) -> Floats:
        """The occurrences of query terms: an array of documents, streams and terms."""
        counts = self.matcher.counts(self.query, self.rows)
        return np.concatenate([counts, counts.sum(axis=1, keepdims=True)], axis=1).astype(float)

    @cached_property
    def lengths(self) -> Floats:
        """The numbers of terms per document and stream."""
        return self.forward.lengths(self.rows).astype(float)

    @cached_property
    def distinct(self) -> Floats:
        """The numbers of distinct terms per document and stream."""
        return self.forward.distinct[self.rows].astype(float)

    @cached_property
    def idf(self) -> Floats:
        """The inverse document frequencies per stream and query term."""
        return self.forward.idf(self.query.terms)

    @cached_property
    def collection_probability(self) -> Floats:
        """The probability (cf + 0.5) / (C + 0.5 V) of query terms per stream."""
        forward = self.forward
        totals = forward.n_occurrences[:, None] + 0.5 * forward.n_terms
        return (forward.cf[:, self.query.terms] + 0.5) / totals

    @cached_property
    def arrangement(self) -> Floats:
        """How query terms are arranged, per document and field (`kernels.text.match_positions`)."""
        return self.matcher.arrangement(self.query, self.rows)

    @cached_property
    def vector_rows(self) -> tuple[Array, Array, Array]:
        """The TF-IDF vectors of the candidates in CSR form."""
        matrix = self.forward.tfidf(self.rows, self.idf_all)
        return matrix.indptr, matrix.indices, matrix.data

    @cached_property
    def feedback_weights(self) -> Floats:
        """The weights of the first candidates as feedback: their scores, with sum 1."""
        top = np.maximum(self.scores[:FEEDBACK_DOCUMENTS], 0.0)
        total = top.sum()
        return top / total if total > 0 else np.full(len(top), 1 / max(1, len(top)))

    @cached_property
    def similarities(self) -> tuple[Floats, Floats]:
        """The similarities of the query to the candidates' first vectors, and to their best."""
        assert self.dense is not None
        if not len(self.rows):  # only names are asked for: no query is encoded
            return np.empty(0), np.empty(0)
        return self.dense.similarities(self.query, self.rows)

    @cached_property
    def fused_scores(self) -> Floats:
        """The scores by words and by vectors fused, as if these were all documents."""
        numbers, best = np.arange(len(self.rows)), self.similarities[1]
        by_meaning = np.argsort(-best, kind="stable")
        lists = [(numbers, self.scores), (by_meaning, best[by_meaning])]
        fused = np.empty(len(numbers))
        order, scores = self.fusion.fuse(lists)
        fused[order] = scores
        return fused


Columns = Iterator[tuple[str, Floats]]
Family = Callable[[Candidates], Columns]


def letor(c: Candidates) -> Columns:
    """Yield the families of LETOR 4.0 per stream.

    `tf`, `idf` (of terms that occur) and `tfidf` by sum, minimum, maximum and mean over the query's
    terms; `length`; `bm25` (Robertson et al. 1994); language models (Zhai and Lafferty 2001) with
    absolute discounting (`lm_absolute`), Dirichlet smoothing with avgl as its parameter
    (`lm_dirichlet`), and interpolation (`lm_jelinek_mercer`), each the logarithm of the probability
    of the query.
    """
    counts = c.query.counts.astype(float)
    n_terms = max(1.0, counts.sum())
    documents = max(1, c.forward.n_documents)
    for s, stream in enumerate((*c.forward.fields, WHOLE)):
        tf, idf = c.tf[:, s], c.idf[s]
        length, distinct = c.lengths[:, s, None], c.distinct[:, s, None]
        background = c.collection_probability[s]
        occurs = tf > 0
        for name, values in (("tf", tf), ("idf", occurs * idf), ("tfidf", tf * idf)):
            total = values @ counts
            yield f"{stream}.{name}_sum", total
            yield f"{stream}.{name}_min", values.min(axis=1, initial=np.inf if counts.size else 0)
            yield f"{stream}.{name}_max", values.max(axis=1, initial=0.0)
            yield f"{stream}.{name}_mean", total / n_terms
        yield f"{stream}.length", c.lengths[:, s]
        mean = max(c.forward.n_occurrences[s] / documents, 1e-9)
        saturation = K1 * (1 - B + B * length / mean)
        yield (
            f"{stream}.bm25",
            (tf * (K1 + 1) / np.where(occurs, tf + saturation, 1.0) * idf) @ counts,
        )
        positive = np.maximum(length, 1.0)
        absolute = (np.maximum(tf - DISCOUNT, 0.0) + DISCOUNT * distinct * background) / positive
        absolute = np.where(length > 0, absolute, background)
        yield f"{stream}.lm_absolute", np.log(absolute) @ counts
        yield f"{stream}.lm_dirichlet", np.log((tf + mean * background) / (length + mean)) @ counts
        mixture = (1 - COLLECTION_WEIGHT) * tf / positive + COLLECTION_WEIGHT * background
        yield f"{stream}.lm_jelinek_mercer", np.log(mixture) @ counts


def matching(c: Candidates) -> Columns:
    """Yield how completely and how closely each stream matches the query.

    `coverage`, the fraction of the query's distinct terms that occur, unknown terms included, and
    `idf_coverage`, the same of known terms weighted by idf; `cosine`, the product of the
    (1 + ln tf) idf vectors of query and stream, divided by the norm of the query's and the square
    root of l; `ordered` and `near`, ln(1 + n) of the numbers of neighboring, distinct query terms
    that follow each other, or are within 8 positions in any order (Metzler and Croft 2005);
    `density`, the number of distinct query terms that occur, divided by the length of the shortest
    passage with all of them; `phrase`, the length of the longest phrase of the query, divided by
    that of the query without unknown terms; `first`, 1 / (1 + position of the first query term).
    Of the whole document, `ordered` and `near` are about the sum over fields, and `density`,
    `phrase` and `first` are the maximum of the fields.
    """
    n_query = max(1, len(c.query.terms) + c.query.n_unknown)
    query_weights = 1 + np.log(c.query.counts)
    per_field = c.arrangement
    ordered, near, span, phrase, first = (per_field[:, :, i] for i in range(5))
    n_fields = len(c.forward.fields)
    occurs = c.tf > 0
    n_present = occurs.sum(axis=2)
    density = np.where(span > 0, n_present[:, :n_fields] / np.maximum(span, 1), 0.0)
    early = np.where(first >= 0, 1 / (1 + np.maximum(first, 0)), 0.0)
    arranged = {
        "ordered": np.log1p(_with_total(ordered)),
        "near": np.log1p(_with_total(near)),
        "density": _with_maximum(density),
        "first": _with_maximum(early),
        "phrase": _with_maximum(phrase) / max(1, c.query.sequence_length),
    }
    for s, stream in enumerate((*c.forward.fields, WHOLE)):
        idf = c.idf[s]
        yield f"{stream}.coverage", n_present[:, s] / n_query
        yield f"{stream}.idf_coverage", occurs[:, s] @ idf / max(idf.sum(), 1e-9)
        weights = np.where(occurs[:, s], 1 + np.log(np.maximum(c.tf[:, s], 1)), 0.0) * idf
        norm = np.sqrt(np.maximum(c.lengths[:, s], 1)) * max(
            np.linalg.norm(query_weights * idf), 1e-9
        )
        yield f"{stream}.cosine", weights @ (query_weights * idf) / norm
        for name, values in arranged.items():
            yield f"{stream}.{name}", values[:, s]


def _with_total(values: Floats) -> Floats:
    return np.column_stack([values, values.sum(axis=1)])


def _with_maximum(values: Floats) -> Floats:
    return np.column_stack([values, values.max(axis=1)])


def first_stage(c: Candidates) -> Columns:
    """Yield the score of the first stage, and 1 / ln(e + rank - 1) of its rank from 1."""
    yield "first_stage.score", c.scores
    yield "first_stage.rank", 1 / np.log(np.e + np.arange(len(c.rows)))


def query(c: Candidates) -> Columns:
    """Yield what is known of the query alone, the same for all candidates.

    `length`, the number of its terms, unknown ones included; `idf_mean`; `clarity`, the divergence
    of the query from the collection, sum of p ln(p / P) over its terms (He and Ounis 2004).
    """
    ones = np.ones(len(c.rows))
    counts = c.query.counts
    total = max(1, counts.sum())
    yield "query.length", ones * c.query.length
    yield "query.idf_mean", ones * (counts @ c.idf[-1] / total)
    p = counts / total
    clarity = (
        p @ np.log(np.maximum(p, 1e-300) / c.collection_probability[-1]) if counts.size else 0.0
    )
    yield "query.clarity", ones * clarity


def feedback(c: Candidates) -> Columns:
    """Yield the cosine with the mean TF-IDF vector of the first stage's ten best (Rocchio 1971)."""
    out = np.empty(len(c.rows))
    kernel.centroid_cosines(*c.vector_rows, c.feedback_weights, np.zeros(len(c.idf_all)), out)
    yield "feedback.cosine", out


def latent(c: Candidates) -> Columns:
    """Yield latent semantic similarity (Deerwester et al. 1990) at several ranks.

    `latent.similarity_r` is the cosine of query and document in the first r dimensions, and
    `latent.feedback` the cosine with the mean of the first stage's ten best.
    """
    if c.space is None:
        return
    vectors = c.vectors[c.rows]
    coordinates = c.space.query(c.query)
    for rank in LATENT_RANKS:
        if rank <= c.space.n_dimensions:
            yield f"latent.similarity_{rank}", cosines(vectors, coordinates, rank)
    unit = vectors.astype(np.float64)
    norms = np.linalg.norm(unit, axis=1, keepdims=True)
    np.divide(unit, norms, out=unit, where=norms > 0)
    mean = c.feedback_weights @ unit[: len(c.feedback_weights)]
    yield "latent.feedback", cosines(unit, mean, c.space.n_dimensions)


def vector(c: Candidates) -> Columns:
    """Yield how near query and document are by the vectors of the index's encoder.

    `similarity` is the cosine with the best vector of the document, whole or passage, and `first`
    that with the vector of the whole document; `rank` is 1 / ln(e + rank - 1) of the rank by
    similarity among the candidates, `fused` the score of words and vectors fused as the hybrid
    first stage does, and `feedback` the cosine with the mean of the ten best of that fusion.
    """
    if c.dense is None:
        return
    first, best = c.similarities
    yield "vector.similarity", best
    yield "vector.first", first
    rank = np.empty(len(best))
    rank[np.argsort(-best, kind="stable")] = np.arange(len(best))
    yield "vector.rank", 1 / np.log(np.e + rank)
    yield "vector.fused", c.fused_scores
    top = np.argsort(-c.fused_scores, kind="stable")[:FEEDBACK_DOCUMENTS]
    documents = c.dense.vectors.whole(c.rows)
    mean = documents[top].mean(axis=0) if len(top) else np.zeros(documents.shape[1])
    yield "vector.feedback", cosines(documents, mean, len(mean))


FAMILIES: Mapping[str, Family] = {
    "letor": letor, "matching": matching, "first_stage": first_stage, "query": query,
    "feedback": feedback, "latent": latent, "vector": vector,
}  # fmt: skip
