"""The stored vectors of the documents of an index, and search in them.

A vector is stored as 8-bit integers, which are proportional to its components, and the factor that
makes their length 1.  The similarity of a query is therefore the cosine with what is stored, and a
sum of integers: it does not depend on how documents are divided among threads or calls.

Search among many vectors computes few similarities.  The first 192 signs of components choose eight
times as many vectors as all signs, an eighth of the size, choose of these for the last step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from firstpage.core import Array, Bools, Bytes, DataError, Floats, Ints, Words
from firstpage.core.engine import Lanes, resolve
from firstpage.core.kernels import vectors as kernel
from firstpage.search import storage
from firstpage.search.encoders.loading import name_within

DIGEST_BYTES = 16  # of the text of a document
MAX_CODE = 127  # of a component of a stored vector
MAX_QUERY_CODE = 32767  # of a component of a query
MAX_SUM = (1 << 31) // (MAX_CODE + 1)  # of the components of a query, so that products fit 32 bits
PARALLEL_SIZE = 1 << 22  # components, from which on several threads search
EXACT_VECTORS = 200_000  # up to which search computes all similarities
CHOSEN, CHOSEN_PER_RESULT = 2500, 25  # vectors whose similarities are computed, at least
COARSE_WORDS, COARSELY_CHOSEN = 3, 8  # of signs; how many times as many vectors they choose
FILES: dict[str, type] = {
    "codes": np.int8, "scales": np.float32, "signs": np.uint64, "ends": np.int64,
    "digests": np.uint8,
}  # fmt: skip


Bounds: TypeAlias = list[tuple[int, int]]
"""Ranges of rows, one per thread."""


@dataclass(frozen=True, eq=False)
class StoredVectors:
    """The vectors of all documents of an index, from `Index.vectors`.

    The vectors of a row end at `ends[row]`: that of the whole document, then those of its passages
    if it is long.

    Attributes
    ----------
    encoder : dict
        The name, the digest and the number of dimensions of the encoder.
    ends : ndarray of shape (n_rows,)
        Where the vectors of each row end.
    digests : ndarray of uint8 of shape (n_rows, 16)
        The digest of the text of each row; zeros where there is none.
    codes : ndarray of int8 of shape (n_vectors, dimensions)
        Integers that are proportional to the components of the vectors.
    scales : ndarray of float32 of shape (n_vectors,)
        What the integers of each vector are multiplied by to get its length 1.
    signs : ndarray of uint64 of shape (n_vectors, n_words)
        The signs of the components of each vector as bits: 1 where it is positive.
    """

    encoder: Mapping[str, Any]
    ends: Ints
    digests: Bytes
    codes: Array
    scales: Array
    signs: Words

    @property
    def dimensions(self) -> int:
        """The number of components of a vector."""
        return int(self.codes.shape[1])

    @property
    def n_vectors(self) -> int:
        """The number of vectors, those of deleted documents included."""
        return len(self.codes)

    @property
    def n_bytes(self) -> int:
        """The size of the vectors in bytes."""
        return int(self.codes.nbytes + self.scales.nbytes + self.signs.nbytes)

    @property
    def is_searched_exactly(self) -> bool:
        """Whether there are so few vectors that search computes all similarities by default."""
        return self.n_vectors <= EXACT_VECTORS

    @cached_property
    def planes(self) -> Words:
        """The first words of the signs of all vectors, one row per word."""
        planes = np.zeros((COARSE_WORDS, self.n_vectors), np.uint64)
        planes[: self.signs.shape[1]] = self.signs[:, :COARSE_WORDS].T
        return planes

    @cached_property
    def counts(self) -> Ints:
        """The number of vectors of each row."""
        return np.diff(self.ends, prepend=0)

    @cached_property
    def n_described(self) -> int:
        """The number of rows that have vectors."""
        return int(np.count_nonzero(self.counts))

    def of_row(self, row: int) -> tuple[Array, Array]:
        """Return the integers and the factors of the vectors of a row."""
        end = int(self.ends[row])
        chosen = slice(end - int(self.counts[row]), end)
        return self.codes[chosen], self.scales[chosen]

    def whole(self, rows: Ints) -> Floats:
        """Return the vectors of whole documents; zeros for documents without vectors."""
        vectors = np.zeros((len(rows), self.dimensions))
        present = self.counts[rows] > 0
        first = (self.ends - self.counts)[rows[present]]
        vectors[present] = self.codes[first] * self.scales[first, None].astype(np.float64)
        return vectors

    def similarities(self, query: Array, rows: Ints) -> tuple[Floats, Floats]:
        """Return the cosines of a query and documents: of whole documents, and of the best vectors.

        Parameters
        ----------
        query : ndarray of shape (dimensions,)
            The vector of the query, of any length.
        rows : ndarray of int
            The rows of the documents.

        Returns
        -------
        whole, best : ndarray of float64
            The cosine of the whole document, and the greatest cosine of the document and its
            passages; 0 for documents without vectors.

        Raises
        ------
        DataError
            If the vector has another number of dimensions, or is not finite.
        """
        codes, scale = query_codes(query, self.dimensions)
        rows = np.ascontiguousarray(rows, np.int64)
        whole, best = np.zeros(len(rows)), np.zeros(len(rows))
        if scale and len(rows):
            kernel.document_similarities(
                codes=self.codes,
                scales=self.scales,
                ends=self.ends,
                rows=rows,
                query=codes,
                query_scale=scale,
                whole=whole,
                best=best,
            )
        return whole, best

    def search(
        self,
        query: Array,
        depth: int,
        deleted: Bools,
        threads: int | None = None,
        exact: bool | None = None,
    ) -> tuple[Ints, Floats]:
        """Return the documents whose best vectors have the greatest cosines with a query.

        Parameters
        ----------
        query : ndarray of shape (dimensions,)
            The vector of the query, of any length; no document is similar to one of zeros.
        depth : int
            The number of documents.
        deleted : ndarray of bool of shape (n_rows,)
            Which documents are left out, such as deleted ones.
        threads : int, optional
            The number of threads; by default one per core.  It changes no result.
        exact : bool, optional
            Whether all similarities are computed.  Otherwise those of documents with the vectors
            that have most signs in common with the query: 2,500, or 25 per result, of documents
            with one vector each, and more of documents with passages.  Some of the best documents
            may be missing (`recall`); scores are the same.  By default, search is exact among up to
            200,000 vectors.

        Returns
        -------
        rows, scores : ndarray
            The documents, the best first, in the order of rows where scores are equal; documents
            without vectors are left out.  Scores are the second ones of `similarities`.

        Raises
        ------
        DataError
            If the vector has another number of dimensions, or is not finite.
        """
        codes, scale = query_codes(query, self.dimensions)
        if not scale or not self.n_vectors or depth < 1:
            return np.empty(0, np.int64), np.empty(0)
        parts = resolve(threads) if self.codes.size >= PARALLEL_SIZE else 1
        is_exact = self.is_searched_exactly if exact is None else exact
        rows = np.empty(0, np.int64) if is_exact else self._nearest(codes, depth, deleted, parts)
        if len(rows) >= depth:
            _, scores = self.similarities(query, rows)
        else:  # also where so many vectors are those of few documents
            excluded = deleted.view(np.uint8)
            rows, scores = self._best(codes, scale, depth, excluded, self._bounds(parts))
        order = np.lexsort((rows, -scores))[:depth]
        return rows[order], scores[order]

    def _best(
        self, codes: Array, scale: float, depth: int, excluded: Bytes, bounds: Bounds
    ) -> tuple[Ints, Floats]:
        """Return the best documents of each range of rows, in any order."""
        size = min(depth, len(self.ends))
        scores, rows = np.empty((len(bounds), size)), np.empty((len(bounds), size), np.int64)
        counts = np.zeros(len(bounds), np.int64)

        def search_rows(i: int) -> None:
            counts[i] = kernel.best_documents(
                codes=self.codes,
                scales=self.scales,
                ends=self.ends,
                excluded=excluded,
                lo=bounds[i][0],
                hi=bounds[i][1],
                query=codes,
                query_scale=scale,
                top_scores=scores[i],
                top_rows=rows[i],
            )

        Lanes([[partial(search_rows, i)] for i in range(len(bounds))]).run()
        present = np.arange(size) < counts[:, None]
        return rows[present], scores[present]

    def _nearest(self, codes: Array, depth: int, excluded: Bools, parts: int) -> Ints:
        """Return the rows of the vectors with the most signs in common with a query, and ties."""
        wanted = max(CHOSEN, CHOSEN_PER_RESULT * depth) * self.n_vectors // self.n_described
        signs = sign_words(codes[None])[0]
        coarse = np.zeros(COARSE_WORDS, np.uint64)
        coarse[: len(signs)] = signs[:COARSE_WORDS]
        edges = [self.n_vectors * part // parts for part in range(parts + 1)]
        distances = np.empty(self.n_vectors, np.uint8)
        histograms = np.zeros((parts, 256), np.int64)

        def compare(i: int, lo: int, hi: int) -> None:
            kernel.coarse_distances(self.planes, lo, hi, coarse, distances, histograms[i])

        Lanes([[partial(compare, i, *edges[i : i + 2])] for i in range(parts)]).run()
        histogram = histograms.sum(axis=0)
        kernel.exclude_vectors(distances, self.ends, np.flatnonzero(excluded), histogram)
        limit = _limit(histogram, COARSELY_CHOSEN * wanted)
        chosen = np.flatnonzero(distances <= np.uint8(limit))
        fine = np.empty(len(chosen), np.uint16)
        kernel.sign_distances(self.signs, chosen, signs, fine)
        chosen = chosen[fine <= _limit(np.bincount(fine, minlength=1), wanted)]
        if self.n_vectors == self.n_described == len(self.ends):  # vector and row numbers are equal
            return chosen
        return np.unique(np.searchsorted(self.ends, chosen, side="right"))

    def recall(self, deleted: Bools, depth: int = 100, sample: int = 50) -> float:
        """Return which fraction of the best documents search in two steps returns.

        Queries are vectors of documents of this index, evenly sampled; the document itself is left
        out.  Vectors of typed queries may differ from them.

        Parameters
        ----------
        deleted : ndarray of bool of shape (n_rows,)
            Which documents are left out.
        depth : int, default 100
            The number of documents.
        sample : int, default 50
            The number of queries.

        Returns
        -------
        float
            The fraction; 1 without vectors.
        """
        rows = np.flatnonzero((self.counts > 0) & ~deleted)
        chosen = rows[np.linspace(0, len(rows) - 1, min(sample, len(rows))).astype(int)]
        n_best = n_returned = 0
        for row in chosen.tolist():
            excluded = deleted.copy()
            excluded[row] = True
            query = self.of_row(row)[0][0]
            best, _ = self.search(query, depth, excluded, exact=True)
            returned, _ = self.search(query, depth, excluded, exact=False)
            n_best += len(best)
            n_returned += np.isin(best, returned).sum()
        return float(n_returned / n_best) if n_best else 1.0

    def _bounds(self, parts: int) -> Bounds:
        """Return ranges of rows with about equal numbers of vectors."""
        inner = np.searchsorted(self.ends, self.n_vectors * np.arange(1, parts) // parts)
        edges = [0, *inner.tolist(), len(self.ends)]
        return list(pairwise(edges))


def _limit(histogram: Ints, wanted: int) -> int:
    """Return the distance within which there are `wanted` vectors, or all."""
    counts = np.cumsum(histogram)
    return int(np.searchsorted(counts, min(wanted, counts[-1])))


def document_codes(vectors: Array) -> tuple[Array, Array]:
    """Return vectors as 8-bit integers, and the factors that make their lengths 1."""
    codes = np.rint(vectors / np.abs(vectors).max(axis=1, keepdims=True) * MAX_CODE)
    scales = 1 / np.sqrt(np.square(codes).sum(axis=1, dtype=np.float64))
    return codes.astype(np.int8), scales.astype(np.float32)


def n_words(dimensions: int) -> int:
    """Return the number of words for the signs of a vector."""
    return -(-dimensions // 64)


def sign_words(codes: Array) -> Words:
    """Return the signs of the components of vectors as bits of words."""
    signs = np.empty((len(codes), n_words(codes.shape[1])), np.uint64)
    kernel.pack_signs(codes, signs)
    return signs


def query_codes(vector: Array, dimensions: int) -> tuple[Array, float]:
    """Return a query as 16-bit integers, and the factor that makes its length 1; 0 for zeros."""
    query = np.asarray(vector, np.float64)
    if query.shape != (dimensions,):
        raise DataError(
            f"the vector of the query has the shape {query.shape}; the index has vectors of "
            f"{dimensions} dimensions."
        )
    if not np.isfinite(query).all():
        raise DataError("the vector of the query has components that are not finite.")
    greatest = np.abs(query).max(initial=0.0)
    if not greatest:
        return np.zeros(dimensions, np.int16), 0.0
    query = query / greatest
    codes = np.rint(query * min(MAX_QUERY_CODE, (MAX_SUM - dimensions) / np.abs(query).sum()))
    return codes.astype(np.int16), float(1 / np.sqrt(np.square(codes).sum()))


def read_vectors(folder: Path, manifest: Mapping[str, Any]) -> StoredVectors | None:
    """Return the vectors that a manifest describes, or None if there are none."""
    stored = manifest.get("vectors")
    if stored is None:
        return None
    files, rows, count = folder / stored["files"], manifest["rows"], stored["count"]
    shapes = {
        "codes": (count, stored["encoder"]["dimensions"]),
        "scales": (count,),
        "signs": (count, n_words(stored["encoder"]["dimensions"])),
        "digests": (rows, DIGEST_BYTES),
    }
    arrays = {name: storage.mapped(files / name, FILES[name], shapes[name]) for name in shapes}
    if not (arrays["scales"] > 0).all() or not np.isfinite(arrays["scales"]).all():
        raise storage.damaged(files / "scales", "its numbers are impossible")
    ends = storage.mapped_ends(files / "ends", (rows,), count)
    encoder = {**stored["encoder"], "name": name_within(stored["encoder"]["name"], folder)}
    return StoredVectors(encoder, ends, **arrays)
