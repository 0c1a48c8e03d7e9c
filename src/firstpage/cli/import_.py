"""`firstpage import`: models, judgments, feature logs and clicks of other programs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from firstpage.cli import options, outputs, shared

WRITES = {
    "ranklib": ("json",), "quepid": ("qrels",), "feature-log": outputs.DATA, "clicks": ("csv",),
}  # fmt: skip
BIAS = (
    "clicks follow the order that was shown: these pairs only say that a document beats one above "
    "it. Judge some of them, or shuffle results for a few people, before trusting them."
)


@click.command("import")
@click.argument("kind", type=click.Choice(list(WRITES), case_sensitive=False))
@click.argument("file", type=options.FILE)
@options.output("json", *outputs.DATA, required=True, help="Write here.")
@click.option("--qrels", type=options.FILE, help="feature-log: judgments of its documents.")
@options.whole("--n-features", help="ranklib: as many as the data have.")
def command(
    kind: str, file: Path, output: Path, qrels: Path | None, n_features: int | None
) -> None:
    """Read FILE of another program.

    \b
    ranklib      a model file -> a model (model.json)
    quepid       judgments, CSV (query,docid,rating) -> qrels
    feature-log  responses of Elasticsearch or OpenSearch with _ltrlog -> data (.txt, .csv ..)
    clicks       lists shown and clicked, CSV or JSON lines -> pairs, as votes (CSV)
    """
    options.only_with("feature-log", kind == "feature-log", "qrels")
    options.only_with("ranklib", kind == "ranklib", "n_features")
    for given in (file, qrels):
        if given is not None and output.exists() and given.exists() and output.samefile(given):
            raise click.UsageError(f"-o {output} is a file that is read; write elsewhere.")
    outputs.check_suffix(output, WRITES[kind], "-o")
    said = _read(kind, file, output, qrels, n_features)
    print(f"wrote {said} to {output}", file=sys.stderr)


def _read(kind: str, file: Path, output: Path, qrels: Path | None, n_features: int | None) -> Any:
    """Read and write; what was written, in words."""
    if kind == "ranklib":
        from firstpage.data.io.json_files import write_json
        from firstpage.interop.read.ranklib import read_ranklib

        model = read_ranklib(file, n_features)
        write_json(model.to_dict(), output)
        return f"{model.training['imported']} with {model.n_features} features"
    if kind == "quepid":
        from firstpage.data.formats.trec import write_qrels
        from firstpage.interop.read.judgments import read_quepid

        judged = read_quepid(file)
        write_qrels(judged, output)
        return judged
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
    shared.note(BIAS)
    return f"{len(pairs)} pairs"
