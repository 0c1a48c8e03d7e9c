"""Rankers against tuned BM25 on Cranfield with few queries and binary judgments (docs/search.md).

    FIRSTPAGE_DATA=data python benchmarks/few_queries.py 35 56 112 225

The queries are divided into disjoint sets of each size.  Every set is cross-validated with 5 folds;
BM25 is tuned on the other folds.  p is that of a randomization test, without a correction.
"""

from __future__ import annotations

import os
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np

import firstpage as fp
from firstpage.data import fold_subsets, split_folds
from firstpage.search import CandidatePools

SETS = ("all", "short")
RANKERS = {
    "ListNet": fp.ListNet(normalize="standard"),
    "ListMLE(k=10)": fp.ListMLE(k=10, normalize="standard"),
    "RankSVM": fp.RankSVM(normalize="standard"),
    "RankNet": fp.RankNet(normalize="standard"),
    "FocusedNet(k=10)": fp.FocusedNet(k=10, normalize="standard"),
    "ListMLE(k=10, l2=1)": fp.ListMLE(k=10, l2=1.0, normalize="standard"),
}
DEPTH, FOLDS, TRIALS = 100, 5, 5000


def values_of(index: fp.Index, queries: list[tuple[str, str]], qrels: fp.Qrels) -> dict:
    """Return NDCG@10 per query of BM25 and of every ranker and set of features."""
    run = index.candidates(queries, DEPTH)
    texts = dict(queries)
    listed = [(name, texts[name]) for name in run.queries]
    pools = CandidatePools(index.forward, index.engine, listed, qrels)
    table: dict[str, dict[str, float]] = {}
    for subsets in fold_subsets(len(listed), FOLDS, 0):
        scoring, _ = pools.tune({listed[i][0] for s in subsets[:-1] for i in s.tolist()})
        test = [listed[i] for i in subsets[-1].tolist()]
        table |= index.candidates(test, DEPTH, scoring).to_dict()
    bm25 = fp.Run.from_dict({name: table[name] for name, _ in listed}, "BM25, tuned")
    values = {}
    for features in SETS:
        data = fp.TextFeatures(index, features).dataset(queries, run, qrels)
        rankers = {f"{name}, {features}": ranker for name, ranker in RANKERS.items()}
        folds = split_folds(data, FOLDS, 0)
        results = fp.cross_validate(rankers, folds, "NDCG@10", runs={bm25.name: bm25})
        values |= {name: results.values[name]["NDCG@10"][0] for name in results.values}
    return values


def p_value(difference: np.ndarray) -> float:
    signs = np.random.default_rng(1).choice([-1, 1], (TRIALS, len(difference)))
    means = np.abs((signs * difference).mean(axis=1))
    return float((means >= abs(difference.mean()) - 1e-12).mean())


def main(sizes: list[int]) -> None:
    warnings.simplefilter("ignore", fp.FirstpageWarning)
    source = Path(os.environ.get("FIRSTPAGE_DATA", "data")) / "cranfield"
    table: dict[str, dict[str, float]] = {}
    for line in (source / "cranqrel").read_text().splitlines():
        query, document, code = line.split()
        table.setdefault(query, {})[document] = float(code != "-1")
    qrels = fp.Qrels.from_dict(table)
    queries = list(fp.read_queries(source / "cran.qry", numbering="ordinal"))
    order = np.random.default_rng(0).permutation(len(queries)).tolist()
    with tempfile.TemporaryDirectory() as folder:
        documents = fp.read_documents(source / "cran.all.1400")
        index = fp.Index.from_documents(documents, Path(folder) / "cranfield.index")
        for size in sizes:
            starts = range(0, len(queries) - size + 1, size)
            groups = [[queries[i] for i in sorted(order[s : s + size])] for s in starts]
            parts = [values_of(index, group, qrels) for group in groups]
            values = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
            baseline = values["BM25, tuned"]
            print(f"{size} queries, {len(groups)} sets")
            for name, each in values.items():
                print(
                    f"  {name:28} {each.mean():.4f}  p {p_value(each - baseline):.4f}", flush=True
                )


if __name__ == "__main__":
    main([int(word) for word in sys.argv[1:]] or [35])
