"""The first stage: by words (BM25), by meaning (vectors), or both fused.

Every stage lists its best documents with scores; a hybrid first stage fuses the two lists.  The
latent space can stand for stored vectors, where an index has no others.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, Self, get_args

import numpy as np

from firstpage.core import Array, Bools, DataError, Floats, Ints, lookup
from firstpage.evaluation.aggregation import StageFusion
from firstpage.search.forward import Query
from firstpage.search.latent import LatentSpace
from firstpage.search.retrieval import BM25
from firstpage.search.vectors import StoredVectors

Kind = Literal["bm25", "dense", "hybrid"]
Space = Literal["vectors", "latent"]
KINDS: tuple[Kind, ...] = get_args(Kind)
STAGES = ("bm25", "dense")
MIN_WINDOW = 100  # documents that each stage gives to a fusion
MAX_CACHED = 50_000  # vectors of queries in memory
BATCH = 64  # queries that are encoded at a time
LATENT_BLOCK = 1 << 16  # documents whose coordinates are in memory at a time


@dataclass(frozen=True)
class FirstStage:
    """How an index retrieves documents: by words, by vectors, or by both.

    Parameters
    ----------
    kind : {"bm25", "dense", "hybrid"}, default "bm25"
        By words, by the similarity of vectors, or both lists fused.
    scoring : BM25, optional
        The scoring of words.
    fusion : StageFusion, optional
        How the two lists of a hybrid are fused; by default by reciprocal rank fusion.
    typos : bool, default False
        Whether the nearest term stands for a word that no document contains.
    space : {"vectors", "latent"}, default "vectors"
        What "dense" and "hybrid" compare: vectors of an encoder, or latent semantic coordinates.

    Raises
    ------
    ParameterError
        If `kind` or `space` is unknown.
    DataError
        If the fusion is not of the two stages.

    Examples
    --------
    >>> import firstpage as fp
    >>> print(fp.FirstStage("hybrid", fusion=fp.aggregation.StageFusion(weights=(1, 2))))
    hybrid of BM25(k1=1.2, b=0.75) and vectors, rrf(k=60; bm25 1, dense 2)
    """

    kind: Kind = "bm25"
    scoring: BM25 = field(default_factory=BM25)
    fusion: StageFusion = field(default_factory=StageFusion)
    typos: bool = False
    space: Space = "vectors"

    def __post_init__(self) -> None:
        for name, choices in (("kind", KINDS), ("space", get_args(Space))):
            known = {choice: choice for choice in choices}
            object.__setattr__(self, name, lookup(str(getattr(self, name)), known, name))
        if self.fusion.stages != STAGES:
            raise DataError(
                f"a hybrid first stage fuses the stages {', '.join(STAGES)}, in this order; got "
                f"{', '.join(self.fusion.stages)}."
            )

    @property
    def stages(self) -> tuple[str, ...]:
        """The names of the stages that list documents."""
        return STAGES if self.kind == "hybrid" else (self.kind,)

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters as JSON.

        Returns
        -------
        dict
            A value per parameter.
        """
        return {
            "kind": self.kind,
            "scoring": self.scoring.to_dict(),
            "fusion": self.fusion.to_dict(),
            "typos": self.typos,
            "space": self.space,
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Self:
        """Return the first stage of stored parameters.

        Parameters
        ----------
        stored : mapping
            The parameters as JSON.

        Returns
        -------
        FirstStage
            The first stage.
        """
        scoring, fusion = BM25.from_dict(stored["scoring"]), StageFusion.from_dict(stored["fusion"])
        return cls(stored["kind"], scoring, fusion, stored["typos"], stored["space"])

    def __str__(self) -> str:
        dense = "vectors" if self.space == "vectors" else "the latent space"
        text = {
            "bm25": str(self.scoring),
            "dense": dense,
            "hybrid": f"hybrid of {self.scoring} and {dense}, {self.fusion}",
        }[self.kind]
        return f"{text}, typos corrected" if self.typos else text


@dataclass(frozen=True, eq=False)
class RetrievedDocuments:
    """The documents that a first stage lists for a query, the best first.

    Attributes
    ----------
    rows, scores : ndarray of shape (n_documents,)
        The documents and their scores.
    stages : tuple of str
        The stages that list documents.
    stage_ranks : ndarray of shape (n_documents, n_stages)
        The rank of each document in the list of each stage, from 1; 0 where it is not listed.
    """

    rows: Ints
    scores: Floats
    stages: tuple[str, ...]
    stage_ranks: Ints

    def __len__(self) -> int:
        return len(self.rows)

    def ranks(self) -> list[dict[str, int]]:
        """Return the rank of each document in each stage that lists it."""
        return [
            {stage: rank for stage, rank in zip(self.stages, ranks, strict=True) if rank}
            for ranks in self.stage_ranks.tolist()
        ]


def listed_by_one(stage: str, ranking: tuple[Ints, Floats]) -> RetrievedDocuments:
    """Return what a single stage lists."""
    rows, scores = ranking
    return RetrievedDocuments(rows, scores, (stage,), np.arange(1, len(rows) + 1)[:, None])


def fused(
    fusion: StageFusion, rankings: Sequence[tuple[Ints, Floats]], depth: int
) -> RetrievedDocuments:
    """Return the fusion of the lists of all stages."""
    rows, scores = fusion.fuse(rankings)
    rows, scores = rows[:depth], scores[:depth]
    ranks = np.zeros((len(rows), len(rankings)), np.int64)
    for stage, (listed, _) in enumerate(rankings):
        if len(listed):
            order = np.argsort(listed, kind="stable")
            at = np.minimum(np.searchsorted(listed[order], rows), len(listed) - 1)
            known = listed[order][at] == rows
            ranks[known, stage] = order[at[known]] + 1
    return RetrievedDocuments(rows, scores, fusion.stages, ranks)


# --- what is searched by meaning


class DenseSpace(Protocol):
    """Documents that are compared with queries by vectors."""

    def query(self, query: Query) -> Array:
        """Return the vector of a query; zeros if it means nothing."""
        ...

    def prepare(self, texts: Sequence[str]) -> None:
        """Compute the vectors of several queries together."""
        ...

    def search(self, vector: Array, depth: int, deleted: Bools) -> tuple[Ints, Floats]:
        """Return the best documents and their similarities."""
        ...


@dataclass(frozen=True, eq=False)
class LatentDocuments:
    """The documents of an index in its latent space."""

    space: LatentSpace
    coordinates: Array

    def query(self, query: Query) -> Array:
        """Return the coordinates of a query."""
        return self.space.query(query)

    def prepare(self, texts: Sequence[str]) -> None:
        """Do nothing: projections are computed from terms."""

    def search(self, vector: Array, depth: int, deleted: Bools) -> tuple[Ints, Floats]:
        """Return the documents with the largest cosines; ties are in the order of the rows."""
        norm = np.linalg.norm(vector)
        if not norm > 0:
            return np.empty(0, np.int64), np.empty(0)
        unit = (vector / norm).astype(np.float32)
        similarity = np.empty(len(self.coordinates), np.float32)
        for start in range(0, len(similarity), LATENT_BLOCK):
            block = self.coordinates[start : start + LATENT_BLOCK].astype(np.float32)
            norms = np.linalg.norm(block, axis=1)
            products = np.einsum("ij,j->i", block, unit)
            part = similarity[start : start + len(block)]
            part[:] = np.divide(products, norms, out=np.zeros_like(norms), where=norms > 0)
            part[norms == 0] = -np.inf
        similarity[deleted] = -np.inf
        count = min(depth, len(similarity))
        best = np.argpartition(-similarity, count - 1)[:count]
        ties = np.flatnonzero(similarity == similarity[best].min()) if len(best) else best
        best = np.union1d(best, ties)
        best = best[np.lexsort((best, -similarity[best]))][:depth]
        best = best[np.isfinite(similarity[best])]
        return best, similarity[best].astype(np.float64)


@dataclass(frozen=True, eq=False)
class EncodedDocuments:
    """The documents of an index by the vectors of its encoder."""

    vectors: StoredVectors
    queries: QueryVectors

    def query(self, query: Query) -> Array:
        """Return the vector of a query."""
        vector: Array = self.queries.of([query.text])[0]
        return vector

    def prepare(self, texts: Sequence[str]) -> None:
        """Encode several queries together."""
        self.queries.of(texts)

    def search(self, vector: Array, depth: int, deleted: Bools) -> tuple[Ints, Floats]:
        """Return the documents with the largest similarities."""
        if not vector.any():
            return np.empty(0, np.int64), np.empty(0)
        return self.vectors.search(vector, depth, deleted)

    def similarities(self, query: Query, rows: Ints) -> tuple[Floats, Floats]:
        """Return the similarities of documents by their first vectors, and by their best."""
        return self.vectors.similarities(self.query(query), rows)


class QueryVectors:
    """The vectors of typed texts, the last of which stay in memory; used by many threads."""

    def __init__(self, encode: Callable[[Sequence[str]], Array], dimensions: int) -> None:
        self._encode = encode
        self._dimensions = dimensions
        self._given: dict[str, Array] = {}
        self._cache: OrderedDict[str, Array] = OrderedDict()
        self._lock = threading.Lock()

    def give(self, vectors: Mapping[str, Array]) -> None:
        """Take the vectors of texts that were computed elsewhere."""
        self._given |= {" ".join(text.split()): vector for text, vector in vectors.items()}

    def of(self, texts: Sequence[str]) -> Array:
        """Return the vectors of texts; those that are not known are computed together."""
        texts = [" ".join(text.split()) for text in texts]
        with self._lock:
            vectors = {text: self._cache[text] for text in texts if text in self._cache}
            for text in vectors:
                self._cache.move_to_end(text)
        vectors |= {text: self._given[text] for text in texts if text in self._given}
        missing = [text for text in dict.fromkeys(texts) if text not in vectors]
        for start in range(0, len(missing), BATCH):
            part = missing[start : start + BATCH]
            encoded = np.asarray(self._encode(part), np.float32)
            if encoded.shape != (len(part), self._dimensions):
                raise DataError(
                    f"the encoder returned an array of shape {encoded.shape} for {len(part)} "
                    f"queries of {self._dimensions} dimensions."
                )
            vectors |= zip(part, encoded, strict=True)
        with self._lock:
            self._cache |= {text: vectors[text] for text in missing}
            while len(self._cache) > MAX_CACHED:
                self._cache.popitem(last=False)
        return np.array([vectors[text] for text in texts], np.float32).reshape(
            len(texts), self._dimensions
        )


FirstStageLike = str | BM25 | FirstStage | None


def with_kind(stage: FirstStage, first: FirstStageLike) -> FirstStage:
    """Return a first stage: one that is named or given, BM25 alone, or the usual one."""
    if first is None:
        return stage
    if isinstance(first, FirstStage):
        return first
    if isinstance(first, BM25):
        return replace(stage, kind="bm25", scoring=first)
    known: dict[str, Kind] = {kind: kind for kind in KINDS}
    return replace(stage, kind=lookup(first, known, "first"))
