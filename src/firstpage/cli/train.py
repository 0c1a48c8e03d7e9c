"""`firstpage train`: train a ranker on a file and write the model."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click

from firstpage.cli import options, outputs, ranker_options, shared
from firstpage.cli.clicks.training import (
    CLICK_NAMES,
    check_clicks,
    click_options,
    learn_from_clicks,
)
from firstpage.cli.help import documented_command
from firstpage.core import Table, parse_literal, split_arguments
from firstpage.data import match_columns
from firstpage.data.preferences import PreferencePairs
from firstpage.data.shards import Shards, is_shard_folder
from firstpage.learning.rankers import Ranker, Step, Trial, Tuned, informative_queries, tune

TRIAL_FORMATS = ("csv", "json")
SMALLEST_PERCENT = 1e-4  # an optimality gap below it is reported as this much


@documented_command(
    "train",
    'firstpage train "ListMLE(k=10)" train.txt --valid vali.txt -o model.json',
    "firstpage train FocusedNet train.txt --valid vali.txt --tune -o model.json",
    "firstpage train ListNet train.txt --qrels test.qrels -o model.json",
    "firstpage train RankNet train.parquet --pairs pairs.csv -o model.json",
)
@click.argument("ranker")
@click.argument("train", type=options.FILE)
@click.option(
    "--valid",
    type=options.FILE,
    help="Validation data, which choose the number of iterations and the parameters.",
)
@options.judgment_options
@options.categorical
@click.option(
    "--position",
    metavar="COLUMN",
    help="Column of a table with the positions at which documents were shown (LambdaMART).",
)
@options.confidences
@options.pairs
@click_options
@options.ranker_options
@click.option(
    "--tune", is_flag=True, help="Choose parameters on --valid from the grids of the papers."
)
@click.option(
    "--tuner",
    type=click.Choice(["grid", "optuna"]),
    default="grid",
    show_default=True,
    help="Search method of --tune.",
)
@click.option(
    "--grid",
    multiple=True,
    metavar="NAME=A,B",
    help="Values of a parameter to try instead of the papers' grid; may be repeated.",
)
@options.integer("--trials", default=30, help="Number of trials of --tuner optuna.")
@click.option(
    "--trials-to",
    type=outputs.OutputFile(*TRIAL_FORMATS),
    help="Write all trials to this file (.csv or .json).",
)
@options.integer("--threads", show_default="all cores", help="Number of threads.")
@options.pad
@options.engine
@click.option(
    "--checkpoint",
    type=outputs.OutputFile("json"),
    help="Save the state of training to this file; the next run resumes from it.",
)
@options.output("json", required=True, help="Write the model to this file.")
@options.as_json
def command(
    ranker: str,
    train: Path,
    valid: Path | None,
    qrels: Path | None,
    unjudged: str,
    categorical: tuple[str, ...],
    position: str | None,
    confidences: bool,
    pairs: Path | None,
    clicks: Path | None,
    settings: tuple[str, ...],
    measure: str | None,
    normalize: str,
    seed: int,
    tune: bool,
    tuner: str,
    grid: tuple[str, ...],
    trials: int,
    trials_to: Path | None,
    threads: int | None,
    pad: bool,
    engine: str | None,
    checkpoint: Path | None,
    output: Path,
    as_json: bool,
    **of_clicks: Any,
) -> None:
    """Train a ranker and write the model.

    RANKER is a name that `firstpage rankers` lists; it may carry parameters, as in
    "ListMLE(k=10)" or "FocusedNet(k=10, beta=0.4)".  TRAIN is a data file, or a folder that
    `firstpage shard` wrote.  With --qrels, judgments replace the labels of TRAIN and of --valid;
    with --pairs, RankNet, RankSVM or FocusedNet is trained on votes on pairs of their documents;
    with --clicks, on clicks on the documents of TRAIN: RankNet and RankSVM as pairs, others as
    labels.
    """
    tuned_search = bool(tune or grid)
    options.only_with("--tune or --grid", tuned_search, "tuner", "trials", "trials_to")
    options.only_with("--tuner optuna", tuner == "optuna", "trials")
    options.only_with("--valid", valid is not None, "pad")
    options.only_with("--clicks", clicks is not None, *CLICK_NAMES)
    _check_usage(train, valid, tuned_search, trials_to, checkpoint, output)

    model = ranker_options.ranker_from_options(ranker, settings, measure, normalize, seed, threads)
    ranker_options.refuse_without_validation(model, "--valid", valid is not None)
    by_pairs = clicks is not None and check_clicks(model, pairs=pairs, qrels=qrels, valid=valid)
    judgments = shared.read_qrels_option(qrels, confidences)
    votes = None if pairs is None else ranker_options.read_pairs_option(pairs, model)
    labeled = qrels is None and (votes is None or model.compose("votes").reads_labels)
    if votes is not None and qrels is not None and not model.compose("votes").reads_labels:
        raise click.UsageError(f"{type(model).__name__} trains on --pairs alone; drop --qrels.")
    read_options = shared.feature_options(categorical, position)
    own_labels = labeled and clicks is None
    data: Any = shared.read_data_or_shards(train, labeled=own_labels, **read_options)
    if isinstance(data, Shards) and tuned_search:
        raise click.UsageError("--tune and --grid need training data in memory, not shards.")
    options.only_with(options.SHARD_FOLDER, isinstance(data, Shards), "engine")
    valid_data = None
    if valid is not None:
        valid_options = shared.feature_options(categorical)
        valid_options |= shared.numbered_as(data.zero_based, valid)
        valid_data = shared.read_data(valid, labeled=labeled, **valid_options)
        if valid_data.zero_based and not data.zero_based:
            read_options |= shared.numbered_as(True, train)
            data = shared.read_data_or_shards(train, labeled=own_labels, **read_options)
    data, valid_data = shared.join_judgments([data, valid_data], judgments, unjudged)
    if valid is not None and isinstance(data, Shards) and valid.resolve().parent == train.resolve():
        shared.note(f"{valid} is also a file of training data; choices made on it overfit.")
    if pad and valid_data is not None:
        data, valid_data = _padded(data, valid_data)
    if clicks is not None:
        learned = learn_from_clicks(clicks, data, of_clicks)
        data, votes = learned.data, learned.pairs if by_pairs else None
    elif votes is not None:
        _note_pairs(model, votes, data, valid_data)
    elif not isinstance(data, Shards):
        _note_uninformative_queries(model, data)
    start = time.perf_counter()
    tuned = None
    if tuned_search:
        tuned = _tune(model, data, valid_data, tuner, grid, trials, votes)
        if diverged := sum(math.isnan(trial.score) for trial in tuned.trials):
            shared.note(f"{diverged} of {len(tuned.trials)} trials diverged; they have no score.")
        model, interrupted = tuned.best, tuned.interrupted
    else:
        with shared.status_line("training") as show:
            callback = (
                None if show is None else partial(_show_step, show, str(model.validation_measure()))
            )
            model.fit(
                data,
                valid=valid_data,
                progress=callback,
                engine=engine,
                checkpoint=checkpoint,
                pairs=votes,
            )
        interrupted = model.interrupted_
    model.save(output)
    if tuned is not None and trials_to is not None:
        _write_trials(tuned, trials_to)
    _report(model, time.perf_counter() - start, output, as_json)
    if interrupted:
        sys.exit(130)


def _check_usage(
    train: Path,
    valid: Path | None,
    tuned: bool,
    trials_to: Path | None,
    checkpoint: Path | None,
    output: Path,
) -> None:
    """Refuse options that do not go together, before any file is read."""
    if tuned and valid is None:
        raise click.UsageError("--tune and --grid choose on validation data; give --valid.")
    if train.is_dir() and not is_shard_folder(train):
        raise click.UsageError(
            f"{train} is a folder without data files or shards; `firstpage crossval` trains over "
            "folds."
        )
    for file in filter(None, (output, trials_to)):
        if str(file) == "-" or file.is_dir() or not file.absolute().parent.is_dir():
            raise click.UsageError(f"{file}: cannot be written there.")
    if checkpoint is not None and tuned:
        raise click.UsageError("--checkpoint works for a single fit, not with --tune or --grid.")
    if trials_to is not None:
        outputs.format_by_suffix(trials_to, TRIAL_FORMATS, "--trials-to")


def _note_uninformative_queries(ranker: Ranker, data: Any) -> None:
    """Print how many queries have equal labels only: rankers that learn preferences skip them."""
    skipped = len(data) - int(informative_queries(data).sum())
    if 0 < skipped < len(data) and ranker.needs_preferences:
        shared.note(
            f"{data.source}: {skipped} of {len(data)} queries have a single label value; skipped."
        )


def _note_pairs(ranker: Ranker, votes: PreferencePairs, data: Any, valid: Any) -> None:
    """Print how many votes are trained on, and what is not used."""
    if isinstance(data, Shards):
        return  # refused by `fit`
    trained = votes.to_rows(data)
    validated = None if valid is None else votes.to_rows(valid)[1]
    text = f"{votes.source}: {int(trained[1].sum()):,} of {len(votes):,} votes are trained on"
    if validated is not None:
        text += f", and {int(validated.sum()):,} validate"
    unvoted = int((trained[0].per_query() == 0).sum())
    if unvoted:
        text += f"; {unvoted:,} of {len(data):,} queries of {data.source} have none"
    if not ranker.compose("votes").reads_labels and data.y.min() < data.y.max():
        text += f"; the labels of {data.source} are not used"
    shared.note(f"{text}.")


def _padded(data: Any, valid: Any) -> tuple[Any, Any]:
    """Return both data sets with equally many features; named features stay as they are.

    Shards cannot be widened.
    """
    if data.feature_names is not None or valid.feature_names is not None:
        return data, valid
    if data.n_features < valid.n_features and not isinstance(data, Shards):
        wider = match_columns(data, None, valid.n_features, valid.source, pad=True)
        return wider.apply(data), valid
    return data, match_columns(valid, None, data.n_features, data.source, pad=True).apply(valid)


def _tune(
    ranker: Ranker,
    data: Any,
    valid: Any,
    method: str,
    grid: tuple[str, ...],
    trials: int,
    votes: PreferencePairs | None,
) -> Tuned:
    """Choose the parameters on validation data; print each trial if on a terminal."""
    search: dict[str, list[Any]] = {}
    for item in grid:
        name, equals, values = item.partition("=")
        if not equals:
            raise click.UsageError(f"--grid takes NAME=A,B; got {item!r}.")
        if name.strip() in search:
            raise click.UsageError(
                f"--grid {name.strip()} is given twice; give all its values at once."
            )
        search[name.strip()] = [parse_literal(v) for v in split_arguments(values) if v.strip()]

    def print_trial(number: int, total: int, trial: Trial) -> None:
        if sys.stderr.isatty():
            parameters = ", ".join(f"{k}={v}" for k, v in trial.parameters.items())
            print(f"{number}/{total}  {parameters}  {trial.score:.4f}", file=sys.stderr, flush=True)

    return tune(ranker, data, valid, search or None, method, trials, print_trial, votes)


def _show_step(show: Callable[[str], None], measure: str, step: Step) -> None:
    """Show the loss and the measure of an iteration."""
    value = "" if step.measure is None else f"  {measure} {step.measure:.4f}"
    show(f"iteration {step.iteration}  loss {step.loss:.6g}{value}")


def _report(ranker: Ranker, seconds: float, output: Path, as_json: bool) -> None:
    """Print what was trained, on which data, and how well it does."""
    record = ranker.training_
    if as_json:
        print(
            json.dumps({"model": str(output), "ranker": str(ranker), "seconds": seconds, **record})
        )
        return
    print(f"{ranker}")
    print(
        f"  {record['data']['queries']} queries, {record['data']['documents']} documents, "
        f"{record['data']['features']} features; {record['iterations']} iterations, "
        f"{seconds:.2f} s{_objective_text(ranker)}"
    )
    if "pairs" in record:
        of_pairs = record["pairs"]
        print(
            f"  {of_pairs['votes']:,g} votes on {of_pairs['pairs']:,} pairs of "
            f"{of_pairs['queries']:,} queries"
        )
    if ranker.best_score_ is not None:
        best = f" (iteration {ranker.best_iteration_})" if ranker.best_iteration_ else ""
        print(f"  {record['measure']} on validation data: {ranker.best_score_:.4f}{best}")
    print(f"wrote {output}", file=sys.stderr)


def _objective_text(ranker: Ranker) -> str:
    """Return the value of the objective, with the optimality gap where it is known."""
    if math.isnan(ranker.objective_):
        return ""
    if math.isnan(ranker.gap_):
        return f"; objective {ranker.objective_:.6g}"
    optimum = "the last round's optimum" if ranker.gap_note_ else "the optimum"
    percent = max(100 * ranker.gap_, SMALLEST_PERCENT)
    return f"; objective {ranker.objective_:.6g} (within {percent:.2g} % of {optimum})"


def _write_trials(tuned: Tuned, path: Path) -> None:
    rows = [
        {k: v if isinstance(v, (int, float)) else str(v) for k, v in r.items()}
        for r in tuned.table()
    ]
    if outputs.format_by_suffix(path, TRIAL_FORMATS, "--trials-to") == "json":
        outputs.write_text(json.dumps(rows, indent=1), path)
        return

    head = list(rows[0])
    outputs.write_text(Table(head, [[str(r[h]) for h in head] for r in rows]).csv(), path)
