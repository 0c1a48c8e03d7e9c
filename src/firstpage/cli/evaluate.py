"""`firstpage evaluate`: measure rankings, a row per ranking."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click

from firstpage.cli import options, outputs, shared


@click.command("evaluate")
@options.truth
@click.option(
    "--scores", type=options.FILE, multiple=True,
    help="One score a line, in the order of DATA; may be repeated.",
)  # fmt: skip
@click.option("--run", type=options.FILE, multiple=True, help="A run in TREC form; repeat it.")
@click.option(
    "--model", type=options.FILE, multiple=True,
    help="A model file, which scores DATA itself; may be repeated.",
)  # fmt: skip
@options.pad
@options.engine
@options.meaning
@click.option("--ci", is_flag=True, help="Add 95 % bootstrap intervals.")
@options.results
def command(
    data: Path | None, qrels: Path | None, scores: tuple[Path, ...], run: tuple[Path, ...],
    model: tuple[Path, ...], pad: bool, engine: str | None, measures: tuple[str, ...], ci: bool,
    as_json: bool, format_: str | None, output: Path | None, per_query: Path | None,
    **settings: Any,
) -> None:  # fmt: skip
    """Measure rankings: DATA with --scores or --model, or --qrels with --run.

    DATA is labeled data (LETOR, Parquet, CSV, Arrow, npz), or a folder of shards; DATA with
    document ids also goes with --run.  Several rankings are measured one by one, a row each.
    """
    from firstpage.data.formats.trec import read_run
    from firstpage.data.shards.shards import Shards
    from firstpage.measures.evaluate import DEFAULT_MEASURES, evaluate
    from firstpage.measures.registry import measures as parse
    from firstpage.report.results import render

    if bool(run) == bool(scores or model):
        raise click.UsageError(
            "give rankings: --scores, --run or --model, each as often as you like; --run goes "
            "without the other two."
        )
    options.only_with("--model, whose features the data may lack", bool(model), "pad")
    options.only_with("--run", bool(run), "queries")
    # a misspelled name is said before files are read
    shared.check_rel(parse(measures or DEFAULT_MEASURES))
    shown = outputs.chosen_format(format_, as_json, output)
    outputs.check_per_query(per_query)
    _note_seed(settings, ci or shown == "html")
    truth: Any = shared.read_truth(data, qrels)
    options.only_with(options.SHARDS, isinstance(truth, Shards), "engine")
    if run:
        truth = shared.as_qrels(truth)
    files = [*scores, *run, *model]
    read: list[Callable[[Path], Any]]
    read = [partial(shared.read_scores_of, truth)] * len(scores) + [read_run] * len(run)
    read += [partial(_by_model, truth, pad)] * len(model)
    evaluations = [
        evaluate(
            system(file),
            truth,
            measures=measures or DEFAULT_MEASURES,
            ci=ci or shown == "html",
            name=name,
            engine=engine,
            **settings,
        )
        for name, file, system in zip(shared.system_names(files), files, read, strict=True)
    ]
    outputs.write_per_query(evaluations, per_query)
    outputs.deliver(render(evaluations, shown, (data or qrels or Path()).name), output)


def _note_seed(settings: dict[str, Any], resampled: bool) -> None:
    """Say that a seed is without effect where nothing is random.

    It is a note, no refusal: scripts hand one seed to every command.
    """
    from firstpage.measures.measure import resolve_convention

    ties = resolve_convention(settings["convention"], ties=settings["ties"]).ties
    random = resampled or settings["k"] or settings["depth"] or ties == "shuffle"
    if options.is_given("seed") and not random:
        shared.note("--seed changes nothing here: nothing is random without --ci, --k or --depth.")


def _by_model(truth: Any, pad: bool, path: Path) -> Any:
    """The model itself for shards, which it scores where they are; else its scores."""
    from firstpage.data.dataset import Dataset
    from firstpage.data.shards.shards import Shards
    from firstpage.rankers.fit.checks import check_finite
    from firstpage.rankers.model_files import read_model

    model = read_model(path)
    if isinstance(truth, Shards):
        return model.stage_for(truth, pad)
    if not isinstance(truth, Dataset):
        raise click.UsageError("--model goes with a data file, whose documents it scores.")
    check_finite(truth)
    return model.predict(truth, pad=pad)
