"""`firstpage evaluate`: measure rankings, a row per ranking."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click

from firstpage.cli import options, outputs, shared
from firstpage.cli.help import documented_command


@documented_command(
    "evaluate",
    "firstpage evaluate test.txt --scores ours.scores -m NDCG@10 -m AP --ci",
    "firstpage evaluate --qrels test.qrels --run ours.run --run bm25.run",
)
@options.truth_options
@click.option(
    "--scores", type=options.FILE, multiple=True,
    help="Scores of DATA, one per line in the order of DATA; may be repeated.",
)  # fmt: skip
@click.option(
    "--run", type=options.FILE, multiple=True, help="Run in TREC format; may be repeated."
)
@click.option(
    "--model", type=options.FILE, multiple=True,
    help="Model file, with which DATA is scored; may be repeated.",
)  # fmt: skip
@options.pad
@options.engine
@options.measure_options
@click.option("--ci", is_flag=True, help="Add 95 % bootstrap confidence intervals.")
@options.report_options
def command(
    data: Path | None, qrels: Path | None, scores: tuple[Path, ...], run: tuple[Path, ...],
    model: tuple[Path, ...], pad: bool, engine: str | None, measures: tuple[str, ...], ci: bool,
    as_json: bool, format_: str | None, output: Path | None, per_query: Path | None,
    **settings: Any,
) -> None:  # fmt: skip
    """Measure rankings against labels or judgments.

    Give DATA with --scores or --model, or --qrels with --run.  DATA with --qrels takes the labels
    from the judgments; documents without one have label 0.  DATA is labeled data (LETOR,
    Parquet, CSV, Arrow, npz), or a folder of shards; DATA with document ids can also be used with
    --run.  Each ranking has a row in the report.
    """
    from firstpage.data.formats.trec import read_run
    from firstpage.data.shards.shards import Shards
    from firstpage.measures.evaluate import DEFAULT_MEASURES, evaluate
    from firstpage.measures.registry import measures as parse
    from firstpage.report.results import render

    if bool(run) == bool(scores or model):
        raise click.UsageError(
            "give at least one ranking: --scores and --model, or --run without the other two."
        )
    options.only_with("--model, whose features the data may lack", bool(model), "pad")
    options.only_with("--run", bool(run), "queries")
    # a misspelled measure is an error before any file is read
    parsed = parse(measures or DEFAULT_MEASURES)
    shared.check_rel(parsed)
    kind = outputs.report_format(format_, as_json, output)
    outputs.check_per_query(per_query)
    _note_unused_seed(settings, ci or kind == "html")
    truth: Any = shared.read_truth(data, qrels, bool(run), bool(scores), parsed)
    options.only_with(options.SHARD_FOLDER, isinstance(truth, Shards), "engine")
    if run:
        truth = shared.as_qrels(truth)
    files = [*scores, *run, *model]
    readers: list[Callable[[Path], Any]]
    readers = [partial(shared.read_scores_of, truth)] * len(scores) + [read_run] * len(run)
    readers += [partial(_model_system, truth, pad)] * len(model)
    evaluations = [
        evaluate(
            read(file),
            truth,
            measures=measures or DEFAULT_MEASURES,
            ci=ci or kind == "html",
            name=name,
            engine=engine,
            **settings,
        )
        for name, file, read in zip(shared.system_names(files), files, readers, strict=True)
    ]
    outputs.write_per_query(evaluations, per_query)
    outputs.write_text(render(evaluations, kind, (data or qrels or Path()).name), output)


def _note_unused_seed(settings: dict[str, Any], resampled: bool) -> None:
    """Print that the seed has no effect where nothing is random.

    This is a note and not an error, because scripts pass one seed to every command.
    """
    from firstpage.measures.measure import resolve_convention

    ties = resolve_convention(settings["convention"], ties=settings["ties"]).ties
    random = resampled or settings["k"] or settings["depth"] or ties == "shuffle"
    if options.on_command_line("seed") and not random:
        shared.note("--seed has no effect: nothing is random without --ci, --k or --depth.")


def _model_system(truth: Any, pad: bool, path: Path) -> Any:
    """Return the model itself for shards, which it scores in place; else its scores."""
    from firstpage.data.dataset import Dataset
    from firstpage.data.shards.shards import Shards
    from firstpage.rankers.model_files import read_model

    model = read_model(path)
    if isinstance(truth, Shards):
        return model.stage_for(truth, pad)
    if not isinstance(truth, Dataset):
        raise click.UsageError("--model requires a data file, whose documents it scores.")
    return model.predict(truth, pad=pad)
