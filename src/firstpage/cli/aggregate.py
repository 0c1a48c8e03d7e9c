"""`firstpage aggregate`: one ranking of several."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from firstpage.cli import options, outputs, shared

if TYPE_CHECKING:
    from firstpage.aggregation.aggregate import Aggregation
    from firstpage.data.dataset import Dataset

SEVERAL: dict[str, Any] = {"type": options.FILE, "multiple": True}
DEPTH = ("depth", "same_depth")


@click.command("aggregate")
@click.argument("runs", nargs=-1, metavar="RUN RUN ..", type=options.FILE)
@click.option("--data", type=options.FILE, help="Instead of runs: a data file, with --scores.")
@click.option("--scores", **SEVERAL, help="Scores of --data; repeat it.")
@click.option(
    "--method",
    default="skr",
    show_default=True,
    metavar="NAME",
    help="skr (Supervised Kemeny), Kemeny, Borda, RRF, Copeland, KwikSort, LocalKemeny, "
    "BestInsertion or ExactKemeny; parameters as in 'rrf(c=20)'.",
)
@click.option("--credit", type=click.Choice(["extended", "paper"]), help="Of skr: who gets votes.")
@click.option(
    "--weights", metavar="HOW", help="auto, or one number a ranking: 0.5,0.3,0.2. [all alike]"
)
@click.option("--qrels", type=options.FILE, help="Judgments to measure weights by.")
@click.option(
    "--valid-run",
    **SEVERAL,
    help="A run over the queries of --qrels, where RUN has others; one for each RUN, in order.",
)
@click.option("--valid", type=options.FILE, help="With --data: labeled data to measure by.")
@click.option("--valid-scores", **SEVERAL, help="Scores of --valid; one for each --scores.")
@click.option("-m", "--measure", default="NDCG@10", show_default=True, help="For the weights.")
@options.whole(
    "--depth",
    default=100,
    help="How many of each query take part; the rest keeps the base order below.",
)
@click.option("--same-depth", is_flag=True, help="No query deeper than the shortest.")
@click.option(
    "--base",
    metavar="FILE",
    help="The ranking whose order is the base, or 'turns': all in turn. [the first]",
)
@click.option(
    "--missing",
    type=click.Choice(["last", "silent"]),
    default="last",
    show_default=True,
    help="What a run says of documents that it does not list.",
)
@options.output("run", "scores", help="Write the ranking here.")
@click.option("--tag", help="The run's name; the method's, if not given.")
@options.as_json
def command(
    output: Path | None, as_json: bool, data: Path | None, runs: tuple[Path, ...], **given: Any
) -> None:
    """Make one ranking of several: runs in TREC form, or --data with several --scores.

    The ranking goes to standard output or -o: a run, or with --data one score a line; what it is
    made of goes to standard error.  With --json standard output holds that instead.
    """
    given["method"] = _method(given["method"], given.pop("credit"))
    options.only_with("runs", data is None, "missing", "tag")
    options.only_with("judgments, by which weights are measured",
                      bool(given["qrels"] or given["valid"]), "measure")  # fmt: skip
    _check_usage(runs, data, given)
    outputs.check_suffix(output, ("run" if data is None else "scores",), "-o")
    documents = None if data is None else shared.read_data(data, labeled=False)
    found = _of_runs(runs, given) if documents is None else _of_scores(documents, given)
    if output is not None or not as_json:
        _write(found, output or Path("-"), documents)
    if as_json:
        print(json.dumps(found.to_dict(), indent=2))
    else:
        print(found, file=sys.stderr)


def _method(name: str, credit: str | None) -> Any:
    from firstpage.aggregation.methods import method

    return method(name) if credit is None else method(name, credit=credit)


def _check_usage(runs: tuple[Path, ...], data: Path | None, given: dict[str, Any]) -> None:
    """Wrong usage is said before any file is read."""
    from firstpage.measures.registry import measure

    measure(given["measure"])
    if data is not None and given["base"] == "turns":
        raise click.UsageError("--base turns goes with runs; scores cover every document.")
    if bool(runs) == (data is not None) or (data is None) == bool(given["scores"]):
        raise click.UsageError("give runs, or --data with --scores.")
    judged = given["qrels"] if data is None else given["valid"]
    valid = given["valid_run"] if data is None else given["valid_scores"]
    unfit = ("valid", "valid_scores") if data is None else ("qrels", "valid_run")
    for name in unfit:
        if given[name]:
            other = "--data" if data is None else "runs"
            raise click.UsageError(f"--{name.replace('_', '-')} goes with {other}.")
    auto = given["weights"] in (None, "auto")
    if auto and judged is None and (given["weights"] == "auto" or valid):
        need = "--qrels" if data is None else "--valid and --valid-scores"
        raise click.UsageError(f"weights are measured by judgments: give {need}.")
    if not auto and (judged is not None or valid):
        raise click.UsageError("give --weights as numbers, or judgments to measure them, not both.")
    count = len(runs or given["scores"])
    if (valid or (data is not None and judged)) and len(valid) != count:
        raise click.UsageError(f"{len(valid)} validation rankings for {count} rankings.")
    given["weights"] = None if auto else _numbers(given["weights"], count)


def _numbers(text: str, count: int) -> list[float]:
    try:
        numbers = [float(word) for word in text.split(",")]
    except ValueError:
        raise click.UsageError(
            f"--weights is auto or numbers with commas between them; got {text!r}."
        ) from None
    if len(numbers) != count:
        raise click.UsageError(
            f"--weights has {len(numbers)} numbers; give one for each ranking ({count})."
        )
    return numbers


def _of_runs(files: Sequence[Path], given: dict[str, Any]) -> Aggregation:
    from firstpage.aggregation.aggregate import aggregate
    from firstpage.data.formats.trec import read_qrels, read_run

    base, qrels = given["base"], given["qrels"]
    runs = [replace(read_run(file), name=file.name) for file in files]
    if base not in (None, "turns"):
        base = files.index(Path(base)) if Path(base) in files else read_run(base)
    return aggregate(
        runs,
        qrels=None if qrels is None else read_qrels(qrels),
        valid=[read_run(file) for file in given["valid_run"]] or None,
        base=base,
        name=given["tag"] or "",
        **{key: given[key] for key in ("method", "weights", "measure", "missing", *DEPTH)},
    )


def _of_scores(data: Dataset, given: dict[str, Any]) -> Aggregation:
    from firstpage.aggregation.aggregate import aggregate
    from firstpage.aggregation.ballots import Ballots
    from firstpage.aggregation.weights import supervised_weights

    files, weights = given["scores"], given["weights"]
    base = files[0] if given["base"] is None else Path(given["base"])
    ballots = Ballots.from_scores(
        [shared.read_scores_of(data, file) for file in files],
        data.offsets,
        shared.read_scores_of(data, base),
        queries=data.queries,
        names=[file.name for file in files],
        **{key: given[key] for key in DEPTH},
    )
    if given["valid"] is not None:
        judged = shared.read_data(given["valid"])
        systems = [shared.read_scores_of(judged, file) for file in given["valid_scores"]]
        weights = supervised_weights(systems, judged, given["measure"])
    return aggregate(ballots, given["method"], weights=weights, name=given["tag"] or "")


def _write(found: Aggregation, output: Path, data: Dataset | None) -> None:
    from firstpage.data.formats.letor import write_scores
    from firstpage.data.formats.trec import write_run

    if data is None:
        write_run(found.run, output)
        return
    scores = found.scores
    if data.row_order is not None:  # the file's queries were interleaved
        scores = scores.copy()
        scores[data.row_order] = found.scores
    write_scores(scores, output)
