"""`firstpage import`: read models, judgments, feature logs and clicks of other programs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from firstpage.cli import options, outputs, shared
from firstpage.cli.help import documented_command
from firstpage.data.formats import write, write_qrels, write_run
from firstpage.data.io import write_json
from firstpage.data.preferences import PreferencePairs, write_pairs
from firstpage.interop.read import (
    logged_documents,
    read_clicks,
    read_logged_run,
    read_quepid,
    read_ranklib,
    warn_unlabeled,
)

OUTPUT_FORMATS = {
    "ranklib": ("json",), "quepid": ("qrels",), "feature-log": outputs.DATA, "clicks": ("csv",),
}  # fmt: skip
CLICK_BIAS = (
    "clicks follow the order that was shown: these pairs only show that a document beats one above "
    "it. Judge some of them, or shuffle the results of some users, before trusting them."
)


@documented_command(
    "import",
    "firstpage import ranklib ranklib.txt --n-features 4 -o model.json",
    "firstpage import quepid quepid.csv -o quepid.qrels",
    "firstpage import feature-log log.jsonl --qrels quepid.qrels \\\n"
    "  -o logged.parquet --run before.run",
)
@click.argument("kind", type=click.Choice(list(OUTPUT_FORMATS), case_sensitive=False))
@click.argument("file", type=options.FILE)
@options.output("json", *outputs.DATA, required=True, help="Write to this file.")
@click.option(
    "--qrels",
    type=options.FILE,
    help="With feature-log: judgments of its documents (TREC qrels or truth.jsonl).",
)
@options.unjudged
@click.option(
    "--run",
    type=outputs.OutputFile("run"),
    help="With feature-log: write the engine's own ranking to this run.",
)
@options.integer(
    "--n-features",
    show_default="the greatest in the model",
    help="With ranklib: number of features in the data.",
)
def command(
    kind: str,
    file: Path,
    output: Path,
    qrels: Path | None,
    unjudged: str,
    run: Path | None,
    n_features: int | None,
) -> None:
    """Import a model, judgments, features or clicks.

    \b
    ranklib      model file of RankLib -> model (model.json)
    quepid       judgments as CSV (query,docid,rating) -> qrels
    feature-log  Elasticsearch, OpenSearch or Solr responses -> data file
    clicks       lists shown and clicked, CSV or JSON lines -> pairs (CSV)
    """
    options.only_with("feature-log", kind == "feature-log", "qrels", "run")
    options.only_with("--qrels", qrels is not None, "unjudged")
    options.only_with("ranklib", kind == "ranklib", "n_features")
    outputs.check_suffix(output, OUTPUT_FORMATS[kind], "-o")
    if kind == "feature-log":
        written: Any = _convert_log(file, output, qrels, unjudged)
    else:
        written = _convert(kind, file, output, n_features)
    print(f"wrote {written} to {output}", file=sys.stderr)
    if run is not None:
        ranking = read_logged_run(file)
        write_run(ranking, run)
        print(f"wrote {ranking} to {run}", file=sys.stderr)


def _convert_log(file: Path, output: Path, qrels: Path | None, unjudged: str) -> Any:
    """Write the documents of a feature log with the labels of judgments; return them."""
    judgments = shared.read_qrels_option(qrels)
    data = logged_documents(file)
    if judgments is None:
        warn_unlabeled(file)
    else:
        (data,) = shared.join_judgments([data], judgments, unjudged)
    write(data, output)
    return data


def _convert(kind: str, file: Path, output: Path, n_features: int | None) -> Any:
    """Read a file and write its contents in our format; return a description of them."""
    if kind == "ranklib":
        model = read_ranklib(file, n_features)
        write_json(model.to_dict(), output)
        return f"{model.training['imported']} with {model.n_features} features"
    if kind == "quepid":
        judgments = read_quepid(file)
        write_qrels(judgments, output)
        return judgments

    pairs = PreferencePairs.from_arrays(*zip(*read_clicks(file), strict=True))
    write_pairs(pairs, output)
    shared.note(CLICK_BIAS)
    return f"{len(pairs)} pairs"
