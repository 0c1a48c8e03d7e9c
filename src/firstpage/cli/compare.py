"""`firstpage compare`: compare rankings, with significance tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from firstpage.cli import options, outputs, shared
from firstpage.cli.help import documented_command


@documented_command(
    "compare",
    "firstpage compare --qrels test.qrels --run bm25.run --run ours.run",
    "firstpage compare test.txt --scores ours.scores --scores theirs.scores \\\n"
    "  --baseline theirs -o report.html",
)
@options.truth_options
@click.option(
    "--scores", type=options.FILE, multiple=True, help="Scores of DATA; repeat the option."
)
@click.option(
    "--run", type=options.FILE, multiple=True, help="Run in TREC format; repeat the option."
)
@click.option(
    "--baseline", metavar="NAME", show_default="every pair",
    help="Compare all rankings with this one, by its file name or run tag.",
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
@options.report_options
def command(
    data: Path | None, qrels: Path | None, scores: tuple[Path, ...], run: tuple[Path, ...],
    baseline: str | None, measures: tuple[str, ...], as_json: bool, format_: str | None,
    output: Path | None, per_query: Path | None, **settings: Any,
) -> None:  # fmt: skip
    """Compare rankings, with significance tests.

    Give DATA with several --scores, or --qrels with several --run.  DATA with --qrels takes the
    labels from the judgments; documents without one have label 0.
    """
    from firstpage.measures.compare import compare
    from firstpage.measures.evaluate import DEFAULT_MEASURES
    from firstpage.measures.registry import measures as parse
    from firstpage.report.results import render

    if bool(scores) == bool(run) or len(scores) + len(run) < 2:
        raise click.UsageError("give at least two rankings, all as --scores or all as --run.")
    options.only_with("--run", bool(run), "queries")
    parsed = parse(measures or DEFAULT_MEASURES)
    shared.check_rel(parsed)
    kind = outputs.report_format(format_, as_json, output)
    outputs.check_per_query(per_query)
    truth: Any = shared.read_truth(data, qrels, bool(run), bool(scores), parsed)
    systems = shared.read_systems([*scores, *run], truth, bool(run))
    if run:
        truth = shared.as_qrels(truth)
    comparison = compare(
        systems,
        truth,
        measures=measures or DEFAULT_MEASURES,
        baseline=shared.baseline_name(baseline, systems),
        **settings,
    )
    outputs.write_per_query(list(comparison.evaluations), per_query)
    outputs.write_text(render(comparison, kind, (data or qrels or Path()).name), output)
