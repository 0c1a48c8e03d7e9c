"""The index of a collection of texts: an embedded engine, and a forward index for features."""

from __future__ import annotations

import os
import shutil
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from firstpage.data.formats.trec import Qrels, Run
from firstpage.data.groups import offsets_from_lengths
from firstpage.data.ids import Ids, encode_text
from firstpage.data.io.files import write_bytes
from firstpage.data.io.json_files import json_digest
from firstpage.errors import DataError, FirstpageWarning
from firstpage.kernels import text as kernel
from firstpage.text import storage
from firstpage.text.analyzer import TermNumbers, tokenize
from firstpage.text.documents import SourceDocument, documents_from_rows
from firstpage.text.engine import Engine
from firstpage.text.forward import ForwardIndex, Matcher, Query
from firstpage.text.latent import LatentSpace
from firstpage.text.retrieval import BM25, retrieve, tune
from firstpage.text.schema import SAMPLE, Schema
from firstpage.types import Array, Floats, Ints, Progress

BATCH = 2000  # documents that are analyzed at a time
LATENT_DIMENSIONS = 128
REFIT_FRACTION = 0.5  # of documents folded into the latent space, above which a note is printed


@dataclass(frozen=True)
class IndexChanges:
    """What a change of an index did.

    Attributes
    ----------
    added, replaced, deleted : int
        The numbers of documents.
    """

    added: int = 0
    replaced: int = 0
    deleted: int = 0

    def __str__(self) -> str:
        counts = {"added": self.added, "replaced": self.replaced, "deleted": self.deleted}
        return (
            ", ".join(f"{count} {name}" for name, count in counts.items() if count) or "no change"
        )


@dataclass(frozen=True)
class Hit:
    """A document that a search returns.

    Attributes
    ----------
    id : str
        The id of the document.
    score : float
        Its score; larger is better.
    row : int
        Its row in the forward index.
    """

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

    Attributes
    ----------
    schema : Schema
        The text, numeric and date fields, with the analyzer of each text field.
    forward : ForwardIndex
        The terms of every document.
    latent : LatentSpace or None
        The latent semantic space.
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

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._open()

    def _open(self) -> None:
        for name in ("forward", "latent", "latent_vectors", "engine"):
            self.__dict__.pop(name, None)
        self._manifest = storage.read_manifest(self.path)
        self.schema = Schema.from_dict(self._manifest["schema"])

    @classmethod
    def from_documents(
        cls,
        documents: Iterable[SourceDocument | Mapping[str, Any]],
        path: str | os.PathLike[str],
        *,
        language: str = "english",
        fields: Mapping[str, str] | None = None,
        latent: int = LATENT_DIMENSIONS,
        overwrite: bool = False,
        progress: Progress | None = None,
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
            language, "number", "date" or "ignore".
        latent : int, default 128
            The number of dimensions of the latent semantic space; 0 for none.
        overwrite : bool, default False
            Whether to replace an index that exists.
        progress : callable, optional
            Called with the number of documents read so far, and 0 for the unknown total.

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
            raise DataError(f"{folder}: exists; add to it (--add), or replace it (--overwrite).")
        if folder.exists() and not (folder / storage.MANIFEST).exists():
            raise DataError(f"{folder}: is not an index, so it is not overwritten.")
        stream = documents_from_rows(documents)
        sample = list(islice(stream, SAMPLE))
        if not sample:
            raise DataError(f"{folder}: there are no documents to index.")
        schema = Schema.infer(sample, language, fields or {})
        draft = folder.with_name(f".{folder.name}-{os.getpid()}")
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        try:
            with storage.writer_lock(draft):
                writer = _Writer(draft, _empty_manifest(schema), schema)
                try:
                    writer.add(chain(sample, stream), {}, progress)
                    writer.commit(latent)
                finally:
                    writer.close()
            if folder.exists():
                shutil.rmtree(folder)
            os.replace(draft, folder)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        return cls(folder)

    # --- changes

    def add(
        self,
        documents: Iterable[SourceDocument | Mapping[str, Any]],
        progress: Progress | None = None,
    ) -> IndexChanges:
        """Add documents, and replace those whose ids are in the index; all of them or none.

        Parameters
        ----------
        documents : iterable of SourceDocument or mapping
            The documents.
        progress : callable, optional
            Called with the number of documents read so far, and 0 for the unknown total.

        Returns
        -------
        IndexChanges
            How many were added and replaced.

        Raises
        ------
        DataError
            If another process writes to the index, or a document is invalid.
        """
        with self._writer() as writer:
            changes = writer.add(documents_from_rows(documents), self.forward.row_of, progress)
            writer.commit(None)
        self._open()
        return changes

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
        names = list(dict.fromkeys(str(name) for name in ids))
        with self._writer() as writer:
            writer.delete(names, self.forward.rows(names, str(self.path)))
            writer.commit(None)
        self._open()
        return IndexChanges(deleted=len(names))

    def set_scoring(self, scoring: BM25) -> None:
        """Store the BM25 of the first stage, which later searches and features use.

        Parameters
        ----------
        scoring : BM25
            The parameters, such as those of `tune`.
        """
        scoring.field_weights(self.forward)
        with storage.writer_lock(self.path):
            manifest = {**storage.read_manifest(self.path), "scoring": scoring.to_dict()}
            storage.write_manifest(self.path, manifest)
        self._open()

    def fit_latent(self, dimensions: int = LATENT_DIMENSIONS) -> None:
        """Fit the latent space to the documents of today; models trained before no longer fit.

        Parameters
        ----------
        dimensions : int, default 128
            The number of dimensions; 0 for no latent space.
        """
        with self._writer() as writer:
            writer.commit(dimensions)
        self._open()

    @contextmanager
    def _writer(self) -> Iterator[_Writer]:
        with storage.writer_lock(self.path):
            self._open()  # what another writer has committed meanwhile
            writer = _Writer(self.path, self._manifest, self.schema)
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

    @cached_property
    def forward(self) -> ForwardIndex:
        """The terms of every document."""
        return _forward(self.path, self._manifest, self.schema)

    @cached_property
    def latent(self) -> LatentSpace | None:
        """The latent semantic space, if there is one."""
        stored = self._manifest["latent"]
        return None if stored is None else LatentSpace.load(self.path / stored["space"])

    @cached_property
    def latent_vectors(self) -> Array:
        """The coordinates of every document in the latent space."""
        stored = self._manifest["latent"]
        shape = (self._manifest["rows"], 0 if stored is None else stored["dimensions"])
        return storage.mapped(self.path / (stored or {}).get("vectors", ""), np.float16, shape)

    @property
    def fingerprint(self) -> str:
        """A digest of what features depend on: fields, analyzers and latent space."""
        latent = self._manifest["latent"]
        return json_digest([self._manifest["schema"], latent and latent["digest"]])[:16]

    @cached_property
    def engine(self) -> Engine:
        """The search engine."""
        return Engine(self.path / self._manifest["engine"], len(self.schema.analyzers))

    # --- retrieval

    def search(self, text: str, depth: int = 10, scoring: BM25 | None = None) -> list[Hit]:
        """Return the best documents for a typed text.

        Parameters
        ----------
        text : str
            What was typed; no character has a special meaning.
        depth : int, default 10
            The number of documents.
        scoring : BM25, optional
            The scoring; by default that of the index.

        Returns
        -------
        list of Hit
            The documents, the best first.
        """
        query = self.forward.query(text)
        rows, scores = self.retrieve(query, depth, scoring)
        return [
            Hit(self.forward.ids[row], score, row)
            for row, score in zip(rows.tolist(), scores.tolist(), strict=True)
        ]

    def retrieve(
        self, query: Query, depth: int, scoring: BM25 | None = None, matcher: Matcher | None = None
    ) -> tuple[Ints, Floats]:
        """Return the rows and scores of the best documents for analyzed terms.

        Parameters
        ----------
        query : Query
            The terms, from `forward.query`.
        depth : int
            The number of documents.
        scoring : BM25, optional
            The scoring; by default that of the index.
        matcher : Matcher, optional
            The workspaces of this thread.

        Returns
        -------
        rows, scores : ndarray
            The documents, the best first.
        """
        forward = self.forward
        return retrieve(
            forward, self.engine, query, depth, scoring or self.scoring, matcher or Matcher(forward)
        )

    def candidates(
        self,
        queries: Iterable[tuple[str, str]],
        depth: int = 100,
        scoring: BM25 | None = None,
        progress: Progress | None = None,
    ) -> Run:
        """Return the best documents of each query as a run.

        Parameters
        ----------
        queries : iterable of (str, str)
            Ids and texts of queries, such as `Queries`.
        depth : int, default 100
            The number of documents per query.
        scoring : BM25, optional
            The scoring; by default that of the index.
        progress : callable, optional
            Called with the number of finished queries and the number of all.

        Returns
        -------
        Run
            The candidates, without queries that match no document; these are named in a warning.
        """
        if depth < 1:
            raise DataError(f"depth must be at least 1; got {depth}.")
        listed = list(queries)
        matcher, ids = Matcher(self.forward), self.forward.ids
        names: list[str] = []
        rows: list[Ints] = []
        scores: list[Floats] = []
        unmatched = []
        for number, (name, text) in enumerate(listed, 1):
            found = self.retrieve(self.forward.query(text), depth, scoring, matcher)
            if len(found[0]):
                names.append(name)
                rows.append(found[0])
                scores.append(found[1])
            else:
                unmatched.append(name)
            if progress is not None:
                progress(number, len(listed))
        if unmatched:
            warnings.warn(
                f"{len(unmatched)} of {len(listed)} queries match no document and have no "
                f"candidates, such as {unmatched[0]!r}.",
                FirstpageWarning,
                stacklevel=2,
            )
        if not names:
            raise DataError("no query matches a document.")
        offsets = offsets_from_lengths(np.array([len(each) for each in rows]))
        documents = ids[np.concatenate(rows)]
        return Run(Ids.from_values(names), offsets, documents, np.concatenate(scores), "bm25")

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
        """
        return tune(self.forward, self.engine, queries, qrels, depth, progress)

    @property
    def scoring(self) -> BM25:
        """The BM25 of the first stage, which `set_scoring` changes."""
        return BM25.from_dict(self._manifest["scoring"])

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
        return self.engine.source(int(self.forward.rows([name], str(self.path))[0]))


# --- files


def _empty_manifest(schema: Schema) -> dict[str, Any]:
    """Return the manifest of an index without documents."""
    return {
        "schema": schema.to_dict(), "generation": 0, "rows": 0, "deleted": 0, "tokens": 0,
        "terms": 1, "term_bytes": 0, "id_bytes": 0, "engine": None, "statistics": None,
        "latent": None, "scoring": BM25().to_dict(),
    }  # fmt: skip


def _forward(folder: Path, manifest: Mapping[str, Any], schema: Schema) -> ForwardIndex:
    """Return the forward index that a manifest describes."""
    rows, n_fields, n_terms = manifest["rows"], len(schema.analyzers), manifest["terms"]
    if manifest["statistics"] is None:
        empty = np.zeros((n_fields + 1, n_terms), np.int64)
        df, cf, deleted = empty, empty.copy(), np.zeros(0, bool)
    else:
        with np.load(folder / manifest["statistics"], allow_pickle=False) as stored:
            df, cf, deleted = stored["df"], stored["cf"], stored["deleted"]
    return ForwardIndex(
        schema.analyzers,
        storage.mapped(folder / "tokens", np.uint32, (manifest["tokens"],)),
        storage.mapped(folder / "ends", np.int64, (rows, n_fields)),
        storage.mapped(folder / "distinct", np.int64, (rows, n_fields + 1)),
        df,
        cf,
        deleted,
        storage.mapped_ids(folder, "ids", rows, manifest["id_bytes"]),
        {
            name: storage.mapped(folder / f"value.{number}", np.float64, (rows,))
            for number, name in enumerate(schema.values)
        },
        TermNumbers(list(storage.mapped_ids(folder, "terms", n_terms, manifest["term_bytes"]))),
    )


class _Writer:
    """Appends documents to the files of an index, and commits them."""

    def __init__(self, folder: Path, manifest: dict[str, Any], schema: Schema) -> None:
        self._folder = folder
        self._manifest = manifest
        self._schema = schema
        self._generation = manifest["generation"] + 1
        self._before = _forward(folder, manifest, schema) if manifest["engine"] else None
        self._terms = self._before.terms if self._before else TermNumbers()
        self._rows = manifest["rows"]
        self._deleted: list[int] = []
        n_fields = len(schema.analyzers)
        sizes: dict[str, tuple[type, int]] = {
            "tokens": (np.uint32, manifest["tokens"]), "ends": (np.int64, self._rows * n_fields),
            "distinct": (np.int64, self._rows * (n_fields + 1)),
            "ids.bytes": (np.uint8, manifest["id_bytes"]), "ids.ends": (np.int64, self._rows),
            "terms.bytes": (np.uint8, manifest["term_bytes"]),
            "terms.ends": (np.int64, manifest["terms"] if manifest["engine"] else 0),
        }  # fmt: skip
        for number in range(len(schema.values)):
            sizes[f"value.{number}"] = np.float64, self._rows
        self._files = {
            name: storage.AppendFile(folder / name, dtype, size)
            for name, (dtype, size) in sizes.items()
        }
        self._engine_folder = folder / f"engine-{self._generation}"
        shutil.rmtree(self._engine_folder, ignore_errors=True)
        if manifest["engine"]:
            storage.link_folder(folder / manifest["engine"], self._engine_folder)
        else:
            self._engine_folder.mkdir()
        self._engine = Engine(self._engine_folder, n_fields)

    def close(self) -> None:
        """Close all files; what was not committed does not count."""
        self._engine.close()
        for file in self._files.values():
            file.close()
        if self._manifest["generation"] < self._generation:
            shutil.rmtree(self._engine_folder, ignore_errors=True)

    def add(
        self, documents: Iterable[SourceDocument], row_of: Mapping[str, int],
        progress: Progress | None,
    ) -> IndexChanges:  # fmt: skip
        """Append documents; those with the id of a document in `row_of` replace it."""
        seen: dict[str, str] = {}
        unknown: dict[str, str] = {}
        first, replaced = self._rows, 0
        stream = iter(documents)
        while batch := list(islice(stream, BATCH)):
            for document in batch:
                if document.id in seen:
                    raise DataError(
                        f"{document.location}: the document {document.id!r} is also at "
                        f"{seen[document.id]}; ids must be distinct."
                    )
                seen[document.id] = document.location
                if (row := row_of.get(document.id)) is not None:
                    self._deleted.append(row)
                    self._engine.delete(document.id)
                    replaced += 1
                for name in document.values:
                    if name not in self._schema:
                        unknown.setdefault(name, document.location)
            self._append(batch)
            if progress is not None:
                progress(self._rows - first, 0)
        for name, location in unknown.items():
            warnings.warn(
                f"{location}: the field {name!r} is not searched, since the index was created "
                f"without it; create the index again with --field {name}=text to search it.",
                FirstpageWarning,
                stacklevel=3,
            )
        return IndexChanges(self._rows - first - replaced, replaced)

    def _append(self, batch: list[SourceDocument]) -> None:
        texts = [
            [
                tokenize(
                    value
                    if isinstance(value := document.values.get(name, ""), str)
                    else f"{value:g}"
                )
                for name in self._schema.analyzers
            ]
            for document in batch
        ]
        analyzers = list(self._schema.analyzers.values())
        number_of = [
            self._terms.of_tokens(analyzer, (token for fields in texts for token in fields[f]))
            for f, analyzer in enumerate(analyzers)
        ]
        terms = self._terms.terms
        tokens: list[int] = []
        ends: list[int] = []
        for document, fields in zip(batch, texts, strict=True):
            joined = []
            for numbers, field in zip(number_of, fields, strict=True):
                found = [number for token in field if (number := numbers[token])]
                tokens += found
                ends.append(len(tokens))
                joined.append(" ".join([terms[number] for number in found]))
            self._engine.add(document.id, self._rows, document.values, joined)
            self._rows += 1
        start = self._files["tokens"].size
        self._files["tokens"].append(np.array(tokens, np.uint32))
        self._files["ends"].append(np.array(ends, np.int64) + start)
        self._append_strings("ids", [document.id for document in batch])
        for number, name in enumerate(self._schema.values):
            values = [self._schema.number(document, name) for document in batch]
            self._files[f"value.{number}"].append(np.array(values))

    def _append_strings(self, name: str, strings: list[str]) -> None:
        encoded = [encode_text(string) for string in strings]
        start = self._files[f"{name}.bytes"].size
        self._files[f"{name}.bytes"].append(np.frombuffer(b"".join(encoded), np.uint8))
        lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
        self._files[f"{name}.ends"].append(start + np.cumsum(lengths))

    def delete(self, names: list[str], rows: Ints) -> None:
        """Delete documents."""
        for name in names:
            self._engine.delete(name)
        self._deleted += rows.tolist()

    def commit(self, latent: int | None) -> None:
        """Make the changes durable.

        `latent` is the number of dimensions of a new latent space (0 for none), or None to fold new
        documents into the present one.
        """
        self._engine.commit()
        self._append_strings("terms", self._terms.terms[self._files["terms.ends"].size :])
        manifest = {
            **self._manifest,
            "generation": self._generation, "rows": self._rows,
            "deleted": self._manifest["deleted"] + len(self._deleted),
            "tokens": self._files["tokens"].size, "terms": len(self._terms),
            "term_bytes": self._files["terms.bytes"].size,
            "id_bytes": self._files["ids.bytes"].size, "engine": self._engine_folder.name,
            "statistics": f"statistics-{self._generation}.npz",
        }  # fmt: skip
        self._write_statistics(manifest)
        for file in self._files.values():
            file.close()
        manifest["latent"] = self._write_latent(manifest, latent)
        storage.write_manifest(self._folder, manifest)
        self._manifest = manifest
        stored = manifest["latent"] or {}
        storage.remove_unused(
            self._folder,
            {manifest["engine"], manifest["statistics"], *map(str, stored.values())},
        )

    def _write_statistics(self, manifest: dict[str, Any]) -> None:
        """Write document and collection frequencies, and which documents are deleted."""
        n_fields, n_terms, first = (
            len(self._schema.analyzers),
            len(self._terms),
            self._manifest["rows"],
        )
        for name in ("tokens", "ends"):
            self._files[name].flush()
        df, cf = (np.zeros((n_fields + 1, n_terms), np.int64) for _ in range(2))
        deleted = np.zeros(self._rows, bool)
        if self._before is not None:
            known = self._before.df.shape[1]
            df[:, :known], cf[:, :known] = self._before.df, self._before.cf
            deleted[:first] = self._before.deleted
        deleted[self._deleted] = True
        tokens = storage.mapped(self._folder / "tokens", np.uint32, (manifest["tokens"],))
        ends = storage.mapped(self._folder / "ends", np.int64, (self._rows, n_fields))
        for rows, sign in (
            (np.arange(first, self._rows), 1),
            (np.array(self._deleted, np.int64), -1),
        ):
            distinct = np.empty((len(rows), n_fields + 1), np.int64)
            marks = np.zeros((2, n_terms), np.int64)
            kernel.collection_statistics(
                tokens, ends, rows, sign, marks[0], marks[1], distinct, df, cf
            )
            if sign > 0:
                self._files["distinct"].append(distinct)
        with write_bytes(self._folder / manifest["statistics"], sync=True) as out:
            np.savez(out, df=df, cf=cf, deleted=deleted)

    def _write_latent(
        self, manifest: dict[str, Any], dimensions: int | None
    ) -> dict[str, Any] | None:
        """Fit the latent space or fold in new documents; return what the manifest says about it."""
        stored = manifest["latent"]
        if dimensions == 0 or (dimensions is None and stored is None):
            return None
        forward = _forward(self._folder, manifest, self._schema)
        if dimensions is None:
            space = LatentSpace.load(self._folder / stored["space"])
            first, known = self._manifest["rows"], stored
        else:
            fitted = LatentSpace.fit(forward, dimensions)
            if fitted is None:
                return None
            space, first = fitted, 0
            known = {
                "space": f"latent-{self._generation}.npz",
                "vectors": f"vectors-{self._generation}",
                "dimensions": space.n_dimensions, "digest": space.digest,
                "fitted": forward.n_documents,
            }  # fmt: skip
            space.save(self._folder / known["space"])
        file = storage.AppendFile(
            self._folder / known["vectors"], np.float16, first * space.n_dimensions
        )
        file.append(space.documents(forward, np.arange(first, self._rows)))
        file.close()
        folded = forward.n_documents - known["fitted"]
        if folded > REFIT_FRACTION * forward.n_documents:
            warnings.warn(
                f"{self._folder}: {folded:,} of {forward.n_documents:,} documents came after the "
                "latent space was fitted; fit it again (--refit) and train again.",
                FirstpageWarning,
                stacklevel=4,
            )
        return dict(known)
