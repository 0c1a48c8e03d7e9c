"""`firstpage aggregate`: combine several rankings into one."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from firstpage.cli import options, outputs, shared
from firstpage.cli.help import documented_command
from firstpage.core import canonical_name, parse_call
from firstpage.data import Dataset
from firstpage.data.formats import read_run, write_run, write_scores
from firstpage.evaluation.aggregation import (
    Aggregation,
    Ballots,
    MeasuredWeights,
    aggregate,
    default_depth,
    default_method,
    method,
    supervised_weights,
    tune_method,
    with_normalization,
)
from firstpage.evaluation.measures import measure
from firstpage.learning import rankers  # the face: only a model loads what is behind it

REPEATED_FILE: dict[str, Any] = {"type": options.FILE, "multiple": True}


@documented_command(
    "aggregate",
    "firstpage aggregate ours.run bm25.run --qrels test.qrels -o joined.run",
    "firstpage aggregate ours.run bm25.run --method 'rrf(c=60)' -o fused.run",
    "firstpage aggregate ours.run bm25.run --method CombMNZ --normalize z \\\n  -o fused.run",
    "firstpage aggregate ours.run bm25.run --method rrf --tune all \\\n"
    "  --qrels test.qrels -o fused.run",
    "firstpage aggregate ours.run bm25.run --method learned \\\n"
    "  --qrels test.qrels --save-model fusion.json -o fused.run",
    "firstpage aggregate ours.run bm25.run --model fusion.json -o fused.run",
    "firstpage aggregate --data test.txt --scores ours.scores \\\n"
    "  --scores theirs.scores -o joined.scores",
)
@click.argument("runs", nargs=-1, metavar="[RUNS]", type=options.FILE)
@click.option("--data", type=options.FILE, help="Data file with several --scores, instead of RUNS.")
@click.option("--scores", **REPEATED_FILE, help="Scores of --data; repeat the option.")
@click.option(
    "--method",
    show_default="RRF for two rankings, else skr",
    metavar="NAME",
    help="By votes: skr (Supervised Kemeny), Kemeny (Condorcet), Copeland, KwikSort, LocalKemeny, "
    "BestInsertion, ExactKemeny. By rank: Borda, RRF, RBC, ISR, LogISR, LogNISR. By score: "
    "CombSUM, CombMNZ, CombANZ, CombMAX, CombMIN, CombMED. By a ranker trained on --qrels: "
    "learned. Parameters as in 'rrf(c=20)' or 'learned(ranker=LambdaMART)'.",
)
@click.option(
    "--normalize",
    metavar="NAME",
    show_default="min-max",
    help="With methods by score: min-max, max, sum, z, rank, borda or none.",
)
@click.option(
    "--tune",
    type=click.Choice(["parameters", "weights", "all"]),
    help="Choose the method's parameters, weights or both by cross-validation on --qrels.",
)
@click.option("--model", type=options.FILE, help="Fuse by this model; runs are matched by tag.")
@click.option(
    "--save-model", type=outputs.OutputFile("json"), help="With learned: write the model to a file."
)
@click.option(
    "--credit",
    type=click.Choice(["extended", "paper"]),
    show_default="extended",
    help="With skr: a document in the top of a ranking beats all below it (extended), or only "
    "those in the top (paper). Chooses skr also for two rankings.",
)
@click.option(
    "--weights",
    metavar="WEIGHTS",
    show_default="equal, or auto with judgments",
    help="Weights of the rankings: auto, or one number per ranking, as in 0.5,0.3,0.2.",
)
@click.option("--qrels", type=options.FILE, help="Judgments by which weights are learned.")
@click.option(
    "--valid-run",
    **REPEATED_FILE,
    help="Run over the queries of --qrels if RUNS have others; one per run, in order.",
)
@click.option(
    "--valid", type=options.FILE, help="With --data: labeled data by which weights are learned."
)
@click.option("--valid-scores", **REPEATED_FILE, help="Scores of --valid; one per --scores.")
@options.measure("Measure by which weights are learned.", default="NDCG@10")
@options.integer(
    "--depth",
    show_default="100 with methods by votes, else all",
    help="Documents per query to aggregate; the others follow below in the base order.",
)
@click.option("--same-depth", is_flag=True, help="Aggregate no query deeper than the shortest one.")
@click.option(
    "--base",
    metavar="FILE",
    show_default="RRF of all rankings, then document ids",
    help="Ranking that gives the base order, by which ties are decided and --depth counts.",
)
@click.option(
    "--missing",
    type=click.Choice(["last", "ignore"]),
    default="last",
    help="How a run votes on documents that it does not list: they are last, or it does not vote.",
)
@options.output(
    "run", "scores", show_default="standard output", help="Write the ranking to this file."
)
@options.tag("the method's name")
@options.as_json
def command(
    output: Path | None, as_json: bool, data: Path | None, runs: tuple[Path, ...], **settings: Any
) -> None:
    """Combine several rankings into one.

    The rankings are RUNS in TREC format, or --data with several --scores.  The result is a run,
    or with --data one score per line; a summary goes to standard error.  With --json the summary
    goes to standard output, and the result to -o only.

    With --method learned, judged queries are ranked by models that were trained without them.
    """
    if settings["model"] is not None or _is_learned(settings["method"]):
        _learned_fusion(runs, output, as_json, data, settings)
        return
    options.only_with("--method learned", False, "save_model")
    count = len(runs or settings["scores"])
    settings["method"] = _method(settings["method"], settings.pop("credit"), count)
    options.only_with("runs", data is None, "missing", "tag")
    options.only_with(
        "judgments, by which weights are learned",
        bool(settings["qrels"] or settings["valid"]),
        "measure",
    )
    _check_usage(runs, data, settings)
    outputs.check_suffix(output, ("run" if data is None else "scores",), "-o")
    documents = None if data is None else shared.read_data(data, labeled=False)
    if documents is None:
        aggregation = _aggregate_runs(runs, settings)
    else:
        aggregation = _aggregate_scores(documents, settings)
    if output is not None or not as_json:
        _write(aggregation, output or Path("-"), documents)
    if as_json:
        print(json.dumps(aggregation.to_dict(), indent=2))
    else:
        print(aggregation, file=sys.stderr)


def _method(name: str | None, credit: str | None, count: int) -> Any:
    """Return the method; by default the one that takes the option --credit, or that of so many."""
    if credit is None:
        return method(name or default_method(count))
    return method(name or "skr", credit=credit)


def _check_usage(runs: tuple[Path, ...], data: Path | None, settings: dict[str, Any]) -> None:
    """Refuse wrong usage before any file is read, and parse the weights."""
    measure(settings["measure"])
    if bool(runs) == (data is not None) or (data is None) == bool(settings["scores"]):
        raise click.UsageError("give runs, or --data with --scores.")
    judgments = settings["qrels"] if data is None else settings["valid"]
    valid = settings["valid_run"] if data is None else settings["valid_scores"]
    unusable = ("valid", "valid_scores") if data is None else ("qrels", "valid_run")
    for name in unusable:
        if settings[name]:
            other = "--data" if data is None else "runs"
            raise click.UsageError(f"--{name.replace('_', '-')} requires {other}.")
    if settings["tune"] is not None and (settings["qrels"] is None or settings["weights"] or valid):
        raise click.UsageError(
            "--tune requires runs, --qrels, and neither weights nor --valid-run."
        )
    auto = settings["weights"] in (None, "auto")
    if auto and judgments is None and (settings["weights"] == "auto" or valid):
        missing = "--qrels" if data is None else "--valid and --valid-scores"
        raise click.UsageError(f"weights are learned from judgments: give {missing}.")
    if not auto and (judgments is not None or valid):
        raise click.UsageError("give --weights as numbers, or judgments to learn them, not both.")
    count = len(runs or settings["scores"])
    if (valid or (data is not None and judgments)) and len(valid) != count:
        raise click.UsageError(f"{len(valid)} validation rankings for {count} rankings.")
    settings["weights"] = None if auto else _parse_weights(settings["weights"], count)


def _parse_weights(text: str, count: int) -> list[float]:
    try:
        weights = [float(word) for word in text.split(",")]
    except ValueError:
        raise click.UsageError(
            f"--weights must be auto or numbers separated by commas; got {text!r}."
        ) from None
    if len(weights) != count:
        raise click.UsageError(
            f"--weights has {len(weights)} numbers; give one per ranking ({count})."
        )
    return weights


def _aggregate_runs(files: Sequence[Path], settings: dict[str, Any]) -> Aggregation:
    base, qrels = settings["base"], settings["qrels"]
    runs = [replace(read_run(file), name=file.name) for file in files]
    if base is not None:
        file = Path(base)
        base = files.index(file) if file in files else replace(read_run(file), name=file.name)
    judgments = shared.read_qrels_option(qrels)
    if settings["tune"] is not None:
        _tune(runs, judgments, base, settings)
        judgments = None  # the weights are chosen
    return aggregate(
        runs,
        qrels=judgments,
        valid=[read_run(file) for file in settings["valid_run"]] or None,
        base=base,
        name=settings["tag"] or "",
        depth="auto" if settings["depth"] is None else settings["depth"],
        **{key: settings[key] for key in ("method", "weights", "measure", "missing")},
        **{key: settings[key] for key in ("normalize", "same_depth")},
    )


def _tune(runs: list[Any], judgments: Any, base: Any, settings: dict[str, Any]) -> None:
    """Set the method and its weights to those that are best on the judgments; report the gain."""
    if settings["normalize"] is not None:
        settings["method"] = with_normalization(settings["method"], settings["normalize"])
    tuned = tune_method(
        runs,
        judgments,
        settings["method"],
        what=settings["tune"],
        measure=settings["measure"],
        base=base,
        same_depth=settings["same_depth"],
        missing=settings["missing"],
        **({} if settings["depth"] is None else {"depth": settings["depth"]}),
    )
    print(tuned, file=sys.stderr)
    settings.update(method=tuned.method, weights=tuned.weights, normalize=None)


def _aggregate_scores(data: Dataset, settings: dict[str, Any]) -> Aggregation:
    files, weights = settings["scores"], settings["weights"]
    if settings["valid"] is not None:
        valid = shared.read_data(settings["valid"])
        systems = [shared.read_scores_of(valid, file) for file in settings["valid_scores"]]
        weights = supervised_weights(systems, valid, settings["measure"])
    base = settings["base"]
    ballots = Ballots.from_scores(
        [shared.read_scores_of(data, file) for file in files],
        data.offsets,
        None if base is None else shared.read_scores_of(data, Path(base)),
        queries=data.queries,
        names=[file.name for file in files],
        depth=settings["depth"] or default_depth(settings["method"]),
        same_depth=settings["same_depth"],
        weights=weights.weights if isinstance(weights, MeasuredWeights) else weights,
    )
    return aggregate(
        ballots,
        settings["method"],
        weights=weights,
        normalize=settings["normalize"],
        name=settings["tag"] or "",
    )


# --- learned fusion

OF_OTHER_METHODS = (
    "weights", "valid_run", "valid", "valid_scores", "normalize", "tune", "credit", "depth",
    "same_depth", "base", "missing", "scores", "data",
)  # fmt: skip


def _is_learned(text: str | None) -> bool:
    return text is not None and canonical_name(parse_call(text)[0]) == "learned"


def _learned_fusion(
    files: Sequence[Path],
    output: Path | None,
    as_json: bool,
    data: Path | None,
    settings: dict[str, Any],
) -> None:
    """Fuse runs by a model, or train one on judgments; write the run and report."""
    options.only_with("another method than learned", False, *OF_OTHER_METHODS)
    options.only_with("no --model", settings["model"] is None, "method", "qrels", "save_model")
    options.only_with("--qrels, to train on", settings["qrels"] is not None, "measure")
    if not files:
        raise click.UsageError("learned fusion requires runs.")
    outputs.check_suffix(output, ("run",), "-o")
    runs = [read_run(file) for file in files]
    fusion, fused = _fused(runs, settings)
    if output is not None or not as_json:
        write_run(fused, output or Path("-"))
    if as_json:
        print(json.dumps(fusion.to_dict(), indent=2))
    else:
        print(fusion, file=sys.stderr)


def _fused(runs: list[Any], settings: dict[str, Any]) -> tuple[Any, Any]:
    """Return the fusion and its run."""
    tag = settings["tag"] or "learned"
    if settings["model"] is not None:
        fusion = rankers.LearnedFusion.load(settings["model"])
        return fusion, fusion.fuse(runs, tag)
    if settings["qrels"] is None:
        raise click.UsageError("--method learned requires --qrels, to train on, or a --model.")
    measured = {"measure": settings["measure"]} if options.on_command_line("measure") else {}
    fusion = rankers.parse_fusion(settings["method"], **measured)
    fused = fusion.fit_fuse(runs, shared.read_qrels_option(settings["qrels"]), tag)
    if settings["save_model"] is not None:
        fusion.save(settings["save_model"])
    return fusion, fused


def _write(aggregation: Aggregation, output: Path, data: Dataset | None) -> None:
    if data is None:
        write_run(aggregation.run, output)
        return
    scores = aggregation.scores
    if data.row_order is not None:  # the file interleaves queries
        scores = scores.copy()
        scores[data.row_order] = aggregation.scores
    write_scores(scores, output)
