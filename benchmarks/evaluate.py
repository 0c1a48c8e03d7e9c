"""Measuring rankings: ours against pytrec_eval, ranx and a plain NumPy sketch.

    make bench          or          python benchmarks/evaluate.py [--quick]

Bars: from memory 10x faster than pytrec_eval and 15x than ranx; from TREC files 3x faster than
pytrec_eval; a first `firstpage evaluate` under 6 s, later ones on a small file under 0.8 s.
A peer that cannot be installed is not compared: pytrec_eval has no wheel for ARM, and building it
needs a download.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import numpy as np

import firstpage as fp
from common import cpu_seconds, peer, seconds, show, versions
from firstpage.data.formats.trec import to_run

MEASURES = ["NDCG@10", "AP", "P@10", "RR"]
PYTREC = {"ndcg_cut.10", "map", "P.10", "recip_rank"}
RANX = ["ndcg@10", "map", "precision@10", "mrr"]


def collection(queries: int, docs: int, seed: int = 0) -> tuple[fp.Dataset, np.ndarray]:
    """Graded labels, 20 % relevant, and scores that know something about them."""
    rng = np.random.default_rng(seed)
    labels = np.searchsorted([0.8, 0.92, 0.98], rng.random(queries * docs), side="right")
    scores = labels + 1.5 * rng.normal(size=len(labels))
    qid = np.repeat(np.arange(queries), docs)
    docid = np.char.add("doc", np.tile(np.arange(docs), queries).astype(str))
    data = fp.Dataset.from_arrays(np.zeros((len(labels), 1), np.float32), labels, qid, docid)
    return data, scores


def numpy_sketch(scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The four measures on equal-sized lists (queries x docs), as one would jot them down."""
    order = np.argsort(-scores, axis=1, kind="stable")
    ranked = np.take_along_axis(labels, order, axis=1)
    discount = 1 / np.log2(np.arange(2, 12))
    gain, best = ranked[:, :10], -np.sort(-labels, axis=1)[:, :10]
    ideal = best @ discount
    ndcg = np.divide(gain @ discount, ideal, out=np.zeros(len(ideal)), where=ideal > 0)
    hit = ranked > 0
    found = np.cumsum(hit, axis=1)
    total = found[:, -1]
    precision = found / np.arange(1, hit.shape[1] + 1)
    ap = np.divide((precision * hit).sum(1), total, out=np.zeros(len(total)), where=total > 0)
    rr = np.where(total > 0, 1 / (np.argmax(hit, axis=1) + 1), 0)
    return np.array([ndcg, ap, hit[:, :10].mean(1), rr])


def from_memory(queries: int, docs: int) -> None:
    data, scores = collection(queries, docs)
    truth = data.truth
    square = scores.reshape(queries, docs), data.y.reshape(queries, docs)
    ours = cpu_seconds(lambda: fp.evaluate(scores, truth, measures=MEASURES))
    arrays = cpu_seconds(lambda: fp.evaluate(scores, data.y, qid=data.qid, measures=MEASURES))
    sketch = cpu_seconds(lambda: numpy_sketch(*square))
    check = fp.evaluate(scores, truth, measures=["NDCG(gain=linear)@10", *MEASURES[1:]])
    assert np.allclose(check.values, numpy_sketch(*square), atol=1e-9)
    rows = [
        ["firstpage (Truth)", seconds(ours), "1.0"],
        ["firstpage (labels and qid arrays)", seconds(arrays), f"{arrays / ours:.1f}"],
        ["NumPy sketch", seconds(sketch), f"{sketch / ours:.1f}"],
    ]
    pytrec = peer("pytrec_eval")
    qrels = {q: {d: int(y) for d, y in docs_.items()} for q, docs_ in as_dict(data, data.y).items()}
    run = as_dict(data, scores)
    if pytrec is not None:
        evaluator = pytrec.RelevanceEvaluator(qrels, PYTREC)
        took = cpu_seconds(lambda: evaluator.evaluate(run), 3)
        rows.append(["pytrec_eval", seconds(took), f"{took / ours:.1f}"])
    else:
        rows.append(["pytrec_eval: not installed, not compared", "", ""])
    ranx = peer("ranx")
    if ranx is not None:
        their_qrels = ranx.Qrels(qrels)

        def evaluate_with_ranx(fresh: bool, held: list = []) -> None:  # noqa: B006
            if fresh or not held:
                held[:] = [runs.pop()]
            held[0].scores = defaultdict(dict)
            ranx.evaluate(their_qrels, held[0], RANX, return_mean=False)

        runs = [ranx.Run(run) for _ in range(5)]
        took = cpu_seconds(lambda: evaluate_with_ranx(True), 3)
        rows.append(["ranx, a new run", seconds(took), f"{took / ours:.1f}"])
        took = cpu_seconds(lambda: evaluate_with_ranx(False), 3)
        rows.append(["ranx, a run it has sorted before", seconds(took), f"{took / ours:.1f}"])
    dicts = cpu_seconds(lambda: fp.evaluate(run, qrels, measures=MEASURES), 2)
    rows.append(["firstpage from dictionaries", seconds(dicts), f"{dicts / ours:.1f}"])
    trec = cpu_seconds(lambda: fp.evaluate(run, qrels, measures=MEASURES, convention="trec"), 2)
    rows.append(["the same, convention trec", seconds(trec), f"{trec / ours:.1f}"])
    show(
        f"From memory, {queries:,} queries x {docs:,} documents: {', '.join(MEASURES)}",
        ["", "CPU", "times ours"],
        rows,
    )


def as_dict(data: fp.Dataset, values: np.ndarray) -> dict[str, dict[str, float]]:
    return to_run(data, values).to_dict()


def python_parse(qrels: Path, run: Path) -> tuple[dict, dict]:
    """What pytrec_eval's users do, and its own parser does: lines to dictionaries."""
    judged: dict[str, dict[str, int]] = {}
    with open(qrels) as lines:
        for line in lines:
            query, _, doc, grade = line.strip().split()
            judged.setdefault(query, {})[doc] = int(grade)
    found: dict[str, dict[str, float]] = {}
    with open(run) as lines:
        for line in lines:
            query, _, doc, _, score, _ = line.strip().split()
            found.setdefault(query, {})[doc] = float(score)
    return judged, found


def from_files(folder: Path, queries: int, docs: int) -> None:
    data, scores = collection(queries, docs)
    qrels, run = folder / "x.qrels", folder / "x.run"
    fp.write_qrels(data, qrels)
    fp.write_run(to_run(data, scores, "bench"), run)
    size = (qrels.stat().st_size + run.stat().st_size) / 1e6

    def ours() -> None:
        fp.evaluate(fp.read_run(run), fp.read_qrels(qrels), measures=MEASURES, convention="trec")

    mine = cpu_seconds(ours, 3)
    rows = [["firstpage", seconds(mine), "1.0"]]
    pytrec = peer("pytrec_eval")
    if pytrec is not None:

        def theirs() -> None:
            judged, found = python_parse(qrels, run)
            pytrec.RelevanceEvaluator(judged, PYTREC).evaluate(found)

        took = cpu_seconds(theirs, 2, warm=0)
        rows.append(["pytrec_eval", seconds(took), f"{took / mine:.1f}"])
    parse = cpu_seconds(lambda: python_parse(qrels, run), 2, warm=0)
    rows.append(["lines to dictionaries in Python alone", seconds(parse), f"{parse / mine:.1f}"])
    ranx = peer("ranx")
    if ranx is not None:

        def with_ranx() -> None:
            judged = ranx.Qrels.from_file(str(qrels), kind="trec")
            ranx.evaluate(judged, ranx.Run.from_file(str(run), kind="trec"), RANX)

        took = cpu_seconds(with_ranx, 1)
        rows.append(["ranx", seconds(took), f"{took / mine:.1f}"])
    show(
        f"From TREC files, {queries:,} x {docs:,} lines ({size:.0f} MB), joined by document id",
        ["", "CPU", "times ours"],
        rows,
    )


def growth() -> None:
    rows = []
    for times in (1, 10, 100):
        data, scores = collection(100 * times, 100)
        truth = data.truth
        took = cpu_seconds(lambda s=scores, t=truth: fp.evaluate(s, t, measures=MEASURES))
        each = 1e9 * took / len(scores)
        rows.append([f"{times}x", f"{len(scores):,}", seconds(took), f"{each:.0f} ns"])
    show("Growth", ["", "documents", "CPU", "a document"], rows)


def start_up(folder: Path) -> None:
    """Whole processes, in a cache of their own: what is compiled is kept, as after installation."""
    rng = np.random.default_rng(0)
    for name, docs in (("small", 20), ("large", 200)):
        data, scores = collection(150, docs)
        wide = data.with_features(rng.normal(size=(data.n_docs, 46)).astype("f4"))
        fp.write_letor(wide, folder / f"{name}.txt")
        fp.write_scores(scores, folder / f"{name}.scores")
    env = {**os.environ, "FIRSTPAGE_CACHE": str(folder / "fresh")}
    rows = []
    for title, name, bar in (
        ("first after installation: 3,000 documents, 2 MB", "small", "6 s"),
        ("the same again (median of 3)", "small", "0.8 s"),
        ("first with 30,000 documents, 20 MB: further kernels are compiled", "large", ""),
        ("the same again (median of 3)", "large", ""),
    ):
        command = [sys.executable, "-m", "firstpage", "evaluate", f"{name}.txt"]
        times = []
        for _ in range(3 if "again" in title else 1):
            start = time.perf_counter()
            subprocess.run(
                [*command, "--scores", f"{name}.scores"],
                cwd=folder, env=env, check=True, capture_output=True,
            )  # fmt: skip
            times.append(time.perf_counter() - start)
        rows.append([title, seconds(sorted(times)[len(times) // 2]), bar])
    show("`firstpage evaluate` as a process, wall clock", ["", "time", "bar"], rows)


def main() -> None:
    quick = "--quick" in sys.argv
    print(versions("numpy", "numba", "pytrec-eval-terrier", "ranx"))
    scale = 10 if quick else 1
    from_memory(10_000 // scale, 100)
    from_memory(1_000 // scale, 1_000)
    growth()
    with tempfile.TemporaryDirectory() as folder:
        from_files(Path(folder), 10_000 // scale, 100)
        start_up(Path(folder))


if __name__ == "__main__":
    main()
