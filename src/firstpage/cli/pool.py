"""`firstpage pool`: how much unjudged documents could change."""

from __future__ import annotations

import json
from pathlib import Path

import click

from firstpage.cli import options, outputs
from firstpage.cli.help import documented_command
from firstpage.cli.systems import RankingFiles, duplicates_option
from firstpage.core import NOTATIONS
from firstpage.evaluation.planning import check_pool

FORMATS = ("text", "json", "csv", "markdown", "latex")


@documented_command(
    "pool",
    "firstpage pool test.qrels bm25.run ours.run -m NDCG@10 -m RR --depth 5",
)
@click.argument("files", nargs=-1, type=options.FILE, metavar="QRELS RUNS")
@duplicates_option
@click.option(
    "-m",
    "--measure",
    "measures",
    multiple=True,
    metavar="MEASURE",
    help="Measure to compute; may be repeated. NDCG@10 if there is none.",
)
@options.integer("--depth", default=10, help="First ranks that are looked at and made the pool.")
@options.convention
@options.as_json
@options.report_format
@options.output(*FORMATS, help="Write the report to this file.")
def command(
    files: tuple[Path, ...],
    duplicates: str,
    measures: tuple[str, ...],
    depth: int,
    convention: str,
    as_json: bool,
    format_: str | None,
    output: Path | None,
) -> None:
    """Measure how complete the judgments of runs are.

    For each run: the fraction of judged documents, the measure if unjudged documents are not
    relevant, removed (condensed lists) or relevant, and with several runs the bias against a run
    that is left out of the pool.
    """
    kind = outputs.report_format(format_, as_json, output, FORMATS)
    rankings = RankingFiles.from_command_line(files, None, ())
    if not rankings.runs:
        raise click.UsageError("give judgments and at least one run.")
    truth = rankings.read_truth()
    systems = rankings.read_systems(truth, duplicates)
    report = check_pool(
        systems, truth, measures=measures or "NDCG@10", depth=depth, convention=convention
    )
    if kind == "json":
        outputs.write_text(json.dumps(report.to_dict(), indent=2), output)
        return
    text = report.to_csv() if kind == "csv" else NOTATIONS[kind](report.summary_table())
    outputs.write_text(text, output)
