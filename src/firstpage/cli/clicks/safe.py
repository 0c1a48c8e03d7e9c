"""`firstpage clicks safe`: a new ranking where clicks are certain that it is better."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from firstpage.cli import options, shared
from firstpage.cli.clicks.log_options import log_options, read_log
from firstpage.cli.help import documented_command
from firstpage.clicks import Propensities, safe_ranking
from firstpage.data.formats import read_run, write_run


@documented_command(
    "safe",
    "firstpage clicks safe clicks.log --old current.run --new next.run \\\n"
    "  --propensities p.json -o served.run",
)
@log_options
@click.option("--old", type=options.FILE, required=True, metavar="RUN", help="The old ranking.")
@click.option("--new", type=options.FILE, required=True, metavar="RUN", help="The new ranking.")
@click.option(
    "--propensities",
    type=options.FILE,
    required=True,
    help="Propensities of ranks (`clicks propensities -o`).",
)
@options.integer("--cutoff", default=10, help="Number of ranks that count.")
@click.option(
    "--level",
    type=float,
    default=0.95,
    show_default=True,
    metavar="P",
    help="Confidence level of the lower bound of the gain of a query.",
)
@click.option(
    "--ratio",
    type=float,
    default=2.0,
    show_default=True,
    metavar="X",
    help="Largest factor by which the exposure of a document counts as increased.",
)
@options.output("run", help="Write the ranking to serve to this file.")
@options.as_json
def command(
    old: Path, new: Path, propensities: Path, output: Path | None, as_json: bool, **values: Any
) -> None:
    """Take a new ranking where it is certain to be better, else the old one.

    A query of the log gets the new ranking if the lower confidence bound of its gain in DCG is
    above 0; all other queries keep the old one.
    """
    known, candidate, current = Propensities.load(propensities), read_run(new), read_run(old)
    sessions = read_log(values)
    with shared.status_line("estimating"):
        safe = safe_ranking(candidate, current, sessions, known, **values)
    if output is not None:
        write_run(safe.run, output)
    print(json.dumps(safe.to_dict(), indent=1) if as_json else f"{safe.table().text()}\n{safe}")
