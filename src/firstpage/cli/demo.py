"""`firstpage demo`: the full workflow on an embedded collection."""

from __future__ import annotations

from pathlib import Path

import click

from firstpage.cli import options, shared
from firstpage.cli.help import documented_command
from firstpage.demo import run_demo


@documented_command("demo", "firstpage demo", "firstpage demo -o shop --judge")
@options.output(default=Path("firstpage-demo"), help="Folder for the report and the data.")
@click.option("--judge", is_flag=True, help="Judge a few questions yourself, in your browser.")
@click.option("--serve", is_flag=True, help="Serve the labeling application and the search page.")
@options.port(8210, "Port of the application; 0 takes any free port.")
def command(output: Path, judge: bool, serve: bool, port: int) -> None:
    """Run the full workflow on a search engine for Python's docs.

    Indexes texts, retrieves candidates, labels them, computes features, trains, compares, learns a
    measure, aggregates, and ends with a report and a page to search.  It prints the command of
    every step.  The assessors are simulated, except with --judge.
    """
    run_demo(output, judge=judge, serve=serve, port=port, progress=shared.progress_bar)
