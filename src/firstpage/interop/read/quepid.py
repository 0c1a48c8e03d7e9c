"""Quepid's judgments: CSV with the columns query, docid and rating."""

from __future__ import annotations

import math
import os
import warnings
from pathlib import Path

from firstpage.data.formats.trec import Qrels
from firstpage.errors import DataError, FirstpageWarning
from firstpage.interop.read.rows import Names, table

COLUMNS = {
    "query": ("query", "query_text", "query text"),
    "document": ("docid", "doc_id", "doc id"),
    "rating": ("rating", "judgement", "judgment", "grade"),
}


def read_quepid(path: str | os.PathLike[str]) -> Qrels:
    """Judgments of Quepid's basic export.

    Rows without a rating are left out; blanks in queries and document ids become "_".
    """
    file = Path(path)
    query, document = Names("query"), Names("document id")
    found: dict[str, dict[str, float]] = {}
    unrated = 0
    for where, row in table(file, COLUMNS):
        if not row["rating"]:
            unrated += 1
            continue
        try:
            rating = float(row["rating"].replace("_", "?"))  # which Python would read over
        except ValueError:
            rating = math.nan
        if not math.isfinite(rating):
            raise DataError(f"{where}: the rating {row['rating']!r} is no number.")
        docs = found.setdefault(query(row["query"], where), {})
        if docs.setdefault(document(row["document"], where), rating) != rating:
            raise DataError(
                f"{where}: {row['document']!r} has another rating for {row['query']!r} "
                "above; export one rating a document."
            )
    if not found:
        raise DataError(f"{file}: holds no ratings.")
    if unrated:
        warnings.warn(
            f"{file}: {unrated} rows without a rating are left out.", FirstpageWarning, stacklevel=2
        )
    return Qrels.from_dict(found, file.name)
