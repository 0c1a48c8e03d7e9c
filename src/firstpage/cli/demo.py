"""`firstpage demo`: the main job on the embedded collection."""

from __future__ import annotations

from pathlib import Path

import click

from firstpage.cli import options


@click.command("demo")
@click.option(
    "-o",
    "--output",
    type=options.FILE,
    default=Path("firstpage-demo"),
    show_default=True,
    help="Folder for the report and the data.",
)
def command(output: Path) -> None:
    """Search Python's own documentation, learn to rank it, and compare, in a report."""
    from firstpage.demo import run_demo

    run_demo(output)
