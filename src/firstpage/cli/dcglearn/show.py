"""`firstpage dcglearn show`: a learned measure, to look at."""

from __future__ import annotations

import json
from pathlib import Path

import click

from firstpage.cli import options, outputs


@click.command("show")
@click.argument("measure", type=options.FILE)
@click.option("--segment", metavar="NAME", help="Of one kind of queries.")
@click.option("--label-gain", is_flag=True, help="Print gains as LightGBM's label_gain wants them.")
@click.option(
    "--top", type=float, help="With --label-gain: the gain of the best label. [2^best - 1]"
)
@options.as_json
@options.output("html", help="Write a page with pictures here (.html).")
def command(
    measure: Path, segment: str | None, label_gain: bool, top: float | None, as_json: bool,
    output: Path | None,
) -> None:  # fmt: skip
    """Show the gains and discounts of MEASURE, a file that `dcglearn learn` wrote."""
    from firstpage.data.preferences.utility import read_utility
    from firstpage.report.measure import utility_page, utility_text

    if output is not None and (as_json or label_gain):
        raise click.UsageError("-o writes a page; leave out --json and --label-gain.")
    options.only_with("--label-gain", label_gain, "top")
    found = read_utility(measure)
    if segment is not None:
        found = found.segment(segment)
    if label_gain:
        gains = found.label_gain(top)
        print(json.dumps(gains) if as_json else ",".join(f"{gain:.6g}" for gain in gains))
        return
    if output is not None:
        outputs.deliver(utility_page(found, measure.name), output)
        return
    print(json.dumps(found.to_dict(), indent=1) if as_json else utility_text(found))
