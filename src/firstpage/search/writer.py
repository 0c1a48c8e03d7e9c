"""Writing an index: documents are appended to its files, and a new manifest commits them."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from firstpage.core import (
    DataError,
    Ints,
    Progress,
    remove,
    remove_abandoned,
    warn,
)
from firstpage.core.kernels import text as kernel
from firstpage.data import encode_text
from firstpage.data.io import write_bytes
from firstpage.search import storage
from firstpage.search.analyzer import TermNumbers, tokenize
from firstpage.search.documents import SourceDocument
from firstpage.search.encoders.loading import recorded_name
from firstpage.search.engine import SearchEngine
from firstpage.search.forward import ForwardIndex
from firstpage.search.latent import LatentSpace
from firstpage.search.manifest import (
    MANIFEST,
    changes_since_fit,
    empty_manifest,
    is_outdated,
    latent_note,
    read_forward,
    write_manifest,
)
from firstpage.search.schema import Schema
from firstpage.search.vector_writer import (
    NO_SOURCE,
    Journal,
    Reusable,
    VectorChange,
    VectorWriter,
)
from firstpage.search.vectors import read_vectors

BATCH = 2000  # documents that are analyzed at a time
REMOVALS, REMOVAL_PAUSE = 20, 0.05  # attempts, and seconds between them
MAX_NOTES = 5  # about fields that are not searched


@dataclass(frozen=True)
class IndexChanges:
    """How many documents a change of an index added, replaced, deleted, kept and embedded."""

    added: int = 0
    replaced: int = 0
    deleted: int = 0
    unchanged: int = 0
    embedded: int = 0

    def __str__(self) -> str:
        counts = {name: count for name, count in asdict(self).items() if count}
        return ", ".join(f"{count} {name}" for name, count in counts.items()) or "no change"


class StoredDocuments:
    """The documents of an index, with which those of today are compared.

    Attributes
    ----------
    seen : set of str
        The ids of the documents that were read.
    n_unchanged : int
        How many of them are stored as they are.
    """

    def __init__(self, engine: SearchEngine, row_of: Mapping[str, int]) -> None:
        self._engine = engine
        self._row_of = row_of
        self.seen: set[str] = set()
        self.n_unchanged = 0

    def changed(
        self, documents: Iterable[SourceDocument], progress: Progress | None
    ) -> Iterator[SourceDocument]:
        """Yield the documents that are new or differ from what is stored."""
        stream = iter(documents)
        while batch := list(islice(stream, BATCH)):
            self.seen.update(document.id for document in batch)
            known = [document.id for document in batch if document.id in self._row_of]
            sources = self._engine.sources([self._row_of[name] for name in known])
            stored = dict(zip(known, sources, strict=True))
            for document in batch:
                if stored.get(document.id) == document.values:
                    self.n_unchanged += 1
                else:
                    yield document
            if progress is not None:
                progress(len(self.seen), 0)


def distinct_documents(documents: Iterable[SourceDocument]) -> Iterator[SourceDocument]:
    """Yield documents; raise if an id occurs twice."""
    seen: dict[str, str] = {}
    for document in documents:
        if document.id in seen:
            raise DataError(
                f"{document.location}: the document {document.id!r} is also at "
                f"{seen[document.id]}; ids must be distinct."
            )
        seen[document.id] = document.location
        yield document


class IndexWriter:
    """Appends documents to the files of an index, and commits them."""

    def __init__(
        self, folder: Path, manifest: dict[str, Any], schema: Schema, before: ForwardIndex | None
    ) -> None:
        self._folder = folder
        self._files_folder = folder / manifest["forward"]
        self._manifest = manifest
        self._schema = schema
        self._generation = manifest["generation"] + 1
        self._before = before
        self._terms = TermNumbers(list(before.terms.terms)) if before else TermNumbers()
        self._rows = manifest["rows"]
        self._deleted: list[int] = []
        n_fields = len(schema.analyzers)
        sizes: dict[str, tuple[type, int]] = {
            "tokens": (np.uint32, manifest["tokens"]),
            "ends": (np.int64, self._rows * n_fields),
            "distinct": (np.int64, self._rows * (n_fields + 1)),
            "ids.bytes": (np.uint8, manifest["id_bytes"]),
            "ids.ends": (np.int64, self._rows),
            "terms.bytes": (np.uint8, manifest["term_bytes"]),
            "terms.ends": (np.int64, manifest["terms"]),
        }
        for number in range(len(schema.values)):
            sizes[f"value.{number}"] = np.float64, self._rows
        self._remove_generation()  # of a writer that was killed
        remove_abandoned(folder / MANIFEST)
        self._files: dict[str, storage.AppendFile] = {}
        self._engine_folder = folder / f"engine-{self._generation}"
        with ExitStack() as opened, storage.reporting(folder):
            opened.callback(self._drop_uncommitted)
            self._files_folder.mkdir(exist_ok=True)
            for name, (dtype, size) in sizes.items():
                file = storage.AppendFile(self._files_folder / name, dtype, size)
                self._files[name] = file
                opened.callback(file.discard)
            if manifest["engine"]:
                storage.link_folder(folder / manifest["engine"], self._engine_folder)
            else:
                self._engine_folder.mkdir()
            self._engine = SearchEngine(self._engine_folder, n_fields, create=True)
            opened.callback(self._engine.close)
            self._opened = opened.pop_all()

    def close(self) -> None:
        """Close all files; what was not committed does not count."""
        self._opened.close()

    def _drop_uncommitted(self) -> None:
        if self._manifest["generation"] == self._generation:
            return
        for _ in range(REMOVALS):  # a thread of the engine may still create a file meanwhile
            self._remove_generation()
            if self._generation not in storage.generations(self._folder).values():
                return
            time.sleep(REMOVAL_PAUSE)

    def _remove_generation(self) -> None:
        """Remove what belongs to the generation of this writer."""
        for entry, generation in storage.generations(self._folder).items():
            if generation == self._generation:
                remove(entry)

    def add(
        self,
        documents: Iterable[SourceDocument],
        row_of: Mapping[str, int],
        progress: Progress | None,
    ) -> IndexChanges:
        """Append documents; those with the id of a document in `row_of` replace it."""
        unknown: dict[str, str] = {}
        first, replaced = self._rows, 0
        stream = distinct_documents(documents)
        while batch := list(islice(stream, BATCH)):
            for document in batch:
                if (row := row_of.get(document.id)) is not None:
                    self._deleted.append(row)
                    self._engine.delete(document.id)
                    replaced += 1
                for name in document.values:
                    if name not in self._schema:
                        unknown.setdefault(name, document.location)
            with storage.reporting(self._folder):
                self._append(batch)
            if progress is not None:
                progress(self._rows - first, 0)
        for number, (name, location) in enumerate(unknown.items()):
            if number == MAX_NOTES:
                _note(f"{len(unknown) - number:,} more fields are not searched, such as {name!r}.")
                break
            _note(
                f"{location}: the field {name!r} is not searched, since the index was created "
                f"without it; create the index again "
                f"(`firstpage index --field {name}=text`) to search it."
            )
        return IndexChanges(self._rows - first - replaced, replaced)

    def _append(self, batch: list[SourceDocument]) -> None:
        texts = [
            [tokenize(value_text(document.values.get(name, ""))) for document in batch]
            for name in self._schema.analyzers
        ]
        number_of = [
            self._terms.of_tokens(analyzer, chain.from_iterable(field)).__getitem__
            for analyzer, field in zip(self._schema.analyzers.values(), texts, strict=True)
        ]
        term_of = self._terms.terms.__getitem__
        tokens: list[int] = []
        ends: list[int] = []
        for document, *fields in zip(batch, *texts, strict=True):
            joined = []
            for number_of_token, field in zip(number_of, fields, strict=True):
                numbers = list(filter(None, map(number_of_token, field)))  # without stop words
                tokens += numbers
                ends.append(len(tokens))
                joined.append(" ".join(map(term_of, numbers)))
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

    def commit(self, latent: int | None, vectors: VectorChange = NO_SOURCE) -> int:
        """Make the changes durable; return the number of documents that were embedded.

        `latent` is the number of dimensions of a new latent space (0 for none), or None to fold new
        documents into the present one.
        """
        with storage.reporting(self._folder):
            return self._commit(latent, vectors)

    def _commit(self, latent: int | None, vectors: VectorChange) -> int:
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
        manifest["vectors"], computed = self._write_vectors(manifest, vectors)
        write_manifest(self._folder, manifest)
        self._manifest = manifest
        used = {manifest[name] for name in ("engine", "forward", "statistics")}
        for stored in (manifest["latent"], manifest["vectors"]):
            used |= {str(value) for value in (stored or {}).values()}
        for entry in storage.generations(self._folder):
            if entry.name not in used:
                remove(entry)
        if vectors.source is not None:
            Journal.remove(self._folder)
        return computed

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
        files = self._files_folder
        tokens = storage.mapped(files / "tokens", np.uint32, (manifest["tokens"],))
        ends = storage.mapped(files / "ends", np.int64, (self._rows, n_fields))
        for rows, sign in (
            (np.arange(first, self._rows), 1),
            (np.array(self._deleted, np.int64), -1),
        ):
            distinct = np.empty((len(rows), n_fields + 1), np.int64)
            marks = np.zeros((2, n_terms), np.int64)
            kernel.collection_statistics(
                tokens=tokens,
                ends=ends,
                rows=rows,
                sign=sign,
                field_mark=marks[0],
                document_mark=marks[1],
                distinct=distinct,
                df=df,
                cf=cf,
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
        forward = read_forward(self._folder, manifest, self._schema)
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
                "dimensions": space.n_dimensions,
                "digest": space.digest,
                "fitted_rows": self._rows,
                "fitted_deleted": self._rows - forward.n_documents,
            }
            space.save(self._folder / known["space"])
        file = storage.AppendFile(
            self._folder / known["vectors"], np.float16, first * space.n_dimensions
        )
        file.append(space.documents(forward, np.arange(first, self._rows)))
        file.close()
        changes = changes_since_fit(known, forward.deleted)
        if is_outdated(changes, forward.n_documents):
            _note(latent_note(self._folder, changes))
        return dict(known)

    def _write_vectors(
        self, manifest: dict[str, Any], change: VectorChange
    ) -> tuple[dict[str, Any] | None, int]:
        """Write vectors; return what the manifest says, and how many documents were embedded."""
        stored, first = manifest.get("vectors"), self._manifest["rows"]
        if change.rebuild:
            if change.source is None:
                return None, 0
            name = f"dense-{self._generation}"
            encoder = change.source.to_dict()
            encoder["name"] = recorded_name(str(encoder["name"]), self._folder)
            stored = {"encoder": encoder, "files": name, "count": 0}
            first, reusable = 0, Reusable(change.known)
        elif stored is None or first == self._rows:
            return stored, 0
        else:
            before = read_vectors(self._folder, self._manifest)
            reusable = Reusable(before, np.array(self._deleted, np.int64))
        writer = VectorWriter(self._folder, stored, first)
        source, is_finished = change.open(self._folder, reusable), False
        try:
            forward = read_forward(self._folder, manifest, self._schema)
            writer.write(source, forward, self._words, change.progress)
            stored, is_finished = writer.finish(), True
        finally:
            writer.close()
            source.close(is_finished)
        return stored, source.computed

    def _words(self, rows: Sequence[int]) -> Iterator[list[str]]:
        """Yield the words of the text fields of documents."""
        for document in self._engine.sources(rows):
            texts = (value_text(document.get(name, "")) for name in self._schema.analyzers)
            yield " ".join(texts).split()


def create(
    folder: Path,
    documents: Iterable[SourceDocument],
    schema: Schema,
    latent: int,
    progress: Progress | None = None,
    vectors: VectorChange = NO_SOURCE,
) -> None:
    """Create an index, or replace the one in this folder; a killed process leaves no new index."""
    if folder.exists():  # the old index stays until the manifest of the new one replaces its own
        with storage.writer_lock(folder):
            _write_all(folder, documents, schema, latent, progress, vectors)
        return
    draft = folder.with_name(f".{folder.name}.new")
    with storage.reporting(draft):
        draft.mkdir(parents=True, exist_ok=True)
    with storage.writer_lock(draft):
        try:
            for entry in draft.iterdir():  # of a writer that was killed
                remove(entry)
            _write_all(draft, documents, schema, latent, progress, vectors)
            if folder.exists():
                raise DataError(f"{folder}: was created meanwhile by another process.")
            with storage.reporting(folder):
                os.replace(draft, folder)
        finally:
            shutil.rmtree(draft, ignore_errors=True)


def _write_all(
    folder: Path,
    documents: Iterable[SourceDocument],
    schema: Schema,
    latent: int,
    progress: Progress | None,
    vectors: VectorChange,
) -> None:
    generation = max(storage.generations(folder).values(), default=0)
    writer = IndexWriter(folder, empty_manifest(schema, generation), schema, None)
    try:
        writer.add(documents, {}, progress)
        writer.commit(latent, vectors)
    finally:
        writer.close()


def _note(message: str) -> None:
    warn(message)


def value_text(value: str | float) -> str:
    """Return the text of a value of a text field; a number as one would write it."""
    if isinstance(value, str):
        return value
    return str(int(value)) if float(value).is_integer() else repr(float(value))
