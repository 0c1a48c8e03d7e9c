"""Long queries: memory is bounded, scores do not depend on it, and a limit is reported."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest

from firstpage import Index, Searcher, TextFeatures
from firstpage.core.errors import FirstpageWarning
from firstpage.search import forward
from firstpage.search.retrieval import BM25, first_stage_scores

N_WORDS = 5000


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    rng = np.random.default_rng(0)
    words = np.array([f"w{i}" for i in range(2 * N_WORDS)])

    def text(length: int) -> str:
        return " ".join(rng.choice(words, length))

    rows = [
        {"id": i, "title": text(5), "abstract": text(20), "text": text(80)} for i in range(1200)
    ]
    path = tmp_path_factory.mktemp("long") / "i"
    return Index.from_documents(rows, path, language="none", latent=0)


def peak_megabytes(call: Callable[[], object]) -> float:
    call()  # kernels are linked, files are mapped
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


def test_memory(index: Index) -> None:
    text = " ".join(f"w{i}" for i in range(N_WORDS))
    query = index.forward.query(text)
    assert len(query.terms) > 0.95 * N_WORDS
    assert peak_megabytes(lambda: Searcher(index).search(text)) < 60
    rows = index.retrieve(query, 100).rows
    features = TextFeatures(index, "letor,matching,first_stage,query,feedback")
    started = time.process_time()
    assert peak_megabytes(lambda: features.compute(query, rows)) < 90
    assert time.process_time() - started < 30


def test_blocks_do_not_change_scores(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    query = index.forward.query(" ".join(f"w{i}" for i in range(300)))
    rows = np.arange(1000)
    scoring, matcher = BM25(weights={"title": 2.5}), forward.Matcher(index.forward)
    assert len(list(matcher.blocks(query, rows))) == 1
    whole = first_stage_scores(index.forward, query, rows, scoring, matcher)
    monkeypatch.setattr(forward, "MAX_COUNTS", 100_000)
    assert len(list(matcher.blocks(query, rows))) > 5
    parts = first_stage_scores(index.forward, query, rows, scoring, matcher)
    np.testing.assert_array_equal(parts, whole)
    assert len(first_stage_scores(index.forward, query, rows[:0], scoring, matcher)) == 0


def test_the_limit_is_reported(index: Index) -> None:
    words = [f"w{i % 7}" for i in range(forward.MAX_WORDS)]
    assert index.search(" ".join(words))
    with pytest.warns(FirstpageWarning, match="has 20,001 words; only the first 20,000 count"):
        query = index.forward.query(" ".join([*words, "w8"]))
    assert len(query.terms) == 7
    assert len(query.sequence) == forward.MAX_WORDS


def test_repeated_words_take_no_time(index: Index) -> None:
    query = index.forward.query("w1 " * forward.MAX_WORDS)
    rows = index.retrieve(query, 100).rows
    features = TextFeatures(index, "matching")
    features.compute(query, rows)
    started = time.process_time()
    features.compute(query, rows)
    assert time.process_time() - started < 2
