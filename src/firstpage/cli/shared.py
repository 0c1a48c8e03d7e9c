"""Functions that several commands share: reading input, notes and progress bars."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from firstpage import labeling  # the face: few commands need what is behind it
from firstpage.cli import options
from firstpage.core import DataError, FirstpageError, Progress, imported
from firstpage.data import Column, Dataset, Qrels, join_labels, match_queries
from firstpage.data.formats import (
    DiversityQrels,
    format_of,
    read,
    read_diversity_qrels,
    read_judgments,
    read_scores,
    to_qrels,
)
from firstpage.data.io import read_all
from firstpage.data.shards import Shards, is_shard_folder, read_shards
from firstpage.evaluation.measures import Measure, check_judgments
from firstpage.learning import (
    models as model_files,  # the face: only a model loads what is behind it
)

if TYPE_CHECKING:
    from rich.progress import ProgressColumn

    from firstpage.learning.models import Model


MAX_NAMES = 5  # file names listed in a note
PROGRESS_MIN_BYTES = 16 << 20  # size of a file from which on reading shows a progress bar

# Rich takes a tenth of a second to import, and only terminals show progress: the functions that
# draw it import it.


@contextmanager
def reading_progress(path: Path) -> Iterator[Progress | None]:
    """Show a progress bar on standard error while a large file is read, if it is a terminal."""
    if not sys.stderr.isatty() or not path.is_file() or path.stat().st_size < PROGRESS_MIN_BYTES:
        yield None
        return
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn

    label = TextColumn("reading {task.description}")
    columns = (label, BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with progress_bar(path.name, *columns) as progress:
        yield progress


@contextmanager
def progress_bar(description: str, *columns: ProgressColumn) -> Iterator[Progress | None]:
    """Show a progress bar on standard error, if it is a terminal; yield progress(done, total)."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress as Bar

    # The remaining time follows from all steps so far, since a step may take minutes.
    day = 86400.0
    with Bar(
        *columns, console=Console(stderr=True), transient=True, speed_estimate_period=day
    ) as bar:
        task = bar.add_task(description)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextmanager
def counting_progress(unit: str) -> Iterator[Progress | None]:
    """Show how many units are read, and then embedded, if standard error is a terminal."""
    with status_line(f"reading {unit}") as show:
        yield (
            None
            if show is None
            else lambda done, total: show(
                f"embedded {done:,} of {total:,} {unit}" if total else f"{done:,} {unit}"
            )
        )


@contextmanager
def status_line(text: str) -> Iterator[Callable[[str], None] | None]:
    """Show a status line on standard error, if it is a terminal; yield what replaces its text."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True).status(text) as line:
        yield lambda update: line.update(Text(update))


def note(text: str) -> None:
    """Print an assumption or a remark as one line on standard error."""
    print(f"firstpage: note: {text}", file=sys.stderr)


def note_once(text: str) -> None:
    """Print a remark unless this command printed the same one before."""
    printed = click.get_current_context().meta.setdefault("firstpage.notes", set())
    if text not in printed:
        printed.add(text)
        note(text)


def read_file(path: Path, format: str | None = None, **read_options: Any) -> Any:
    """Read a file of any format, or all data of a folder of shards."""
    if format is None and is_shard_folder(path):
        return _read_folder(path, **read_options).dataset()
    with reading_progress(path) as progress:
        return read(path, format, progress, **read_options)


def read_data(path: Path, **read_options: Any) -> Dataset:
    """Read a dataset; where the file has qrels or a run, name the option that takes it, if any."""
    data = read_file(path, **read_options)
    if not isinstance(data, Dataset):
        kind = type(data).__name__.lower()
        advice = f"; pass it as --{kind}" if options.has_option(f"--{kind}") else ""
        raise FirstpageError(f"{path}: contains {kind} lines, not features and labels{advice}.")
    return data


def numbered_as(zero_based: bool, path: Path) -> dict[str, Any]:
    """Return the option of `read` by which features of LETOR text count as those of other data.

    A file that omits feature 0, since it is 0 everywhere, does not show that they count from 0.
    """
    is_text = zero_based and (path.is_dir() or format_of(path) == "letor")
    return {"zero_based": True} if is_text else {}


def read_data_or_shards(path: Path, **read_options: Any) -> Dataset | Shards:
    """Read a dataset, or the shards of a folder; a note lists the files used as shards."""
    return (_read_folder if is_shard_folder(path) else read_data)(path, **read_options)


def _read_folder(path: Path, **read_options: Any) -> Shards:
    """Read the shards of a folder; options that they do not have are refused."""
    for name in ("categorical", "position"):
        if read_options.get(name):
            raise click.UsageError(f"--{name} needs a data file; {path} is a folder of shards.")
    zero_based = bool(read_options.get("zero_based"))
    shards = read_shards(path, zero_based, read_options.get("labeled", True))
    if not shards.shards[0].sizes:  # plain data files, not written by `firstpage shard`
        note_files(path, [shard.name for shard in shards.shards])
    elif zero_based and not shards.zero_based and shards.feature_names is None:
        note(
            f"{path}: its features count from 1, and those of other data from 0; if the shards are "
            "of LETOR text without a feature 0, use the text instead."
        )
    return shards


def feature_options(categorical: Sequence[str] = (), position: str | None = None) -> dict[str, Any]:
    """Return the options of `read` about features that were given."""
    values = {"categorical": list(categorical), "position": position}
    return {name: value for name, value in values.items() if value}


def options_of_models(path: Path, *models: Model) -> dict[str, Any]:
    """Return the options of `read` by which a file is read as the training data of models were.

    They name a table's columns in which models know categories, and tell whether the features of
    LETOR text count from 0.
    """
    zero_based = any((model.training.get("data") or {}).get("zero_based") for model in models)
    numbering = numbered_as(zero_based, path)
    if numbering or path.is_dir() or not any(model.categories for model in models):
        return numbering
    if format_of(path) not in ("csv", "parquet", "arrow"):
        return {}  # no text: categories are numbers, which the model's categories tell apart
    columns = (
        model.feature_names[column]
        for model in models
        if model.feature_names is not None
        for column in model.categories
    )
    return feature_options(list(dict.fromkeys(columns)))


def note_files(folder: Path, names: Sequence[str]) -> None:
    """Print which files of a folder are read as one data set, and which are ignored."""
    others = sorted(f.name for f in folder.iterdir() if f.name not in names and f.name[0] != ".")
    files = f"file{'s' * (len(names) > 1)}"
    ignored = f"; ignored: {_listed(others)}" if others else ""
    note_once(f"{folder}: reading {len(names)} {files} as one data set: {_listed(names)}{ignored}.")


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return ", ".join(names[:MAX_NAMES]) + more


def read_qrels_option(path: Path | None, confidences: bool = False) -> Qrels | None:
    """Read the judgments of --qrels, of any kind; print whether confidences weight the queries."""
    if path is None:
        return None

    judgments = read_judgments(path)
    weights = judgments.query_weights
    if weights is None:
        return judgments
    if confidences:
        note(
            f"{path}: the confidences of the judgments weight the queries in training, from "
            f"{weights.min():.2g} to {weights.max():.2g} (--no-confidences turns this off)."
        )
        return judgments
    reason = "`firstpage train --qrels` uses them"
    if options.has_option("--no-confidences"):
        reason = "--no-confidences"
    note(f"{path}: the confidences of the judgments are not used here ({reason}).")
    return replace(judgments, query_weights=None)


def join_judgments(
    datasets: Sequence[Any], qrels: Qrels | None, unjudged: str, source: str | None = None
) -> list[Any]:
    """Return datasets with the labels of --qrels, and print what was joined in one line."""
    options.only_with("--qrels", qrels is not None, "unjudged", "confidences")
    if qrels is None:
        return list(datasets)
    present = [data for data in datasets if data is not None]
    for data in present:
        if isinstance(data, Shards):
            raise FirstpageError(
                f"{data.source}: --qrels needs data in memory, not shards; join the judgments "
                "before: firstpage convert DATA TARGET --qrels FILE."
            )
    joined, report = join_labels(present, qrels, unjudged)
    note_once(str(report if source is None else replace(report, source=source)))
    rest = iter(joined)
    return [None if data is None else next(rest) for data in datasets]


def read_truth(
    data: Path | None,
    qrels: Path | None,
    of_run: bool = False,
    scored: bool = False,
    measures: Sequence[Measure] = (),
    models: Sequence[Path] = (),
) -> Dataset | Column | Shards | DiversityQrels:
    """Read the ground truth from DATA or from --qrels, or from DATA with the labels of --qrels.

    Measures of diversity need a file of --qrels with judgments of subtopics.  Columns of DATA in
    which the models that score it know categories are read as such.
    """
    if data is None and qrels is None:
        raise click.UsageError("give the ground truth: a data file, or --qrels.")
    if any(m.of_subtopics for m in measures):
        if qrels is None or not of_run:
            raise click.UsageError("measures of diversity need --run, and --qrels with subtopics.")
        judgments = read_diversity_qrels(qrels)
        check_judgments(measures, judgments)
        return judgments
    if data is not None and qrels is not None and of_run:
        raise click.UsageError("with --run, give the ground truth once: a data file, or --qrels.")
    plain = read_qrels_option(qrels)
    if data is None:
        assert plain is not None
        return plain
    known: dict[str, Any] = {}
    if models:
        known = options_of_models(data, *map(model_files.read_model, models))
    read = read_data_or_shards(data, labeled=plain is None, **known)
    if plain is None:
        return read
    (joined,) = join_judgments([read], plain, "zero")
    measured: Dataset = measured_queries(joined, plain)
    if len(measured) < len(joined) and scored:
        raise FirstpageError(
            f"{data}: some of its queries have no judgments, so --scores of all documents cannot "
            "be measured; write a run (firstpage convert DATA x.run --scores) and give --run."
        )
    return measured


def measured_queries(data: Dataset, qrels: Qrels) -> Dataset:
    """Return the queries that the judgments contain: others are not measured, as in trec_eval."""
    judged = match_queries(data.queries, qrels.queries) >= 0
    if judged.all():
        return data
    note_once(
        f"{data.source}: {int((~judged).sum()):,} of {len(data):,} queries are not in the "
        "judgments, and not measured."
    )
    return data[judged]


def read_scores_of(truth: Dataset | Column | Shards, path: Path) -> Any:
    """Read the scores of the documents of a data file or of shards, one per row."""
    if isinstance(truth, Column):
        raise click.UsageError("--scores requires a data file, whose documents it scores.")
    scores = read_scores(path, truth.n_docs)
    return truth.to_row_order(scores) if hasattr(truth, "to_row_order") else scores


def as_qrels(truth: Dataset | Column | Shards) -> Column:
    """Return judgments for runs, also those of a data file with document ids."""
    if isinstance(truth, Shards):
        raise FirstpageError(f"{truth.source}: shards go with --scores, not with --run.")
    if not isinstance(truth, Dataset):
        return truth
    if truth.docids is None:
        raise FirstpageError(
            f"{truth.source}: has no document ids, so --run cannot be joined to it."
        )
    return to_qrels(truth)


def check_rel(measures: Sequence[Measure]) -> None:
    """Refuse --rel where no measure depends on it."""
    used = any(hasattr(measure, "rel") and measure.rel is None for measure in measures)
    options.only_with("a measure of relevant documents that does not set rel itself", used, "rel")


def load_function(text: str, option: str) -> Callable[..., Any]:
    """Return the function named as `module:name`; the current folder is searched first."""
    options.search_current_folder()
    try:
        return cast("Callable[..., Any]", imported(text, "function"))
    except DataError as error:
        raise DataError(f"{option}: {error.message}", error.advice) from error


def with_error_report(
    function: Callable[..., Any], name: str, option: str = "--function"
) -> Callable[..., Any]:
    """Return a function of a query and documents whose exceptions become one line."""

    def call(query: Any, *documents: Any) -> Any:
        try:
            return function(query, *documents)
        except Exception as error:  # the user's function may raise anything; all of it is reported
            frame = traceback.extract_tb(error.__traceback__)[-1]
            keys = [each.key for each in documents if hasattr(each, "key")]
            shown = " and ".join(keys) or f"{len(documents[0])} documents"
            raise DataError(
                f"{option} {name} failed on query {query.key}, {shown}: "
                f"{type(error).__name__}: {error} ({frame.filename}:{frame.lineno})."
            ) from error

    return call


def text_of(path: Path) -> str:
    """Return the text of a file with instructions for a model."""
    try:
        text = read_all(path).decode().strip()
    except UnicodeDecodeError:
        raise DataError(f"{path}: must be text in UTF-8.") from None
    if not text:
        raise DataError(f"{path}: is empty; it must have the instructions for the model.")
    return text


def list_assessor(name: str, option: str, **endpoint: Any) -> labeling.ListAssessor:
    """Return the assessor of an option; the settings are those of an endpoint."""
    if "://" in name:
        return labeling.load_list_assessor(name, key=options.endpoint_key(), **endpoint)
    if ":" in name and not Path(name).is_dir():
        function = load_function(name, option)
        return labeling.load_list_assessor(name, with_error_report(function, name, option))
    return labeling.load_list_assessor(name)
