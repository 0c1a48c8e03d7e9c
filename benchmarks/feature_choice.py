"""All features, the short set, and the choice of `fp.choose_features` (docs/search.md).

    FIRSTPAGE_DATA=data python benchmarks/feature_choice.py cranfield stdlib passages

Rankers are trained on disjoint sets of queries of each size and tested on all other queries; "all"
is five folds.  Printed are means of NDCG@10 over sets and the rankers ListNet, ListMLE(k=10) and
RankSVM.  The passages are those that TREC 2019 and 2020 judged, with all judged topics.
"""

from __future__ import annotations

import os
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np

import firstpage as fp

SIZES = (10, 25, 50, 100)
MAX_SETS = 8
DEPTH, FOLDS = 100, 5
RANKERS = (fp.ListNet, fp.ListMLE, fp.RankSVM)
SOURCE = Path(os.environ.get("FIRSTPAGE_DATA", "data"))


def cranfield() -> tuple:
    """Return documents, queries and binary judgments (codes 1 to 4 are relevant)."""
    folder, table = SOURCE / "cranfield", {}
    for line in (folder / "cranqrel").read_text().splitlines():
        query, document, code = line.split()
        table.setdefault(query, {})[document] = float(code != "-1")
    queries = list(fp.read_queries(folder / "cran.qry", numbering="ordinal"))
    return fp.read_documents(folder / "cran.all.1400"), queries, fp.Qrels.from_dict(table)


def stdlib() -> tuple:
    """Return the documentation of Python's standard library, with questions."""
    collection = fp.demo.stdlib_collection()
    return collection.documents, list(collection.queries), collection.qrels


def passages() -> tuple:
    """Return the judged passages and topics of TREC Deep Learning."""
    folder, texts, topics, table = SOURCE / "passages", {}, {}, {}
    for year in ("dl19", "dl20"):
        for line in (folder / f"qrels_text.{year}").read_text(errors="replace").split("\n"):
            name, _, text = line.partition("\t")
            texts[name] = text
        for line in (folder / f"topics.{year}.txt").read_text().splitlines():
            query, _, text = line.partition("\t")
            topics[query] = text
        for line in (folder / f"qrels.{year}").read_text().splitlines():
            query, _, document, grade = line.split()
            table.setdefault(query, {})[document] = float(grade)
    documents = [{"id": name, "text": text} for name, text in texts.items() if text]
    return documents, [(q, topics[q]) for q in table], fp.Qrels.from_dict(table)


def features_of(name: str) -> fp.Dataset:
    """Return the features of all candidates, without queries that have no relevant one."""
    documents, queries, qrels = globals()[name]()
    with tempfile.TemporaryDirectory() as folder:
        index = fp.Index.from_documents(documents, Path(folder) / "i")
        run = index.candidates(queries, DEPTH)
        data = fp.TextFeatures(index).dataset(queries, run, qrels)
    return data[[q for q, each in enumerate(data) if np.ptp(each.y) > 0]]


def sets(n_queries: int, size: int | None) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the training and test queries of disjoint sets of a size (None: of five folds)."""
    order = np.random.default_rng(0).permutation(n_queries)
    if size is None:
        tests = [order[fold::FOLDS] for fold in range(FOLDS)]
        return [(np.sort(np.setdiff1d(order, test)), np.sort(test)) for test in tests]
    count = min(MAX_SETS, n_queries // size)
    trained = [order[i * size : (i + 1) * size] for i in range(count)]
    return [(np.sort(train), np.sort(np.setdiff1d(order, train))) for train in trained]


def value(train: fp.Dataset, test: fp.Dataset) -> float:
    """Return the mean NDCG@10 of the rankers."""
    values = []
    for ranker in RANKERS:
        options = {"k": 10} if ranker is fp.ListMLE else {}
        fitted = ranker(normalize="standard", **options).fit(train)
        values.append(fp.evaluate(fitted, test, measures="NDCG@10")["NDCG@10"])
    return float(np.mean(values))


def columns(data: fp.Dataset, names: tuple[str, ...]) -> fp.Dataset:
    wanted = [data.feature_names.index(name) for name in names]
    return data.with_features(data.X[:, wanted], names)


def main(collections: list[str]) -> None:
    warnings.simplefilter("ignore", fp.FirstpageWarning)
    print("| collection | judged queries | all | short, values | chosen | all chosen |")
    for name in collections:
        data = features_of(name)
        none = data.with_labels(np.zeros(data.n_docs))
        short = fp.choose_features(none).feature_names
        for size in (*SIZES, None):
            if size is not None and size > len(data) // 2:
                continue
            rows, n_all = [], 0
            for train, test in sets(len(data), size):
                of_all = value(data[train], data[test])
                of_short = value(columns(data[train], short), columns(data[test], short))
                is_all = fp.choose_features(data[train]).n_features == data.n_features
                n_all += is_all
                rows.append((of_all, of_short, of_all if is_all else of_short))
            means = " | ".join(f"{mean:.3f}".lstrip("0") for mean in np.mean(rows, axis=0))
            shown = f"{size or len(data)} ({len(rows)} {'sets' if size else 'folds'})"
            print(f"| {name} | {shown} | {means} | {n_all} of {len(rows)} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:] or ["cranfield", "stdlib", "passages"])
