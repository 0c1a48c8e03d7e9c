"""`firstpage clicks describe`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from firstpage.cli import options, outputs
from firstpage.cli.clicks.log_options import log_options, read_log
from firstpage.cli.help import documented_command
from firstpage.clicks import LogDescription, describe, write_sessions
from firstpage.core import Table
from firstpage.interop import report


@documented_command(
    "describe",
    "firstpage clicks describe clicks.log",
    "firstpage clicks describe clicks.log --html log.html --save sessions.parquet",
)
@log_options
@click.option("--html", type=outputs.OutputFile("html"), help="Write a page to this file.")
@click.option(
    "--save",
    type=outputs.OutputFile("parquet"),
    help="Write the sessions to this file, which all commands on logs read.",
)
@options.as_json
def command(html: Path | None, save: Path | None, as_json: bool, **values: Any) -> None:
    """Describe a log of clicks.

    Shows sessions, impressions and clicks, queries by traffic, click-through by rank with
    intervals by query, and what is too thin to learn from.  Notes tell what was decided in reading.
    """
    names = " ".join(map(str, values["log"]))
    sessions = read_log(values)
    description = describe(sessions)
    if html is not None:
        outputs.write_text(_page(description), html)
    if save is not None:
        write_sessions(sessions, save)
        print(f"wrote {save}", file=sys.stderr)
        names = str(save)
    if as_json:
        print(json.dumps(description.to_dict(), indent=2, ensure_ascii=False))
        return
    print(description)
    steps = (f"`firstpage clicks {step} {names}`" for step in ("propensities", "fit", "judge"))
    print(f"\nNext: {', '.join(steps)}.")


def _page(description: LogDescription) -> str:
    """Return the description as an HTML page."""
    counts = [[name, f"{count:,}"] for name, count in description.counts.items()]
    decided = [[text, f"{count:,}"] for text, count in description.decisions.items()]
    caption = "Click-through by rank, with 95 % intervals by query."
    thin = [report.paragraph(text[0].upper() + text[1:]) for text in description.thin]
    sections = [
        ("Contents", [Table(["of", "count"], counts).html()]),
        ("Queries by traffic", [description.traffic_table().html()]),
        (
            "Click-through by rank",
            [report.figure(description.drawing(), caption), description.summary_table().html()],
        ),
        ("Documents at several ranks", [report.paragraph(description.moved_text)]),
        ("Too thin", thin or [report.paragraph("Nothing is too thin.")]),
        ("Decisions", [Table(["decision", "cases"], decided).html()]),
    ]
    return report.page("Log of clicks", description.source, sections)
