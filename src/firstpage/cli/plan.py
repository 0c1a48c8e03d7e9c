"""`firstpage plan`: the number of queries and judgments that a comparison needs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from firstpage.cli import options, outputs
from firstpage.cli.help import documented_command
from firstpage.cli.systems import RankingFiles, duplicates_option, ranking_arguments
from firstpage.evaluation.planning import DEFAULT_DIFFERENCES, plan


@documented_command(
    "plan",
    "firstpage plan test.qrels bm25.run ours.run -m NDCG@10 --difference 0.02",
    "firstpage plan --deviation 0.25 --correlation 0.7 --difference 0.01",
)
@ranking_arguments
@duplicates_option
@options.measures("Measure to plan for; may be repeated. NDCG@10 if there is none.")
@click.option(
    "--difference",
    "differences",
    type=float,
    multiple=True,
    metavar="NUMBER",
    help="True difference of the means to detect; may be repeated. 0.005 to 0.05 if there is none.",
)
@click.option(
    "--deviation",
    type=float,
    metavar="NUMBER",
    help="Without runs: standard deviation of a system's values over queries.",
)
@click.option(
    "--correlation",
    default=0.0,
    metavar="NUMBER",
    help="Without runs: correlation of the two systems over queries.",
)
@click.option(
    "--power", default=0.8, metavar="NUMBER", help="Probability that the difference is found."
)
@click.option(
    "--alpha", default=0.05, metavar="NUMBER", help="Level of the two-sided paired t-test."
)
@options.integer(
    "--comparisons", default=1, help="Comparisons among which the level is divided (Bonferroni)."
)
@options.integer(
    "--pool-depth", default=10, help="Documents per run and query that are to be judged."
)
@options.convention
@options.table_options("Write the plan to this file.")
def command(
    files: tuple[Path, ...],
    qrels: Path | None,
    scores: tuple[Path, ...],
    runs: tuple[Path, ...],
    duplicates: str,
    measures: tuple[str, ...],
    differences: tuple[float, ...],
    deviation: float | None,
    correlation: float,
    pool_depth: int,
    convention: str,
    as_json: bool,
    format_: str | None,
    output: Path | None,
    **settings: Any,
) -> None:
    """Compute how many queries and judgments a comparison needs.

    Give judgments with two or more RUNS on pilot queries, as in `compare`: the deviation of their
    differences is estimated from them.  Without runs, give --deviation and --correlation.
    """
    kind = outputs.report_format(format_, as_json, output, outputs.TABLES)
    rankings = RankingFiles.from_command_line(files, qrels, runs, scores)
    has_rankings = rankings.count > 0
    options.only_with("no runs", not has_rankings, "deviation", "correlation")
    options.only_with("runs", has_rankings, "qrels", "duplicates", "pool_depth", "convention")
    if has_rankings == (deviation is not None) or rankings.count == 1:
        raise click.UsageError("give judgments with two or more runs, or --deviation.")
    chosen = {"differences": differences or DEFAULT_DIFFERENCES, **settings}
    if has_rankings:
        truth = rankings.read_truth()
        systems = rankings.read_systems(truth, duplicates)
        chosen |= {"depth": pool_depth, "convention": convention}
        result = plan(systems, truth, measures=measures or "NDCG@10", **chosen)
    else:
        if len(measures) > 1:
            raise click.UsageError("with --deviation, name one measure.")
        text = measures[0] if measures else "NDCG@10"
        result = plan(measures=text, deviation=deviation, correlation=correlation, **chosen)
    outputs.write_table(result, kind, output)
