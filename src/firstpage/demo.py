"""The demo: the main job on the embedded collection, ending in a report."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

from firstpage.data.collection import Collection, baselines, stdlib_collection
from firstpage.data.dataset import Dataset
from firstpage.data.describe import describe
from firstpage.data.files import write_bytes
from firstpage.data.groups import rows_of
from firstpage.data.letor import write_letor
from firstpage.data.trec import run_of, write_qrels, write_run
from firstpage.errors import DataError
from firstpage.measures.compare import compare
from firstpage.measures.evaluate import evaluate
from firstpage.rankers.explain import explain
from firstpage.rankers.smooth import ListMLE
from firstpage.report.models import explanation_text
from firstpage.report.results import means_table, render
from firstpage.types import Floats

MEASURES = ("NDCG@10", "ERR", "RR", "Recall@10")
SHOWN = 5
FOLDS = 5
LEARNT = "learnt (ListMLE, k = 5)"


def run_demo(folder: Path) -> Path:
    """Build the collection, rank it in five ways and a learnt one, compare; returns the report."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{folder}: cannot make this folder ({error.strerror}).") from error
    started = time.perf_counter()
    _say("1. Reading Python's own documentation ..")
    collection = stdlib_collection()
    data = collection.data
    _say(
        f"   {len(collection.documents):,} documents, {len(data)} questions, "
        f"{data.n_features} features"
    )
    print(describe(data))
    write_letor(data, folder / "collection.txt")
    write_qrels(data, folder / "collection.qrels")

    _say("\n2. Ranking the candidates of every question in five ways, and learning a sixth ..")
    systems = baselines(data)
    systems[LEARNT] = _learnt(data)
    model = ListMLE(k=SHOWN).fit(data)
    model.save(folder / "model.json")
    print(explanation_text(explain(folder / "model.json"), 6))
    for name, scores in systems.items():
        write_run(run_of(data, scores, _slug(name)), folder / f"{_slug(name)}.run")
    _show_queries(collection, systems)

    _say("\n3. Measuring and comparing them ..")
    first = next(iter(systems))
    print(f"   ({LEARNT}: each question is ranked by a model that was trained without it)")
    found = compare(systems, data, measures=MEASURES, baseline=first)
    print(means_table(found).text())
    for d in found.differences[: len(systems) - 1]:
        verdict = "worse" if d.difference < 0 else "better"
        sure = "significant" if d.p_corrected < 0.05 else "may be chance"
        print(
            f"   {d.system}: {abs(d.difference):.3f} {verdict} in {d.measure} than {d.against}, "
            f"p = {d.p_corrected:.4f} ({sure})"
        )
    report = folder / "report.html"
    with write_bytes(report) as out:
        out.write(render(found, "html", "Python's documentation").encode())
    _say(f"\nDone in {time.perf_counter() - started:.1f} s. Open {report.resolve()}")
    _say(
        f"Try: firstpage evaluate --qrels {folder / 'collection.qrels'} "
        f"--run {folder / (_slug(first) + '.run')} -m NDCG@10 -m kNDCG@5 --k 5"
    )
    return report


def _learnt(data: Dataset) -> Floats:
    """Scores of a ranker that was trained without the question at hand, in five folds."""
    scores = np.empty(data.n_docs)
    parts = np.array_split(np.random.default_rng(0).permutation(len(data)), FOLDS)
    for part in parts:
        others = np.setdiff1d(np.arange(len(data)), part)
        scores[rows_of(data.offsets, part)] = ListMLE(k=SHOWN).fit(data[others]).predict(data[part])
    return scores


def _show_queries(collection: Collection, systems: dict[str, Floats]) -> None:
    """The first page of two questions, before and after learning; stars show the grade.

    Those that learning helped most and hurt most: an average hides both.
    """
    before = next(iter(systems))
    gain = np.subtract(
        *(
            evaluate(systems[s], collection.data, measures="NDCG@10").values[0]
            for s in (LEARNT, before)
        )
    )
    for number, word in ((int(gain.argmax()), "helped most"), (int(gain.argmin()), "hurt most")):
        query = collection.data[number]
        assert query.docids is not None
        names = list(query.docids)
        print(f"\n   Learning {word}: {collection.questions[query.queries[0]]!r}")
        for system in (before, LEARNT):
            lo, hi = (int(o) for o in collection.data.offsets[number : number + 2])
            order = np.argsort(-systems[system][lo:hi], kind="stable")[:SHOWN]
            print(f"   {system}:")
            for place, row in enumerate(order.tolist(), 1):
                print(f"     {place}. {names[row]:<34} {'★' * int(query.y[row])}".rstrip())


def _slug(name: str) -> str:
    return "".join(c if c.isalnum() else "-" for c in name.lower()).strip("-")


def _say(text: str) -> None:
    print(text, flush=True)
    sys.stdout.flush()
