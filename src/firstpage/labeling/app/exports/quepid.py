"""The labels of a project as Quepid imports them: CSV with the columns query, docid and rating.

Quepid knows a query by its text.  A row without a rating is a document that was not judged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from firstpage.core import DataError, csv_line
from firstpage.labeling.app.analysis.truth import QueryTruth

COLUMNS = ("query", "docid", "rating")


def quepid_csv(truths: Sequence[QueryTruth]) -> Iterator[str]:
    """Yield the ratings of all finished queries; nothing if there are none."""
    if not truths:
        return
    keys: dict[str, str] = {}
    lines = [csv_line(COLUMNS)]
    for truth in truths:
        text = truth.text.strip() or truth.query
        if keys.setdefault(text, truth.query) != truth.query:
            raise DataError(
                f"the queries {keys[text]!r} and {truth.query!r} have the same text, by which "
                "Quepid knows a query; export qrels instead."
            )
        for document in truth.documents:
            rating = "" if document in truth.unjudged else truth.labels[document]
            lines.append(csv_line((text, document, rating)))
    yield "".join(lines)
