"""What typed texts are compared with in an index: vectors of its encoder, or its latent space."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from firstpage.core import Advice, Array, DataError
from firstpage.search.encoders import Encoder, load_encoder
from firstpage.search.encoders.loading import FUNCTIONS
from firstpage.search.encoders.options import split_options
from firstpage.search.first_stage import (
    DenseSpace,
    EncodedDocuments,
    FirstStage,
    LatentDocuments,
    QueryVectors,
    Space,
)
from firstpage.search.latent import LatentSpace
from firstpage.search.precomputed import PRECOMPUTED, PrecomputedVectors, read_precomputed
from firstpage.search.vector_writer import check_source
from firstpage.search.vectors import StoredVectors


class DenseStage:
    """The dense first stage of an index, whose encoder is loaded when it is first used.

    `open` shows it another state of the index.  `named` is the encoder that the user names in place
    of what the index records.
    """

    def __init__(self, path: Path, named: str | Encoder | None) -> None:
        self._path, self._named = path, named
        self._lock = threading.Lock()
        self._encoder: Encoder | None = None
        self._queries: tuple[str, QueryVectors] | None = None

    def open(self, vectors: StoredVectors | None, latent: LatentSpace | None, of: Array) -> None:
        """Compare typed texts with vectors, or with coordinates `of` documents."""
        self._vectors = vectors
        self._latent = None if latent is None else LatentDocuments(latent, of)

    def check(self, stage: FirstStage) -> None:
        """Refuse a first stage that compares vectors which do not exist."""
        if stage.kind == "bm25":
            return
        if stage.space == "vectors" and self._vectors is None:
            raise DataError(
                f"{self._path}: has no vectors, so it cannot be searched by meaning; add them "
                f"(`firstpage index -o {self._path} --vectors MODEL`), or search by words (bm25)."
            )
        if stage.space == "latent" and self._latent is None:
            raise DataError(
                f"{self._path}: has no latent space, so it cannot be searched by it; fit it "
                f"(`firstpage index -o {self._path} --refit`), or search by words (bm25)."
            )

    def space(self, space: Space) -> DenseSpace:
        """Return the documents as vectors that queries are compared with."""
        documents = self._latent if space == "latent" else self.encoded
        assert documents is not None
        return documents

    @property
    def encoded(self) -> EncodedDocuments | None:
        """The documents by the vectors of the encoder, if there are any."""
        vectors = self._vectors
        if vectors is None:
            return None
        record = vectors.encoder
        with self._lock:
            if self._queries is None or self._queries[0] != record["digest"]:
                queries = QueryVectors(self._encode, record["dimensions"])
                self._queries = record["digest"], queries
            return EncodedDocuments(vectors, self._queries[1])

    def give(
        self,
        queries: Iterable[tuple[str, str]],
        vectors: str | os.PathLike[str] | PrecomputedVectors | tuple[Any, Any],
    ) -> None:
        """Take vectors of queries that were computed elsewhere, in place of the encoder."""
        if isinstance(vectors, tuple):
            vectors = PrecomputedVectors(*vectors, source="the vectors of queries")
        elif not isinstance(vectors, PrecomputedVectors):
            vectors = read_precomputed(vectors)
        documents = self.encoded
        if documents is None:
            raise DataError(f"{self._path}: has no vectors that queries could be compared with.")
        if vectors.dimensions != documents.vectors.dimensions:
            raise DataError(
                f"{vectors.source}: has vectors of {vectors.dimensions} dimensions; those of "
                f"{self._path} have {documents.vectors.dimensions}."
            )
        listed, position_of = list(queries), vectors.positions
        missing = [name for name, _ in listed if name not in position_of]
        if missing:
            raise DataError(
                f"{vectors.source}: {len(missing)} of {len(listed)} queries have no vector, such "
                f"as {missing[0]!r}."
            )
        of_texts = {text: vectors.vectors[position_of[name][0]] for name, text in listed}
        documents.queries.give(of_texts)

    # --- the encoder

    def use(self, encoder: Encoder | None) -> None:
        """Take the encoder that has computed the vectors of the index."""
        self._encoder = self._named = encoder

    def encoder(self, parameter: str = "encoder") -> Encoder:
        """Return the encoder of the vectors; where its user must name it, `parameter` does."""
        if self._vectors is None:
            raise DataError(f"{self._path}: has no vectors, so it has no encoder.")
        with self._lock:
            if self._encoder is None or self._encoder.digest != self._vectors.encoder["digest"]:
                self._encoder = self._load(self._vectors.encoder, parameter)
            return self._encoder

    def _load(self, record: Mapping[str, Any], parameter: str) -> Encoder:
        """Return the encoder of a record; call only a function that the user has named."""
        named, name, source = self._named, record["name"], str(self._path)
        if isinstance(named, Encoder):
            check_source(named, record, source)
            return named
        if named is not None:
            return _loaded(named, record["digest"], source)
        base, _ = split_options(name)
        if "://" in base or FUNCTIONS.fullmatch(base):
            raise DataError(
                f"{source}: its encoder is {name!r}. An index may call only functions and "
                "addresses that its user names.",
                Advice("Name it with {}.", parameter, name),
            )
        try:
            return _loaded(name, record["digest"], source)
        except DataError as error:
            advice = Advice("If it has moved, name its folder with {}.", parameter, "FOLDER")
            raise DataError(error.message, advice if os.path.isabs(base) else None) from error

    def _encode(self, texts: Sequence[str]) -> Array:
        """Return the vectors of typed texts."""
        if self._vectors is not None and self._vectors.encoder["name"] == PRECOMPUTED:
            raise DataError(
                f"{self._path}: its vectors were computed elsewhere, so the text {texts[0]!r:.60} "
                "has none; search by words (bm25), or give the vectors of queries "
                "(Index.set_query_vectors, or --query-vectors of candidates and features)."
            )
        return self.encoder().encode_queries(texts)


@cache
def _loaded(name: str, digest: str, source: str) -> Encoder:
    """Return an encoder, which all states of an index share."""
    return load_encoder(name, digest, source)
