"""A subset of the embedded collection, on which the demo takes seconds."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from firstpage.data.formats.trec import Qrels
from firstpage.demo.collection import Collection, stdlib_collection
from firstpage.text.queries import Queries

QUESTIONS = 16
EVERY = 25  # of the documents that answer none of the questions
REPLACED = "inspect.getfile"  # by PyTorch, in processes that load it


@cache
def small_collection() -> Collection:
    """Return a few questions with all their answers, and a few other documents."""
    full = stdlib_collection()
    queries = Queries(full.queries.ids[:QUESTIONS], full.queries.texts[:QUESTIONS])
    answers = full.qrels.to_dict()
    table = {name: answers[name] for name in queries.ids}
    needed = {document for grades in table.values() for document in grades}
    documents = tuple(
        document
        for number, document in enumerate(d for d in full.documents if d["id"] != REPLACED)
        if document["id"] in needed or number % EVERY == 0
    )
    return replace(
        full, documents=documents, queries=queries, qrels=Qrels.from_dict(table), missing=()
    )
