"""`firstpage pool`: how much unjudged documents could change."""

from __future__ import annotations

from pathlib import Path

import click

from firstpage.cli import options, outputs
from firstpage.cli.help import documented_command
from firstpage.cli.systems import RankingFiles, duplicates_option
from firstpage.evaluation.planning import check_pool


@documented_command(
    "pool", "firstpage pool test.qrels bm25.run ours.run -m NDCG@10 -m RR --depth 5"
)
@click.argument("files", nargs=-1, type=options.FILE, metavar="QRELS RUNS")
@duplicates_option
@options.measures("Measure to compute; may be repeated. NDCG@10 if there is none.")
@options.integer("--depth", default=10, help="First ranks that are looked at and made the pool.")
@options.convention
@options.table_options("Write the report to this file.")
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
    kind = outputs.report_format(format_, as_json, output, outputs.TABLES)
    rankings = RankingFiles.from_command_line(files, None, ())
    if not rankings.runs:
        raise click.UsageError("give judgments and at least one run.")
    truth = rankings.read_truth()
    systems = rankings.read_systems(truth, duplicates)
    report = check_pool(
        systems, truth, measures=measures or "NDCG@10", depth=depth, convention=convention
    )
    outputs.write_table(report, kind, output)
