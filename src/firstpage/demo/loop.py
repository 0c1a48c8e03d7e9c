"""The whole loop: label, train, compare, learn a measure, aggregate, report."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from firstpage.data.formats.letor import write_letor
from firstpage.data.formats.trec import to_run, write_qrels, write_run
from firstpage.demo import sentences
from firstpage.demo.collection import Collection, baselines, stdlib_collection
from firstpage.demo.labeling import (
    READER_QUESTIONS,
    LabelingResult,
    create_questions_project,
    label_questions,
    write_texts,
)
from firstpage.demo.measuring import learn_measure
from firstpage.demo.output import Folder, ProgressBar, StepPrinter, no_progress, program, slug
from firstpage.demo.project import finished_queries, open_store
from firstpage.demo.rankings import (
    COMBINED,
    MEASURES,
    RANKERS,
    combine_rankings,
    compare_with_baseline,
    cross_validated_scores,
    fit_ranker,
)
from firstpage.demo.report import examples_text, render
from firstpage.demo.sentences import DemoResults
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
MAX_FEATURES = 5  # of the model, in the terminal


def wait_for_reader(
    store: Store, project: Project, folder: Folder, port: int, printer: StepPrinter
) -> None:
    """Serve the application until the reader has judged their questions or presses Ctrl-C."""
    printer.note(
        f"Judge {READER_QUESTIONS} questions in your browser. Ctrl-C continues with the questions "
        "that you have completed."
    )

    def done() -> bool:
        return len(finished_queries(store, project, LOCAL)) >= READER_QUESTIONS

    try:
        serve(folder.path, HOST, port, ServeSettings(single_user=True), until=done)
    except KeyboardInterrupt:
        printer.print("")
    judged = finished_queries(store, project, LOCAL)
    printer.note(
        f"You judged {len(judged)} of {READER_QUESTIONS} questions; simulated assessors judge the "
        "others."
    )


def serve_until_stopped(folder: Folder, port: int, printer: StepPrinter) -> None:
    """Serve the application until Ctrl-C."""
    printer.print("\nThe labeling application is running with these data; Ctrl-C stops it.")
    try:
        serve(folder.path, HOST, port, ServeSettings(single_user=True))
    except KeyboardInterrupt:
        printer.print("")
    printer.print(f"Stopped. To start it again: firstpage label serve {folder.path} --open")


def run_demo(
    path: Path, *, judge: bool = False, serve: bool = False, port: int = 0,
    progress: ProgressBar = no_progress,
) -> Path:  # fmt: skip
    """Run the whole loop on Python's documentation and write a report.

    The loop labels 48 questions with simulated assessors, trains four rankers, compares them with
    a baseline, learns a measure from simulated editors, and aggregates the four rankings. It takes
    about a minute and needs the web extra (``firstpage[web]``).

    Parameters
    ----------
    path : path
        Folder for the report and the data. It is created; the folder of an earlier demo is
        reused.
    judge : bool, default False
        Whether you judge two questions in your browser first.
    serve : bool, default False
        Whether the labeling application keeps running afterwards, until Ctrl-C.
    port : int, default 0
        Port of the application; 0 takes any free port.
    progress : callable, optional
        Function of a title that returns a context manager whose value is a progress callback
        ``(done, total)`` or None. By default there are no progress bars.

    Returns
    -------
    Path
        The report, an HTML file.

    Raises
    ------
    DataError
        If the folder contains files that are not the demo's, or the port is in use.

    Examples
    --------
    >>> from pathlib import Path
    >>> import firstpage as fp
    >>> fp.demo.run_demo(Path("firstpage-demo"))  # doctest: +SKIP
    PosixPath('firstpage-demo/report.html')
    """
    printer = StepPrinter(progress)
    if judge or serve:
        check_port(HOST, port)
    folder = Folder.prepare(path)
    store = open_store(folder.path)
    try:
        report = _run_steps(store, folder, printer, judge, serve, port)
    finally:
        store.close()
    printer.print(f"\nDone in {printer.total:.0f} s. Open {report.resolve()}")
    if serve:
        serve_until_stopped(folder, port, printer)
    else:
        printer.print(f"To see the labels: {program()} label serve {folder.path} --open")
    return report


def _run_steps(
    store: Store, folder: Folder, printer: StepPrinter, judge: bool, serve: bool, port: int
) -> Path:
    """Run all steps; return the path of the report."""
    with printer.step("Read Python's own documentation"):
        collection = _read_collection(folder, printer)
    project = create_questions_project(store, folder, judge or serve)
    if judge:
        with printer.step("You judge"):
            wait_for_reader(store, project, folder, port, printer)
    with printer.step("Label: three simulated assessors compare pairs of entries"):
        labels = label_questions(store, project, collection, folder, printer)
        write_letor(labels.data, folder / "judged.txt")
        write_qrels(labels.data, folder / "judged.qrels")
        printer.note(sentences.labeling(labels))
    title = f"Train four rankers on these labels: {', '.join(RANKERS)}"
    with printer.step(title), printer.progress("models") as progress:
        rankings = cross_validated_scores(labels.data, progress)
    results = _evaluate(store, collection, labels, rankings, folder, printer)
    with printer.step("Write the report"):
        model = fit_ranker(results.compared.best, labels.data)
        model.save(folder / "model.json")
        explanation = explain(folder / "model.json")
        printer.note(explanation_text(explanation, MAX_FEATURES))
        printer.note("\n" + examples_text(results))
        folder.write_summary(results.to_dict())
        return folder.write("report.html", render(results, explanation))


def _read_collection(folder: Folder, printer: StepPrinter) -> Collection:
    """Build the collection and write its files."""
    collection = stdlib_collection()
    data = collection.data
    write_letor(data, folder / "collection.txt")
    write_qrels(data, folder / "collection.qrels")
    write_texts(collection, folder)
    printer.note(
        f"{len(collection.documents):,} documents, {len(data)} questions with known answers, "
        f"{data.n_docs / len(data):.0f} candidates per question, {data.n_features} features"
    )
    return collection


def _evaluate(
    store: Store, collection: Collection, labels: LabelingResult, rankings: Mapping[str, Floats],
    folder: Folder, printer: StepPrinter,
) -> DemoResults:  # fmt: skip
    """Compare the rankings, learn a measure, and aggregate."""
    data = collection.data
    untrained = baselines(data)
    with printer.step("Compare them with the best ranking that needs no training"):
        compared = compare_with_baseline(untrained, rankings, data)
        printer.note(means_table(compared.comparison).text())
        printer.note(sentences.verdict(compared))
        printer.note(sentences.advice(compared, labels))
    systems = {compared.baseline: untrained[compared.baseline], **rankings}
    with printer.step("Learn a measure: simulated editors compare first pages side by side"):
        measured = learn_measure(store, collection, systems, compared, folder, printer)
        printer.note(sentences.learned_measure(measured, compared))
    with printer.step("Aggregate: all four rankers vote (Supervised Kemeny)"):
        combined = combine_rankings(rankings, labels.data)
        pair = {compared.best: rankings[compared.best], COMBINED: combined.scores}
        against_best = compare(pair, data, measures=MEASURES, baseline=compared.best)
        all_systems = {**systems, COMBINED: combined.scores}
        results = DemoResults(
            collection, labels, all_systems, compared, measured, combined, against_best,
            printer.seconds,
        )  # fmt: skip
        printer.note(sentences.combination(results))
    for name, scores in {**untrained, **all_systems}.items():
        write_run(to_run(data, scores, slug(name)), folder.run(name))
    return results
