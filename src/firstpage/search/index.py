"""The index of a collection of texts: an embedded engine, and a forward index for features."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from firstpage.core import Advice, DataError, Progress, warn
from firstpage.data import Ids, Qrels, Run, offsets_from_lengths
from firstpage.data.io import json_digest
from firstpage.search import storage
from firstpage.search.dense_stage import DenseStage
from firstpage.search.documents import SourceDocument, documents_from_rows
from firstpage.search.encoders import Encoder, load_encoder
from firstpage.search.engine import SearchEngine
from firstpage.search.first_stage import (
    MIN_WINDOW,
    FirstStage,
    FirstStageLike,
    RetrievedDocuments,
    fused,
    listed_by_one,
    with_kind,
)
from firstpage.search.forward import Matcher, Query
from firstpage.search.latent import LatentSpace
from firstpage.search.manifest import (
    MANIFEST,
    changes_since_fit,
    read_forward,
    read_latent_vectors,
    read_manifest,
    usual_kind,
    write_manifest,
)
from firstpage.search.precomputed import (
    PRECOMPUTED,
    PrecomputedVectors,
    is_vector_file,
    read_precomputed,
)
from firstpage.search.retrieval import BM25, retrieve
from firstpage.search.schema import SAMPLE, Schema
from firstpage.search.tuning import CandidatePools
from firstpage.search.vector_writer import (
    NO_SOURCE,
    VectorChange,
    check_source,
    is_same_encoder,
)
from firstpage.search.vectors import StoredVectors, read_vectors
from firstpage.search.writer import (
    IndexChanges,
    IndexWriter,
    StoredDocuments,
    create,
    distinct_documents,
)

LATENT_DIMENSIONS = 128
QUERIES = 256  # of a list, whose vectors are computed together
MAX_NAMES = 10  # fields that a message lists
Vectors: TypeAlias = str | os.PathLike[str] | Encoder | PrecomputedVectors | tuple[Any, Any]
"""What users name as the source of vectors."""


@dataclass(frozen=True)
class Hit:
    """A document that a search returns: its id, its score and its row in the forward index."""

    id: str
    score: float
    row: int


class Index:
    """An index of texts on disk, which can be searched and from which features are computed.

    `Index(path)` opens an index; `Index.from_documents` creates one.  `add` and `delete` commit a
    new state and then show it; other open objects keep the state that they have opened.

    Parameters
    ----------
    path : path
        The folder of the index.
    encoder : str or Encoder, optional
        The encoder of its vectors, where that is a function of your own (`module:function`), an
        address, a folder that has moved, or has no name by which it can be loaded.

    Attributes
    ----------
    schema : Schema
        The text, numeric and date fields, with the analyzer of each text field.
    forward : ForwardIndex
        The terms of every document.
    engine : SearchEngine
        The search engine.
    latent : LatentSpace or None
        The latent semantic space, if there is one.
    latent_vectors : ndarray of shape (n_rows, n_dimensions)
        The coordinates of every document in the latent space.
    vectors : StoredVectors or None
        The vectors of the documents by an encoder, if there are any.
    encoder_record : dict or None
        The name, the digest and the number of dimensions of that encoder.
    dense : DenseStage
        What typed texts are compared with: the vectors of the encoder, or the latent space.
    generation : int
        The number of the last change of documents, latent space or vectors.
    fingerprint : str
        A digest of what features depend on: fields, analyzers and latent space.

    Raises
    ------
    DataError
        If there is no index, or it is damaged.

    Examples
    --------
    >>> import os, tempfile
    >>> import firstpage as fp
    >>> documents = [
    ...     {"id": "d1", "title": "Red shoes", "text": "Running shoes for women."},
    ...     {"id": "d2", "title": "Blue coat", "text": "A warm coat."},
    ... ]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     index = fp.Index.from_documents(documents, os.path.join(folder, "shop.index"))
    ...     [hit.id for hit in index.search("shoe")]
    ['d1']
    """

    def __init__(self, path: str | os.PathLike[str], encoder: str | Encoder | None = None) -> None:
        self.path = Path(path)
        self.dense = DenseStage(self.path, encoder)
        self._open()

    def _open(self) -> None:
        """Open all files, so that what another writer commits later does not matter."""
        while True:
            manifest = read_manifest(self.path)
            try:
                self._open_files(manifest)
            except DataError:
                if read_manifest(self.path) == manifest:
                    raise
            else:  # otherwise a writer has removed the files of the generation before its own
                return

    def _open_files(self, manifest: dict[str, Any]) -> None:
        schema = Schema.from_dict(manifest["schema"])
        forward = read_forward(self.path, manifest, schema)
        engine = SearchEngine(self.path / manifest["engine"], len(schema.analyzers))
        stored = manifest["latent"]
        self.latent = None if stored is None else LatentSpace.load(self.path / stored["space"])
        self.latent_vectors = read_latent_vectors(self.path, manifest)
        self.vectors = read_vectors(self.path, manifest)
        self._manifest, self.schema, self.forward, self.engine = manifest, schema, forward, engine
        self.dense.open(self.vectors, self.latent, self.latent_vectors)

    @classmethod
    def from_documents(
        cls,
        documents: Iterable[SourceDocument | Mapping[str, Any]],
        path: str | os.PathLike[str],
        *,
        language: str = "english",
        fields: Mapping[str, str] | None = None,
        latent: int = LATENT_DIMENSIONS,
        fold_accents: bool = True,
        overwrite: bool = False,
        progress: Progress | None = None,
        vectors: Vectors | None = None,
    ) -> Index:
        """Create an index of documents.

        Parameters
        ----------
        documents : iterable of SourceDocument or mapping
            The documents, such as those of `read_documents`.  A mapping has an id (`id`, `docid`,
            `docno`, ..) and fields.
        path : path
            The folder to create.
        language : str, default "english"
            The language of texts: stop words and stems.
        fields : mapping of str to str, optional
            The kind of a field, where it should not be inferred from the first documents: "text", a
            language, "number", "date" or "ignore".  A warning names those without a
            value in any document.
        latent : int, default 128
            The number of dimensions of the latent semantic space; 0 for none.
        fold_accents : bool, default True
            Whether letters lose their accents, so that "cafe" finds "café".
        overwrite : bool, default False
            Whether to replace an index that exists.
        progress : callable, optional
            Called with the number of documents read so far, and 0 for the unknown total; then with
            the number of embedded documents, and the number of all.
        vectors : str, Encoder, PrecomputedVectors or (ids, array), optional
            What has the vectors of documents: an encoder or its name, or vectors that were computed
            elsewhere, as for `add_vectors`.  If it fails, a new index has none, and `add_vectors`
            goes on.

        Returns
        -------
        Index
            The open index.

        Raises
        ------
        DataError
            If the folder exists, a document has no id or an id that occurred before, or no field is
            a text.
        """
        folder = Path(path)
        if folder.exists() and not overwrite:
            raise DataError(
                f"{folder}: exists; add to it (Index.add, or `firstpage index --add`).",
                Advice("Or replace it with {}.", "overwrite", True),
            )
        if folder.exists() and not (folder / MANIFEST).exists():
            raise DataError(f"{folder}: is not an index, so it is not overwritten.")
        stream = documents_from_rows(documents)
        sample = list(islice(stream, SAMPLE))
        if not sample:
            raise DataError(f"{folder}: there are no documents to index.")
        schema = Schema.infer(sample, language, fields or {}, fold_accents)
        source, change = vector_source(vectors), NO_SOURCE
        replaced = _vectors_of(folder) if folder.exists() else None
        if source is not None and folder.exists():
            known = replaced if replaced and is_same_encoder(replaced.encoder, source) else None
            change = VectorChange(source, True, known, progress)
        elif replaced is not None:
            warn(
                f"{folder}: had vectors of {replaced.encoder['name']}; the new index has none, "
                "since none were named."
            )
        present: dict[str, None] = {}
        observed = _observed(chain(sample, stream), present)
        create(folder, observed, schema, latent, progress, change)
        absent = [repr(name) for name in fields or {} if name not in present]
        if absent:
            others = ", ".join(repr(name) for name in list(present)[:MAX_NAMES])
            warn(
                f"{folder}: no document has a value of these declared fields: "
                f"{', '.join(absent)}; the fields with values are {others}"
                f"{', ..' if len(present) > MAX_NAMES else ''}."
            )
        index = cls(folder)
        if source is not None and index.vectors is None:
            try:
                index.add_vectors(source, progress)
            except BaseException:  # such as Ctrl-C
                warn(
                    f"{folder}: is complete but for vectors; `firstpage index -o {folder} "
                    f"--vectors {source.name}` adds them."
                )
                raise
        else:
            index.dense.use(_encoder_of(source))
        return index

    # --- changes

    def add(
        self,
        documents: Iterable[SourceDocument | Mapping[str, Any]],
        progress: Progress | None = None,
        vectors: Vectors | None = None,
    ) -> IndexChanges:
        """Add documents, and replace those whose ids are in the index; all of them or none.

        If the index has vectors, those of new texts are computed by its encoder.

        Parameters
        ----------
        documents : iterable of SourceDocument or mapping
            The documents.
        progress : callable, optional
            Called with the number of documents read so far, and 0 for the unknown total; then with
            the number of embedded documents, and the number of all.
        vectors : str, Encoder, PrecomputedVectors or (ids, array), optional
            The vectors of the documents, if those of the index were computed elsewhere; the
            encoder of the index, where its name does not suffice to load it; or what has the
            vectors of all documents, if the index has none.

        Returns
        -------
        IndexChanges
            How many were added, replaced and embedded.

        Raises
        ------
        DataError
            If another process writes to the index, or a document is invalid.
        """
        source = vector_source(vectors)
        with self._writer() as writer:
            change = VectorChange(self._fitting(source), self.vectors is None, None, progress)
            changes = writer.add(documents_from_rows(documents), self.forward.row_of, progress)
            embedded = writer.commit(None, change)
        self._open()
        return replace(changes, embedded=embedded)

    def _fitting(
        self, source: Encoder | PrecomputedVectors | None
    ) -> Encoder | PrecomputedVectors | None:
        """Return what has the vectors of new documents; refuse what does not fit the index."""
        record = self.encoder_record
        if record is None or (source is None and record["name"] == PRECOMPUTED):
            return source
        if source is not None:
            check_source(source, record, str(self.path))
            return source
        return self.dense.encoder("vectors")

    def delete(self, ids: Iterable[str]) -> IndexChanges:
        """Delete documents.

        Parameters
        ----------
        ids : iterable of str
            The ids of the documents.

        Returns
        -------
        IndexChanges
            How many were deleted.

        Raises
        ------
        DataError
            If a document is not in the index.
        """
        listed = [ids] if isinstance(ids, str) else ids
        names = list(dict.fromkeys(str(name) for name in listed))
        with self._writer() as writer:
            writer.delete(names, self.forward.rows(names, str(self.path)))
            writer.commit(None)
        self._open()
        return IndexChanges(deleted=len(names))

    def sync(
        self,
        documents: Iterable[SourceDocument | Mapping[str, Any]],
        progress: Progress | None = None,
        vectors: Vectors | None = None,
    ) -> IndexChanges:
        """Make the index hold these documents, as they are now; all of it or nothing.

        New documents are added, documents whose values differ are replaced, and documents that are
        not among these are deleted.  Those that have not changed are only read.

        Parameters
        ----------
        documents : iterable of SourceDocument or mapping
            All documents that the index should hold, such as `read_documents(folder)`.
        progress : callable, optional
            Called with the number of documents read so far, and 0 for the unknown total.
        vectors : str, Encoder, PrecomputedVectors or (ids, array), optional
            As for `add`.

        Returns
        -------
        IndexChanges
            How many were added, replaced, deleted and unchanged.

        Raises
        ------
        DataError
            If another process writes to the index, a document is invalid, or there are none.

        Examples
        --------
        >>> import os, tempfile
        >>> import firstpage as fp
        >>> coat, shoes = {"id": "d1", "title": "A coat"}, {"id": "d2", "title": "Red shoes"}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     index = fp.Index.from_documents([coat, shoes], os.path.join(folder, "shop.index"))
        ...     print(index.sync([coat, {"id": "d3", "title": "Blue shoes"}]))
        1 added, 1 deleted, 1 unchanged
        """
        with self._writer() as writer:
            change = VectorChange(self._fitting(vector_source(vectors)), progress=progress)
            stored = StoredDocuments(self.engine, self.forward.row_of)
            listed = stored.changed(distinct_documents(documents_from_rows(documents)), progress)
            changes = writer.add(listed, self.forward.row_of, None)
            if not stored.seen:
                raise DataError(
                    f"{self.path}: there are no documents to follow, so none is deleted; is the "
                    "folder right?"
                )
            gone = [name for name in self.forward.row_of if name not in stored.seen]
            writer.delete(gone, self.forward.rows(gone, str(self.path)))
            changes = replace(changes, deleted=len(gone), unchanged=stored.n_unchanged)
            if changes.added or changes.replaced or changes.deleted:
                changes = replace(changes, embedded=writer.commit(None, change))
        self._open()
        return changes

    def set_first_stage(self, stage: FirstStage) -> None:
        """Store the first stage, which later searches and features use.

        Parameters
        ----------
        stage : FirstStage
            The first stage, such as `replace(index.first_stage, scoring=index.tune(..)[0])`.

        Raises
        ------
        DataError
            If it weights fields that the index does not have, or needs vectors and there are none.
        """
        stage.scoring.field_weights(self.forward)
        self.dense.check(stage)
        with storage.writer_lock(self.path):
            manifest = read_manifest(self.path)
            stored = stage.to_dict()
            if stage.kind == usual_kind(manifest):  # follows vectors that come or go
                stored["kind"] = None
            write_manifest(self.path, {**manifest, "first_stage": stored})
        self._open()

    def fit_latent(self, dimensions: int = LATENT_DIMENSIONS) -> None:
        """Fit the latent space to the documents of today.

        Models with features `latent.*` of the old space no longer fit.  `add` and `delete` do not
        change the space, so that models stay valid: documents that came later are projected into
        it.

        Parameters
        ----------
        dimensions : int, default 128
            The number of dimensions; 0 for no latent space.
        """
        with self._writer() as writer:
            writer.commit(dimensions)
        self._open()

    def add_vectors(
        self, vectors: Vectors, progress: Progress | None = None, *, replace: bool = False
    ) -> IndexChanges:
        """Add vectors of all documents, which a dense first stage and features need.

        A document has one vector of its whole text and, if it is long, one of each passage of 100
        words.  Documents with the same text as at the last time are not embedded again.  If it is
        interrupted, the next call goes on.

        Parameters
        ----------
        vectors : str, Encoder, PrecomputedVectors or (ids, array)
            An encoder or its name, as for `load_encoder`; or vectors that were computed elsewhere,
            with the id of the document of each: of a document with several, the first one is that
            of the whole text.  A name that ends in .npz or .parquet is that of a file of them.
        progress : callable, optional
            Called with the number of embedded documents and the number of all.
        replace : bool, default False
            Whether to replace the vectors of another encoder.

        Returns
        -------
        IndexChanges
            How many documents were embedded.

        Raises
        ------
        DataError
            If the index has vectors of another encoder, the encoder fails, or vectors do not fit.
        """
        source = vector_source(vectors)
        if source is None:
            raise DataError("vectors must be an encoder, its name, or ids and an array.")
        with self._writer() as writer:
            record = self.encoder_record
            is_known = is_same_encoder(record, source)
            if record is not None and not is_known and not replace:
                raise DataError(
                    f"{self.path}: has vectors of the encoder {record['name']!r} (digest "
                    f"{record['digest'][:12]}), not of {source.name!r} ({source.digest[:12]}).",
                    Advice("Replace them with {}.", "replace", True, "vectors"),
                )
            known = self.vectors if is_known else None
            embedded = writer.commit(None, VectorChange(source, True, known, progress))
        self.dense.use(_encoder_of(source))
        self._open()
        return IndexChanges(embedded=embedded)

    def drop_vectors(self) -> None:
        """Remove the vectors of all documents."""
        with self._writer() as writer:
            writer.commit(None, VectorChange(rebuild=True))
        self._open()

    @contextmanager
    def _writer(self) -> Iterator[IndexWriter]:
        with storage.writer_lock(self.path):
            self._open()  # what another writer has committed meanwhile
            writer = IndexWriter(self.path, self._manifest, self.schema, self.forward)
            try:
                yield writer
            finally:
                writer.close()

    # --- contents

    def __len__(self) -> int:
        """Return the number of documents."""
        return int(self._manifest["rows"] - self._manifest["deleted"])

    def __repr__(self) -> str:
        return (
            f"Index({self.path}: {len(self)} documents, fields {', '.join(self.schema.analyzers)})"
        )

    @property
    def generation(self) -> int:
        """The number of the last change of contents, which grows by 1 with each.

        `set_first_stage` does not change it.
        """
        return int(self._manifest["generation"])

    @property
    def fingerprint(self) -> str:
        """A digest of what features depend on: fields, analyzers and latent space."""
        latent = self._manifest["latent"]
        return json_digest([self._manifest["schema"], latent and latent["digest"]])[:16]

    @property
    def encoder_record(self) -> dict[str, Any] | None:
        """The name, the digest and the dimensions of the encoder of vectors, if there are any."""
        return None if self.vectors is None else dict(self.vectors.encoder)

    @property
    def latent_changes(self) -> tuple[int, int]:
        """How many documents came and went since the latent space was fitted."""
        return changes_since_fit(self._manifest["latent"], self.forward.deleted)

    # --- retrieval

    def search(self, text: str, depth: int = 10, first: FirstStageLike = None) -> list[Hit]:
        """Return the best documents for a typed text.

        Parameters
        ----------
        text : str
            What was typed; no character has a special meaning.
        depth : int, default 10
            The number of documents.
        first : {"bm25", "dense", "hybrid"}, BM25 or FirstStage, optional
            How documents are retrieved; by default as the index stores it (`first_stage`).

        Returns
        -------
        list of Hit
            The documents, the best first.
        """
        stage = self.stage(first)
        found = self.retrieve(self.forward.query(text, stage.typos), depth, stage)
        return [
            Hit(self.forward.ids[row], score, row)
            for row, score in zip(found.rows.tolist(), found.scores.tolist(), strict=True)
        ]

    def retrieve(
        self,
        query: Query,
        depth: int,
        first: FirstStageLike = None,
        matcher: Matcher | None = None,
    ) -> RetrievedDocuments:
        """Return the documents that the first stage lists for a query.

        Parameters
        ----------
        query : Query
            The terms, from `forward.query`.
        depth : int
            The number of documents.
        first : {"bm25", "dense", "hybrid"}, BM25 or FirstStage, optional
            How documents are retrieved; by default as the index stores it (`first_stage`).
        matcher : Matcher, optional
            The workspaces of this thread.

        Returns
        -------
        RetrievedDocuments
            The documents, the best first, with their ranks in every stage.

        Raises
        ------
        DataError
            If the depth is below 1, or there are no vectors to compare.
        """
        if depth < 1:
            raise DataError(f"depth must be at least 1; got {depth}.")
        stage = self.stage(first)
        window = max(depth, MIN_WINDOW) if stage.kind == "hybrid" else depth
        rankings = []
        for name in stage.stages:
            if name == "bm25":
                matcher = matcher or Matcher(self.forward)
                words = retrieve(self.forward, self.engine, query, window, stage.scoring, matcher)
                rankings.append(words)
            else:
                space = self.dense.space(stage.space)
                rankings.append(space.search(space.query(query), window, self.forward.deleted))
        if stage.kind == "hybrid":
            return fused(stage.fusion, rankings, depth)
        return listed_by_one(stage.kind, rankings[0])

    def candidates(
        self,
        queries: Iterable[tuple[str, str]],
        depth: int = 100,
        first: FirstStageLike = None,
        progress: Progress | None = None,
    ) -> Run:
        """Return the best documents of each query as a run.

        Parameters
        ----------
        queries : iterable of (str, str)
            Ids and texts of queries, such as `Queries`.
        depth : int, default 100
            The number of documents per query.
        first : {"bm25", "dense", "hybrid"}, BM25 or FirstStage, optional
            How documents are retrieved; by default as the index stores it (`first_stage`).
        progress : callable, optional
            Called with the number of finished queries and the number of all.

        Returns
        -------
        Run
            The candidates, without queries that match no document; these are named in a warning.
            Its name is the kind of the first stage.
        """
        stage = self.stage(first)
        listed = list(queries)
        seen: set[str] = set()
        for name, _ in listed:
            if name in seen:
                raise DataError(f"the query {name!r} occurs twice; ids must be distinct.")
            seen.add(name)
        matcher, lists = Matcher(self.forward), {}
        for number, (name, text) in enumerate(listed, 1):
            if stage.kind != "bm25" and number % QUERIES == 1:
                block = listed[number - 1 : number - 1 + QUERIES]
                self.dense.space(stage.space).prepare([text for _, text in block])
            query = self.forward.query(text, stage.typos)
            retrieved = self.retrieve(query, depth, stage, matcher)
            lists[name] = retrieved.rows, retrieved.scores
            if progress is not None:
                progress(number, len(listed))
        unmatched = [name for name, (rows, _) in lists.items() if not len(rows)]
        if unmatched:
            warn(
                f"{len(unmatched)} of {len(listed)} queries match no document and have no "
                f"candidates, such as {unmatched[0]!r}."
            )
        names = [name for name, (rows, _) in lists.items() if len(rows)]
        if not names:
            raise DataError("no query matches a document.")
        rows, scores = map(np.concatenate, zip(*[lists[name] for name in names], strict=True))
        offsets = offsets_from_lengths(np.array([len(lists[name][0]) for name in names]))
        return Run(Ids.from_values(names), offsets, self.forward.ids[rows], scores, stage.kind)

    def tune(
        self,
        queries: Iterable[tuple[str, str]],
        qrels: Qrels,
        depth: int = 10,
        progress: Progress | None = None,
    ) -> tuple[BM25, float]:
        """Return the BM25 with the best mean NDCG on judged queries, and that value.

        Parameters
        ----------
        queries : iterable of (str, str)
            Ids and texts of queries.
        qrels : Qrels
            The judgments.
        depth : int, default 10
            The depth of NDCG.
        progress : callable, optional
            Called with the number of finished steps and the number of all.

        Returns
        -------
        scoring : BM25
            The chosen parameters.
        value : float
            The mean NDCG of these queries.

        Raises
        ------
        DataError
            If no query has a relevant document, or a search finds none of these documents.
        """
        pools = CandidatePools(self.forward, self.engine, queries, qrels, depth)
        return pools.tune(progress=progress)

    # --- the first stage

    @property
    def first_stage(self) -> FirstStage:
        """How documents are retrieved by default, which `set_first_stage` changes.

        Unless it was changed, "hybrid" where the index has vectors, and "bm25" where it has none.
        """
        usual, stored = usual_kind(self._manifest), self._manifest.get("first_stage")
        if stored is None:
            return FirstStage(usual)
        return FirstStage.from_dict({**stored, "kind": stored["kind"] or usual})

    def stage(self, first: FirstStageLike = None) -> FirstStage:
        """Return a first stage of this index by its kind, with the stored parameters.

        Parameters
        ----------
        first : {"bm25", "dense", "hybrid"}, BM25 or FirstStage, optional
            The kind, or a first stage; by default that of the index.

        Returns
        -------
        FirstStage
            The first stage.

        Raises
        ------
        DataError
            If it needs vectors and there are none.
        """
        stage = with_kind(self.first_stage, first)
        self.dense.check(stage)
        return stage

    @property
    def encoder(self) -> Encoder:
        """The encoder of the vectors, loaded when it is first used."""
        return self.dense.encoder()

    def set_query_vectors(
        self,
        queries: Iterable[tuple[str, str]],
        vectors: str | os.PathLike[str] | PrecomputedVectors | tuple[Any, Any],
    ) -> None:
        """Take the vectors of queries that were computed elsewhere, as long as this is open.

        An index whose own vectors were computed elsewhere has no encoder for typed texts.

        Parameters
        ----------
        queries : iterable of (str, str)
            Ids and texts of queries.
        vectors : path, PrecomputedVectors or (ids, array)
            One vector per query, by its id; a path ends in .npz or .parquet.

        Raises
        ------
        DataError
            If a query has no vector, or vectors have other dimensions than those of the index.
        """
        self.dense.give(queries, vectors)

    def document(self, name: str) -> dict[str, Any]:
        """Return the fields of a document.

        Parameters
        ----------
        name : str
            The id of the document.

        Returns
        -------
        dict
            The values as they were indexed.

        Raises
        ------
        DataError
            If the document is not in the index.
        """
        return self.documents([name])[0]

    def documents(self, names: Sequence[str]) -> list[dict[str, Any]]:
        """Return the fields of several documents, faster than one by one.

        Parameters
        ----------
        names : sequence of str
            The ids of the documents.

        Returns
        -------
        list of dict
            The values as they were indexed, in the order of the ids.

        Raises
        ------
        DataError
            If a document is not in the index.
        """
        return self.engine.sources(self.forward.rows(names, str(self.path)).tolist())


def _observed(
    documents: Iterable[SourceDocument], names: dict[str, None]
) -> Iterator[SourceDocument]:
    """Yield documents; add the names of their fields to `names`."""
    for document in documents:
        names |= dict.fromkeys(document.values)
        yield document


def vector_source(
    vectors: Vectors | None,
    ids: str | os.PathLike[str] | None = None,
    encoder: str | None = None,
) -> Encoder | PrecomputedVectors | None:
    """Return what computes or contains the vectors that the caller names.

    Parameters
    ----------
    vectors : str, path, Encoder, PrecomputedVectors, (ids, array) or None
        An encoder or its name; vectors, or the name of a file of them.
    ids : path, optional
        The file with the id of the document of each vector, which an .npy file needs.
    encoder : str, optional
        The name of the encoder that computed the vectors of a file, which then encodes queries.

    Returns
    -------
    Encoder, PrecomputedVectors or None
        None where nothing is named.

    Raises
    ------
    DataError
        If the encoder or the file cannot be loaded.

    Examples
    --------
    >>> import numpy as np
    >>> from firstpage.search import vector_source
    >>> vector_source((["d1", "d2"], np.eye(2))).dimensions
    2
    """
    if vectors is None or isinstance(vectors, PrecomputedVectors):
        return vectors
    if isinstance(vectors, tuple):
        return PrecomputedVectors(*vectors)
    if isinstance(vectors, str | os.PathLike):
        name = os.fspath(vectors)
        if not is_vector_file(name):
            if ids is not None or encoder is not None:
                raise DataError(f"{name}: is not a file of vectors: .npy, .npz or .parquet.")
            return load_encoder(name)
        return read_precomputed(name, ids, None if encoder is None else load_encoder(encoder))
    return vectors


def _encoder_of(source: Encoder | PrecomputedVectors | None) -> Encoder | None:
    """Return the encoder that a source of vectors has."""
    return source.encoder if isinstance(source, PrecomputedVectors) else source


def _vectors_of(folder: Path) -> StoredVectors | None:
    """Return the vectors of an index that is replaced, if there are any."""
    try:
        return Index(folder).vectors
    except DataError:  # such as a damaged one
        return None
