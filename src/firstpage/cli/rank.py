"""`firstpage rank`: score documents with a model."""

from __future__ import annotations

from pathlib import Path

import click

from firstpage.cli import options, outputs, shared


@click.command("rank")
@click.argument("model", type=options.FILE)
@click.argument("data", type=options.FILE)
@options.output("scores", "run", required=True, help="Write the scores here.")
@click.option("--trec", is_flag=True, help="Write a run in TREC form instead; needs document ids.")
@click.option("--tag", help="The run's name; the ranker's, if not given.")
@options.pad
@options.engine
def command(
    model: Path, data: Path, output: Path, trec: bool, tag: str | None, pad: bool,
    engine: str | None,
) -> None:  # fmt: skip
    """Score the documents of DATA with MODEL: one score a line, in the order of DATA.

    DATA is a file, or a folder of shards; it needs no labels.  Features are matched by name where
    both have names, in any order; else DATA must have as many as MODEL.
    """
    from firstpage.data.formats.letor import write_scores
    from firstpage.data.formats.registry import SUFFIXES
    from firstpage.data.formats.trec import to_run, write_run
    from firstpage.data.io.files import suffix_of
    from firstpage.data.shards.shards import Shards
    from firstpage.errors import DataError
    from firstpage.rankers.fit.checks import check_finite, restored
    from firstpage.rankers.model_files import read_model

    if not trec and SUFFIXES.get(suffix_of(output)[0]) == "run":
        raise click.UsageError(f"-o {output} names a run; add --trec, or end it in .txt.")
    outputs.check_suffix(output, ("run" if trec else "scores",), "-o")
    options.only_with("--trec", trec, "tag")
    found = read_model(model)
    documents = shared.read_any(data, labeled=False)
    if isinstance(documents, Shards):
        if trec:
            raise click.UsageError("--trec needs data in memory, not shards.")
        write_scores(found.predict(documents, engine, pad), output)
        return
    options.only_with(options.SHARDS, False, "engine")
    check_finite(documents)
    scores = found.predict(documents, pad=pad)
    if trec:
        if documents.docids is None:
            raise DataError(f"{data}: has no document ids, which a run needs; leave out --trec.")
        write_run(to_run(documents, scores, tag or found.ranker), output)
    else:
        write_scores(restored(scores, documents.row_order), output)
