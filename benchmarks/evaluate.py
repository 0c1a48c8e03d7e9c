"""Speed of evaluation, compared with pytrec_eval, ranx and a plain NumPy implementation.

    make bench          or          python benchmarks/evaluate.py [--quick]

Targets on x86-64, in memory: NDCG@10, P@10 and RR 30 times faster than pytrec_eval and 60 times
faster than ranx, with AP 15 and 30 times; ERR@10 100 times faster than ir_measures.  From TREC
files 8 times faster than pytrec_eval; the first `firstpage evaluate` in less than 6 s, later ones
on a small file in less than 0.6 s; WKT, ppref and RBO of 200,000 documents in less than 2 s.  A
library that is not installed is not compared; pytrec_eval has no wheel for ARM.

Held equal: rankings, judgments and the four measures.  All compute means and values per query, and
all are timed after a warm-up, except where a table says otherwise.  Not equal: the gains of NDCG,
which are linear in pytrec_eval and ranx.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

import firstpage as fp
from common import cpu_seconds, peer, seconds, show, versions
from firstpage.data.formats import to_run

MEASURES = ["NDCG@10", "AP", "P@10", "RR"]
FIRST_PAGE = ["NDCG@10", "P@10", "RR"]  # these need no complete order
PYTREC = {"NDCG@10": "ndcg_cut.10", "AP": "map", "P@10": "P.10", "RR": "recip_rank"}
RANX = {"NDCG@10": "ndcg@10", "AP": "map", "P@10": "precision@10", "RR": "mrr"}


def collection(queries: int, docs: int, seed: int = 0) -> tuple[fp.Dataset, np.ndarray]:
    """Return graded labels, 20 % of them relevant, and scores that correlate with them."""
    rng = np.random.default_rng(seed)
    labels = np.searchsorted([0.8, 0.92, 0.98], rng.random(queries * docs), side="right")
    scores = labels + 1.5 * rng.normal(size=len(labels))
    qid = np.repeat(np.arange(queries), docs)
    docid = np.char.add("doc", np.tile(np.arange(docs), queries).astype(str))
    data = fp.Dataset.from_arrays(np.zeros((len(labels), 1), np.float32), labels, qid, docid)
    return data, scores


def numpy_sketch(scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the four measures on lists of equal length (queries x documents)."""
    order = np.argsort(-scores, axis=1, kind="stable")
    ranked = np.take_along_axis(labels, order, axis=1)
    discount = 1 / np.log2(np.arange(2, 12))
    gain, ideal_gain = ranked[:, :10], -np.sort(-labels, axis=1)[:, :10]
    ideal = ideal_gain @ discount
    ndcg = np.divide(gain @ discount, ideal, out=np.zeros(len(ideal)), where=ideal > 0)
    relevant = ranked > 0
    retrieved = np.cumsum(relevant, axis=1)
    total = retrieved[:, -1]
    precision = retrieved / np.arange(1, relevant.shape[1] + 1)
    ap = np.divide((precision * relevant).sum(1), total, out=np.zeros(len(total)), where=total > 0)
    rr = np.where(total > 0, 1 / (np.argmax(relevant, axis=1) + 1), 0)
    return np.array([ndcg, ap, relevant[:, :10].mean(1), rr])


def in_memory(queries: int, docs: int, measures: list[str]) -> None:
    """Print CPU times of evaluation in memory."""
    data, scores = collection(queries, docs)
    truth = data.truth
    pytrec_names, ranx_names = {PYTREC[m] for m in measures}, [RANX[m] for m in measures]
    square = scores.reshape(queries, docs), data.y.reshape(queries, docs)
    ours = cpu_seconds(lambda: fp.evaluate(scores, truth, measures=measures))
    arrays = cpu_seconds(lambda: fp.evaluate(scores, data.y, qid=data.qid, measures=measures))
    sketch = cpu_seconds(lambda: numpy_sketch(*square))
    expected = fp.evaluate(scores, truth, measures=["NDCG(gain=linear)@10", *MEASURES[1:]])
    assert np.allclose(expected.values, numpy_sketch(*square), atol=1e-9)
    rows = [
        ["Firstpage, Truth object", seconds(ours), "1.0"],
        ["Firstpage, arrays of labels and qid", seconds(arrays), f"{arrays / ours:.1f}"],
        ["NumPy sketch for lists of equal length", seconds(sketch), f"{sketch / ours:.1f}"],
    ]
    pytrec = peer("pytrec_eval")
    qrels = {
        q: {d: int(y) for d, y in docs_.items()} for q, docs_ in to_dictionary(data, data.y).items()
    }
    run = to_dictionary(data, scores)
    if pytrec is not None:
        evaluator = pytrec.RelevanceEvaluator(qrels, pytrec_names)
        cpu = cpu_seconds(lambda: evaluator.evaluate(run), 3)
        rows.append(["pytrec_eval", seconds(cpu), f"{cpu / ours:.1f}"])
    else:
        rows.append(["pytrec_eval (not installed)", "", ""])
    ranx = peer("ranx")
    if ranx is not None:
        ranx_qrels = ranx.Qrels(qrels)

        def evaluate_with_ranx(ranx_run: Any) -> None:
            ranx_run.scores = defaultdict(dict)
            ranx.evaluate(ranx_qrels, ranx_run, ranx_names, return_mean=False)

        new_runs = [ranx.Run(run) for _ in range(4)]
        sorted_run = ranx.Run(run)
        cpu = cpu_seconds(lambda: evaluate_with_ranx(new_runs.pop()), 3)
        rows.append(["ranx, a new run", seconds(cpu), f"{cpu / ours:.1f}"])
        cpu = cpu_seconds(lambda: evaluate_with_ranx(sorted_run), 3)
        rows.append(["ranx, a run that it has sorted before", seconds(cpu), f"{cpu / ours:.1f}"])
    dicts = cpu_seconds(lambda: fp.evaluate(run, qrels, measures=measures), 2)
    rows.append(["Firstpage, dictionaries", seconds(dicts), f"{dicts / ours:.1f}"])
    trec = cpu_seconds(lambda: fp.evaluate(run, qrels, measures=measures, convention="trec"), 2)
    rows.append(["Firstpage, dictionaries, convention trec", seconds(trec), f"{trec / ours:.1f}"])
    show(
        f"In memory, {queries:,} queries x {docs:,} documents: {', '.join(measures)}",
        ["library", "CPU", "ratio"],
        rows,
    )


def to_dictionary(data: fp.Dataset, values: np.ndarray) -> dict[str, dict[str, float]]:
    """Return {query: {document: value}}."""
    return to_run(data, values).to_dict()


def python_parse(qrels: Path, run: Path) -> tuple[dict, dict]:
    """Return judgments and run as dictionaries, parsed as pytrec_eval's own parser does."""
    judgments: dict[str, dict[str, int]] = {}
    with open(qrels) as lines:
        for line in lines:
            query, _, doc, grade = line.strip().split()
            judgments.setdefault(query, {})[doc] = int(grade)
    scores: dict[str, dict[str, float]] = {}
    with open(run) as lines:
        for line in lines:
            query, _, doc, _, score, _ = line.strip().split()
            scores.setdefault(query, {})[doc] = float(score)
    return judgments, scores


def from_files(folder: Path, queries: int, docs: int) -> None:
    """Print CPU times of reading TREC files and evaluating them."""
    data, scores = collection(queries, docs)
    qrels, run = folder / "x.qrels", folder / "x.run"
    fp.write_qrels(data, qrels)
    fp.write_run(to_run(data, scores, "bench"), run)
    size = (qrels.stat().st_size + run.stat().st_size) / 1e6

    def with_firstpage() -> None:
        fp.evaluate(fp.read_run(run), fp.read_qrels(qrels), measures=MEASURES, convention="trec")

    ours = cpu_seconds(with_firstpage, 3)
    rows = [["Firstpage", seconds(ours), "1.0"]]
    pytrec = peer("pytrec_eval")
    if pytrec is not None:

        def with_pytrec_eval() -> None:
            judgments, scores = python_parse(qrels, run)
            pytrec.RelevanceEvaluator(judgments, set(PYTREC.values())).evaluate(scores)

        cpu = cpu_seconds(with_pytrec_eval, 2, warmups=0)
        rows.append(["pytrec_eval", seconds(cpu), f"{cpu / ours:.1f}"])
    parse = cpu_seconds(lambda: python_parse(qrels, run), 2, warmups=0)
    rows.append(["parsing in Python, without evaluation", seconds(parse), f"{parse / ours:.1f}"])
    ranx = peer("ranx")
    if ranx is not None:

        def with_ranx() -> None:
            ranx_qrels = ranx.Qrels.from_file(str(qrels), kind="trec")
            names = list(RANX.values())
            ranx.evaluate(ranx_qrels, ranx.Run.from_file(str(run), kind="trec"), names)

        cpu = cpu_seconds(with_ranx, 1)
        rows.append(["ranx", seconds(cpu), f"{cpu / ours:.1f}"])
    show(
        f"From TREC files, {queries:,} x {docs:,} lines ({size:.0f} MB), joined by document id",
        ["library", "CPU", "ratio"],
        rows,
    )


def growth() -> None:
    """Print CPU time per document as the number of documents grows."""
    rows = []
    for factor in (1, 10, 100):
        data, scores = collection(100 * factor, 100)
        truth = data.truth
        cpu = cpu_seconds(lambda s=scores, t=truth: fp.evaluate(s, t, measures=MEASURES))
        per_document = 1e9 * cpu / len(scores)
        rows.append([f"{factor}x", f"{len(scores):,}", seconds(cpu), f"{per_document:.0f} ns"])
    show("Growth", ["size", "documents", "CPU", "CPU per document"], rows)


def growth_by_length() -> None:
    """Print CPU time per document for short and long lists, a million documents in all."""
    rows = []
    for docs in (10, 100, 1_000, 10_000, 100_000):
        data, scores = collection(1_000_000 // docs, docs)
        truth = data.truth
        row = [f"{docs:,}"]
        for measures in (["P@10"], FIRST_PAGE, MEASURES):
            cpu = cpu_seconds(lambda s=scores, t=truth, m=measures: fp.evaluate(s, t, measures=m))
            row.append(f"{1e9 * cpu / len(scores):.0f} ns")
        rows.append(row)
    head = ["documents per query", "P@10", ", ".join(FIRST_PAGE), ", ".join(MEASURES)]
    show("CPU time per document by the length of lists, a million documents", head, rows)


def err(queries: int, docs: int) -> None:
    """Print CPU times of ERR@10, which trec_eval does not have."""
    data, scores = collection(queries, docs)
    truth = data.truth
    ours = cpu_seconds(lambda: fp.evaluate(scores, truth, measures="ERR@10"))
    rows = [["Firstpage, Truth object", seconds(ours), "1.0"]]
    other = peer("ir_measures")
    if other is not None:
        run = to_dictionary(data, scores)
        labels = to_dictionary(data, data.y)
        qrels = {q: {d: int(y) for d, y in graded.items()} for q, graded in labels.items()}
        evaluator = other.evaluator([other.parse_measure("ERR@10")], qrels)
        cpu = cpu_seconds(lambda: list(evaluator.iter_calc(run)), 1, warmups=0)
        rows.append(["ir_measures", seconds(cpu), f"{cpu / ours:.1f}"])
    title = f"In memory, {queries:,} queries x {docs:,} documents: ERR@10"
    show(title, ["library", "CPU", "ratio"], rows)


def measures_of_order(docs: int = 200_000) -> None:
    """Print CPU times of measures of order on one long list."""
    data, scores = collection(1, docs)
    rows = []
    for text in ("WKT", "ppref", "nwppref", "RBO", "RBO(p=0.999)", "Tau"):
        cpu = cpu_seconds(lambda m=text: fp.evaluate(scores, data.truth, measures=m), 2)
        rows.append([text, seconds(cpu), "2 s"])
    show(f"Measures of order, one query x {docs:,} documents", ["measure", "CPU", "target"], rows)


def start_up(folder: Path) -> None:
    """Print wall-clock times of whole processes, with an empty cache of compiled code at first."""
    rng = np.random.default_rng(0)
    for name, docs in (("small", 20), ("large", 200)):
        data, scores = collection(150, docs)
        with_features = data.with_features(rng.normal(size=(data.n_docs, 46)).astype("f4"))
        fp.write_letor(with_features, folder / f"{name}.txt")
        fp.write_scores(scores, folder / f"{name}.scores")
    env = {**os.environ, "FIRSTPAGE_CACHE": str(folder / "fresh")}
    rows = []
    for title, name, target in (
        ("first run after installation: 3,000 documents, 2 MB", "small", "6 s"),
        ("the same again (median of 3)", "small", "0.6 s"),
        ("first run with 30,000 documents, 20 MB (compiles more kernels)", "large", ""),
        ("the same again (median of 3)", "large", ""),
    ):
        command = [sys.executable, "-m", "firstpage", "evaluate", f"{name}.txt"]
        times = []
        for _ in range(3 if "again" in title else 1):
            start = time.perf_counter()
            subprocess.run(
                [*command, "--scores", f"{name}.scores"],
                cwd=folder,
                env=env,
                check=True,
                capture_output=True,
            )
            times.append(time.perf_counter() - start)
        rows.append([title, seconds(sorted(times)[len(times) // 2]), target])
    show("`firstpage evaluate` as a process, wall-clock time", ["run", "time", "target"], rows)


def main() -> None:
    quick = "--quick" in sys.argv
    print(versions("numpy", "numba", "pytrec-eval-terrier", "ranx", "ir_measures"))
    scale = 10 if quick else 1
    for measures in (FIRST_PAGE, MEASURES):
        in_memory(10_000 // scale, 100, measures)
        in_memory(1_000 // scale, 1_000, measures)
    err(10_000 // scale, 100)
    growth()
    growth_by_length()
    measures_of_order()
    with tempfile.TemporaryDirectory() as folder:
        from_files(Path(folder), 10_000 // scale, 100)
        start_up(Path(folder))


if __name__ == "__main__":
    main()
