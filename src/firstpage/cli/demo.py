"""`firstpage demo`: the whole loop on the embedded collection."""

from __future__ import annotations

from pathlib import Path

import click

from firstpage.cli import options, shared
from firstpage.cli.shared import with_web


@click.command("demo")
@options.output(
    default=Path("firstpage-demo"), show_default=True, help="Folder for the report and the data."
)
@click.option("--judge", is_flag=True, help="Judge a few questions yourself, in your browser.")
@click.option("--serve", is_flag=True, help="Keep the labeling application up with these data.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8210, show_default=True,
    help="Of the application; 0 takes any free port.",
)  # fmt: skip
@with_web
def command(output: Path, judge: bool, serve: bool, port: int) -> None:
    """Search Python's own documentation: label, train, compare, learn a measure, aggregate.

    Ends in a report.  Assessors are simulated, unless you judge.
    """
    from firstpage.demo.loop import run_demo

    run_demo(output, judge=judge, serve=serve, port=port, progress=shared.counting)
