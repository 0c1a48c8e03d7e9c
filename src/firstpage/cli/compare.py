"""`firstpage compare`: compare rankings, with significance tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from firstpage.cli import options, outputs, shared
from firstpage.cli.help import documented_command
from firstpage.cli.systems import RankingFiles, duplicates_option, ranking_arguments


@documented_command(
    "compare",
    "firstpage compare test.qrels bm25.run ours.run",
    "firstpage compare test.qrels 'systems/*.run' --baseline bm25 -o report.html",
    "firstpage compare test.qrels bm25.run ours.run --query-table classes.csv \\\n"
    "  --by language --weight traffic",
    "firstpage compare test.txt --scores ours.scores --scores theirs.scores \\\n"
    "  --baseline theirs -o report.html",
)
@ranking_arguments
@duplicates_option
@click.option(
    "--baseline", metavar="NAME", show_default="every pair",
    help="Compare all rankings with this one, by its run tag or file name.",
)  # fmt: skip
@click.option(
    "--test", default="randomization", show_default=True, metavar="NAME",
    help="Significance test: randomization, t or wilcoxon.",
)  # fmt: skip
@click.option(
    "--correction", default="holm", show_default=True, metavar="NAME",
    help="Correction for multiple comparisons: holm, bh or none.",
)  # fmt: skip
@options.integer(
    "--rounds", default=100_000, minimum=100,
    help="Permutations of the randomization test and of Tukey's test (at most 20,000).",
)  # fmt: skip
@options.measure_options
@click.option(
    "--query-table", type=options.FILE,
    help="Table with a row per query (CSV, JSON lines, Parquet), for --by and --weight.",
)  # fmt: skip
@click.option(
    "--by", metavar="COLUMN",
    help="Compare also within segments: a column of --query-table, cut points as in "
    "'traffic(10, 100)', or 'traffic(head)' for head, torso and tail.",
)  # fmt: skip
@click.option(
    "--weight", metavar="COLUMN",
    help="Weight the queries by a column of --query-table, such as their traffic.",
)  # fmt: skip
@options.report_options
def command(
    files: tuple[Path, ...], qrels: Path | None, scores: tuple[Path, ...], runs: tuple[Path, ...],
    duplicates: str, baseline: str | None, measures: tuple[str, ...], as_json: bool,
    format_: str | None, output: Path | None, per_query: Path | None, query_table: Path | None,
    by: str | None, weight: str | None, **settings: Any,
) -> None:  # fmt: skip
    """Compare rankings, with significance tests.

    Give judgments with several RUNS, or DATA with several --scores.  DATA with --qrels takes the
    labels from the judgments; documents without one have label 0.  A RUN is a file, a pattern of
    files, or - for standard input, and is named by its tag.
    """
    from firstpage.data.formats.query_table import QueryTable
    from firstpage.measures.compare import compare
    from firstpage.measures.comparison.segments import compare_segments
    from firstpage.measures.evaluate import DEFAULT_MEASURES
    from firstpage.measures.registry import measures as parse
    from firstpage.report.results import render

    rankings = RankingFiles.from_command_line(files, qrels, runs, scores)
    if rankings.count < 2:
        raise click.UsageError("give at least two rankings, all as --scores or all as runs.")
    options.only_with("--run or RUNS", bool(rankings.runs), "queries", "duplicates")
    parsed = parse(measures or DEFAULT_MEASURES)
    shared.check_rel(parsed)
    kind = outputs.report_format(format_, as_json, output)
    outputs.check_per_query(per_query)
    if (query_table is None) != (by is None and weight is None):
        raise click.UsageError("--query-table goes with --by or --weight; give both.")
    table = QueryTable({}) if query_table is None else QueryTable.read(query_table)
    truth = rankings.read_truth(parsed)
    systems = rankings.read_systems(truth, duplicates)
    comparison = compare(
        systems,
        truth,
        measures=measures or DEFAULT_MEASURES,
        baseline=rankings.baseline_name(baseline, systems),
        weights=None if weight is None else table.numbers(weight),
        **settings,
    )
    segments = None if by is None else compare_segments(comparison, table, by)
    outputs.write_per_query(list(comparison.evaluations), per_query)
    outputs.write_text(render(comparison, kind, rankings.source, segments), output)
