"""`firstpage train`: learn a ranker from a file, and write it down."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from firstpage.cli import options, outputs, shared

if TYPE_CHECKING:
    from firstpage.rankers.fit.progress import Step
    from firstpage.rankers.ranker import Ranker
    from firstpage.rankers.selection.tuning import Tuned

TRIALS = ("csv", "json")  # formats of --trials-to


@click.command("train")
@click.argument("ranker")
@click.argument("train", type=options.FILE)
@click.option("--valid", type=options.FILE, help="Validation data: chooses iterations, parameters.")
@options.settings
@click.option("--tune", is_flag=True, help="Choose parameters on --valid: the papers' grids.")
@click.option(
    "--tuner", type=click.Choice(["grid", "optuna"]), default="grid", show_default=True,
    help="How --tune searches.",
)  # fmt: skip
@click.option(
    "--grid", multiple=True, metavar="NAME=A,B,..", help="Values to try instead; may be repeated."
)
@options.whole("--trials", default=30, help="Of Optuna.")
@click.option(
    "--trials-to", type=outputs.OutputFile(*TRIALS), help="Write all trials here (.csv or .json)."
)
@options.whole("--threads", help="All cores, if not given.")
@options.pad
@options.engine
@click.option(
    "--checkpoint", type=outputs.OutputFile("json"),
    help="Keep here where training stands; if it breaks off, the next run goes on from there.",
)  # fmt: skip
@options.output("json", required=True, help="Write the model here.")
@options.as_json
def command(
    ranker: str, train: Path, valid: Path | None, settings: tuple[str, ...], measure: str,
    normalize: str, seed: int, tune: bool, tuner: str, grid: tuple[str, ...], trials: int,
    trials_to: Path | None, threads: int | None, pad: bool, engine: str | None,
    checkpoint: Path | None, output: Path, as_json: bool,
) -> None:  # fmt: skip
    """Train RANKER (see `firstpage rankers`) on TRAIN, and write the model.

    TRAIN is a file, or a folder that `firstpage shard` wrote.

    RANKER may carry parameters, as in "ListMLE(k=10)" or "FocusedNet(k=10, beta=0.4)".
    """
    options.only_with("--tune or --grid", bool(tune or grid), "tuner", "trials", "trials_to")
    options.only_with("--tuner optuna", tuner == "optuna", "trials")
    options.only_with("--valid", valid is not None, "pad")
    _check_together(train, valid, bool(tune or grid), trials_to, checkpoint, output)
    from firstpage.data.shards.shards import Shards

    found = shared.ranker_from(ranker, settings, measure, normalize, seed)
    shared.refuse_without_validation(found, "--valid", valid is not None)
    if threads is not None:
        found.set_params(threads=threads)
    data = shared.read_any(train)
    if isinstance(data, Shards) and (tune or grid):
        raise click.UsageError("--tune and --grid need training data in memory, not shards.")
    options.only_with(options.SHARDS, isinstance(data, Shards), "engine")
    other = None if valid is None else shared.read_data(valid)
    if valid is not None and isinstance(data, Shards) and valid.resolve().parent == train.resolve():
        shared.note(f"{valid} is trained on, too: what is chosen on it is overfitted.")
    if pad and other is not None:
        data, other = _padded(data, other)
    if not isinstance(data, Shards):
        _note_uninformative(found, data)
    start = time.perf_counter()
    if tune or grid:
        tuned = _tune(found, data, other, tuner, grid, trials)
        if failed := sum(math.isnan(trial.score) for trial in tuned.trials):
            shared.note(f"{failed} of {len(tuned.trials)} trials diverged; they have no score.")
        found = tuned.best
        interrupted = tuned.interrupted
    else:
        with shared.following("training") as tell:
            follow = None if tell is None else partial(_follow, tell, str(found.measure))
            found.fit(data, valid=other, callback=follow, engine=engine, checkpoint=checkpoint)
        tuned, interrupted = None, found.interrupted_
    found.save(output)
    if tuned is not None and trials_to is not None:
        _write_trials(tuned, trials_to)
    _report(found, time.perf_counter() - start, output, as_json)
    if interrupted:
        sys.exit(130)


def _note_uninformative(ranker: Ranker, data: Any) -> None:
    """Say how many queries order nothing: a ranker that learns from preferences drops them."""
    from firstpage.rankers.sharded.shard import informative_queries

    flat = len(data) - int(informative_queries(data).sum())
    if 0 < flat < len(data) and ranker._prefers:
        shared.note(f"{data.source}: {flat} of {len(data)} queries have one label alone; left out.")


def _padded(data: Any, valid: Any) -> tuple[Any, Any]:
    """Both with as many features as the wider one has, where they have no names.

    Shards cannot be made wider.
    """
    from firstpage.data.columns import match_columns
    from firstpage.data.shards.shards import Shards

    if data.feature_names is not None or valid.feature_names is not None:
        return data, valid
    if data.n_features < valid.n_features and not isinstance(data, Shards):
        wider = match_columns(data, None, valid.n_features, valid.source, pad=True)
        return wider.apply(data), valid
    return data, match_columns(valid, None, data.n_features, data.source, pad=True).apply(valid)


def _check_together(
    train: Path, valid: Path | None, tuned: bool, trials_to: Path | None, checkpoint: Path | None,
    output: Path,
) -> None:  # fmt: skip
    """What does not go together is told before anything is read."""
    from firstpage.data.shards.shards import is_shard_folder

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
        raise click.UsageError("--checkpoint goes with one training, not with --tune or --grid.")
    if trials_to is not None:
        outputs.format_by_suffix(trials_to, TRIALS, "--trials-to")


def _tune(
    ranker: Ranker, data: Any, valid: Any, method: str, grid: tuple[str, ...], trials: int
) -> Tuned:
    from firstpage.rankers.selection.tuning import Trial, tune
    from firstpage.registry import literal, pieces

    search: dict[str, list[Any]] = {}
    for item in grid:
        name, equals, values = item.partition("=")
        if not equals:
            raise click.UsageError(f"--grid reads NAME=A,B,..; got {item!r}.")
        if name.strip() in search:
            raise click.UsageError(f"--grid {name.strip()} is given twice; give all values in one.")
        search[name.strip()] = [literal(v) for v in pieces(values) if v.strip()]

    def tell(number: int, total: int, trial: Trial) -> None:
        if sys.stderr.isatty():
            shown = ", ".join(f"{k}={v}" for k, v in trial.parameters.items())
            print(f"{number}/{total}  {shown}  {trial.score:.4f}", file=sys.stderr, flush=True)

    return tune(ranker, data, valid, search or None, method, trials, tell)


def _follow(tell: Callable[[str], None], measure: str, step: Step) -> None:
    """Say the loss and the measure of a step."""
    value = "" if step.measure is None else f"  {measure} {step.measure:.4f}"
    tell(f"iteration {step.iteration}  loss {step.loss:.6g}{value}")


def _report(ranker: Ranker, seconds: float, output: Path, as_json: bool) -> None:
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
        f"{seconds:.2f} s{_objective(ranker)}"
    )
    if ranker.best_score_ is not None:
        best = f" (iteration {ranker.best_iteration_})" if ranker.best_iteration_ else ""
        print(f"  {record['measure']} on validation data: {ranker.best_score_:.4f}{best}")
    print(f"wrote {output}", file=sys.stderr)


def _objective(ranker: Ranker) -> str:
    """Its value, and how near the optimum it is known to be."""
    if math.isnan(ranker.objective_):
        return ""
    if math.isnan(ranker.gap_):
        return f"; objective {ranker.objective_:.6g}"
    optimum = "the last round's optimum" if ranker.gap_note_ else "the optimum"
    return f"; objective {ranker.objective_:.6g} (within {100 * ranker.gap_:.2g} % of {optimum})"


def _write_trials(tuned: Tuned, path: Path) -> None:
    rows = [
        {k: v if isinstance(v, (int, float)) else str(v) for k, v in r.items()}
        for r in tuned.table()
    ]
    if outputs.format_by_suffix(path, TRIALS, "--trials-to") == "json":
        outputs.deliver(json.dumps(rows, indent=1), path)
        return
    from firstpage.table import Table

    head = list(rows[0])
    outputs.deliver(Table(head, [[str(r[h]) for h in head] for r in rows]).csv(), path)
