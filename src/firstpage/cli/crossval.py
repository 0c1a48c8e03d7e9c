"""`firstpage crossval`: train and test rankers over folds."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import click

from firstpage.cli import options, outputs, ranker_options, shared
from firstpage.cli.help import documented_command
from firstpage.core import NOTATIONS, DataError
from firstpage.data import Fold, Qrels, match_columns, read_folds, split_folds
from firstpage.data.formats import read_run, write_run
from firstpage.evaluation.measures import measures as parse
from firstpage.interop.report import folds_csv, folds_page, folds_table, read_published
from firstpage.learning.rankers import (
    DEFAULT_MEASURES,
    PAIR_MEASURES,
    CrossValidation,
    cross_validate,
)


@documented_command(
    "crossval",
    'firstpage crossval letor ListNet "ListMLE(k=10)" RankSVM --baseline RankSVM',
    "firstpage crossval letor ListMLE --tune -t NDCG@1 -t NDCG@10 -o folds.html",
    "firstpage crossval data.parquet ListNet --folds 3 --run candidates.run \\\n"
    "  --baseline candidates",
    "firstpage crossval train.parquet RankNet RankSVM --pairs pairs.csv",
)
@click.argument("data", type=options.FILE)
@click.argument("rankers", nargs=-1, required=True, metavar="RANKERS")
@options.judgment_options
@options.categorical
@options.confidences
@options.pairs
@options.ranker_options
@click.option("--tune", is_flag=True, help="Choose parameters on the validation data of each fold.")
@options.integer("--seeds", default=1, help="Fits per fold, with consecutive seeds.")
@click.option(
    "-t",
    "--test",
    "tests",
    multiple=True,
    metavar="MEASURE",
    callback=options.search_modules,
    show_default="NDCG@1, NDCG@3, NDCG@10, AP",
    help="Measure on test data; may be repeated.",
)
@options.integer(
    "--top-k",
    metavar="K",
    help="Train and test on the top-k ground truth of the labels (for kNDCG, kERR).",
)
@options.integer(
    "--folds",
    minimum=3,
    show_default="5",
    help="For a DATA file: number of folds, into which its queries are divided at random (--seed).",
)
@click.option(
    "--run",
    "runs",
    type=options.FILE,
    multiple=True,
    help="Run to measure on the same queries, by its file name; may be repeated.",
)
@click.option(
    "--baseline", metavar="NAME", help="Mark significant differences from this ranker or run."
)
@click.option(
    "--write-runs",
    type=outputs.OutputFile(),
    metavar="FOLDER",
    help="Write the test ranking of each ranker to this folder, as a run of the first seed; "
    "`compare` and `aggregate` read them.",
)
@options.pad
@options.convention
@click.option(
    "--published",
    type=options.FILE,
    help="Published results to show in the table: CSV, or LETOR's baselines.",
)
@options.as_json
@options.report_format
@options.output(*outputs.REPORTS, help="Write the table to this file.")
def command(
    data: Path,
    rankers: tuple[str, ...],
    qrels: Path | None,
    unjudged: str,
    categorical: tuple[str, ...],
    confidences: bool,
    pairs: Path | None,
    settings: tuple[str, ...],
    measure: str | None,
    normalize: str,
    seed: int,
    tune: bool,
    seeds: int,
    tests: tuple[str, ...],
    top_k: int | None,
    folds: int | None,
    runs: tuple[Path, ...],
    baseline: str | None,
    write_runs: Path | None,
    pad: bool,
    convention: str,
    published: Path | None,
    as_json: bool,
    format_: str | None,
    output: Path | None,
) -> None:
    """Cross-validate rankers over folds.

    DATA is a folder of folds (Fold1, Fold2, and so on), or a file whose queries are divided into
    folds.  Trains one or more RANKERS on every fold and measures them on its test data.  The table
    has the mean over folds, its standard error over queries and, with --seeds, its standard
    deviation between seeds.
    """
    kind = outputs.report_format(format_, as_json, output)
    if published is not None:
        read_published(published)
    measures = tests or DEFAULT_MEASURES
    of_labels = _measures_of_labels(measures, pairs is not None)
    _check_names(rankers, [path.stem for path in runs], baseline)
    by_name = {
        name: ranker_options.ranker_from_options(name, settings, measure, normalize, seed)
        for name in rankers
    }
    run_files = _run_files(by_name) if write_runs is not None else {}
    options.only_with("a DATA file; a folder has its own folds", data.is_file(), "folds")
    options.only_with("a folder of LETOR folds", not data.is_file(), "pad")
    votes = None
    if pairs is not None:
        options.only_with("labels, not --pairs", False, "top_k")
        votes = ranker_options.read_pairs_option(pairs, *by_name.values())
    labeled = qrels is None and (
        votes is None
        or bool(tests and of_labels)
        or any(ranker.compose("votes").reads_labels for ranker in by_name.values())
    )
    judgments = shared.read_qrels_option(qrels, confidences)
    if data.is_file():
        fold_list = _split_file(data, labeled, categorical, judgments, unjudged, folds or 5, seed)
    else:
        fold_list = _read_folder(data, pad, categorical, judgments, unjudged)
    validated = any("valid" in fold.splits for fold in fold_list)
    for ranker in by_name.values():
        ranker_options.refuse_without_validation(
            ranker, "folds that have validation data", validated
        )
    if write_runs is not None and any(fold.test.docids is None for fold in fold_list):
        raise DataError(f"{data}: has no document ids, which --write-runs needs.")
    with shared.status_line("cross-validation") as show:

        def progress(name: str, fold: int, fit_seed: int) -> None:
            if show is not None:
                show(f"{name}  fold {fold}  seed {fit_seed}")

        results = cross_validate(
            by_name,
            fold_list,
            measures,
            convention,
            tune,
            range(seed, seed + seeds),
            progress,
            top_k,
            {path.stem: read_run(path) for path in runs},
            votes,
        )
    if write_runs is not None:
        _write_runs(results, run_files, write_runs, f" of seed {seed}" if seeds > 1 else "")
    outputs.write_text(_render(results, kind, data.name, published, baseline), output)


def _measures_of_labels(measures: Sequence[str], of_pairs: bool) -> list[str]:
    """Return the measures that need labels; refuse unknown ones."""
    of_labels = [text for text in measures if not of_pairs or text not in PAIR_MEASURES]
    if of_labels:
        parse(of_labels)
    return of_labels


def _check_names(rankers: Sequence[str], runs: Sequence[str], baseline: str | None) -> None:
    """Refuse rankers or runs of the same name, and a baseline that is neither."""
    for name in rankers:
        if rankers.count(name) > 1:
            raise click.UsageError(f"{name} is named twice; name each ranker once.")
    names = [*rankers, *runs]
    if len(set(names)) < len(names):
        raise click.UsageError("two rankings have the same name; rename a run file.")
    if baseline is not None and baseline not in names:
        raise click.UsageError(
            f"--baseline must be one of the rankers and runs: {', '.join(names)}."
        )


def _split_file(
    path: Path,
    labeled: bool,
    categorical: tuple[str, ...],
    judgments: Qrels | None,
    unjudged: str,
    folds: int,
    seed: int,
) -> list[Fold]:
    """Read a data file, join the judgments, and divide its queries into folds."""
    dataset = shared.read_data(path, labeled=labeled, **shared.feature_options(categorical))
    (dataset,) = shared.join_judgments([dataset], judgments, unjudged)
    if judgments is not None:
        dataset = shared.measured_queries(dataset, judgments)
    return split_folds(dataset, folds, seed)


def _read_folder(
    folder: Path, pad: bool, categorical: tuple[str, ...], judgments: Qrels | None, unjudged: str
) -> list[Fold]:
    """Read the folds of a folder, and join the judgments."""
    folds = read_folds(folder)
    numbering = {}
    if len({getattr(fold, name).zero_based for fold in folds for name in fold.splits}) > 1:
        numbering = {"zero_based": True}  # also where feature 0 is omitted
        folds = read_folds(folder, **numbering)
    if pad and (width := _padded_width(folds)):
        folds = read_folds(folder, n_features=width, **numbering)
    for fold in folds:
        splits = [getattr(fold, name).with_categories(*categorical) for name in fold.splits]
        joined = shared.join_judgments(splits, judgments, unjudged, str(folder))
        if judgments is not None:
            joined = [shared.measured_queries(each, judgments) for each in joined]
        fold.datasets.update(zip(fold.splits, joined, strict=True))
    return folds


def _write_runs(
    results: CrossValidation, files: Mapping[str, str], folder: Path, which: str
) -> None:
    """Write the test ranking of each ranker into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, file in files.items():
        tag = "".join(name.split())  # ListMLE(k=5, l2=0.1) has a blank, which tags cannot have
        write_run(replace(results.runs[name], name=tag), folder / file)
    print(f"wrote {len(files)} runs{which} to {folder}", file=sys.stderr)


def _run_files(rankers: Iterable[str]) -> dict[str, str]:
    """Return the names of the runs of rankers: listmle-k-5.run for ListMLE(k=5)."""
    files: dict[str, str] = {}
    for name in rankers:
        file = "-".join(re.findall(r"[a-z0-9.]+", name.lower())) + ".run"
        if file in files.values():
            raise click.UsageError(f"--write-runs: the runs of two rankers are named {file}.")
        files[name] = file
    return files


def _padded_width(folds: Sequence[Fold]) -> int | None:
    """Return the greatest number of features if some files have fewer, and print which."""
    datasets = [getattr(fold, name) for fold in folds for name in fold.splits]
    widest = max(datasets, key=lambda data: data.n_features)
    narrow = [data for data in datasets if data.n_features < widest.n_features]
    for data in narrow:
        match_columns(data, None, widest.n_features, widest.source, pad=True)
    return widest.n_features if narrow else None


def _render(
    results: CrossValidation, kind: str, source: str, published: Path | None, baseline: str | None
) -> str:
    if kind == "json":
        record = results.to_dict(baseline)
        if published is not None:
            record["published"] = read_published(published)
        return json.dumps(record, indent=1)
    if kind == "csv":
        return folds_csv(results, published, baseline)
    if kind == "html":
        return folds_page(results, source, published, baseline)
    return NOTATIONS[kind](folds_table(results, source, published, baseline))
