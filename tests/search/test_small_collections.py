"""Few queries with binary judgments: default rankers on text features do not fall below BM25."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import firstpage as fp
from firstpage.core.errors import FirstpageWarning
from firstpage.data.folds import fold_subsets, split_folds
from firstpage.search.tuning import CandidatePools

N_QUERIES, N_TOPICS, DEPTH = 30, 12, 30


def collection(seed: int) -> tuple[list[dict[str, str]], list[tuple[str, str]], fp.Qrels]:
    """Return abstracts, queries and binary judgments, with words as natural texts have them.

    A document is about one or two topics.  Each topic has its own distribution over words, which
    are otherwise Zipf's.  A query is a need about a topic and one of its rare words; relevant are
    documents about the topic whose title or text has this word, or a word that goes with it.
    """
    rng = np.random.default_rng(seed)
    words = np.array([f"{a}{b}{c}" for a in "bdgklmnprt" for b in "aeiou" for c in "lmnrsvzk"])
    common = 1 / np.arange(2, len(words) + 2)
    topics = []
    for _ in range(N_TOPICS):
        own = np.zeros(len(words))
        own[rng.choice(np.arange(60, len(words)), 12, replace=False)] = 1 / np.arange(1, 13)
        topics.append(own / own.sum())
    rows, about = [], []
    for number in range(400):
        first, second = rng.choice(N_TOPICS, 2, replace=False)
        mixture = 0.6 * common / common.sum() + 0.3 * topics[first] + 0.1 * topics[second]
        title, text = (rng.choice(words, n, p=mixture) for n in (rng.integers(3, 9), 60))
        rows.append({"id": str(number), "title": " ".join(title), "text": " ".join(text)})
        about.append((first, {*title, *text}))
    queries, table = [], {}
    for q in range(N_QUERIES):
        topic = q % N_TOPICS
        own = words[np.argsort(-topics[topic])[:12]]
        wanted, partner = rng.choice(own[4:], 2, replace=False)
        relevant = [
            row["id"]
            for row, (first, has) in zip(rows, about, strict=True)
            if first == topic and {wanted, partner} & has and rng.random() < 0.8
        ]
        noise = rng.choice(words, 6, p=common / common.sum())
        queries.append((str(q), " ".join([wanted, own[0], *noise, wanted])))
        table[str(q)] = dict.fromkeys(relevant, 1.0) or {"0": 0.0}
    return rows, queries, fp.Qrels.from_dict(table)


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> tuple[fp.Dataset, fp.Run]:
    """Return features of candidates, and the lists of BM25 tuned on the other folds."""
    rows, queries, qrels = collection(0)
    path = tmp_path_factory.mktemp("small") / "i"
    index = fp.Index.from_documents(rows, path, language="none", latent=64)
    run = index.candidates(queries, DEPTH)
    listed = [(name, dict(queries)[name]) for name in run.queries]
    pools = CandidatePools(index.forward, index.engine, listed, qrels)
    table: dict[str, dict[str, float]] = {}
    for subsets in fold_subsets(len(listed), 5, 0):
        train = {listed[i][0] for subset in subsets[:-1] for i in subset.tolist()}
        test = [listed[i] for i in subsets[-1].tolist()]
        table |= index.candidates(test, DEPTH, pools.tune(train)[0]).to_dict()
    bm25 = fp.Run.from_dict({name: table[name] for name, _ in listed}, "bm25")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FirstpageWarning)
        return fp.TextFeatures(index).dataset(queries, run, qrels), bm25


@pytest.mark.parametrize("ranker", [fp.ListNet, fp.ListMLE, fp.RankSVM])
def test_defaults_hold_against_tuned_bm25(
    ranker: type[fp.Ranker], compared: tuple[fp.Dataset, fp.Run]
) -> None:
    data, bm25 = compared
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FirstpageWarning)
        results = fp.cross_validate(
            {"learned": ranker(normalize="standard")},
            split_folds(data, 5, 0),
            "NDCG@10",
            runs={"bm25": bm25},
        )
    learned, baseline = (results.mean(name, "NDCG@10") for name in ("learned", "bm25"))
    assert learned > baseline - 0.02, (learned, baseline)
