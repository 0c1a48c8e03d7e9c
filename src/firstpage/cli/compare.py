"""`firstpage compare`: compare rankings, with significance tests."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from firstpage.cli import options, outputs, shared
from firstpage.cli.click_estimates import click_options, take_estimates
from firstpage.cli.gate import GateRequest, check_options
from firstpage.cli.help import documented_command
from firstpage.cli.systems import (
    RankingFiles,
    duplicates_option,
    query_options,
    ranking_arguments,
    read_convention,
    read_query_table,
)
from firstpage.evaluation.comparison import compare, wins_and_losses
from firstpage.evaluation.measures import DEFAULT_MEASURES, Convention
from firstpage.evaluation.measures import measures as parse
from firstpage.interop.report import render


@documented_command(
    "compare",
    "firstpage compare test.qrels bm25.run ours.run",
    "firstpage compare test.qrels 'systems/*.run' --baseline bm25 -o report.html",
    "firstpage compare test.qrels bm25.run ours.run --query-table classes.csv \\\n"
    "  --by language --weight traffic",
    "firstpage compare test.qrels bm25.run ours.run --wins 3",
    "firstpage compare test.qrels bm25.run ours.run --baseline bm25 \\\n  --fail-if-worse 0.01",
    "firstpage compare test.txt --scores ours.scores --scores theirs.scores \\\n"
    "  --baseline theirs -o report.html",
)
@ranking_arguments
@click_options
@duplicates_option
@click.option(
    "--baseline",
    metavar="NAME",
    show_default="every pair",
    help="Compare all rankings with this one, by its run tag or file name.",
)
@click.option(
    "--test",
    default="randomization",
    metavar="NAME",
    help="Significance test: randomization, t or wilcoxon.",
)
@click.option(
    "--correction",
    default="holm",
    metavar="NAME",
    help="Correction for multiple comparisons: holm, bh or none.",
)
@options.integer(
    "--rounds",
    default=100_000,
    minimum=100,
    help="Permutations of the randomization test and of Tukey's test (at most 20,000).",
)
@options.measure_options
@query_options
@options.integer(
    "--wins",
    help="Show the N largest wins and losses in the first measure, and the N hardest "
    "queries, with the first documents of the rankings and their grades.",
)
@check_options
@options.report_options
def command(
    files: tuple[Path, ...],
    qrels: Path | None,
    scores: tuple[Path, ...],
    runs: tuple[Path, ...],
    duplicates: str,
    baseline: str | None,
    measures: tuple[str, ...],
    as_json: bool,
    format_: str | None,
    output: Path | None,
    per_query: Path | None,
    wins: int | None,
    **settings: Any,
) -> None:
    """Compare rankings, with significance tests.

    Give judgments with several RUNS, or DATA with several --scores.  DATA with --qrels takes the
    labels from the judgments; documents without one have label 0.  A RUN is a file, a pattern of
    files, or - for standard input, and is named by its tag.

    With --clicks, RUNS are compared by what they would have earned, in pairs on one log.

    With --fail-under or --fail-if-worse the command is a gate for continuous integration: its exit
    code is 1 where a check of a ranking other than the baseline fails.
    """
    estimates = take_estimates(settings, files, runs, measures, comparing=True)
    if estimates is not None:
        names = ("test", "correction", "rounds")
        chosen = {name: settings[name] for name in names} | {"baseline": baseline}
        kind = outputs.report_format(format_, as_json, output)
        outputs.check_per_query(per_query)
        convention = Convention(seed=settings["seed"])
        measured = {e.name: replace(e, convention=convention) for e in estimates}
        comparison = compare(measured, convention=convention, **chosen)
        outputs.write_per_query(list(comparison.evaluations), per_query)
        source = click.get_current_context().params["clicks"].name
        outputs.write_text(render(comparison, kind, source), output)
        return
    rankings = RankingFiles.from_command_line(files, qrels, runs, scores)
    if rankings.count < 2:
        raise click.UsageError("give at least two rankings, all as --scores or all as runs.")
    options.only_with(
        "--run or RUNS", bool(rankings.runs), "queries", "duplicates", "condensed", "bounds"
    )
    parsed = parse(measures or DEFAULT_MEASURES)
    shared.check_rel(parsed)
    kind = outputs.report_format(format_, as_json, output)
    outputs.check_per_query(per_query)
    options.only_with("another format than csv and latex", kind not in ("csv", "latex"), "wins")
    gate = GateRequest.from_options(settings, measures or DEFAULT_MEASURES, baseline is not None)
    settings |= {**read_query_table(settings), "convention": read_convention(settings)}
    truth = rankings.read_truth(parsed)
    systems = rankings.read_systems(truth, duplicates)
    comparison = compare(
        systems,
        truth,
        measures=gate.measures,
        baseline=rankings.baseline_name(baseline, systems),
        **settings,
    )
    outputs.write_per_query(list(comparison.evaluations), per_query)
    cases = None
    if wins is not None:
        cases = wins_and_losses(comparison, systems, truth, count=wins)
    outputs.write_text(render(comparison, kind, rankings.source, cases), output)
    against = {e.name: e for e in comparison.evaluations}.pop(comparison.baseline or "", None)
    if not gate.apply([e for e in comparison.evaluations if e is not against], against):
        click.get_current_context().exit(1)
