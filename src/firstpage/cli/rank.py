"""`firstpage rank`: score documents with a model."""

from __future__ import annotations

from pathlib import Path

import click

from firstpage.cli import options, outputs, shared
from firstpage.cli.help import documented_command
from firstpage.core import DataError
from firstpage.data.formats import SUFFIXES, to_run, write_run, write_scores
from firstpage.data.io import suffix_of
from firstpage.data.shards import Shards
from firstpage.learning.models import read_model


@documented_command(
    "rank",
    "firstpage rank model.json test.txt -o scores.txt",
    "firstpage rank model.json test.txt --tag ours -o ours.run",
)
@click.argument("model", type=options.FILE)
@click.argument("data", type=options.FILE)
@options.output("scores", "run", required=True, help="Write the scores to this file.")
@click.option(
    "--trec",
    is_flag=True,
    show_default="by the suffix of -o",
    help="Write a run in TREC format, which needs document ids.",
)
@options.tag("the ranker's name")
@options.pad
@options.engine
def command(
    model: Path,
    data: Path,
    output: Path,
    trec: bool,
    tag: str | None,
    pad: bool,
    engine: str | None,
) -> None:
    """Score the documents of DATA with a model.

    Writes a TREC run (.run), or one score per line in the order of DATA.  DATA is a file or a
    folder of shards, and needs no labels.  Features are matched by name, in any order, if both
    DATA and MODEL have names; else DATA must have as many features as MODEL.
    """
    trec = trec or SUFFIXES.get(suffix_of(output)[0]) == "run"
    outputs.check_suffix(output, ("run" if trec else "scores",), "-o")
    options.only_with("a run (--trec, or -o NAME.run)", trec, "tag")
    scoring_model = read_model(model)
    known = shared.options_of_models(data, scoring_model)
    documents = shared.read_data_or_shards(data, labeled=False, **known)
    if isinstance(documents, Shards):
        if trec:
            raise click.UsageError("a run needs data in memory, not shards; write scores (.txt).")
        write_scores(scoring_model.predict(documents, engine, pad), output)
        return
    options.only_with(options.SHARD_FOLDER, False, "engine")
    scores = scoring_model.predict(documents, pad=pad)
    if trec:
        if documents.docids is None:
            raise DataError(f"{data}: has no document ids, which a run needs; write scores (.txt).")
        write_run(to_run(documents, scores, tag or scoring_model.ranker), output)
    else:
        write_scores(documents.to_file_order(scores), output)
