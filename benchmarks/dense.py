"""Search in vectors of documents: loss by 8-bit integers, latency, recall, and peers.

    FIRSTPAGE_DATA=data python benchmarks/dense.py --embeddings /tmp/passages.npz
    FIRSTPAGE_DATA=data python benchmarks/dense.py --embeddings /tmp/passages.npz --peers 100000
    FIRSTPAGE_DATA=data python benchmarks/dense.py --embeddings /tmp/passages.npz --choose

The judged passages of TREC DL 2019 and 2020 and their queries are embedded by all-MiniLM-L6-v2
(minutes of CPU time; the file is used again).  Large collections are drawn from a mixture of 256
normal distributions that is fitted to these passages: the mean of a cluster, and half its own
covariance, half that of all clusters.  Queries are those of TREC DL: how many vectors the signs
choose was chosen by every second one (`--choose`), and all other figures are those of the rest.
The bars are, for 1,000,000 vectors of 384 dimensions on two cores: exact search at a p99 below
150 ms; search in two steps below 10 ms with at least 95 % of the best 100.  The load of the machine
is printed, and CPU times, which depend on it less.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from common import peer, show, versions

CLUSTERS, ITERATIONS, DEPTH = 256, 8, 100
BARS = {"exact": 0.150, "two steps": 0.010}
Rank = Callable[[np.ndarray], np.ndarray]


# --- data


def passages(file: Path) -> dict[str, Any]:
    """Return vectors and ids of passages and queries, embedded once."""
    if not file.exists():
        from firstpage.search import load_encoder

        source = Path(os.environ.get("FIRSTPAGE_DATA", "data")) / "passages"
        documents: dict[str, str] = {}
        queries: dict[str, str] = {}
        for year in ("19", "20"):
            for line in (source / f"qrels_text.dl{year}").read_text("utf-8").split("\n"):
                name, _, text = line.partition("\t")
                if text:
                    documents.setdefault(name, text)
            rows = (source / f"topics.dl{year}.txt").read_text("utf-8").splitlines()
            queries |= dict(row.split("\t", 1) for row in rows)
        encoder, start = load_encoder("minilm"), time.process_time()
        np.savez(
            file,
            ids=list(documents), documents=encoder.encode_documents(list(documents.values())),
            query_ids=list(queries), queries=encoder.encode_queries(list(queries.values())),
        )  # fmt: skip
        print(f"embedded {len(documents)} passages in {time.process_time() - start:.0f} s of CPU")
    with np.load(file) as stored:
        return dict(stored)


def mixture(table: np.ndarray, count: int, seed: int = 0) -> np.ndarray:
    """Return vectors drawn from a mixture that is fitted to the rows of a table."""
    rng = np.random.default_rng(seed)
    centers = table[rng.choice(len(table), CLUSTERS, replace=False)]
    for _ in range(ITERATIONS):
        cluster = (table @ centers.T).argmax(axis=1)
        for c in np.unique(cluster):
            mean = table[cluster == c].mean(axis=0)
            centers[c] = mean / np.linalg.norm(mean)
    means = np.stack([table[cluster == c].mean(axis=0) for c in np.unique(cluster)])
    cluster = np.unique(cluster, return_inverse=True)[1]
    residuals = table - means[cluster]
    common = np.linalg.cholesky(np.cov(residuals.T) + 1e-9 * np.eye(table.shape[1]))
    drawn, at = np.empty((count, table.shape[1]), np.float32), 0
    for c, size in enumerate(rng.multinomial(count, np.bincount(cluster) / len(table))):
        own = residuals[cluster == c]
        draws = rng.standard_normal((size, len(own)), np.float32) @ own * np.sqrt(0.5 / len(own))
        draws += rng.standard_normal((size, len(common)), np.float32) @ common.T * np.sqrt(0.5)
        drawn[at : at + size] = means[c] + draws
        at += size
    drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
    return drawn[rng.permutation(count)]


def stored(table: np.ndarray) -> Any:
    """Return vectors as an index stores them."""
    from firstpage.search.vectors import StoredVectors, document_codes, sign_words

    blocks = [
        document_codes(table[start : start + 50_000]) for start in range(0, len(table), 50_000)
    ]
    codes, scales = (np.concatenate(each) for each in zip(*blocks, strict=True))
    digests = np.zeros((len(table), 16), np.uint8)
    ends = np.arange(1, len(table) + 1)
    return StoredVectors({}, ends, digests, codes, scales, sign_words(codes))


# --- loss


def loss(data: dict[str, Any]) -> None:
    """Compare 8-bit integers with float16 and float32 on the judgments of TREC DL."""
    import firstpage as fp
    from firstpage.data import Qrels, Run

    table, queries = data["documents"].astype(np.float32), data["queries"].astype(np.float32)
    source = Path(os.environ.get("FIRSTPAGE_DATA", "data")) / "passages"
    judged: dict[str, dict[str, float]] = {}
    for year in ("19", "20"):
        for line in (source / f"qrels.dl{year}").read_text().splitlines():
            query, _, name, grade = line.split()
            judged.setdefault(query, {})[name] = float(grade)
    vectors, rows = stored(table), np.arange(len(table))
    scores = {
        "float32": queries.astype(float) @ table.T.astype(float),
        "float16": queries.astype(float) @ table.astype(np.float16).T.astype(float),
        "int8": np.stack([vectors.similarities(query, rows)[1] for query in queries]),
    }
    best = np.argsort(-scores["float32"], axis=1)[:, :DEPTH]
    lines = []
    for name, values in scores.items():
        top = np.argsort(-values, axis=1, kind="stable")[:, :DEPTH]
        run = {
            query: dict(zip(data["ids"][top[i]].tolist(), values[i, top[i]].tolist(), strict=True))
            for i, query in enumerate(data["query_ids"].tolist())
            if query in judged
        }
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about unjudged documents
            result = fp.evaluate(
                Run.from_dict(run),
                Qrels.from_dict(judged),
                measures=["NDCG@10", f"Recall(rel=2)@{DEPTH}"],
            )
        same = np.mean([np.isin(a, b).mean() for a, b in zip(best, top, strict=True)])
        error = np.abs(values - scores["float32"]).max()
        means = [f"{mean:.4f}" for mean in result.means.values()]
        size = {"float32": 4 * 384, "float16": 2 * 384, "int8": vectors.n_bytes // len(table)}
        lines.append([name, str(size[name]), *means, f"{same:.4f}", f"{error:.5f}"])
    head = ["stored as", "bytes", "NDCG@10", "Recall@100", "same best 100", "greatest error"]
    show(f"{len(table):,} passages, {len(queries)} queries", head, lines)


# --- latency and recall


def timed(rank: Rank, queries: np.ndarray, repeats: int) -> tuple[np.ndarray, float]:
    """Return wall-clock times of queries one after the other, and the median of their CPU times."""
    rank(queries[0])
    walls, cpus = [], []
    for query in np.tile(queries, (repeats, 1)):
        wall, cpu = time.perf_counter(), time.process_time()
        rank(query)
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    return np.array(walls), float(np.median(cpus))


def line(
    name: str, rank: Rank, exact: list[np.ndarray], queries: np.ndarray, repeats: int
) -> list[str]:
    """Return a row of the table: times, and the fraction of the best documents."""
    walls, cpu = timed(rank, queries, repeats)
    recall = [np.isin(best, rank(query)).mean() for best, query in zip(exact, queries, strict=True)]
    times = [1e3 * value for value in (np.median(walls), np.quantile(walls, 0.99), cpu)]
    return [
        name,
        *[f"{value:.1f} ms" for value in times],
        f"{np.mean(recall):.4f}",
        f"{min(recall):.2f}",
    ]


HEAD = ["search", "median", "p99", "CPU", f"recall@{DEPTH}", "least"]


def choices(table: np.ndarray, queries: np.ndarray, repeats: int) -> None:
    """Compare how many vectors the first signs and all signs choose."""
    from firstpage.search import vectors as module

    vectors, deleted, lines = stored(table), np.zeros(len(table), bool), []
    best = [vectors.search(query, DEPTH, deleted, exact=True)[0] for query in queries]
    rank: Rank = lambda query: vectors.search(query, DEPTH, deleted, exact=False)[0]  # noqa: E731
    for chosen in (1500, 2000, 2500, 3000):
        for factor in (2, 4, 8, 16):
            module.CHOSEN = module.CHOSEN_PER_RESULT = chosen // DEPTH
            module.COARSELY_CHOSEN = factor
            lines.append(line(f"{factor * chosen:,}, {chosen:,}", rank, best, queries, repeats))
    show(f"{len(table):,} vectors, {len(queries)} queries to choose by", HEAD, lines)


def latency(table: np.ndarray, queries: np.ndarray, repeats: int) -> None:
    """Measure exact search and search in two steps."""
    start = time.process_time()
    vectors = stored(table)
    build, deleted = time.process_time() - start, np.zeros(len(table), bool)

    def rank(exact: bool) -> Rank:
        return lambda query: vectors.search(query, DEPTH, deleted, exact=exact)[0]

    best = [rank(True)(query) for query in queries]
    lines = [
        line(name, rank(name == "exact"), best, queries, repeats) for name in ("exact", "two steps")
    ]
    show(
        f"{len(table):,} vectors of {table.shape[1]} dimensions ({vectors.n_bytes / 1e6:,.0f} MB), "
        f"stored in {build:.1f} s of CPU",
        HEAD,
        lines,
        f"bars: p99 {1e3 * BARS['exact']:.0f} and {1e3 * BARS['two steps']:.0f} ms, recall .95; "
        f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; recall of the index's own "
        f"vectors: {vectors.recall(deleted):.4f}",
    )


def peers(table: np.ndarray, queries: np.ndarray, repeats: int) -> None:
    """Compare with graphs of neighbors on fewer vectors, since they are slow to build."""
    vectors, deleted = stored(table), np.zeros(len(table), bool)
    best = [vectors.search(query, DEPTH, deleted, exact=True)[0] for query in queries]
    lines = [
        [
            *line(
                "two steps",
                lambda q: vectors.search(q, DEPTH, deleted, exact=False)[0],
                best,
                queries,
                repeats,
            ),
            "-",
        ]
    ]
    usearch, hnswlib = peer("usearch.index"), peer("hnswlib")
    if usearch:
        start = time.process_time()
        graph = usearch.Index(ndim=table.shape[1], metric="cos", dtype="i8")
        graph.add(np.arange(len(table)), table)
        build = time.process_time() - start
        for expansion in (DEPTH, 4 * DEPTH):
            graph.expansion_search = expansion
            rank: Rank = lambda q: graph.search(q, DEPTH).keys.astype(np.int64)  # noqa: E731
            row = line(f"usearch, i8, ef={expansion}", rank, best, queries, repeats)
            lines.append([*row, f"{build:.0f} s"])
    if hnswlib:
        start = time.process_time()
        tree = hnswlib.Index("cosine", table.shape[1])
        tree.init_index(len(table), ef_construction=128, M=16)
        tree.add_items(table)
        build = time.process_time() - start
        for expansion in (DEPTH, 4 * DEPTH):
            tree.set_ef(expansion)
            rank = lambda q: tree.knn_query(q, DEPTH)[0][0].astype(np.int64)  # noqa: E731
            row = line(f"hnswlib, ef={expansion}", rank, best, queries, repeats)
            lines.append([*row, f"{build:.0f} s"])
    show(f"{len(table):,} vectors", [*HEAD, "built in CPU"], lines)


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--embeddings", type=Path, default=Path("passages.npz"))
    parser.add_argument("--vectors", type=int, default=1_000_000, help="0 for none")
    parser.add_argument("--peers", type=int, default=0, help="number of vectors for peers")
    parser.add_argument("--repeats", type=int, default=6)
    parser.add_argument("--choose", action="store_true", help="compare numbers of chosen vectors")
    options = parser.parse_args()
    print(versions("numpy", "numba", "usearch", "hnswlib"))
    data = passages(options.embeddings)
    loss(data)
    table, queries = data["documents"].astype(np.float32), data["queries"].astype(np.float32)
    to_choose_by, to_measure = queries[::2], queries[1::2]
    if options.choose:
        choices(mixture(table, options.vectors), to_choose_by, 1)
    elif options.vectors:
        latency(mixture(table, options.vectors), to_measure, options.repeats)
    if options.peers:
        peers(mixture(table, options.peers), to_measure, options.repeats)


if __name__ == "__main__":
    main()
