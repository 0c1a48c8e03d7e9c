"""`firstpage evaluate`: measure rankings, a row per ranking."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click

from firstpage.cli import options, outputs, shared
from firstpage.cli.click_estimates import click_options, take_estimates
from firstpage.cli.gate import GateRequest, gate_options, read_baseline, save_baseline
from firstpage.cli.help import documented_command
from firstpage.cli.pair_accuracy import pairs_option, report_pairs
from firstpage.cli.systems import (
    RankingFiles,
    duplicates_option,
    query_options,
    ranking_arguments,
    read_convention,
    read_query_table,
)
from firstpage.data import Dataset
from firstpage.data.shards import Shards
from firstpage.evaluation.measures import DEFAULT_MEASURES, evaluate
from firstpage.evaluation.measures import measures as parse
from firstpage.interop.report import render
from firstpage.learning import (
    models as model_files,
)  # the face: only a model loads what is behind it


@documented_command(
    "evaluate",
    "firstpage evaluate test.qrels ours.run bm25.run",
    "firstpage evaluate --qrels test.qrels 'systems/*.run' -m NDCG@10 -m AP --ci",
    "firstpage evaluate test.txt --scores ours.scores -m NDCG@10 -m AP --ci",
    "firstpage evaluate test.qrels ours.run --query-table classes.csv \\\n"
    "  --by language --weight traffic",
    "firstpage evaluate test.qrels ours.run --baseline bm25.run \\\n  --fail-if-worse 0.01",
    "firstpage evaluate train.txt --pairs pairs.csv --model model.json",
)
@ranking_arguments
@click_options
@pairs_option
@click.option(
    "--model",
    "models",
    type=options.FILE,
    multiple=True,
    help="Model file, with which DATA is scored; may be repeated.",
)
@duplicates_option
@options.pad
@options.engine
@options.measure_options
@click.option("--ci", is_flag=True, help="Add 95 % bootstrap confidence intervals.")
@query_options
@gate_options
@options.report_options
def command(
    files: tuple[Path, ...],
    qrels: Path | None,
    scores: tuple[Path, ...],
    runs: tuple[Path, ...],
    models: tuple[Path, ...],
    pairs: Path | None,
    duplicates: str,
    pad: bool,
    engine: str | None,
    measures: tuple[str, ...],
    ci: bool,
    as_json: bool,
    format_: str | None,
    output: Path | None,
    per_query: Path | None,
    **settings: Any,
) -> None:
    """Measure rankings against labels or judgments.

    Give judgments with RUNS, or DATA with --scores or --model.  DATA with --qrels takes the labels
    from the judgments; documents without one have label 0.  DATA is labeled data (LETOR, Parquet,
    CSV, Arrow, npz), or a folder of shards.  A RUN is a file, a pattern of files, or - for standard
    input, and is named by its tag.  Each ranking has a row in the report.

    With --by, the means are computed also within segments of the queries.  With --condensed,
    unjudged documents are removed from RUNS first.

    With --pairs, rankings are measured on votes on pairs of documents: the fraction of votes that
    they agree with.

    With --clicks, the clicks on old rankings say what RUNS would have earned.

    With --fail-under or --fail-if-worse the command is a gate for continuous integration: its exit
    code is 1 where a check fails.
    """
    estimates = take_estimates(settings, files, runs, measures)
    if estimates is not None:
        outputs.check_per_query(per_query)
        kind = outputs.report_format(format_, as_json, output)
        outputs.write_per_query(estimates, per_query)
        text = "\n\n".join(f"{e.name}: {e}" for e in estimates)
        source = click.get_current_context().params["clicks"].name
        outputs.write_text(text if kind == "text" else render(estimates, kind, source), output)
        return
    if pairs is not None and not (scores or models):
        files, runs = (), (*files, *runs)  # the votes are the truth
    rankings = RankingFiles.from_command_line(files, qrels, runs, scores, models)
    if not rankings.count:
        raise click.UsageError(
            "give at least one ranking: --scores and --model, or --run without the other two."
        )
    options.only_with("--model, whose features the data may lack", bool(models), "pad")
    if pairs is not None:
        kind, seed = outputs.report_format(format_, as_json, output), settings["seed"]
        outputs.check_per_query(per_query)
        report_pairs(pairs, rankings, pad, ci, seed, kind, per_query, output)
        return
    options.only_with(
        "--run or RUNS", bool(rankings.runs), "queries", "duplicates", "condensed", "bounds"
    )
    # a misspelled measure is an error before any file is read
    parsed = parse(measures or DEFAULT_MEASURES)
    shared.check_rel(parsed)
    baseline, saved = settings.pop("baseline"), settings.pop("save_baseline")
    gate = GateRequest.from_options(settings, measures or DEFAULT_MEASURES, baseline is not None)
    options.only_with("--fail-if-worse", gate.margins is not None, "baseline")
    settings |= {**read_query_table(settings), "convention": read_convention(settings)}
    kind = outputs.report_format(format_, as_json, output)
    outputs.check_per_query(per_query)
    _note_unused_seed(settings, ci or kind == "html")
    truth = rankings.read_truth(parsed)
    options.only_with(options.SHARD_FOLDER, isinstance(truth, Shards), "engine")
    systems = rankings.read_systems(truth, duplicates, partial(_model_system, truth, pad))
    if saved is not None and len(systems) != 1:
        raise click.UsageError("--save-baseline stores one ranking; give one.")
    measured = partial(
        evaluate,
        truth=truth,
        measures=gate.measures,
        ci=ci or kind == "html",
        engine=engine,
        **settings,
    )
    evaluations = [measured(system=system, name=name) for name, system in systems.items()]
    outputs.write_per_query(evaluations, per_query)
    outputs.write_text(render(evaluations, kind, rankings.source), output)
    earlier = read_baseline(
        baseline, truth, lambda p: measured(system=rankings.read(p, truth, duplicates), name=p.name)
    )
    if not gate.apply(evaluations, earlier):
        if saved is not None:
            shared.note(f"{saved} is not written: a check failed.")
        click.get_current_context().exit(1)
    if saved is not None:
        save_baseline(evaluations[0], truth, saved)


def _note_unused_seed(settings: dict[str, Any], resampled: bool) -> None:
    """Print that the seed has no effect where nothing is random.

    This is a note and not an error, because scripts pass one seed to every command.
    """
    convention = settings["convention"]
    random = resampled or settings["k"] or convention.depth or convention.ties == "shuffle"
    if options.on_command_line("seed") and not random:
        shared.note("--seed has no effect: nothing is random without --ci, --k or --depth.")


def _model_system(truth: Any, pad: bool, path: Path) -> Any:
    """Return the model itself for shards, which it scores in place; else its scores."""
    model = model_files.read_model(path)
    if isinstance(truth, Shards):
        return model.stage_for(truth, pad)
    if not isinstance(truth, Dataset):
        raise click.UsageError("--model requires a data file, whose documents it scores.")
    return model.predict(truth, pad=pad)
