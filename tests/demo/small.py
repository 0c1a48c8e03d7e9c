"""A subset of the embedded collection, on which the demo takes seconds."""

from __future__ import annotations

import pickle
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

from firstpage.data.runs import Qrels
from firstpage.demo.collection import Collection, stdlib_collection
from firstpage.search.queries import Queries

QUESTIONS = 16
EVERY = 25  # of the documents that answer none of the questions
PRINT = """
import pickle, sys
from tests.demo.small import selected
sys.stdout.buffer.write(pickle.dumps(selected()))
"""


@cache
def small_collection() -> Collection:
    """Return a few questions with all their answers, and a few other documents.

    They are read by another process: tests and libraries replace what is documented here.
    """
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", PRINT], capture_output=True, check=True, cwd=root)
    collection: Collection = pickle.loads(done.stdout)
    return collection


def selected() -> Collection:
    """Return the small collection as this process documents it."""
    full = stdlib_collection()
    queries = Queries(full.queries.ids[:QUESTIONS], full.queries.texts[:QUESTIONS])
    answers = full.qrels.to_dict()
    table = {name: answers[name] for name in queries.ids}
    needed = {document for grades in table.values() for document in grades}
    documents = tuple(
        document
        for number, document in enumerate(full.documents)
        if document["id"] in needed or number % EVERY == 0
    )
    return replace(
        full, documents=documents, queries=queries, qrels=Qrels.from_dict(table), missing=()
    )
