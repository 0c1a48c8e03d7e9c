"""`firstpage candidates`, `features` and `search`: use an index of texts."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from firstpage import search as texts  # the face: only the choice of features loads rankers
from firstpage.cli import options, outputs, shared
from firstpage.cli.engine import check_sources, engine_candidates, engine_options
from firstpage.cli.help import documented_command
from firstpage.data import Qrels, Run, fold_subsets
from firstpage.data.formats import check_output, read_run, write, write_run
from firstpage.search import (
    BM25,
    FirstStage,
    Index,
    Kind,
    Queries,
    Searcher,
    SearchResults,
    StageTuner,
    TextFeatures,
    read_queries,
    value_text,
)

MAX_TITLE = 70  # characters of a document that a result shows

query_format_options = options.combine(
    click.option(
        "--query-format",
        metavar="NAME",
        show_default="by the file",
        help="Format of QUERIES: jsonl, csv, tsv, parquet, trec, smart, npl or lines.",
    ),
    click.option("--ordinal", is_flag=True, help="Number the queries 1, 2, .. in their order."),
)
query_options = options.combine(
    click.argument("index", type=options.FOLDER),
    click.argument("queries", type=options.FILE),
    query_format_options,
)


first_option = click.option(
    "--first",
    type=click.Choice(["bm25", "dense", "hybrid"]),
    show_default="as INDEX stores it: hybrid if it has vectors",
    help="Retrieve documents by words (bm25), by vectors (dense), or by both.",
)


encoder_option = click.option(
    "--encoder",
    metavar="NAME",
    help="Encoder of the vectors of INDEX, where it is a function of your own (MODULE:FUNCTION), "
    "an address, or a folder that has moved.",
)
query_vectors_option = click.option(
    "--query-vectors",
    type=options.FILE,
    metavar="FILE",
    help="Vectors of QUERIES by their ids (.npz, .parquet), where those of INDEX were computed "
    "elsewhere.",
)


def _opened(path: Path, encoder: str | None) -> Index:
    """Return an index, with the function of the user that encodes its queries."""
    if encoder is not None:
        options.search_current_folder()
    index = Index(path, encoder)
    options.only_with("an INDEX with vectors", index.vectors is not None, "encoder")
    return index


def _read_queries(path: Path, format_: str | None, ordinal: bool) -> Queries:
    return read_queries(path, format_, "ordinal" if ordinal else "ids")


def _read_judgments(path: Path | None, queries: Queries) -> Qrels | None:
    """Return judgments; report if their ids of queries are other than those of the queries."""
    qrels = shared.read_qrels_option(path)
    if qrels is None:
        return None
    known, judged = set(queries.ids), set(qrels.queries)
    if known & judged and known - judged and judged - known:
        shared.note(
            f"{path}: {len(known - judged)} of {len(known)} queries are not judged, and "
            f"{len(judged - known)} of {len(judged)} judged queries are not among the queries, "
            f"such as {min(judged - known)!r}; if the judgments number the queries in their order, "
            "use --ordinal."
        )
    return qrels


@documented_command(
    "candidates",
    "firstpage candidates shop.index queries.jsonl -o candidates.run",
    "firstpage candidates shop.index queries.jsonl --first hybrid -o candidates.run",
    "firstpage candidates shop.index queries.jsonl --tune --qrels shop.qrels \\\n"
    "  -o candidates.run",
    "firstpage candidates --engine http://localhost:9200/shop queries.jsonl \\\n"
    "  --request request.json --log log.jsonl -o candidates.run",
)
@click.argument("index", type=options.FOLDER, metavar="[INDEX]")
@click.argument("queries", type=options.FILE, required=False, metavar="QUERIES")
@query_format_options
@engine_options
@options.output("run", required=True, help="Write the candidates to this run.")
@options.integer("--depth", default=100, help="Candidates per query.")
@first_option
@encoder_option
@query_vectors_option
@click.option("--k1", type=click.FloatRange(0), metavar="X", help="Parameter of BM25.")
@click.option("--b", type=click.FloatRange(0, 1), metavar="X", help="Parameter of BM25.")
@click.option(
    "--weight",
    "weights",
    multiple=True,
    metavar="FIELD=X",
    help="Weight of a text field, 1 by default; may be repeated.",
)
@click.option(
    "--tune",
    is_flag=True,
    help="Choose k1, b and the weights of fields for the best NDCG@10 on --qrels, and by nested "
    "cross-validation how words and vectors are fused, and store them in INDEX for later searches, "
    "unless the stored ones are as good.",
)
@click.option(
    "--qrels", type=options.FILE, help="With --tune: judgments (TREC qrels or truth.jsonl)."
)
@options.integer(
    "--folds",
    minimum=3,
    help="With --tune: choose for the queries of each fold on the other folds, as a fair baseline "
    "for `crossval` with as many folds and the same seed; nothing is stored.",
)
@options.seed
@options.tag("the kind of the first stage")
def candidates_command(
    index: Path,
    queries: Path | None,
    query_format: str | None,
    ordinal: bool,
    engine: str | None,
    request: Path | None,
    log: Path | None,
    output: Path,
    depth: int,
    first: Kind | None,
    encoder: str | None,
    query_vectors: Path | None,
    k1: float | None,
    b: float | None,
    weights: tuple[str, ...],
    tune: bool,
    qrels: Path | None,
    folds: int | None,
    seed: int,
    tag: str | None,
) -> None:
    """Retrieve the candidates of queries.

    Searches INDEX for the texts of QUERIES by words (BM25 over weighted fields), by the vectors of
    `firstpage index --vectors`, or by both, and writes a run, which `features`, `evaluate`,
    `hybrid` and `label setup` read.
    """
    queries = check_sources(index, queries, engine)
    if engine is not None:
        batch = _read_queries(queries, query_format, ordinal)
        engine_candidates(engine, batch, output, request=request, log=log, depth=depth, tag=tag)
        return
    if tune != (qrels is not None):
        raise click.UsageError("--tune requires --qrels, and --qrels requires --tune.")
    if tune and (k1 is not None or b is not None or weights):
        raise click.UsageError("--tune chooses k1, b and weights; leave them out.")
    options.only_with("--tune", tune, "folds")
    options.only_with("a search by words", first != "dense", "k1", "b", "weights")
    options.only_with("--folds", folds is not None, "seed")
    opened = _opened(index, encoder)
    typed = _read_queries(queries, query_format, ordinal)
    if query_vectors is not None:
        opened.set_query_vectors(typed, query_vectors)
    judgments = _read_judgments(qrels, typed)
    if judgments is not None and folds is not None:
        run = _tuned_by_fold(opened, typed, judgments, depth, first, folds, seed)
    else:
        if judgments is not None:
            stage = _tune(opened, typed, judgments, first, seed)
        else:
            stage = _stage(opened, first, k1, b, weights)
        with shared.progress_bar("candidates") as progress:
            run = opened.candidates(typed, depth, stage, progress)
    if tag is not None:
        run = replace(run, name=tag)
    write_run(run, output)
    print(f"wrote {run} to {output}", file=sys.stderr)


def _stage(
    index: Index, first: Kind | None, k1: float | None, b: float | None, weights: tuple[str, ...]
) -> FirstStage:
    """Return the first stage of the options; report where it is not that of the index."""
    stored = index.stage(first)
    scoring = stored.scoring
    chosen: dict[str, float] = {}
    for text in weights:
        name, _, value = text.rpartition("=")
        if name in chosen:
            raise click.UsageError(f"--weight names {name} twice.")
        try:
            chosen[name] = float(value)
        except ValueError:
            raise click.UsageError(f"--weight {text}: write FIELD=NUMBER.") from None
    scoring = BM25(
        scoring.k1 if k1 is None else k1,
        scoring.b if b is None else b,
        {**scoring.weights, **chosen},
    )
    if scoring != stored.scoring:
        shared.note(
            f"these candidates are scored by {scoring}; searches and features of {index.path} use "
            f"{stored.scoring}."
        )
    return replace(stored, scoring=scoring)


def _tune(
    index: Index, queries: Queries, qrels: Qrels, first: Kind | None, seed: int
) -> FirstStage:
    """Return the best first stage on judged queries, and store it unless nothing is better."""
    before = index.first_stage
    tuner = StageTuner(index, queries, qrels, first, seed)
    with shared.progress_bar("tuning") as progress:
        tuned = tuner.tune(present=before.scoring, progress=progress)
    on = f"on {len(tuner.pools)} judged queries"
    if tuned.fusion is not None:
        print(tuned.fusion, file=sys.stderr)
    elif tuned.verdict:
        shared.note(tuned.verdict)
    scoring = tuned.stage.scoring
    value_before = tuner.pools.value(before.scoring)
    if scoring == before.scoring:
        shared.note(
            f"{index.path}: keeps {scoring}, with NDCG@10 {value_before:.4f} {on}; tuning found "
            "nothing better."
        )
    stored = replace(tuned.stage, typos=before.typos)
    if first == "bm25":  # says nothing about the others
        stored = replace(before, scoring=scoring)
    if stored != before:
        index.set_first_stage(stored)
        values = f"NDCG@10 {tuned.value:.4f} {on}; before {before.scoring}, with {value_before:.4f}"
        shared.note(
            f"{index.path}: stored {stored}, with {values}."
            if stored.kind == "bm25"
            else f"{index.path}: stored {stored}; its BM25 alone has {values}."
        )
    return replace(stored, kind="bm25") if first == "bm25" else stored


def _tuned_by_fold(
    index: Index,
    queries: Queries,
    qrels: Qrels,
    depth: int,
    first: Kind | None,
    folds: int,
    seed: int,
) -> Run:
    """Return candidates whose first stage was tuned on the queries of other folds."""
    listed = _with_candidates(index, queries, first)
    tuner = StageTuner(index, listed, qrels, first, seed)
    table: dict[str, dict[str, float]] = {name: {} for name, _ in listed}
    kinds: dict[str, None] = {}
    with shared.progress_bar("tuning") as progress:
        for number, subsets in enumerate(fold_subsets(len(listed), folds, seed), 1):
            test = [listed[i] for i in subsets[-1].tolist()]
            train = {listed[i][0] for subset in subsets[:-1] for i in subset.tolist()}
            tuned = tuner.tune(train)
            shared.note(
                f"fold {number}: {tuned.stage}; on the training data its BM25 has NDCG@10 "
                f"{tuned.value:.4f}."
            )
            table |= index.candidates(test, depth, tuned.stage).to_dict()
            kinds[tuned.stage.kind] = None
            if progress is not None:
                progress(number, folds)
    return Run.from_dict(table, next(iter(kinds)) if len(kinds) == 1 else "tuned by fold")


def _with_candidates(index: Index, queries: Queries, first: Kind | None) -> list[tuple[str, str]]:
    """Return the queries with candidates: those that a data file of features contains."""
    return [(name, text) for name, text in queries if index.search(text, 1, first)]


@documented_command(
    "features",
    "firstpage features shop.index queries.jsonl candidates.run --set short \\\n  -o short.parquet",
    "firstpage features shop.index queries.jsonl candidates.run \\\n"
    "  --qrels shop.qrels -o data.parquet",
)
@query_options
@click.argument("candidates", type=options.FILE)
@click.option(
    "--qrels", type=options.FILE, help="Judgments (TREC qrels or truth.jsonl): the labels."
)
@click.option(
    "--set",
    "features",
    metavar="NAMES",
    show_default="all, or short,values if these rank --qrels as well",
    help="Features: all, letor, short, a family or names such as title.*, separated by commas.",
)
@click.option(
    "--feature",
    "own",
    multiple=True,
    metavar="MODULE:FUNCTION",
    help="Feature of your own: a function of the query's text and a list of documents, which "
    "returns one number per document; may be repeated.",
)
@encoder_option
@query_vectors_option
@options.output(
    "parquet", "npz", "csv", "arrow", "letor", required=True, help="Write the data to this file."
)
def features_command(
    index: Path,
    queries: Path,
    query_format: str | None,
    ordinal: bool,
    candidates: Path,
    qrels: Path | None,
    features: str | None,
    own: tuple[str, ...],
    encoder: str | None,
    query_vectors: Path | None,
    output: Path,
) -> None:
    """Compute features of queries and candidates.

    Reads the run CANDIDATES of QUERIES and writes one row per candidate, which `train`,
    `crossval` and `rank` read.  Parquet and npz also record how the features were computed, so that
    a model trained on them can search INDEX.
    """
    check_output(output)
    if own:
        options.search_current_folder()
    opened, typed = _opened(index, encoder), _read_queries(queries, query_format, ordinal)
    judgments = _read_judgments(qrels, typed)
    run = read_run(candidates)
    if query_vectors is not None:
        opened.set_query_vectors(typed, query_vectors)
    computed = TextFeatures(opened, features or "all", own)
    with shared.progress_bar("features") as progress:
        data = computed.dataset(typed, run, judgments, progress=progress)
    if features is None and judgments is not None:
        data = texts.choose_features(data)
    if qrels is None:
        shared.note(
            "without --qrels there are no labels: the data can be ranked, or trained on by "
            "votes (`firstpage train --pairs`)."
        )
    write(data, output)
    print(f"wrote {data} to {output}", file=sys.stderr)


@documented_command(
    "search",
    'firstpage search shop.index "red running shoes"',
    'firstpage search shop.index "red running shoes" --model shop.json --explain',
)
@click.argument("index", type=options.FOLDER)
@click.argument("text")
@click.option("--model", type=options.FILE, help="Model that ranks the candidates.")
@options.integer(
    "--depth",
    show_default="10, or --candidates if fewer",
    help="Documents to show; with --model at most --candidates.",
)
@options.integer("--candidates", default=100, help="With --model: documents that it ranks.")
@click.option(
    "--feature",
    "own",
    multiple=True,
    metavar="MODULE:FUNCTION",
    help="With --model: feature of your own that the model may use; may be repeated.",
)
@first_option
@encoder_option
@click.option("--explain", is_flag=True, help="With --model: show what adds most to each score.")
@options.as_json
def search_command(
    index: Path,
    text: str,
    model: Path | None,
    depth: int | None,
    candidates: int,
    own: tuple[str, ...],
    first: Kind | None,
    encoder: str | None,
    explain: bool,
    as_json: bool,
) -> None:
    """Search an index for a typed TEXT.

    No character of TEXT has a special meaning.
    """
    options.only_with("--model", model is not None, "explain", "candidates", "own")
    if own:
        options.search_current_folder()
    searcher = Searcher(_opened(index, encoder), model, candidates, own, first)
    results = searcher.search(text, depth, 5 if explain else 0)
    outputs.write_text(_json(searcher, results) if as_json else _text(searcher, results), None)


def _json(searcher: Searcher, results: SearchResults) -> str:
    rows = [
        {
            "rank": rank,
            "id": name,
            "score": score,
            "first_stage_rank": int(before),
            "stage_ranks": results.stage_ranks[rank - 1],
            "document": document,
            **({"reasons": dict(results.reasons[rank - 1])} if results.reasons else {}),
        }
        for rank, (name, score, before, document) in enumerate(
            zip(
                results.ids,
                results.scores.tolist(),
                results.first_stage_ranks,
                searcher.index.documents(results.ids),
                strict=True,
            ),
            1,
        )
    ]
    return json.dumps(
        {
            "query": results.text,
            "corrected": dict(results.corrected),
            "first_stage": searcher.first_stage.kind,
            "candidates": results.n_candidates,
            "results": rows,
        }
    )


def _text(searcher: Searcher, results: SearchResults) -> str:
    if not results.ids:
        query = searcher.index.forward.query(results.text)
        empty = not query.length and not query.n_unknown
        return f"no document matches{': the query has no words but stop words' if empty else ''}."
    lines = [
        f"no document contains {word}; {term} stands for it" for word, term in results.corrected
    ]
    documents = searcher.index.documents(results.ids)
    rows = zip(results.ids, results.scores, results.first_stage_ranks, documents, strict=True)
    for rank, (name, score, before, document) in enumerate(rows, 1):
        moved = [] if searcher.model is None or before == rank else [f"first stage: {before}"]
        if len(searcher.first_stage.stages) > 1:
            moved += [f"{each} {at}" for each, at in results.stage_ranks[rank - 1].items()]
        remark = f"  ({', '.join(moved)})" if moved else ""
        lines.append(f"{rank:>3}. {name}  {score:.4f}{remark}")
        if (title := _title(searcher.index, document)) != name:
            lines.append(f"     {title}")
        if results.reasons:
            reasons = (f"{feature} {value:+.3f}" for feature, value in results.reasons[rank - 1])
            lines.append(f"     {', '.join(reasons)}")
    return "\n".join(lines)


def _title(index: Index, document: Mapping[str, Any]) -> str:
    """Return the beginning of a document's first text field in one line."""
    texts = (value_text(document[field]) for field in index.schema.analyzers if field in document)
    text = " ".join(next(texts, "").split())
    return text if len(text) <= MAX_TITLE else text[: MAX_TITLE - 1] + "…"
