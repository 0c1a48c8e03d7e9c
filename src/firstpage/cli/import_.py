"""`firstpage import`: read models, judgments, feature logs and clicks of other programs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from firstpage.cli import options, outputs, shared
from firstpage.cli.help import documented_command

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
    "firstpage import feature-log log.jsonl -o data.txt",
)
@click.argument("kind", type=click.Choice(list(OUTPUT_FORMATS), case_sensitive=False))
@click.argument("file", type=options.FILE)
@options.output("json", *outputs.DATA, required=True, help="Write to this file.")
@click.option("--qrels", type=options.FILE, help="With feature-log: judgments of its documents.")
@options.integer(
    "--n-features", show_default="the greatest in the model",
    help="With ranklib: number of features in the data.",
)  # fmt: skip
def command(
    kind: str, file: Path, output: Path, qrels: Path | None, n_features: int | None
) -> None:
    """Import a model, judgments, features or clicks.

    \b
    ranklib      model file of RankLib -> model (model.json)
    quepid       judgments as CSV (query,docid,rating) -> qrels
    feature-log  Elasticsearch or OpenSearch responses with _ltrlog -> data file
    clicks       lists shown and clicked, CSV or JSON lines -> pairs (CSV)
    """
    options.only_with("feature-log", kind == "feature-log", "qrels")
    options.only_with("ranklib", kind == "ranklib", "n_features")
    for source in (file, qrels):
        if source is not None and output.exists() and source.exists() and output.samefile(source):
            raise click.UsageError(f"-o {output} is an input file; write to another one.")
    outputs.check_suffix(output, OUTPUT_FORMATS[kind], "-o")
    written = _convert(kind, file, output, qrels, n_features)
    print(f"wrote {written} to {output}", file=sys.stderr)


def _convert(
    kind: str, file: Path, output: Path, qrels: Path | None, n_features: int | None
) -> Any:
    """Read a file and write its contents in our format; return a description of them."""
    if kind == "ranklib":
        from firstpage.data.io.json_files import write_json
        from firstpage.interop.read.ranklib import read_ranklib

        model = read_ranklib(file, n_features)
        write_json(model.to_dict(), output)
        return f"{model.training['imported']} with {model.n_features} features"
    if kind == "quepid":
        from firstpage.data.formats.trec import write_qrels
        from firstpage.interop.read.judgments import read_quepid

        judgments = read_quepid(file)
        write_qrels(judgments, output)
        return judgments
    if kind == "feature-log":
        from firstpage.data.formats.registry import write
        from firstpage.data.formats.trec import read_qrels
        from firstpage.interop.read.feature_log import read_feature_log

        data = read_feature_log(file, None if qrels is None else read_qrels(qrels))
        write(data, output)
        return data
    from firstpage.interop.read.judgments import read_clicks, write_pairs

    pairs = read_clicks(file)
    write_pairs(pairs, output)
    shared.note(CLICK_BIAS)
    return f"{len(pairs)} pairs"
