"""Cranfield: the first stage against bm25s, and a learned ranking against the first stage."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import firstpage as fp
from firstpage.core.errors import FirstpageWarning
from firstpage.search.analyzer import Analyzer
from firstpage.search.documents import read_documents
from firstpage.search.queries import Queries, read_queries

pytestmark = pytest.mark.data


def ndcg(run: fp.Run, qrels: fp.Qrels) -> float:
    with pytest.warns(FirstpageWarning):  # of unjudged documents
        return fp.evaluate(run, qrels, measures=["NDCG@10"])["NDCG@10"]


@pytest.fixture(scope="module")
def folder(real_data: Path) -> Path:
    folder = real_data / "cranfield"
    if not folder.is_dir():
        pytest.skip("no Cranfield among the real data")
    return folder


@pytest.fixture(scope="module")
def qrels(folder: Path) -> fp.Qrels:
    """Codes 1 to 4 are grades 4 to 1, and -1 is 0."""
    table: dict[str, dict[str, float]] = {}
    for line in (folder / "cranqrel").read_text().splitlines():
        query, document, code = line.split()
        table.setdefault(query, {})[document] = 0.0 if code == "-1" else 5.0 - float(code)
    return fp.Qrels.from_dict(table)


@pytest.fixture(scope="module")
def queries(folder: Path) -> Queries:
    return read_queries(folder / "cran.qry", numbering="ordinal")


@pytest.fixture(scope="module")
def index(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> fp.Index:
    documents = read_documents(folder / "cran.all.1400")
    path = tmp_path_factory.mktemp("cranfield") / "i"
    return fp.Index.from_documents(documents, path, fields={"author": "ignore"})


@pytest.fixture(scope="module")
def candidates(index: fp.Index, queries: Queries) -> fp.Run:
    return index.candidates(queries, 100)


def test_the_first_stage_is_not_below_bm25s(
    index: fp.Index, queries: Queries, qrels: fp.Qrels, candidates: fp.Run
) -> None:
    bm25s = pytest.importorskip("bm25s")
    names = list(index.forward.row_of)
    texts = [index.document(name) for name in names]
    fields = index.schema.analyzers
    analyzer = Analyzer()
    corpus = [analyzer.terms("\n".join(str(t.get(f, "")) for f in fields)) for t in texts]
    other = bm25s.BM25(method="lucene", k1=1.2, b=0.75)
    other.index(corpus, show_progress=False)
    table = {}
    for name, text in queries:
        scores = other.get_scores(analyzer.terms(text))
        table[name] = {names[i]: float(scores[i]) for i in np.argsort(-scores, kind="stable")[:100]}
    assert ndcg(candidates, qrels) > ndcg(fp.Run.from_dict(table), qrels) - 1e-3


def test_a_learned_ranking_is_clearly_better(
    index: fp.Index, queries: Queries, qrels: fp.Qrels, candidates: fp.Run
) -> None:
    with pytest.warns(FirstpageWarning, match="candidates are judged"):
        data = fp.TextFeatures(index).dataset(queries, candidates, qrels)
    order = np.random.default_rng(0).permutation(len(data))
    assert data.docids is not None
    table: dict[str, dict[str, float]] = {}
    for fold in np.array_split(order, 5):
        train = data[np.setdiff1d(order, fold)]
        test = data[np.sort(fold)]
        scores = fp.ListNet(normalize="standard").fit(train).predict(test)
        assert test.docids is not None
        for q, name in enumerate(test.queries):
            part = slice(test.offsets[q], test.offsets[q + 1])
            table[name] = dict(zip(test.docids[part], scores[part].tolist(), strict=True))
    learned = fp.Run.from_dict(table)
    assert ndcg(learned, qrels) > ndcg(candidates, qrels) + 0.03
