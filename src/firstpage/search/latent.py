"""Latent semantic analysis: documents and queries in a space of a few dimensions.

The space is the truncated singular value decomposition of the TF-IDF matrix of at most
`MAX_FITTED` documents; all others, and queries, are projected into it (folded in).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

from firstpage.core import Array, Floats, Ints
from firstpage.data.io import write_bytes
from firstpage.search.forward import ForwardIndex, Query
from firstpage.search.storage import load_arrays

MAX_FITTED = 100_000  # documents
MIN_DOCUMENTS = 2  # that a term of the space occurs in
BATCH = 20_000  # documents projected at a time
OVERSAMPLES = 32  # dimensions of the random subspace beyond those returned
POWER_ITERATIONS = 4


@dataclass(frozen=True, eq=False)
class LatentSpace:
    """A projection of TF-IDF vectors to a space of a few dimensions, the most important first.

    Attributes
    ----------
    terms : ndarray of shape (n_terms,)
        The terms that the space knows.
    idf : ndarray of shape (n_terms,)
        Their inverse document frequencies when the space was fitted.
    projection : ndarray of shape (n_terms, n_dimensions)
        The directions, as columns.
    """

    terms: Ints
    idf: Floats
    projection: Array

    @property
    def n_dimensions(self) -> int:
        """The number of dimensions."""
        return int(self.projection.shape[1])

    @property
    def digest(self) -> str:
        """A digest of the projection, which identifies the space."""
        return hashlib.sha256(self.projection.tobytes()).hexdigest()[:16]

    @classmethod
    def fit(cls, forward: ForwardIndex, n_dimensions: int, seed: int = 0) -> LatentSpace | None:
        """Return the space of a collection, or None if it has too few documents or terms.

        The decomposition is randomized, with a fixed seed.
        """
        from threadpoolctl import threadpool_limits

        rows = np.flatnonzero(
            ~forward.deleted & (forward.lengths(np.arange(forward.n_rows))[:, -1] > 0)
        )
        if len(rows) > MAX_FITTED:
            rows = np.sort(np.random.default_rng(seed).choice(rows, MAX_FITTED, replace=False))
        idf = forward.idf()[-1]
        idf[forward.df[-1] < MIN_DOCUMENTS] = 0.0
        terms = np.flatnonzero(idf > 0)
        rank = min(n_dimensions, len(rows) - 1, len(terms) - 1)
        if rank < 1:
            return None
        matrix = _restricted(forward.tfidf(rows, idf), terms, len(idf))
        with threadpool_limits(1):  # the same bits for any number of threads
            directions = right_singular_vectors(matrix, rank, seed)
        return cls(terms, idf[terms], np.ascontiguousarray(directions, np.float32))

    def documents(self, forward: ForwardIndex, rows: Ints) -> Array:
        """Return the coordinates of documents as float16."""
        idf = np.zeros(len(forward.terms))
        idf[self.terms] = self.idf
        vectors = np.empty((len(rows), self.n_dimensions), np.float16)
        for start in range(0, len(rows), BATCH):
            matrix = forward.tfidf(rows[start : start + BATCH], idf, np.float32)
            vectors[start : start + BATCH] = (
                _restricted(matrix, self.terms, len(idf)) @ self.projection
            )
        return vectors

    def query(self, query: Query) -> Floats:
        """Return the coordinates of a query."""
        places = np.searchsorted(self.terms, query.terms)
        known = (places < len(self.terms)) & (
            self.terms[np.minimum(places, len(self.terms) - 1)] == query.terms
        )
        weights = (1.0 + np.log(query.counts[known])) * self.idf[places[known]]
        coordinates: Floats = weights @ self.projection[places[known]].astype(np.float64)
        return coordinates

    def save(self, path: Path) -> None:
        """Write the space to a file."""
        with write_bytes(path, sync=True) as out:
            np.savez(out, terms=self.terms, idf=self.idf, projection=self.projection)

    @classmethod
    def load(cls, path: Path) -> LatentSpace:
        """Return the space of a file."""
        return cls(*load_arrays(path, dict.fromkeys(("terms", "idf", "projection"))))


def right_singular_vectors(matrix: csr_array, rank: int, seed: int) -> Floats:
    """Return the right singular vectors of the greatest singular values, as columns.

    Randomized subspace iteration [1]_.  `sklearn.utils.extmath.randomized_svd` does the same, but
    importing it takes more than a second.

    References
    ----------
    .. [1] Halko, Martinsson, Tropp.  Finding Structure with Randomness: Probabilistic Algorithms
       for Constructing Approximate Matrix Decompositions.  SIAM Review 53(2), 2011.
    """
    wide = matrix.shape[0] < matrix.shape[1]
    tall = matrix.T if wide else matrix
    n_columns = tall.shape[1]
    size = min(rank + OVERSAMPLES, n_columns)
    basis = np.random.default_rng(seed).normal(size=(n_columns, size))
    for _ in range(POWER_ITERATIONS):
        basis, _ = np.linalg.qr(tall.T @ (tall @ basis))
    basis, _ = np.linalg.qr(tall @ basis)
    left, _, right = np.linalg.svd((tall.T @ basis).T, full_matrices=False)
    vectors: Floats = basis @ left[:, :rank] if wide else right[:rank].T
    largest = vectors[np.abs(vectors).argmax(axis=0), np.arange(rank)]
    vectors *= np.sign(largest)  # otherwise arbitrary
    return vectors


def _restricted(matrix: csr_array, terms: Ints, n_terms: int) -> csr_array:
    """Return the columns of these terms; the matrix has no other nonzero columns."""
    column = np.zeros(n_terms, np.int64)
    column[terms] = np.arange(len(terms))
    return csr_array(
        (matrix.data, column[matrix.indices], matrix.indptr), (matrix.shape[0], len(terms))
    )


def cosines(vectors: Array, coordinates: Floats, n_dimensions: int) -> Floats:
    """Return the cosines of rows with a vector in the first dimensions; 0 for zero vectors."""
    documents = vectors[:, :n_dimensions].astype(np.float64)
    target = coordinates[:n_dimensions]
    norms = np.linalg.norm(documents, axis=1) * np.linalg.norm(target)
    products: Floats = documents @ target
    np.divide(products, norms, out=products, where=norms > 0)
    return products
