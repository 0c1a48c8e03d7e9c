"""Top-k truth as LETOR text, TREC qrels or JSON lines."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from firstpage.data.formats.letor import BLANKS, check_name
from firstpage.web.analysis.truth import Truth


def letor(truths: Sequence[Truth]) -> Iterator[str]:
    """`label qid:query # docid = document`; features are for others to add."""
    for truth in truths:
        check_name(truth.query, "query id", "a LETOR file", BLANKS + "#")
        for key in truth.documents:
            check_name(key, "document id", "a LETOR file")
            yield f"{truth.labels[key]} qid:{truth.query} # docid = {key}\n"


def qrels(truths: Sequence[Truth]) -> Iterator[str]:
    """`query 0 document label`."""
    for truth in truths:
        check_name(truth.query, "query id", "a qrels file")
        for key in truth.documents:
            check_name(key, "document id", "a qrels file")
            yield f"{truth.query} 0 {key} {truth.labels[key]}\n"


def jsonl(truths: Sequence[Truth]) -> Iterator[str]:
    """One query a line: order, labels, tie groups, bad documents, confidence."""
    for truth in truths:
        yield json.dumps(asdict(truth), ensure_ascii=False, allow_nan=False) + "\n"
