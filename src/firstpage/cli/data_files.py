"""`firstpage describe`, `shard` and `synthesize`: inspect, split and generate data files."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from firstpage.cli import options, outputs, shared
from firstpage.cli.help import documented_command
from firstpage.core import FirstpageError
from firstpage.data import Dataset, Synthetic, describe
from firstpage.data.formats import format_of, write_letor
from firstpage.data.shards import TABLE_FILE, data_files, write_shards
from firstpage.learning import (
    models as model_files,
)  # the face: only a model loads what is behind it


@documented_command(
    "describe",
    "firstpage describe train.txt test.txt",
    "firstpage describe ours.run --json",
    "firstpage describe model.json",
)
@click.argument("files", nargs=-1, required=True, type=options.FILE, metavar="FILES")
@click.option(
    "--from",
    "from_",
    metavar="FORMAT",
    show_default="by the file",
    help="Format of the files: letor, qrels, run, parquet, csv, arrow, npz or truth.",
)
@options.judgment_options
@options.categorical
@options.as_json
def describe_command(
    files: tuple[Path, ...],
    from_: str | None,
    qrels: Path | None,
    unjudged: str,
    categorical: tuple[str, ...],
    as_json: bool,
) -> None:
    """Summarize data files, qrels, runs or models.

    Shows the numbers of queries, documents and labels, the lengths of lists, and features that
    need a second look, for each of one or more FILES; of a model, what it is and what it was
    trained on.
    """
    judgments = shared.read_qrels_option(qrels)
    collections = []
    models = {file: _read_model(file) for file in files if file.suffix == ".json" and not from_}
    for file in files:
        if file in models:
            continue
        options_ = shared.feature_options(categorical)
        data = shared.read_file(file, from_, labeled=judgments is None, **options_)
        collections.append(data)
        if judgments is not None and not isinstance(collections[-1], Dataset):
            raise FirstpageError(f"{file}: has no features, so --qrels cannot be joined to it.")
    collections = shared.join_judgments(collections, judgments, unjudged)
    described = map(describe, collections)
    descriptions = [models[file] if file in models else next(described) for file in files]
    if as_json:
        records = [each if isinstance(each, dict) else each.to_dict() for each in descriptions]
        document = records if len(records) > 1 else records[0]
        print(json.dumps(document, indent=2, ensure_ascii=False))
    else:
        texts = [
            _model_text(each) if isinstance(each, dict) else str(each) for each in descriptions
        ]
        print("\n\n".join(texts))


def _read_model(path: Path) -> dict[str, Any]:
    """Return the description of a model file."""
    return model_files.read_model(path).description()


def _model_text(model: dict[str, Any]) -> str:
    """Return a few lines on a model."""
    set_ones = {name: value for name, value in model["parameters"].items() if value is not None}
    lines = [f"{model['source']}  ({model['kind']}: {model['ranker']})"]
    lines.append(f"  features    {model['features']:>9,}")
    if "systems" in model:
        lines.append(f"  systems     {', '.join(model['systems'])}")
    if {"source", "queries", "documents"} <= model["trained_on"].keys():
        lines.append(
            "  trained on  {source}: {queries:,} queries, {documents:,} documents".format_map(
                model["trained_on"]
            )
        )
    lines.append(f"  parameters  {', '.join(f'{name}={v}' for name, v in set_ones.items())}")
    lines.append(f"\n  `firstpage explain {model['source']}` shows the importance of its features.")
    return "\n".join(lines)


@documented_command("shard", "firstpage shard train.txt shards --rows 1000000")
@click.argument("data", type=options.FILE)
@click.argument("folder", type=outputs.OutputFile())
@options.integer("--rows", default=1_000_000, help="Documents per shard, about: no query is split.")
def shard_command(data: Path, folder: Path, rows: int) -> None:
    """Split DATA into shards for training with bounded memory.

    DATA is a file, or a folder of files or of shards.  `train`, `rank` and `evaluate` take FOLDER
    as data; the memory that they need does not grow with the number of shards.
    """
    if str(folder) == "-":
        raise click.UsageError("shards are a folder of files; give a name instead of -.")
    if data.is_dir() and not (data / TABLE_FILE).is_file():
        shared.note_files(data, [file.name for file in data_files(data)])
    with shared.reading_progress(data) as progress:
        shards = write_shards(data, folder, rows, progress)
    print(f"wrote {shards}", file=sys.stderr)


@documented_command(
    "synthesize", "firstpage synthesize data.txt --queries 200 --docs 'uniform(10, 100)'"
)
@click.argument("target", type=outputs.OutputFile("letor"))
@click.option("--queries", default=100, metavar="N", help="Number of queries.")
@click.option(
    "--docs",
    default="50",
    metavar="N",
    help='Documents per query: a number, or "uniform(a, b)", "poisson(m)", "geometric(m)" or '
    '"lognormal(m, s)".',
)
@click.option("--features", default=20, metavar="N", help="Features per document.")
@click.option(
    "--utility",
    type=click.Choice(["linear", "nonlinear"]),
    default="linear",
    help="Utility of a document as a function of its features.",
)
@click.option(
    "--noise",
    default=0.5,
    metavar="X",
    help="Standard deviation of the noise that assessors add to the utility.",
)
@click.option("--grades", default=5, metavar="N", help="Number of grades: 0 to N - 1.")
@click.option(
    "--relevant", default=0.3, metavar="X", help="Fraction of documents with a label above 0."
)
@click.option(
    "--labels",
    type=click.Choice(["grades", "order"]),
    default="grades",
    help="Labels are grades, or the full order of a query's documents.",
)
@click.option(
    "--head-fraction",
    type=float,
    metavar="X",
    help="Only this fraction at the top follows the utility; the tail follows another one.",
)
@options.seed
def synthesize_command(target: Path, docs: str, **recipe: Any) -> None:
    """Generate a LETOR file with a known utility.

    The documents have random features; their labels follow the utility and noise.  The file is
    streamed, so its size is bounded by the disk only.
    """
    if format_of(target, writing=True) != "letor":
        raise FirstpageError(
            f"{target}: only LETOR text can be written (.txt, .txt.gz); convert it afterwards."
        )
    synthetic = Synthetic(docs=int(docs) if docs.isdigit() else docs, **recipe)
    write_letor(synthetic.blocks(200), target)
    print(f"wrote {synthetic.queries} queries to {target}", file=sys.stderr)
