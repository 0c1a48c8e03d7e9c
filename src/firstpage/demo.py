"""The demo: the main job on the embedded collection, ending in a report."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

from firstpage.data.collection import Collection, baselines, stdlib_collection
from firstpage.data.describe import describe
from firstpage.data.files import write_bytes
from firstpage.data.letor import write_letor
from firstpage.data.trec import run_of, write_qrels, write_run
from firstpage.errors import DataError
from firstpage.measures.compare import compare
from firstpage.report.results import means_table, render
from firstpage.types import Floats

MEASURES = ("NDCG@10", "ERR", "RR", "Recall@10")
SHOWN = 5


def run_demo(folder: Path) -> Path:
    """Build the collection, rank it in five ways, compare them; returns the report's path."""
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

    _say("\n2. Ranking the candidates of every question in five ways ..")
    systems = baselines(data)
    for name, scores in systems.items():
        write_run(run_of(data, scores, name.replace(" ", "-")), folder / f"{_slug(name)}.run")
    _show_a_query(collection, systems)

    _say("\n3. Measuring and comparing them ..")
    first = next(iter(systems))
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


def _show_a_query(collection: Collection, systems: dict[str, Floats]) -> None:
    """The first page of one question, as two rankings see it; stars show the grade."""
    query = collection.data[0]
    assert query.docids is not None
    names = list(query.docids)
    print(f"\n   {collection.questions[query.queries[0]]!r}")
    for system in list(systems)[:2]:
        order = np.argsort(-systems[system][: len(names)], kind="stable")[:SHOWN]
        print(f"   {system}:")
        for place, row in enumerate(order.tolist(), 1):
            print(f"     {place}. {names[row]:<34} {'★' * int(query.y[row])}")


def _slug(name: str) -> str:
    return name.lower().replace(" ", "-")


def _say(text: str) -> None:
    print(text, flush=True)
    sys.stdout.flush()
