"""`firstpage experiment analyze`: which ranking people prefer, valid at all looks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from firstpage.cli import options, outputs, shared
from firstpage.cli.clicks.log_options import log_options, read_log
from firstpage.cli.help import documented_command
from firstpage.clicks import ExperimentAnalysis, analyze
from firstpage.core import DataError
from firstpage.interop.report import figure, page, paragraph


@documented_command(
    "analyze",
    "firstpage experiment analyze events.jsonl",
    "firstpage experiment analyze events.jsonl --credit values --html result.html",
)
@log_options
@click.option("--experiment", metavar="NAME", help="The experiment, if the log has several.")
@click.option("--digest", metavar="HEX", help="The digest of its rankings, if they changed.")
@click.option(
    "--credit",
    "value",
    type=click.Choice(["clicks", "values"]),
    default="clicks",
    show_default=True,
    help="What counts: clicks, or values of the best action on each result (--actions).",
)
@click.option(
    "--alpha",
    type=float,
    default=0.05,
    show_default=True,
    metavar="P",
    help="Probability that any interval, at any look, does not contain the truth.",
)
@click.option(
    "--segments",
    type=options.FILE,
    help="Segments of queries: lines of a query, a tab, and the name of its segment.  By default "
    "frequent and rare queries.",
)
@click.option("--html", type=outputs.OutputFile("html"), help="Write a page with a picture here.")
@options.as_json
def command(
    html: Path | None, as_json: bool, alpha: float, segments: Path | None, **values: Any
) -> None:
    """Tell which ranking people prefer.

    Intervals are confidence sequences: they are valid at all looks, so that you may look daily and
    stop when the result is decided.  Credit counts once per visitor and query; an A/B test compares
    the visitors who clicked.
    """
    chosen = {name: values.pop(name) for name in ("experiment", "digest", "value")}
    named = None if segments is None else _segments(segments)
    sessions = read_log(values)
    if named is not None and not named.keys() & set(sessions.queries):
        raise DataError(f"{segments}: has no query of the log, as it was typed.")
    with shared.status_line("analyzing"):
        analysis = analyze(sessions, alpha=alpha, segments=named, **chosen)
    if html is not None:
        outputs.write_text(_page(analysis), html)
    for row in analysis.checks.values():
        if row["suspect"]:
            shared.note(row["text"])
    print(json.dumps(analysis.to_dict(), indent=2) if as_json else analysis)


def _segments(path: Path) -> dict[str, str]:
    """Return the segment of each query of a file."""
    segments = dict[str, str]()
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        query, tab, segment = line.decode("utf-8", "replace").partition("\t")
        if not tab or not segment.strip() or query in segments:
            problem = "repeats a query" if query in segments else "is not a query, a tab, a segment"
            raise DataError(f"{path}:{number}: {problem}.")
        segments[query] = segment.strip()
    return segments


def _page(analysis: ExperimentAnalysis) -> str:
    """Return the analysis as a page: one sentence, one picture, and what they rest on."""
    caption = f"Against {analysis.arms[0]}, with intervals that are valid at all looks"
    checks = [paragraph(row["text"]) for row in analysis.checks.values()]
    sections = [
        ("Result", [paragraph(analysis.sentence), figure(analysis.drawing(), caption)]),
        ("Wins and losses", [analysis.summary_table().html(), analysis.segment_table().html()]),
        ("Checks", checks),
    ]
    counts = ", ".join(f"{count:,} {name}" for name, count in analysis.counts.items())
    lead = f"{analysis.source}: {counts}. Method {analysis.method}, digest {analysis.digest}."
    return page(f"Experiment {analysis.name}", lead, sections)
