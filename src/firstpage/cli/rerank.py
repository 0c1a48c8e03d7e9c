"""`firstpage rerank`: reorder the top of a run by a model or a function that compares texts."""

from __future__ import annotations

import json
import sys
from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from firstpage.cli import options, shared
from firstpage.cli.help import documented_command
from firstpage.cli.outputs import OutputFile
from firstpage.cli.search import query_format_options
from firstpage.core import DataError
from firstpage.core.http import RateLimiter
from firstpage.data import Run
from firstpage.data.formats import read_run, write_run
from firstpage.data.preferences import write_pairs
from firstpage.labeling import (
    SIZES,
    DocumentText,
    ListAssessor,
    Reranker,
    Reranking,
    document_text,
)
from firstpage.search import MANIFEST, Index, read_documents, read_queries

ENDPOINT_ONLY = (
    "prices", "requests_per_minute", "tokens_per_minute", "timeout", "attempts", "max_chars",
    "guidelines",
)  # fmt: skip


@documented_command(
    "rerank",
    "firstpage rerank candidates.run shop.index queries.jsonl \\\n"
    "  --assessor taste:longest -o better.run",
    "firstpage rerank candidates.run shop.index queries.jsonl --calls 10 \\\n"
    "  --assessor http://localhost:8000/v1#some-model --cache replies.jsonl \\\n"
    "  --labels votes.csv -o better.run",
    "firstpage rerank candidates.run shop.index queries.jsonl --ask pair \\\n"
    "  --calls 100 --assessor https://api.example.com/v1#some-model \\\n"
    "  --prices 0.2 0.8 --max-price 0.02 -o better.run",
)
@click.argument("run", type=options.FILE)
@click.argument("texts", type=options.FILE)
@click.argument("queries", type=options.FILE)
@query_format_options
@click.option(
    "--assessor",
    "name",
    required=True,
    metavar="NAME",
    help="What compares documents: a chat endpoint (http://host/v1#model), a function "
    "(module:function), or the folder of a cross-encoder in ONNX.",
)
@options.output("run", required=True, help="Write the reordered run to this file.")
@options.integer("--k", default=10, help="Documents that are reordered to the top.")
@options.integer(
    "--depth", default=100, minimum=2, help="Documents of the run that are considered per query."
)
@click.option(
    "--ask",
    type=click.Choice(list(SIZES)),
    default="order",
    show_default=True,
    help="Question: the better of two documents (pair), the best of several, or their order.",
)
@options.integer(
    "--size",
    minimum=2,
    show_default=", ".join(f"{size} for {kind}" for kind, size in SIZES.items()),
    help="Documents per question.",
)
@options.integer("--calls", default=20, minimum=0, help="Largest number of calls per query.")
@click.option(
    "--max-price",
    type=click.FloatRange(0, min_open=True),
    metavar="NUMBER",
    help="With --prices: largest price per query.",
)
@click.option(
    "--sure",
    type=click.FloatRange(0, 1, min_open=True),
    default=0.95,
    show_default=True,
    metavar="X",
    help="Stop when the expected agreement of the top k with the assessor's is at least this.",
)
@options.endpoint
@options.integer(
    "--max-chars", default=2000, help="With an endpoint: characters of a document that are sent."
)
@click.option(
    "--guidelines",
    type=options.FILE,
    help="With an endpoint: text file that says what makes a document good.",
)
@options.integer("--concurrency", default=4, help="Number of queries at a time.")
@click.option(
    "--cache",
    type=OutputFile("jsonl"),
    help="Write replies to this file, and use those that it has: the same command then continues.",
)
@click.option(
    "--labels",
    type=OutputFile("csv"),
    help="Write the answers as votes on pairs to this file, for `train --pairs`.",
)
@options.tag("the run's")
@options.seed
@options.as_json
def command(
    run: Path,
    texts: Path,
    queries: Path,
    query_format: str | None,
    ordinal: bool,
    name: str,
    output: Path,
    as_json: bool,
    **settings: Any,
) -> None:
    """Reorder the top k of RUN by questions to a language model.

    TEXTS is an index, or documents that `firstpage index` reads; QUERIES are the texts of the
    queries.  Each question shows the documents whose comparison is expected to tell most about the
    top k, until that is sure or the budget is used up.  The API key of an endpoint is read from the
    environment variable FIRSTPAGE_ENDPOINT_KEY.
    """
    options.only_with("an endpoint as --assessor", "://" in name, *ENDPOINT_ONLY)
    if settings["max_price"] is not None and not any(settings["prices"]):
        raise click.UsageError("--max-price requires --prices.")
    reranker = Reranker(
        _assessor(name, settings),
        seed=settings["seed"],
        **{
            key: settings[key]
            for key in ("k", "depth", "ask", "size", "calls", "max_price", "sure")
        },
    )
    ranked = read_run(run)
    typed = read_queries(queries, query_format, "ordinal" if ordinal else "ids")
    fetch = _texts_of(texts, ranked, settings["depth"])
    with shared.progress_bar("reranking") as progress:
        result = reranker.rerank(
            ranked,
            dict(typed),
            fetch,
            settings["cache"],
            settings["concurrency"],
            progress,
        )
    write_run(replace(result.run, name=settings["tag"] or ranked.name), output)
    if settings["labels"] is not None:
        write_pairs(result.pairs(), settings["labels"])
    _report(result, as_json)
    print(f"wrote {result.run} to {output}", file=sys.stderr)


def _assessor(name: str, settings: dict[str, Any]) -> ListAssessor:
    guidelines: Path | None = settings["guidelines"]
    return shared.list_assessor(
        name,
        "--assessor",
        prices=settings["prices"],
        guidelines="" if guidelines is None else shared.text_of(guidelines),
        max_chars=settings["max_chars"],
        timeout=settings["timeout"],
        max_attempts=settings["attempts"],
        limiter=RateLimiter(settings["requests_per_minute"], settings["tokens_per_minute"]),
    )


def _texts_of(path: Path, run: Run, depth: int) -> Any:
    """Return a function that returns the text of a document of the run."""
    if (path / MANIFEST).is_file():
        index = Index(path)
        return lambda _, key: document_text(key, index.document(key))
    wanted, known = set(run.docids), dict[str, DocumentText]()
    for document in read_documents(path):
        if document.id in wanted:
            known[document.id] = document_text(document.id, document.values)

    def fetch(query: str, key: str) -> DocumentText:
        if key not in known:
            raise DataError(f"{path}: has no document {key!r}, which the run has for {query!r}.")
        return known[key]

    return fetch


def _report(result: Reranking, as_json: bool) -> None:
    queries = result.queries
    if as_json:
        print(json.dumps({"queries": [asdict(each) for each in queries]}, indent=2))
        return
    total = {
        name: sum(getattr(each, name) for each in queries)
        for name in ("calls", "cached", "malformed", "price", "tokens")
    }
    stopped = Counter(each.stopped for each in queries)
    reasons = ", ".join(f"{reason} ({count})" for reason, count in stopped.most_common())
    print(
        f"{len(queries)} queries, {total['calls']} calls ({total['cached']} from the cache), "
        f"{total['tokens']} tokens, {total['price']:.4f} spent\n"
        f"expected agreement with the assessor: "
        f"{np.mean([each.sure for each in queries]):.3f}; queries stopped at: {reasons}"
    )
    if total["malformed"]:
        shared.note(
            f"{total['malformed']} of {total['calls']} replies were malformed; each such question "
            "was asked once more, and left out if that did not help."
        )
