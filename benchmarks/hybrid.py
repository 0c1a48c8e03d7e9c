"""First pages by words, by meaning, by both, and learned (docs/search.md, docs/benchmarks.md).

    FIRSTPAGE_DATA=data python benchmarks/hybrid.py cranfield dl19 dl20 --encoder minilm

Cranfield has binary judgments; the passages of TREC Deep Learning are those that were judged, and
the collections of the two years are separate.  Every figure is of queries that were not used for
training or tuning (5 folds): BM25 and the fusion are tuned, features chosen and rankers trained on
the other folds.  Candidates are the 100 best by reciprocal rank fusion with equal weights.  The
bar: the learned first page is not significantly worse than any single stage or the fusion (NDCG@10,
randomization test, Holm).
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import firstpage as fp
from firstpage.data.formats import to_run
from firstpage.interop.report import means_table
from firstpage.search import StageTuner

DEPTH, FOLDS, SEED = 100, 5, 0
LEARNED = "ListMLE(k=10)"
MEASURES = ("NDCG@10", "NDCG@5", "Recall@30")
SOURCE = Path(os.environ.get("FIRSTPAGE_DATA", "data"))
Collection = tuple[list, list[tuple[str, str]], fp.Qrels]


def cranfield() -> Collection:
    """Return documents, queries and binary judgments (codes 1 to 4 are relevant)."""
    folder, table = SOURCE / "cranfield", {}
    for line in (folder / "cranqrel").read_text().splitlines():
        query, document, code = line.split()
        table.setdefault(query, {})[document] = float(code != "-1")
    queries = list(fp.read_queries(folder / "cran.qry", numbering="ordinal"))
    return list(fp.read_documents(folder / "cran.all.1400")), queries, fp.Qrels.from_dict(table)


def trec_dl(year: str) -> Collection:
    """Return the judged passages and topics of a year of TREC Deep Learning."""
    folder = SOURCE / "passages"
    texts = (folder / f"qrels_text.{year}").read_text(errors="replace").split("\n")
    rows = [line.partition("\t") for line in texts]
    passages = {name: text for name, _, text in rows if text}  # judged for several queries
    documents = [{"id": name, "text": text} for name, text in passages.items()]
    lines = (folder / f"topics.{year}.txt").read_text().splitlines()
    topics = {line.partition("\t")[0]: line.partition("\t")[2] for line in lines}
    qrels = fp.read_qrels(folder / f"qrels.{year}")
    return documents, [(name, topics[name]) for name in qrels.queries], qrels


def collection(name: str) -> Collection:
    """Return a collection by name."""
    return cranfield() if name == "cranfield" else trec_dl(name)


def folds_of(queries: list[tuple[str, str]]) -> Iterator[tuple[list, list]]:
    """Yield the training and test queries of each fold."""
    fold = np.random.default_rng(SEED).permutation(len(queries)) % FOLDS
    for number in range(FOLDS):
        yield (
            [query for query, f in zip(queries, fold, strict=True) if f != number],
            [query for query, f in zip(queries, fold, strict=True) if f == number],
        )


def runs_of(index: fp.Index, queries: list, qrels: fp.Qrels) -> dict[str, fp.Run]:
    """Return the held-out rankings of all systems."""
    tables: dict[str, dict] = {name: {} for name in ("BM25, tuned", "fusion, tuned", LEARNED)}
    candidates = index.candidates(queries, DEPTH, "hybrid")
    data = fp.TextFeatures(index).dataset(queries, candidates, qrels)
    number_of = {name: number for number, name in enumerate(data.queries)}
    for train, test in folds_of(queries):
        names = {name for name, _ in train}
        tuned = StageTuner(index, queries, qrels).tune(names)
        words = index.stage(tuned.stage.scoring)
        tables["BM25, tuned"] |= index.candidates(test, DEPTH, words).to_dict()
        tables["fusion, tuned"] |= index.candidates(test, DEPTH, tuned.stage).to_dict()
        trained = data[np.sort([number_of[name] for name in names if name in number_of])]
        tested = data[np.sort([number_of[name] for name, _ in test if name in number_of])]
        chosen = fp.choose_features(trained)
        columns = [tested.feature_names.index(name) for name in chosen.feature_names]
        tested = tested.with_features(tested.X[:, columns], chosen.feature_names)
        ranker = fp.ListMLE(k=10, normalize="standard").fit(chosen)
        tables[LEARNED] |= to_run(tested, ranker.predict(tested)).to_dict()
    return {
        **{name: fp.Run.from_dict(table, name) for name, table in tables.items()},
        "dense": index.candidates(queries, DEPTH, "dense"),
        "RRF": candidates,
    }


def main(names: list[str], encoder: str) -> None:
    warnings.simplefilter("ignore", fp.FirstpageWarning)
    worse = []
    for name in names:
        documents, queries, qrels = collection(name)
        with tempfile.TemporaryDirectory() as folder:
            start = time.process_time()
            index = fp.Index.from_documents(documents, Path(folder) / "i", vectors=encoder)
            seconds = time.process_time() - start
            runs = runs_of(index, queries, qrels)
        compared = fp.compare(
            runs, qrels, measures=MEASURES, baseline=LEARNED, test="randomization"
        )
        print(
            f"\n{name}: {len(documents):,} documents, {len(queries)} queries, {encoder}; indexed "
            f"in {seconds:.0f} s of CPU"
        )
        print(means_table(compared).text())
        for d in compared.differences:
            print(
                f"  {d.measure}: {LEARNED} - {d.system} = {-d.difference:+.4f} "
                f"({-d.high:+.4f} to {-d.low:+.4f}), p = {d.p_corrected:.4f}"
            )
        worse += [
            f"{name}: {d.system}"
            for d in compared.differences
            if d.measure == MEASURES[0] and d.difference > 0 and d.p_corrected < 0.05
        ]
    print(
        f"\nbar: {LEARNED} is not significantly worse than a stage or a fusion: "
        f"{'missed against ' + ', '.join(worse) if worse else 'met'}"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("collections", nargs="*", default=["cranfield", "dl19", "dl20"])
    parser.add_argument("--encoder", default="minilm")
    options = parser.parse_args()
    main(options.collections, options.encoder)
