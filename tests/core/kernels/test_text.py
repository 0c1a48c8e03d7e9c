"""Kernels of texts against plain Python, on random small collections."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstpage.core.kernels import text as kernel
from tests.search.plain import arrangement

N_TERMS = 7  # 0 is a stop word and never in a document
FIELDS = 2

fields = st.lists(st.integers(1, N_TERMS - 1), max_size=9)
documents = st.lists(st.tuples(*[fields] * FIELDS), min_size=1, max_size=6)


@dataclass
class Collection:
    documents: list[tuple[list[int], ...]]

    @property
    def tokens(self) -> np.ndarray:
        return np.array(list(chain(*chain(*self.documents))), np.uint32)

    @property
    def ends(self) -> np.ndarray:
        lengths = [len(field) for document in self.documents for field in document]
        return np.cumsum(lengths, dtype=np.int64).reshape(-1, FIELDS)

    def statistics(self, rows: list[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return distinct terms, document frequencies and occurrences by the definitions."""
        distinct = np.zeros((len(rows), FIELDS + 1), np.int64)
        df, cf = np.zeros((2, FIELDS + 1, N_TERMS), np.int64)
        for i, row in enumerate(rows):
            streams = [*self.documents[row], list(chain(*self.documents[row]))]
            for f, stream in enumerate(streams):
                distinct[i, f] = len(set(stream))
                for term, count in Counter(stream).items():
                    df[f, term] += 1
                    cf[f, term] += count
        return distinct, df, cf


@given(documents, st.data())
def test_collection_statistics(docs: list[tuple[list[int], ...]], data: st.DataObject) -> None:
    collection = Collection(docs)
    rows = list(range(len(docs)))
    removed = data.draw(st.lists(st.sampled_from(rows), unique=True))
    df, cf = np.zeros((2, FIELDS + 1, N_TERMS), np.int64)
    for part, sign in ((rows, 1), (removed, -1)):
        distinct = np.full((len(part), FIELDS + 1), -1)
        marks = np.zeros((2, N_TERMS), np.int64)
        kernel.collection_statistics(
            collection.tokens,
            collection.ends,
            np.array(part, np.int64),
            sign,
            marks[0],
            marks[1],
            distinct,
            df,
            cf,
        )
        np.testing.assert_array_equal(distinct, collection.statistics(part)[0])
    _, df_left, cf_left = collection.statistics([row for row in rows if row not in removed])
    np.testing.assert_array_equal(df, df_left)
    np.testing.assert_array_equal(cf, cf_left)


queries = st.lists(st.integers(1, N_TERMS - 1), max_size=5)


def slots_of(query: list[int]) -> tuple[list[int], np.ndarray]:
    terms = list(dict.fromkeys(query))
    slots = np.zeros(N_TERMS, np.int32)
    slots[terms] = np.arange(1, len(terms) + 1)
    return terms, slots


@given(documents, queries)
def test_count_matches(docs: list[tuple[list[int], ...]], query: list[int]) -> None:
    collection = Collection(docs)
    terms, slots = slots_of(query)
    rows = np.arange(len(docs))[::-1].copy()
    tf = np.full((len(docs), FIELDS, len(terms)), -1, np.int32)
    kernel.count_matches(collection.tokens, collection.ends, rows, slots, tf)
    expected = [[[field.count(t) for t in terms] for field in docs[row]] for row in rows]
    np.testing.assert_array_equal(tf, np.reshape(expected, tf.shape))


def places_of(sequence: np.ndarray, n_terms: int) -> tuple[np.ndarray, np.ndarray]:
    places = [np.flatnonzero(sequence == slot) for slot in range(n_terms)]
    lengths = [0, *(len(each) for each in places)]
    return np.cumsum(lengths), np.concatenate([np.empty(0, np.int64), *places])


@given(documents, queries, st.integers(2, 5))
def test_match_positions(docs: list[tuple[list[int], ...]], query: list[int], window: int) -> None:
    collection = Collection(docs)
    terms, slots = slots_of(query)
    sequence = np.array([terms.index(term) for term in query], np.int64)
    longest = max(len(field) for document in docs for field in document)
    out = np.full((len(docs), FIELDS, 5), np.nan)
    kernel.match_positions(
        collection.tokens,
        collection.ends,
        np.arange(len(docs)),
        slots,
        sequence,
        *places_of(sequence, len(terms)),
        window,
        np.empty(longest, np.int64),
        np.empty(longest, np.int64),
        np.empty(len(terms), np.int64),
        np.empty(len(query), np.int64),
        np.full(len(query), -1),
        out,
    )
    expected = [[arrangement(field, [query], window) for field in document] for document in docs]
    np.testing.assert_array_equal(out, expected)


def test_a_phrase_ends_where_the_sequence_does() -> None:
    collection = Collection([([1, 2, 3], [])])
    slots = np.array([0, 1, 2, 3, 0, 0, 0], np.int32)
    out = np.empty((1, FIELDS, 5))
    kernel.match_positions(
        collection.tokens,
        collection.ends,
        np.arange(1),
        slots,
        np.array([0, 1, -1, 2]),
        *places_of(np.array([0, 1, -1, 2]), 3),
        3,
        np.empty(3, np.int64),
        np.empty(3, np.int64),
        np.empty(3, np.int64),
        np.empty(4, np.int64),
        np.full(4, -1),
        out,
    )
    assert out[0, 0].tolist() == [1, 1, 3, 2, 0]


def tfidf(document: tuple[list[int], ...], idf: np.ndarray) -> dict[int, float]:
    counts = Counter(chain(*document))
    weights = {t: (1 + math.log(n)) * idf[t] for t, n in counts.items() if idf[t] > 0}
    norm = math.sqrt(sum(weight**2 for weight in weights.values()))
    return {term: weight / norm for term, weight in weights.items()}


def csr(collection: Collection, idf: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rows = np.arange(len(collection.documents))
    indptr = np.zeros(len(rows) + 1, np.int64)
    indices = np.empty(len(collection.tokens), np.int64)
    values = np.empty(len(collection.tokens))
    counts = np.zeros(N_TERMS, np.int64)
    kernel.tfidf_rows(
        collection.tokens, collection.ends, rows, idf, counts, indptr, indices, values
    )
    assert not counts.any()
    return indptr, indices, values


idfs = st.lists(st.sampled_from([0.0, 0.3, 1.0, 2.5]), min_size=N_TERMS, max_size=N_TERMS)


@given(documents, idfs)
def test_tfidf_rows(docs: list[tuple[list[int], ...]], weights: list[float]) -> None:
    idf = np.array(weights)
    indptr, indices, values = csr(Collection(docs), idf)
    for i, document in enumerate(docs):
        row = slice(indptr[i], indptr[i + 1])
        vector = dict(zip(indices[row].tolist(), values[row].tolist(), strict=True))
        assert vector == pytest.approx(tfidf(document, idf), rel=1e-12)


@given(documents, idfs, st.data())
def test_centroid_cosines(
    docs: list[tuple[list[int], ...]], weights: list[float], data: st.DataObject
) -> None:
    idf = np.array(weights)
    matrix = csr(Collection(docs), idf)
    n_top = data.draw(st.integers(0, len(docs)))
    top = np.array(data.draw(st.lists(st.floats(0, 1), min_size=n_top, max_size=n_top)))
    out, centroid = np.full(len(docs), np.nan), np.zeros(N_TERMS)
    kernel.centroid_cosines(*matrix, top, centroid, out)
    assert not centroid.any()
    dense = np.zeros((len(docs), N_TERMS))
    for i, document in enumerate(docs):
        for term, value in tfidf(document, idf).items():
            dense[i, term] = value
    mean = top @ dense[:n_top]
    norm = np.linalg.norm(mean)
    expected = dense @ mean / norm if norm > 0 else np.zeros(len(docs))
    if norm > 1e-150 or norm == 0:  # squares of smaller numbers vanish
        np.testing.assert_allclose(out, expected, rtol=1e-9, atol=1e-12)
