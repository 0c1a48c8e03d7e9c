"""`firstpage convert`: convert between file formats, and between kinds of ground truth."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from firstpage.cli import options, outputs, shared
from firstpage.cli.help import documented_command
from firstpage.core import FirstpageError
from firstpage.data import Dataset, MinMax, Qrels, Run, Standardize, Truth, write_folds
from firstpage.data.formats import format_of, read_scores, to_qrels, to_run, write
from firstpage.data.shards import is_shard_folder


@documented_command(
    "convert",
    "firstpage convert train.txt train.parquet",
    "firstpage convert test.txt top10.txt --truth top-k --k 10",
    "firstpage convert test.txt letor --folds 5",
    "firstpage convert test.txt labeled.parquet --qrels test.qrels",
)
@click.argument("source", type=options.FILE)
@click.argument("target", type=outputs.OutputFile(*outputs.DATA))
@click.option(
    "--from",
    "from_",
    metavar="FORMAT",
    show_default="by the file",
    help="Format of SOURCE: letor, qrels, run, parquet, csv, arrow, npz or truth.",
)
@click.option(
    "--to",
    metavar="FORMAT",
    show_default="by the suffix",
    help="Format of TARGET, as in --from (not truth).",
)
@options.judgment_options
@options.categorical
@click.option(
    "--truth",
    type=click.Choice(["graded", "full-order", "top-k", "binary"]),
    show_default="as it is",
    help="Kind of ground truth to which the labels are converted.",
)
@options.integer("--k", default=10, help="With --truth top-k: depth of the top.")
@click.option(
    "--min-grade",
    type=float,
    metavar="GRADE",
    help="With --truth top-k: documents below this grade are not in the top k.",
)
@click.option(
    "--rel",
    default=1.0,
    metavar="GRADE",
    help="With --truth binary: lowest grade that is relevant.",
)
@click.option(
    "--normalize", type=click.Choice(["minmax", "standard"]), help="Scale the features per query."
)
@click.option("--scores", type=options.FILE, help="Scores of the documents; TARGET is then a run.")
@click.option(
    "--dtype",
    type=click.Choice(["float32", "float64"]),
    default="float32",
    help="Type of the features.",
)
@options.integer(
    "--folds", minimum=3, help="Write N folds to TARGET/Fold1, TARGET/Fold2, and so on."
)
@options.seed
def command(
    source: Path,
    target: Path,
    from_: str | None,
    to: str | None,
    qrels: Path | None,
    unjudged: str,
    categorical: tuple[str, ...],
    truth: str | None,
    k: int,
    min_grade: float | None,
    rel: float,
    normalize: str | None,
    scores: Path | None,
    dtype: str,
    folds: int | None,
    seed: int,
) -> None:
    """Convert data files, qrels and runs.

    Reads SOURCE, converts its ground truth or features if an option says so, and writes TARGET.
    """
    options.only_with("--truth top-k", truth == "top-k", "min_grade", "k")
    options.only_with("--truth binary", truth == "binary", "rel")
    if folds and to not in (None, "letor"):
        raise click.UsageError(f"--folds writes LETOR text, not {to}; leave out --to.")
    if folds and scores is not None:
        raise click.UsageError("--folds and --scores cannot be combined; give one.")
    kind = from_.lower() if from_ else None if is_shard_folder(source) else format_of(source)
    to = to.lower() if to else ("letor" if folds else format_of(target, writing=True))
    outputs.check_suffix(target, () if folds else (to.lower(),), "TARGET")
    has_features = kind not in (None, "qrels", "run", "npz", "truth")
    options.only_with("a file of features other than npz", has_features, "dtype")
    read_options: dict[str, Any] = {"dtype": dtype} if has_features else {}
    read_options |= shared.feature_options(categorical)
    judgments = shared.read_qrels_option(qrels)
    labeled = scores is None and judgments is None
    data = shared.read_file(source, kind, labeled=labeled, **read_options)
    if judgments is not None:
        data = _dataset(data, source)
    (data,) = shared.join_judgments([data], judgments, unjudged)
    if normalize is not None:
        data = _normalized(_dataset(data, source), normalize)
    if truth is not None and truth != "graded":
        labels = _truth_of(data, source)
        if truth == "full-order":
            labels = labels.full_order(seed)
        elif truth == "top-k":
            labels = labels.top_k(k, seed, min_grade)
        else:
            labels = labels.binary(rel)
        data = _relabeled(data, labels)
    if scores is not None:
        documents = _dataset(data, source)
        row_scores = documents.to_row_order(read_scores(scores, documents.n_docs))
        _note_dropped(target, "a run has scores", "labels", documents)
        data = to_run(documents, row_scores, scores.stem)
    if to == "qrels" and isinstance(data, Dataset):
        _note_dropped(target, "qrels have labels", "", data)
        data = to_qrels(data)
    if folds:
        write_folds(_dataset(data, source), target, folds, seed)
    else:
        write(data, target, to)
    if str(target) != "-":
        print(f"wrote {data} to {target}", file=sys.stderr)


def _note_dropped(target: Path, contents: str, labels: str, data: Dataset) -> None:
    """Print which parts of the data a TREC file cannot store."""
    features = f"{data.n_features} features" if data.n_features else ""
    dropped = " and ".join(filter(None, (labels, features)))
    if dropped:
        shared.note(f"{target}: {contents} only; dropped: {dropped}.")


def _dataset(data: Dataset | Qrels | Run, source: Path) -> Dataset:
    if not isinstance(data, Dataset):
        raise FirstpageError(f"{source}: is not a data file with features.")
    return data


def _normalized(data: Dataset, method: str) -> Dataset:
    return (MinMax() if method == "minmax" else Standardize()).apply(data)


def _truth_of(data: Dataset | Qrels | Run, source: Path) -> Truth:
    if isinstance(data, Run):
        raise FirstpageError(f"{source}: is a run, which has no ground truth to convert.")
    if isinstance(data, Dataset):
        return data.truth
    return Truth(data.values, data.offsets, data.queries)


def _relabeled(data: Dataset | Qrels | Run, truth: Truth) -> Dataset | Qrels:
    if isinstance(data, Dataset):
        return data.with_labels(truth)
    return Qrels(data.queries, data.offsets, data.docids, truth.labels, "", data.source)
