"""`firstpage evaluate`: measure one ranking."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from firstpage.cli import options, shared


@click.command("evaluate")
@options.truth
@click.option("--scores", type=options.FILE, help="One score a line, in the order of DATA.")
@click.option("--run", type=options.FILE, help="A run in TREC form.")
@options.meaning
@click.option("--ci", is_flag=True, help="Add 95 % bootstrap intervals.")
@options.results
def command(
    data: Path | None,
    qrels: Path | None,
    scores: Path | None,
    run: Path | None,
    measures: tuple[str, ...],
    ci: bool,
    as_json: bool,
    format_: str | None,
    output: Path | None,
    per_query: Path | None,
    **settings: Any,
) -> None:
    """Measure a ranking: DATA with --scores, or --qrels with --run.

    DATA is labelled data (LETOR, Parquet, CSV, Arrow, npz); DATA with document ids also goes
    with --run.
    """
    from firstpage.measures.evaluate import DEFAULT_MEASURES, evaluate
    from firstpage.measures.parse import measures as parse
    from firstpage.report.results import checked_format, render

    if (scores is None) == (run is None):
        raise click.UsageError("give the ranking once: --scores or --run.")
    parse(measures or DEFAULT_MEASURES)  # a misspelt name is said before files are read
    shown = checked_format(shared.chosen_format(format_, as_json, output))
    truth: Any = shared.read_truth(data, qrels)
    system = shared.read_system(truth, scores, run)
    if run is not None:
        truth = shared.as_qrels(truth)
    found = evaluate(
        system,
        truth,
        measures=measures or DEFAULT_MEASURES,
        ci=ci or shown == "html",
        name=(scores or run or Path()).name,
        **settings,
    )
    shared.write_per_query([found], per_query)
    shared.deliver(render(found, shown, (data or qrels or Path()).name), output)
