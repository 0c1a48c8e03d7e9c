"""The whole loop: label, train, compare, learn a measure, aggregate, report."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from firstpage.data.formats.letor import write_letor
from firstpage.data.formats.trec import to_run, write_qrels, write_run
from firstpage.demo import project as desk
from firstpage.demo import words
from firstpage.demo.collection import Collection, baselines, stdlib_collection
from firstpage.demo.labeling import YOURS, Labels, begin, label, write_texts
from firstpage.demo.measuring import measured
from firstpage.demo.output import Counting, Folder, Teller, program, silent, slug
from firstpage.demo.project import opened
from firstpage.demo.rankings import MEASURES, NAME, RANKERS, compared, learned, together, trained
from firstpage.demo.report import as_text, rendered
from firstpage.demo.words import Results
from firstpage.measures.compare import compare
from firstpage.rankers.explain import explain
from firstpage.report.rankers import explanation_text
from firstpage.report.results import means_table
from firstpage.types import Floats
from firstpage.web.app import LOCAL
from firstpage.web.security import ServeSettings
from firstpage.web.serve import check_port, serve
from firstpage.web.store.connect import Store
from firstpage.web.store.projects import Project

HOST = "127.0.0.1"


def let_judge(store: Store, project: Project, folder: Folder, port: int, teller: Teller) -> None:
    """Until the reader has judged their questions, or presses Ctrl-C."""
    teller.note(
        f"Judge {YOURS} questions in your browser; Ctrl-C goes on with what you have judged."
    )

    def ready() -> bool:
        return len(desk.finished(store, project, LOCAL)) >= YOURS

    try:
        serve(folder.path, HOST, port, ServeSettings(open=True), until=ready)
    except KeyboardInterrupt:
        teller.say("")
    done = desk.finished(store, project, LOCAL)
    teller.note(f"You judged {len(done)} of {YOURS} questions; assessors do the rest.")


def keep_up(folder: Folder, port: int, teller: Teller) -> None:
    """Until Ctrl-C."""
    teller.say("\nThe application is up with these data; Ctrl-C stops it.")
    try:
        serve(folder.path, HOST, port, ServeSettings(open=True))
    except KeyboardInterrupt:
        teller.say("")
    teller.say(f"Stopped. Again: firstpage label serve {folder.path} --open")


SHOWN = 5  # features of the model, in the terminal


def run_demo(
    path: Path, *, judge: bool = False, serve: bool = False, port: int = 0,
    counting: Counting = silent,
) -> Path:  # fmt: skip
    """Run it all in a folder; returns the report.

    `judge`: the reader judges a few questions first.  `serve`: the application stays up after.
    """
    teller = Teller(counting)
    if judge or serve:
        check_port(HOST, port)
    folder = Folder.ready(path)
    store = opened(folder.path)
    try:
        report = _steps(store, folder, teller, judge, serve, port)
    finally:
        store.close()
    teller.say(f"\nDone in {teller.total:.0f} s. Open {report.resolve()}")
    if serve:
        keep_up(folder, port, teller)
    else:
        teller.say(f"Look at the labels: {program()} label serve {folder.path} --open")
    return report


def _steps(
    store: Store, folder: Folder, teller: Teller, judge: bool, serve: bool, port: int
) -> Path:
    with teller.step("Read Python's own documentation"):
        collection = _collection(folder, teller)
    project = begin(store, folder, judge or serve)
    if judge:
        with teller.step("You judge"):
            let_judge(store, project, folder, port, teller)
    with teller.step("Label: three simulated assessors say which of two entries is better"):
        labels = label(store, project, collection, folder, teller)
        write_letor(labels.data, folder / "judged.txt")
        write_qrels(labels.data, folder / "judged.qrels")
        teller.note(words.labeling(labels))
    title = f"Train four rankers on these labels: {', '.join(RANKERS)}"
    with teller.step(title), teller.counting("models") as progress:
        rankings = learned(labels.data, progress)
    results = _judged(store, collection, labels, rankings, folder, teller)
    with teller.step("Report"):
        model = trained(results.compared.best, labels.data)
        model.save(folder / "model.json")
        found = explain(folder / "model.json")
        teller.note(explanation_text(found, SHOWN))
        teller.note("\n" + as_text(results))
        folder.summarize(results.to_dict())
        return folder.write("report.html", rendered(results, found))


def _collection(folder: Folder, teller: Teller) -> Collection:
    collection = stdlib_collection()
    data = collection.data
    write_letor(data, folder / "collection.txt")
    write_qrels(data, folder / "collection.qrels")
    write_texts(collection, folder)
    teller.note(
        f"{len(collection.documents):,} documents, {len(data)} questions with known answers, "
        f"{data.n_docs / len(data):.0f} candidates each, {data.n_features} features"
    )
    return collection


def _judged(
    store: Store, collection: Collection, labels: Labels, rankings: Mapping[str, Floats],
    folder: Folder, teller: Teller,
) -> Results:  # fmt: skip
    """Compare, learn a measure, aggregate."""
    data = collection.data
    plain = baselines(data)
    with teller.step("Compare them with the best ranking that needs no learning"):
        found = compared(plain, rankings, data)
        teller.note(means_table(found.found).text())
        teller.note(words.verdict(found))
        teller.note(words.advice(found, labels))
    shown = {found.baseline: plain[found.baseline], **rankings}
    with teller.step("Learn a measure: editors compare first pages side by side"):
        taught = measured(store, collection, shown, found, folder, teller)
        teller.note(words.measure(taught, found))
    with teller.step("Aggregate: all four vote (Supervised Kemeny)"):
        votes = together(rankings, labels.data)
        both = {found.best: rankings[found.best], NAME: votes.scores}
        against = compare(both, data, measures=MEASURES, baseline=found.best)
        systems = {**shown, NAME: votes.scores}
        results = Results(
            collection, labels, systems, found, taught, votes, against, teller.seconds
        )
        teller.note(words.together(results))
    for name, scores in {**plain, **systems}.items():
        write_run(to_run(data, scores, slug(name)), folder.run(name))
    return results
