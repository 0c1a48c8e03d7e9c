"""Speed of indexing, retrieving, computing features and searching texts; quality on Cranfield.

    make bench          or          python benchmarks/text.py [DOCUMENTS]

Targets: Cranfield indexed in less than 5 s; 8,000 short documents per second with the forward index
(1 million by default; DOCUMENTS sets another number); searches with a 99th percentile below 50 ms;
1,000 queries x 100 candidates x the `letor` features in less than 10 s of CPU; NDCG@10 of BM25 on
Cranfield not below that of bm25s with the same terms.  Cranfield is read if FIRSTPAGE_DATA names
the folder of it.

Held equal with bm25s: the terms, k1 and b, the formula (that of Lucene) and the judgments.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np

import firstpage as fp
from common import peer, show, versions
from firstpage.search import Matcher

WORDS = 200_000  # distinct words of the synthetic documents
TITLE, TEXT = 6, 34  # words of a title and of a text


def documents(count: int) -> Iterator[dict[str, str]]:
    """Yield short documents whose words follow Zipf's law."""
    rng = np.random.default_rng(0)
    words = np.array([f"w{i}" for i in range(WORDS)], object)
    cumulative = np.cumsum(1 / (np.arange(WORDS) + 10.0))
    for start in range(0, count, 10_000):
        size = min(10_000, count - start)
        uniform = rng.random((size, TITLE + TEXT)) * cumulative[-1]
        chosen = words[np.searchsorted(cumulative, uniform)]
        for i in range(size):
            title, text = " ".join(chosen[i, :TITLE]), " ".join(chosen[i, TITLE:])
            yield {"id": f"d{start + i}", "title": title, "text": text}


def queries(count: int) -> fp.Queries:
    """Return queries of three or four words, drawn as those of documents."""
    drawn = list(documents(count))
    return fp.Queries.from_mapping(
        {f"q{i}": " ".join(d["text"].split()[: 3 + i % 2]) for i, d in enumerate(drawn)}
    )


def timed(call: Callable[[], object]) -> tuple[float, float]:
    """Return the wall time and the CPU time of all threads of a call."""
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - wall, time.process_time() - cpu


def indexing(folder: Path, count: int) -> tuple[list[str], Path]:
    """Return a row with the cost of indexing, without and with the latent space."""
    path, listed = folder / f"{count}.index", list(documents(count))
    wall, cpu = timed(lambda: fp.Index.from_documents(listed, path, latent=0))
    latent_wall, latent_cpu = timed(lambda: fp.Index(path).fit_latent(128))
    size = sum(f.stat().st_size for f in path.rglob("*") if f.is_file()) / 1e6
    row = [
        f"{count:,}",
        f"{count / wall:,.0f}",
        f"{1e6 * cpu / count:.0f} µs",
        f"{size:.0f} MB",
        f"{latent_wall:.1f} s",
        f"{latent_cpu:.1f} s",
    ]
    return row, path


def searching(path: Path) -> list[str]:
    """Return a row with the latency of the first stage, 100 candidates per query."""
    index, typed = fp.Index(path), queries(500)
    matcher = Matcher(index.forward)
    times = []
    for _, text in typed:
        start = time.perf_counter()
        index.retrieve(index.forward.query(text), 100, None, matcher)
        times.append(1e3 * (time.perf_counter() - start))
    median, tail = np.percentile(times[20:], [50, 99])
    return [f"{len(index):,}", f"{median:.1f} ms", f"{tail:.1f} ms"]


def features(path: Path) -> list[list[str]]:
    """Return rows with the cost of features of 1,000 queries with 100 candidates each."""
    index, typed = fp.Index(path), queries(1000)
    candidates = index.candidates(typed, 100)
    rows = []
    for name in ("letor", "short", "all"):
        computed = fp.TextFeatures(index, name)
        computed.dataset(typed, candidates)
        wall, cpu = timed(lambda c=computed: c.dataset(typed, candidates))
        pairs = len(candidates.values)
        rows.append(
            [
                name,
                str(len(computed.names)),
                f"{pairs:,}",
                f"{cpu:.1f} s",
                f"{wall:.1f} s",
                f"{1e6 * cpu / pairs:.0f} µs",
            ]
        )
    return rows


def cranfield(folder: Path, data: Path) -> None:
    """Show the time of indexing Cranfield, and BM25 against bm25s."""
    typed = fp.read_queries(data / "cran.qry", numbering="ordinal")
    judged: dict[str, dict[str, float]] = {}
    for line in (data / "cranqrel").read_text().splitlines():
        query, document, code = line.split()
        judged.setdefault(query, {})[document] = max(0, 5 - int(code)) if int(code) > 0 else 0
    qrels = fp.Qrels.from_dict(judged)
    path = folder / "cranfield.index"
    ignored = {"author": "ignore", "bibliography": "ignore"}
    wall, cpu = timed(
        lambda: fp.Index.from_documents(
            fp.read_documents(data / "cran.all.1400"), path, fields=ignored
        )
    )
    show(
        "Indexing Cranfield, with a latent space of 128 dimensions",
        ["wall", "CPU"],
        [[f"{wall:.1f} s", f"{cpu:.1f} s"]],
    )
    index = fp.Index(path)
    rows = [["Firstpage", f"{_ndcg(index.candidates(typed, 100), qrels):.4f}"]]
    bm25s = peer("bm25s")
    if bm25s is not None:
        rows.append(["bm25s", f"{_ndcg(_bm25s_run(bm25s, index, typed), qrels):.4f}"])
    show("NDCG@10 of BM25 (k1 1.2, b 0.75) on Cranfield, 225 queries", ["", "NDCG@10"], rows)


def _bm25s_run(bm25s: object, index: fp.Index, typed: fp.Queries) -> fp.Run:
    """Return the run of bm25s over the terms of the index."""
    forward = index.forward
    names = list(forward.ids)
    bounds = [0, *forward.ends[:, -1].tolist()]
    terms = np.array(forward.terms.terms, object)
    corpus = [terms[forward.tokens[a:b]].tolist() for a, b in pairwise(bounds)]
    retriever = bm25s.BM25(method="lucene", k1=1.2, b=0.75)  # type: ignore[attr-defined]
    retriever.index(corpus, show_progress=False)
    table = {}
    for name, text in typed:
        query = forward.query(text)
        scores = retriever.get_scores(np.repeat(terms[query.terms], query.counts).tolist())
        best = np.lexsort((np.arange(len(names)), -scores))[:100]
        table[name] = {names[i]: float(scores[i]) for i in best if scores[i] > 0}
    return fp.Run.from_dict(table)


def _ndcg(run: fp.Run, qrels: fp.Qrels) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fp.FirstpageWarning)  # most candidates are unjudged
        return float(fp.evaluate(run, qrels, measures=["NDCG@10"])["NDCG@10"])


def main() -> None:
    largest = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    print(versions("firstpage", "tantivy", "bm25s"))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if data := os.environ.get("FIRSTPAGE_DATA"):
            cranfield(folder, Path(data) / "cranfield")
        rows, searches = [], []
        for count in (largest // 100, largest // 10, largest):
            row, path = indexing(folder, count)
            rows.append(row)
            searches.append(searching(path))
        show(
            "Indexing short documents (6 words of title, 34 of text)",
            [
                "documents",
                "per second",
                "CPU per document",
                "on disk",
                "latent space, wall",
                "latent space, CPU",
            ],
            rows,
        )
        show("Retrieving 100 candidates", ["documents", "median", "99th percentile"], searches)
        show(
            "Features of 1,000 queries with 100 candidates",
            ["set", "features", "rows", "CPU", "wall", "CPU per row"],
            features(folder / f"{largest // 10}.index"),
        )


if __name__ == "__main__":
    main()
