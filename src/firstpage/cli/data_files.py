"""`firstpage describe`, `shard` and `synthesize`: look into data files, cut them, make some up."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from firstpage.cli import options, outputs, shared
from firstpage.errors import FirstpageError


@click.command("describe")
@click.argument("files", nargs=-1, required=True, type=options.FILE)
@click.option("--from", "format_", metavar="FORMAT", help="Where the name does not say it.")
@options.as_json
def describe_command(files: tuple[Path, ...], format_: str | None, as_json: bool) -> None:
    """Show queries, documents, labels, list lengths, and features worth a second look.

    FILES are data, qrels or runs.
    """
    from firstpage.data.describe import describe
    from firstpage.data.formats.registry import read

    found = []
    for file in files:
        with shared.reading(file) as progress:
            found.append(describe(read(file, format_, progress)))
    if as_json:
        held = [d.to_dict() for d in found]
        print(json.dumps(held if len(held) > 1 else held[0], indent=2, ensure_ascii=False))
    else:
        print("\n\n".join(str(d) for d in found))


@click.command("shard")
@click.argument("data", type=options.FILE)
@click.argument("folder", type=outputs.OutputFile())
@options.whole("--rows", default=1_000_000, help="Documents a shard, about: queries stay whole.")
def shard_command(data: Path, folder: Path, rows: int) -> None:
    """Cut DATA, a file or a folder of files, into shards, and write them to FOLDER.

    `train`, `rank` and `evaluate` take FOLDER for data, and need no more memory for more shards.
    """
    from firstpage.data.shards.shards import data_files
    from firstpage.data.shards.writer import write_shards

    if data.is_dir():
        shared.note_files(data, [file.name for file in data_files(data)])
    with shared.reading(data) as progress:
        found = write_shards(data, folder, rows, progress)
    print(f"wrote {found}", file=sys.stderr)


@click.command("synthesize")
@click.argument("target", type=outputs.OutputFile("letor"))
@click.option("--queries", default=100, show_default=True, help="How many.")
@click.option(
    "--docs",
    default="50",
    show_default=True,
    metavar="HOW",
    help='A number, or "uniform(a, b)", "poisson(m)", "geometric(m)", "lognormal(m, s)".',
)
@click.option("--features", default=20, show_default=True, help="How many a document.")
@click.option("--utility", type=click.Choice(["linear", "nonlinear"]), default="linear")
@click.option("--noise", default=0.5, show_default=True, help="What assessors add.")
@click.option("--grades", default=5, show_default=True, help="Labels 0 to this less one.")
@click.option("--relevant", default=0.3, show_default=True, help="Share of labels above 0.")
@click.option("--labels", type=click.Choice(["grades", "order"]), default="grades")
@click.option("--tail", type=float, help="Share on top that follows the utility.")
@options.seed
def synthesize_command(target: Path, docs: str, **recipe: Any) -> None:
    """Write documents with features, a known utility, and labels from it, to a LETOR file.

    It is streamed: the size is bounded by the disk.
    """
    from firstpage.data.formats.letor import write_letor
    from firstpage.data.formats.registry import format_of
    from firstpage.data.synthetic import Synthetic

    if format_of(target, writing=True) != "letor":
        raise FirstpageError(
            f"{target}: only LETOR text is written (.txt, .txt.gz); convert it then."
        )
    made = Synthetic(docs=int(docs) if docs.isdigit() else docs, **recipe)
    write_letor(made.blocks(200), target)
    print(f"wrote {made.queries} queries to {target}", file=sys.stderr)
