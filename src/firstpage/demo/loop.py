"""The whole loop: index, label, train, compare, learn a measure, aggregate, report, search."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from firstpage.core import FirstpageError, FirstpageWarning
from firstpage.data import Dataset, Run, split_folds
from firstpage.data.formats import read_npz, read_run, write, write_qrels, write_run
from firstpage.demo import project as demo_project
from firstpage.demo import sentences
from firstpage.demo.collection import Collection, stdlib_collection
from firstpage.demo.labeling import (
    DEPTH,
    READER_QUESTIONS,
    STRATEGY,
    K,
    LabelingResult,
    create_questions_project,
    label_questions,
)
from firstpage.demo.measuring import learn_measure
from firstpage.demo.output import (
    INDEX,
    RUNS,
    Folder,
    ProgressBar,
    StepPrinter,
    command_line,
    program,
    slug,
)
from firstpage.demo.project import finished_queries, open_store
from firstpage.demo.rankings import (
    BASELINE,
    COMBINED,
    ENCODER,
    FOLDS,
    HYBRID,
    MAIN_MEASURE,
    MEASURES,
    NORMALIZE,
    RANKERS,
    SEED,
    Runs,
    combine_rankings,
    compare_with_baseline,
    fit_ranker,
    learned_runs,
    tuned_bm25,
)
from firstpage.demo.report import examples_text, render
from firstpage.demo.sentences import DemoResults
from firstpage.evaluation.comparison import compare
from firstpage.interop.report import explanation_text, means_table
from firstpage.labeling.app import LOCAL, ServeSettings, check_port, serve
from firstpage.labeling.app.store import Project, Store
from firstpage.learning.models import explain
from firstpage.search import Index, Searcher, TextFeatures, choose_features, read_documents
from firstpage.search.encoders import Encoder, load_encoder

HOST = "127.0.0.1"
SEARCH_PORT_OFFSET = 10  # from the port of the labeling application
MAX_FEATURES = 5  # of the model, in the terminal
MAX_MISSING = 3  # names of missing answers that are printed
# The search page ends with the process that started it, which holds the other end of its input.
STOP_WITH_PARENT = """
import os, signal, threading
def stop():
    os.read(0, 1)
    os.kill(os.getpid(), signal.SIGTERM)
threading.Thread(target=stop, daemon=True).start()
"""
RUN_COMMAND = STOP_WITH_PARENT + "from firstpage.cli import main; main()"
TYPED = "how do i sort a dictionary"  # an example for the search page; not a question of the demo


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


def search_port(port: int) -> int:
    """Return the port of the search page, 0 for any."""
    return port + SEARCH_PORT_OFFSET if port else 0


@contextmanager
def search_page(folder: Folder, port: int) -> Iterator[subprocess.Popen[bytes]]:
    """Serve the search page in a process of its own, which ends with this one."""
    options = f"--candidates {DEPTH} --port {search_port(port)} --host {HOST}"
    words = folder.words(f"serve @model.json --index @{INDEX} --against bm25 {options}")
    command = [sys.executable, "-c", RUN_COMMAND, *words]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as page:
        yield page


def serve_until_stopped(folder: Folder, port: int, printer: StepPrinter) -> None:
    """Serve the search page and the labeling application until Ctrl-C."""
    printer.print("\nStarting the search page and the labeling application; Ctrl-C stops them.")
    try:
        with search_page(folder, port) as page:
            settings = ServeSettings(single_user=True)
            serve(folder.path, HOST, port, settings, until=lambda: page.poll() is not None)
            if page.poll() is not None:
                raise FirstpageError(
                    f"the search page ended with status {page.returncode}, so the labeling "
                    "application was stopped too; the reason is above."
                )
    except KeyboardInterrupt:
        printer.print("")
    printer.print("Stopped. To start them again:")
    _print_servers(folder, printer)


def _print_servers(folder: Folder, printer: StepPrinter) -> None:
    """Print how to open the labeling application and the search page."""
    labels = folder.words("label serve @ --open")
    search = folder.words(
        f"serve @model.json --index @{INDEX} --candidates {DEPTH} --against bm25 --open"
    )
    printer.print(f"To see the labels: {command_line(*labels, called=program())}")
    printer.print(f"To search: {command_line(*search, called=program())}")


def run_loop(path: Path, judge: bool, serve: bool, port: int, progress: ProgressBar) -> Path:
    """Run the whole loop, and serve the pages if asked to; return the path of the report."""
    printer = StepPrinter(progress)
    if judge or serve:
        check_port(HOST, port)
    if serve:
        check_port(HOST, search_port(port))
    collection = stdlib_collection()
    folder = Folder.prepare(path)
    store = open_store(folder.path)
    try:
        report = _run_steps(store, folder, collection, printer, judge, serve, port)
    finally:
        store.close()
    printer.print(f"\nDone in {printer.total:.0f} s. Open {report.resolve()}")
    if serve:
        serve_until_stopped(folder, port, printer)
    else:
        _print_servers(folder, printer)
    return report


def _run_steps(
    store: Store,
    folder: Folder,
    collection: Collection,
    printer: StepPrinter,
    judge: bool,
    serve: bool,
    port: int,
) -> Path:
    """Run all steps; return the path of the report."""
    with printer.step("Index Python's own documentation, and retrieve candidates"):
        index, candidates = _retrieve(collection, folder, printer)
    project = create_questions_project(store, index, folder, judge or serve)
    if judge:
        with printer.step("You judge"):
            wait_for_reader(store, project, folder, port, printer)
    with printer.step("Label: three simulated assessors compare pairs of entries"):
        labels = label_questions(store, project, collection, folder, printer)
        printer.note(sentences.labeling(labels))
        name = demo_project.QUESTIONS
        printer.command(folder.words(f"label export @ --name {name} -o @labels.qrels"))
    with printer.step("Compute features, and train four rankers on the labels"):
        data = _features(index, collection, candidates, labels, folder, printer)
        runs = _rankings(index, collection, data, labels, folder, printer)
    results = _evaluate(store, index, collection, candidates, labels, runs, folder, printer)
    with printer.step("Train the best ranker on all questions, and search with it"):
        best = results.compared.best
        fit_ranker(best, data).save(folder / "model.json")
        explanation = explain(folder / "model.json")
        printer.note(explanation_text(explanation, MAX_FEATURES))
        page = Searcher(index, folder / "model.json", DEPTH).search(TYPED, K)
        printer.note("\n".join(["", *str(page).splitlines()]))
        printer.command(folder.words(_train(best, "@features.npz", "@model.json")))
        search = f"search @{INDEX} '{TYPED}' --model @model.json --candidates {DEPTH} --depth {K}"
        printer.command(folder.words(search))
        _print_own_commands(best, folder, printer)
    with printer.step("Write the report"):
        printer.note(examples_text(results))
        folder.write_summary(results.to_dict())
        return folder.write("report.html", render(results, explanation, folder))


def _retrieve(collection: Collection, folder: Folder, printer: StepPrinter) -> tuple[Index, Run]:
    """Write the collection, index it and retrieve candidates."""
    folder.write_rows("documents.jsonl", collection.documents)
    queries = ({"id": name, "text": text} for name, text in collection.queries)
    folder.write_rows("queries.jsonl", queries)
    write_qrels(collection.qrels, folder / "answers.qrels")
    documents = read_documents(folder / "documents.jsonl")
    encoder = _encoder(printer)
    with printer.progress("documents") as progress:
        index = Index.from_documents(
            documents, folder / INDEX, overwrite=True, vectors=encoder, progress=progress
        )
    with _without_warnings():
        write_run(index.candidates(collection.queries, DEPTH), folder / "candidates.run")
    candidates = read_run(folder / "candidates.run")  # as the next commands do
    n = len(collection.queries)
    printer.note(
        f"{len(collection.documents):,} documents, {n} questions with known answers; the {DEPTH} "
        f"candidates per question contain {_recall(collection, candidates):.0%} of the answers"
    )
    unmatched = n - len(candidates.queries)
    if unmatched:
        printer.note(f"{unmatched} questions share no word with a document, and have no candidates")
    if collection.missing or collection.unanswered:
        missing = collection.missing
        more = f" and {len(missing) - MAX_MISSING} more" * (len(missing) > MAX_MISSING)
        unanswered = len(collection.unanswered)
        left_out = f"; {unanswered} questions without another answer are left out"
        printer.note(
            f"this Python does not have {', '.join(missing[:MAX_MISSING])}{more}"
            + left_out * bool(unanswered)
        )
    vectors = f" --vectors {ENCODER}" if encoder else ""
    printer.command(folder.words(f"index @documents.jsonl -o @{INDEX} --overwrite{vectors}"))
    retrieve = f"candidates @{INDEX} @queries.jsonl --depth {DEPTH} -o @candidates.run"
    printer.command(folder.words(retrieve))
    return index, candidates


def _encoder(printer: StepPrinter) -> Encoder | None:
    """Return the encoder of texts; say why there is none, as the demo then searches by words."""
    try:
        return load_encoder(ENCODER)
    except FirstpageError as error:
        printer.note(f"by words only, without vectors: {error}")
        return None


def _recall(collection: Collection, candidates: Run) -> float:
    """Return the mean fraction of the answers that are candidates."""
    retrieved = candidates.to_dict()
    return float(
        np.mean(
            [
                len(grades.keys() & retrieved.get(query, {}).keys()) / len(grades)
                for query, grades in collection.qrels.to_dict().items()
            ]
        )
    )


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Ignore warnings about what the printed notes say anyway."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FirstpageWarning)
        yield


def _features(
    index: Index,
    collection: Collection,
    candidates: Run,
    labels: LabelingResult,
    folder: Folder,
    printer: StepPrinter,
) -> Dataset:
    """Compute the features of all candidates."""
    with _without_warnings():
        computed = TextFeatures(index).dataset(collection.queries, candidates, labels.labels)
        written = choose_features(computed)
    write(written, folder / "features.npz")
    data = read_npz(folder / "features.npz")
    printer.note(f"{data.n_docs:,} candidates with {data.n_features} features")
    printer.command(folder.words(_compute_features("@labels.qrels", "@features.npz")))
    return data


def _rankings(
    index: Index,
    collection: Collection,
    data: Dataset,
    labels: LabelingResult,
    folder: Folder,
    printer: StepPrinter,
) -> Runs:
    """Rank all questions by the first stages and by four rankers, none of which has seen them."""
    folds = split_folds(data, FOLDS, SEED)
    with printer.progress("BM25") as progress, _without_warnings():  # of questions without words
        baseline = tuned_bm25(index, collection.queries, labels.labels, folds, DEPTH, progress)
    with printer.progress("models") as progress:
        runs = {BASELINE: baseline, **_hybrid(index, collection), **learned_runs(folds, progress)}
    for name, run in runs.items():
        write_run(run, folder.run(name))
    tuned = f"--first bm25 --tune --qrels @labels.qrels --folds {FOLDS}"
    written = f"--depth {DEPTH} -o {_run(BASELINE)}"
    printer.command(folder.words(f"candidates @{INDEX} @queries.jsonl {tuned} {written}"))
    trained = f"{' '.join(RANKERS)} --normalize {NORMALIZE} --folds {FOLDS} -t {MAIN_MEASURE}"
    compared = f"--run {_run(BASELINE)} --baseline bm25 --write-runs @{RUNS}"
    printer.command(folder.words(f"crossval @features.npz {trained} {compared}"))
    return runs


def _hybrid(index: Index, collection: Collection) -> dict[str, Run]:
    """Return the ranking by words and vectors, with equal weights, if the index has vectors."""
    if index.vectors is None:
        return {}
    return {HYBRID: index.candidates(collection.queries, DEPTH, "hybrid")}


def _evaluate(
    store: Store,
    index: Index,
    collection: Collection,
    candidates: Run,
    labels: LabelingResult,
    runs: Runs,
    folder: Folder,
    printer: StepPrinter,
) -> DemoResults:
    """Compare the rankings, learn a measure, and aggregate."""
    answers = collection.qrels
    with printer.step("Compare the rankings by the correct answers"), _without_warnings():
        compared = compare_with_baseline(BASELINE, runs, answers)
        printer.note(means_table(compared.comparison).text())
        printer.note("\n".join(["", *sentences.steps(compared)]) if compared.steps else "")
        printer.note(sentences.verdict(compared))
        printer.note(sentences.advice(compared, labels))
        listed = " ".join(f"--run {_run(name)}" for name in runs)
        measures = " ".join(f"-m {name}" for name in MEASURES)
        compare_runs = f"compare --qrels @answers.qrels {listed} --baseline bm25 {measures}"
        printer.command(folder.words(compare_runs))
    title = "Learn a measure: simulated editors compare first pages side by side"
    with printer.step(title), _without_warnings():
        measured = learn_measure(store, index, collection, runs, compared, folder, printer)
        printer.note(sentences.learned_measure(measured, compared))
        _print_measure_commands(compared.best, folder, printer)
    title = "Aggregate: all four rankers vote (Supervised Kemeny)"
    with printer.step(title), _without_warnings():
        learned = {name: runs[name] for name in RANKERS}
        combined = combine_rankings(learned, labels.labels)
        write_run(combined.run, folder.run(COMBINED))
        pair = {compared.best: runs[compared.best], COMBINED: combined.run}
        against_best = compare(pair, answers, measures=MEASURES, baseline=compared.best)
        results = DemoResults(
            collection,
            _recall(collection, candidates),
            labels,
            {**runs, COMBINED: combined.run},
            compared,
            measured,
            combined,
            against_best,
            printer.seconds,
            printer.commands,
            printer.own_commands,
        )
        printer.note(sentences.combination(results))
        rankings = " ".join(_run(name) for name in RANKERS)
        weighted = f"--qrels @labels.qrels -m {MAIN_MEASURE} --tag {COMBINED}"
        printer.command(folder.words(f"aggregate {rankings} {weighted} -o {_run(COMBINED)}"))
    return results


def _run(name: str) -> str:
    """Return how a command names the run of a system."""
    return f"@{RUNS}/{slug(name)}.run"


def _print_measure_commands(best: str, folder: Folder, printer: StepPrinter) -> None:
    """Print how the preferences were exported, and how a measure is learned and used."""
    exported = f"--name {demo_project.PAGES} --content preferences -o @preferences.jsonl"
    printer.command(folder.words(f"label export @ {exported}"))
    printer.command(folder.words(_learn("@preferences.jsonl", "@measure.json")))
    evaluated = folder.words(f"evaluate --qrels @answers.qrels --run {_run(best)} -m")
    printer.command([*evaluated, f"NDCG({folder / 'measure.json'})@{K}"])


def _learn(preferences: str, measure: str) -> str:
    return f"dcglearn learn {preferences} --K {K} --decreasing -o {measure}"


def _compute_features(labels: str, data: str) -> str:
    return f"features @{INDEX} @queries.jsonl @candidates.run --qrels {labels} -o {data}"


def _train(ranker: str, data: str, model: str) -> str:
    return f"train {ranker} {data} --normalize {NORMALIZE} -o {model}"


def _print_own_commands(best: str, folder: Folder, printer: StepPrinter) -> None:
    """Print how to judge the same questions and pages oneself, and how to learn from that."""
    texts = f"--index @{INDEX} --queries @queries.jsonl"
    commands = (
        f"label setup mine {texts} --depth {DEPTH} --k {K} --strategy {STRATEGY}",
        "label serve mine --open",
        "label export mine -o mine/labels.qrels",
        _compute_features("mine/labels.qrels", "mine/features.npz"),
        _train(best, "mine/features.npz", "mine/model.json"),
    )
    title = "To judge the questions yourself, and train on your labels"
    printer.own(title, *map(folder.words, commands))
    shown = f"--run {_run(BASELINE)} --run {_run(best)} --depth {K} --qrels @answers.qrels"
    of_pages = (
        f"label setup mine-pages --tool lists {texts} {shown}",
        "label serve mine-pages --open",
        "label export mine-pages --content preferences -o mine-pages/preferences.jsonl",
        _learn("mine-pages/preferences.jsonl", "mine-pages/measure.json"),
    )
    title = "To compare first pages yourself, and learn a measure from your preferences"
    printer.own(title, *map(folder.words, of_pages))
