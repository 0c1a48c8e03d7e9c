"""`firstpage dcglearn show`: show a learned measure."""

from __future__ import annotations

import json
from pathlib import Path

import click

from firstpage.cli import options, outputs
from firstpage.cli.help import documented_command
from firstpage.data.preferences import read_utility
from firstpage.interop.report import utility_page, utility_text


@documented_command(
    "show",
    "firstpage dcglearn show measure.json",
    "firstpage dcglearn show measure.json --label-gain",
)
@click.argument("measure", type=options.FILE)
@click.option("--segment", metavar="NAME", help="Show the measure of one segment of queries.")
@click.option("--label-gain", is_flag=True, help="Print the gains as LightGBM's label_gain.")
@click.option(
    "--top",
    type=float,
    metavar="GAIN",
    show_default="2^best - 1",
    help="With --label-gain: gain of the best label.",
)
@options.as_json
@options.output("html", help="Write a page with charts to this file (.html).")
def command(
    measure: Path,
    segment: str | None,
    label_gain: bool,
    top: float | None,
    as_json: bool,
    output: Path | None,
) -> None:
    """Show the gains and discounts of a learned measure.

    MEASURE is a file that `firstpage dcglearn learn` wrote.
    """
    if output is not None and (as_json or label_gain):
        raise click.UsageError("-o writes a page; leave out --json and --label-gain.")
    options.only_with("--label-gain", label_gain, "top")
    utility = read_utility(measure)
    if segment is not None:
        utility = utility.segment(segment)
    if label_gain:
        gains = utility.label_gain(top)
        print(json.dumps(gains) if as_json else ",".join(f"{gain:.6g}" for gain in gains))
        return
    if output is not None:
        outputs.write_text(utility_page(utility, measure.name), output)
        return
    print(json.dumps(utility.to_dict(), indent=1) if as_json else utility_text(utility))
