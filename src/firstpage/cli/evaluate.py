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
@click.option("--model", type=options.FILE, help="A model file, which scores DATA itself.")
@options.engine
@options.meaning
@click.option("--ci", is_flag=True, help="Add 95 % bootstrap intervals.")
@options.results
def command(
    data: Path | None,
    qrels: Path | None,
    scores: Path | None,
    run: Path | None,
    model: Path | None,
    engine: str | None,
    measures: tuple[str, ...],
    ci: bool,
    as_json: bool,
    format_: str | None,
    output: Path | None,
    per_query: Path | None,
    **settings: Any,
) -> None:
    """Measure a ranking: DATA with --scores or --model, or --qrels with --run.

    DATA is labelled data (LETOR, Parquet, CSV, Arrow, npz), or a folder of shards; DATA with
    document ids also goes with --run.
    """
    from firstpage.data.shards import Shards
    from firstpage.measures.evaluate import DEFAULT_MEASURES, evaluate
    from firstpage.measures.parse import measures as parse
    from firstpage.report.results import checked_format, render

    if sum(given is not None for given in (scores, run, model)) != 1:
        raise click.UsageError("give the ranking once: --scores, --run or --model.")
    parse(measures or DEFAULT_MEASURES)  # a misspelt name is said before files are read
    shown = checked_format(shared.chosen_format(format_, as_json, output))
    truth: Any = shared.read_truth(data, qrels)
    if engine is not None and not isinstance(truth, Shards):
        raise click.UsageError("--engine goes with a folder of shards (`firstpage shard`).")
    system = shared.read_system(truth, scores, run) if model is None else _by_model(model, truth)
    if run is not None:
        truth = shared.as_qrels(truth)
    found = evaluate(
        system,
        truth,
        measures=measures or DEFAULT_MEASURES,
        ci=ci or shown == "html",
        name=(scores or run or model or Path()).name,
        engine=engine,
        **settings,
    )
    shared.write_per_query([found], per_query)
    shared.deliver(render(found, shown, (data or qrels or Path()).name), output)


def _by_model(path: Path, truth: Any) -> Any:
    """The model itself for shards, which it scores where they are; else its scores."""
    from firstpage.data.dataset import Dataset
    from firstpage.data.shards import Shards
    from firstpage.rankers.files import read_model
    from firstpage.rankers.training import check_finite

    model = read_model(path)
    if isinstance(truth, Shards):
        return model
    if not isinstance(truth, Dataset):
        raise click.UsageError("--model goes with a data file, whose documents it scores.")
    check_finite(truth)
    return model.predict(truth)
