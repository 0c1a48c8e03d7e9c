"""`firstpage synthesize`: a collection with known truth, of any size."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from firstpage.cli import options, outputs
from firstpage.errors import FirstpageError


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
def command(target: Path, docs: str, **recipe: Any) -> None:
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
