"""`firstpage compare`: several rankings, and whether they differ."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from firstpage.cli import options, outputs, shared


@click.command("compare")
@options.truth
@click.option("--scores", type=options.FILE, multiple=True, help="Scores of DATA; repeat it.")
@click.option("--run", type=options.FILE, multiple=True, help="A run in TREC form; repeat it.")
@click.option(
    "--baseline",
    metavar="NAME",
    help="Compare all with this one (file name or tag); else every pair.",
)
@click.option(
    "--test", default="randomization", show_default=True, help="randomization, t or wilcoxon."
)
@click.option("--correction", default="holm", show_default=True, help="holm, bh or none.")
@options.whole(
    "--rounds",
    default=100_000,
    least=100,
    help="Random patterns of the randomization test, and of the Tukey test (20,000 at most).",
)
@options.meaning
@options.results
def command(
    data: Path | None, qrels: Path | None, scores: tuple[Path, ...], run: tuple[Path, ...],
    baseline: str | None, measures: tuple[str, ...], as_json: bool, format_: str | None,
    output: Path | None, per_query: Path | None, **settings: Any,
) -> None:  # fmt: skip
    """Compare rankings: DATA with several --scores, or --qrels with several --run."""
    from firstpage.measures.compare import compare
    from firstpage.measures.evaluate import DEFAULT_MEASURES
    from firstpage.measures.registry import measures as parse
    from firstpage.report.results import render

    if bool(scores) == bool(run) or len(scores) + len(run) < 2:
        raise click.UsageError("give at least two rankings, all as --scores or all as --run.")
    options.only_with("--run", bool(run), "queries")
    shared.check_rel(parse(measures or DEFAULT_MEASURES))
    shown = outputs.chosen_format(format_, as_json, output)
    outputs.check_per_query(per_query)
    truth: Any = shared.read_truth(data, qrels)
    systems = shared.named_systems([*scores, *run], truth, bool(run))
    if run:
        truth = shared.as_qrels(truth)
    found = compare(
        systems,
        truth,
        measures=measures or DEFAULT_MEASURES,
        baseline=shared.full_name(baseline, systems),
        **settings,
    )
    outputs.write_per_query(list(found.evaluations), per_query)
    outputs.deliver(render(found, shown, (data or qrels or Path()).name), output)
