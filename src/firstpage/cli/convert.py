"""`firstpage convert`: between file formats, and between kinds of truth."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from firstpage.cli import options, outputs, shared
from firstpage.errors import FirstpageError

if TYPE_CHECKING:
    from firstpage.data.dataset import Dataset
    from firstpage.data.formats.trec import Qrels, Run
    from firstpage.data.truth import Truth

FORMATS = "letor, qrels, run, parquet, csv, arrow or npz"


@click.command("convert")
@click.argument("source", type=options.FILE)
@click.argument("target", type=outputs.OutputFile(*outputs.DATA))
@click.option("--from", "from_", metavar="FORMAT", help=f"{FORMATS}; else the file says it.")
@click.option("--to", metavar="FORMAT", help="As --from, for TARGET.")
@click.option(
    "--truth",
    type=click.Choice(["graded", "full-order", "top-k", "binary"]),
    help="What the labels shall say.",
)
@options.whole("--k", default=10, help="Depth of top-k.")
@click.option("--min-grade", type=float, help="Below it, nothing is in the top k.")
@click.option("--rel", default=1.0, show_default=True, help="Binary: relevant from here on.")
@click.option(
    "--normalize", type=click.Choice(["minmax", "standard"]), help="Features, query by query."
)
@click.option("--scores", type=options.FILE, help="Scores of the documents: writes a run.")
@click.option("--dtype", type=click.Choice(["float32", "float64"]), default="float32")
@options.whole("--folds", least=3, help="Write TARGET/Fold1.. with this many folds.")
@options.seed
def command(
    source: Path, target: Path, from_: str | None, to: str | None, truth: str | None, k: int,
    min_grade: float | None, rel: float, normalize: str | None, scores: Path | None, dtype: str,
    folds: int | None, seed: int,
) -> None:  # fmt: skip
    """Read SOURCE, convert its truth or features if asked, and write TARGET."""
    from firstpage.data.dataset import Dataset
    from firstpage.data.folds import write_folds
    from firstpage.data.formats.letor import read_scores
    from firstpage.data.formats.registry import format_of, read, write
    from firstpage.data.formats.trec import to_qrels, to_run

    options.only_with("--truth top-k", truth == "top-k", "min_grade", "k")
    options.only_with("--truth binary", truth == "binary", "rel")
    if folds and to not in (None, "letor"):
        raise click.UsageError(f"--folds writes LETOR text, not {to}; leave --to out.")
    if folds and scores is not None:
        raise click.UsageError("--folds and --scores write two things; give one.")
    kind = from_ or format_of(source)
    to = to or ("letor" if folds else format_of(target, writing=True))
    if not folds:
        outputs.check_suffix(target, (to.lower(),), "TARGET")
    featured = kind not in ("qrels", "run", "npz")
    options.only_with("a file of features other than npz", featured, "dtype")
    read_options = {"dtype": dtype} if featured else {}
    with shared.reading(source) as progress:
        data = read(source, kind, progress, scores is None, **read_options)
    if normalize is not None:
        data = _normalized(_with_features(data, source), normalize)
    if truth is not None and truth != "graded":
        held = _truth_of(data, source)
        if truth == "full-order":
            held = held.full_order(seed)
        elif truth == "top-k":
            held = held.top_k(k, seed, min_grade)
        else:
            held = held.binary(rel)
        data = _relabeled(data, held)
    if scores is not None:
        documents = _with_features(data, source)
        held_scores = documents.to_row_order(read_scores(scores, documents.n_docs))
        _note_left_out(target, "a run holds scores", "labels", documents)
        data = to_run(documents, held_scores, scores.stem)
    if to == "qrels" and isinstance(data, Dataset):
        _note_left_out(target, "qrels hold labels", "", data)
        data = to_qrels(data)
    if to == "letor" and isinstance(data, Dataset) and data.feature_names is not None:
        shared.note(f"{target}: LETOR text has no names of features; they are numbered in order.")
    if folds:
        write_folds(_with_features(data, source), target, folds, seed)
    else:
        write(data, target, to)
    if str(target) != "-":
        print(f"wrote {data} to {target}", file=sys.stderr)


def _note_left_out(target: Path, holds: str, also: str, data: Dataset) -> None:
    """Say what a TREC file does not hold of the data."""
    features = f"{data.n_features} features" if data.n_features else ""
    left = " and ".join(filter(None, (also, features)))
    if left:
        shared.note(f"{target}: {holds} only; left out: {left}.")


def _with_features(data: Dataset | Qrels | Run, source: Path) -> Dataset:
    from firstpage.data.dataset import Dataset

    if not isinstance(data, Dataset):
        raise FirstpageError(f"{source}: is no data file with features.")
    return data


def _normalized(data: Dataset, how: str) -> Dataset:
    from firstpage.data.transforms import MinMax, Standardize

    return (MinMax() if how == "minmax" else Standardize()).apply(data)


def _truth_of(data: Dataset | Qrels | Run, source: Path) -> Truth:
    from firstpage.data.dataset import Dataset
    from firstpage.data.formats.trec import Run
    from firstpage.data.truth import Truth

    if isinstance(data, Run):
        raise FirstpageError(f"{source}: is a run, which has no truth to convert.")
    if isinstance(data, Dataset):
        return data.truth
    return Truth(data.values, data.offsets, data.queries)


def _relabeled(data: Dataset | Qrels | Run, truth: Truth) -> Dataset | Qrels:
    from firstpage.data.dataset import Dataset
    from firstpage.data.formats.trec import Qrels

    if isinstance(data, Dataset):
        return data.with_labels(truth)
    return Qrels(data.queries, data.offsets, data.docids, truth.labels, "", data.source)
