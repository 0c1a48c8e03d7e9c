"""The embedded search engine (tantivy): which documents contain the terms of a query.

The engine indexes terms that are analyzed already, separated by blanks, so that its terms are those
of the forward index.  Queries are built from terms, never parsed.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from firstpage.core import DataError, Floats, Ints, missing_dependency

HEAP_BYTES = 200_000_000  # of the engine's writer, before it writes a segment
SOURCES = 1000  # documents that one search reads
encode_json = json.JSONEncoder(ensure_ascii=False).encode
WHITESPACE = "firstpage_terms"  # the name of the tokenizer
PANIC = "PanicException"  # of the engine's own code; it is not an Exception


def tantivy() -> Any:
    """Return the module of the engine; raise if it is not installed."""
    try:
        import tantivy
    except ImportError as error:
        raise missing_dependency("tantivy", "search", "Indexing and searching texts") from error
    return tantivy


@contextmanager
def _lockable(folder: Path) -> Iterator[Path]:
    """Yield a folder with the same files in which the engine may create the lock that it takes."""
    if all(os.access(path, os.W_OK) for path in (folder, *folder.glob("*.lock"))):
        yield folder
        return
    # The engine may still create a lock while the folder is removed.
    with tempfile.TemporaryDirectory(prefix="firstpage-", ignore_cleanup_errors=True) as view:
        for file in folder.iterdir():
            if file.suffix != ".lock":
                (Path(view) / file.name).symlink_to(file.resolve())
        yield Path(view)


class SearchEngine:
    """An index of the engine: terms of `n_fields` text fields, ids, rows and stored documents."""

    def __init__(self, folder: Path, n_fields: int, create: bool = False) -> None:
        self._library = library = tantivy()
        self._folder = folder
        if not create and not (folder / "meta.json").exists():  # it would create an empty index
            raise DataError(f"{folder}: damaged: files are missing; build the index again.")
        self._n_fields = n_fields
        builder = library.SchemaBuilder()
        builder.add_text_field("id", tokenizer_name="raw", index_option="basic")
        builder.add_unsigned_field("row", indexed=True, fast=True)
        builder.add_bytes_field("source", stored=True)
        for number in range(n_fields):
            builder.add_text_field(f"f{number}", tokenizer_name=WHITESPACE, index_option="freq")
        self._schema = builder.build()
        self._writer: Any = None
        self._searcher: Any = None
        with self._reporting("open its files", "build the index again"), _lockable(folder) as path:
            self._index = library.Index(self._schema, path=str(path))
            self._searcher = self._index.searcher()
        terms = library.TextAnalyzerBuilder(library.Tokenizer.whitespace()).build()
        self._index.register_tokenizer(WHITESPACE, terms)

    # --- writing

    def add(self, name: str, row: int, source: Mapping[str, Any], texts: Sequence[str]) -> None:
        """Add a document with the terms of its text fields, separated by blanks."""
        document = self._library.Document()
        document.add_text("id", name)
        document.add_unsigned("row", row)
        document.add_bytes("source", encode_json(source).encode())
        for number, text in enumerate(texts):
            if text:
                document.add_text(f"f{number}", text)
        with self._writing():
            self._open_writer().add_document(document)

    def delete(self, name: str) -> None:
        """Delete the document of this id that was added before."""
        with self._writing():
            self._open_writer().delete_documents_by_term("id", name)

    def _open_writer(self) -> Any:
        if self._writer is None:
            self._writer = self._index.writer(HEAP_BYTES, 1)
        return self._writer

    def commit(self) -> None:
        """Make all changes durable, and finish merging segments."""
        with self._writing():
            writer = self._open_writer()
            writer.commit()
            writer.wait_merging_threads()
            self._index.reload()
        self._writer = self._searcher = None
        for file in self._folder.glob("*.json"):  # the engine lets nobody else read these
            file.chmod(self._folder.stat().st_mode & 0o666)

    def close(self) -> None:
        """Drop changes that were not committed."""
        writer, self._writer = self._writer, None
        if writer is not None:
            with suppress(ValueError):  # of a writer that has failed before
                writer.rollback()
                writer.wait_merging_threads()

    def _writing(self) -> AbstractContextManager[None]:
        return self._reporting("write", "is the disk full?")

    @contextmanager
    def _reporting(self, action: str, advice: str) -> Iterator[None]:
        """Report what the engine raises, also where its own code fails, in one line."""
        try:
            yield
        except BaseException as error:
            if not isinstance(error, ValueError | OSError) and type(error).__name__ != PANIC:
                raise
            reason = str(error).partition("\n")[0]
            raise DataError(
                f"{self._folder}: the engine cannot {action}; {advice} ({reason})"
            ) from error

    # --- reading

    @property
    def searcher(self) -> Any:
        """The engine's searcher of the committed state."""
        if self._searcher is None:
            self._searcher = self._index.searcher()
        return self._searcher

    def search(
        self, terms: Sequence[str], counts: Sequence[int], boosts: Sequence[float], limit: int
    ) -> tuple[Ints, Floats]:
        """Return the rows and scores of the best documents with any of the terms in any field."""
        query = self._library.Query
        clauses = []
        for term, count in zip(terms, counts, strict=True):
            for number, boost in enumerate(boosts):
                if boost > 0:
                    clause = query.term_query(self._schema, f"f{number}", term, "freq")
                    weight = float(boost * count)
                    clauses.append(clause if weight == 1.0 else query.boost_query(clause, weight))
        if not clauses:
            return np.empty(0, np.int64), np.empty(0)
        should = self._library.Occur.Should
        any_term = query.boolean_query([(should, clause) for clause in clauses])
        with self._reading():
            hits = self.searcher.search(any_term, limit, count=False).hits
            addresses = [address for _, address in hits]
            rows = np.array(self.searcher.fast_field_values("row", addresses), np.int64)
        return rows, np.array([score for score, _ in hits])

    def sources(self, rows: Sequence[int]) -> list[dict[str, Any]]:
        """Return the documents of rows as they were added, by one search per SOURCES of them."""
        wanted = list(dict.fromkeys(rows))
        stored: dict[int, dict[str, Any]] = {}
        for start in range(0, len(wanted), SOURCES):
            stored |= self._sources(wanted[start : start + SOURCES])
        return [stored[row] for row in rows]

    def _sources(self, wanted: Sequence[int]) -> dict[int, dict[str, Any]]:
        """Return the documents of distinct rows by row."""
        query, should = self._library.Query, self._library.Occur.Should
        terms = [(should, query.term_query(self._schema, "row", row)) for row in wanted]
        any_row = query.const_score_query(query.boolean_query(terms), 1.0)
        with self._reading():
            hits = self.searcher.search(any_row, len(wanted), count=False).hits
            addresses = [address for _, address in hits]
            numbers = self.searcher.fast_field_values("row", addresses)
            stored = {
                row: json.loads(bytes(self.searcher.doc(address)["source"][0]))
                for row, address in zip(numbers, addresses, strict=True)
            }
            missing = next((row for row in wanted if row not in stored), None)
            if missing is not None:
                raise ValueError(f"there is no row {missing}")
        return stored

    def _reading(self) -> AbstractContextManager[None]:
        return self._reporting("read its files", "build the index again")
