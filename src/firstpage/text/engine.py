"""The embedded search engine (tantivy): which documents contain the terms of a query.

The engine indexes terms that are analyzed already, separated by blanks, so that its terms are those
of the forward index.  Queries are built from terms, never parsed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from firstpage.errors import DataError, missing_dependency
from firstpage.types import Floats, Ints

HEAP_BYTES = 200_000_000  # of the engine's writer, before it writes a segment
encode_json = json.JSONEncoder(ensure_ascii=False).encode
WHITESPACE = "firstpage_terms"  # the name of the tokenizer


def tantivy() -> Any:
    """Return the module of the engine; raise if it is not installed."""
    try:
        import tantivy
    except ImportError as error:
        raise missing_dependency("tantivy", "search", "Indexing and searching texts") from error
    return tantivy


class Engine:
    """An index of the engine: terms of `n_fields` text fields, ids, rows and stored documents."""

    def __init__(self, folder: Path, n_fields: int) -> None:
        self._library = library = tantivy()
        self._n_fields = n_fields
        builder = library.SchemaBuilder()
        builder.add_text_field("id", tokenizer_name="raw", index_option="basic")
        builder.add_unsigned_field("row", indexed=True, fast=True)
        builder.add_bytes_field("source", stored=True)
        for number in range(n_fields):
            builder.add_text_field(f"f{number}", tokenizer_name=WHITESPACE, index_option="freq")
        self._schema = builder.build()
        try:
            self._index = library.Index(self._schema, path=str(folder))
        except ValueError as error:
            raise DataError(f"{folder}: the engine cannot open its files ({error}).") from error
        terms = library.TextAnalyzerBuilder(library.Tokenizer.whitespace()).build()
        self._index.register_tokenizer(WHITESPACE, terms)
        self._writer: Any = None
        self._searcher: Any = None

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
        self._open_writer().add_document(document)

    def delete(self, name: str) -> None:
        """Delete the document of this id that was added before."""
        self._open_writer().delete_documents_by_term("id", name)

    def _open_writer(self) -> Any:
        if self._writer is None:
            self._writer = self._index.writer(HEAP_BYTES, 1)
        return self._writer

    def commit(self) -> None:
        """Make all changes durable, and finish merging segments."""
        writer = self._open_writer()
        writer.commit()
        writer.wait_merging_threads()
        self._writer = self._searcher = None
        self._index.reload()

    def close(self) -> None:
        """Drop changes that were not committed."""
        if self._writer is not None:
            self._writer.rollback()
            self._writer.wait_merging_threads()
            self._writer = None

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
        hits = self.searcher.search(any_term, limit, count=False).hits
        addresses = [address for _, address in hits]
        rows = np.array(self.searcher.fast_field_values("row", addresses), np.int64)
        return rows, np.array([score for score, _ in hits])

    def source(self, row: int) -> dict[str, Any]:
        """Return the document of a row as it was added."""
        query = self._library.Query.term_query(self._schema, "row", row)
        hits = self.searcher.search(query, 1, count=False).hits
        stored: dict[str, Any] = json.loads(bytes(self.searcher.doc(hits[0][1])["source"][0]))
        return stored

    def document_frequency(self, field: int, term: str) -> int:
        """Return the engine's own count of documents with a term in a text field."""
        return int(self.searcher.doc_freq(f"f{field}", term))
