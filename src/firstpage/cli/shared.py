"""What several verbs share: reading truth and systems, progress, rankers by name, label stores."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial, wraps
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from firstpage.cli import options
from firstpage.cli.options import Command
from firstpage.errors import DataError, FirstpageError, need

if TYPE_CHECKING:
    from rich.progress import ProgressColumn

    from firstpage.data.dataset import Dataset
    from firstpage.data.formats.trec import Column
    from firstpage.data.shards.shards import Shards
    from firstpage.measures.measure import Measure
    from firstpage.rankers.ranker import Ranker
    from firstpage.types import Progress
    from firstpage.web.store.connect import Store


SHOWN = 5  # files that a note names
BIG = 16 << 20  # bytes of a file from which on reading shows progress


@contextmanager
def reading(path: Path) -> Iterator[Progress | None]:
    """A progress bar on standard error, for large files on a terminal."""
    if not sys.stderr.isatty() or not path.is_file() or path.stat().st_size < BIG:
        yield None
        return
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn

    reads = TextColumn("reading {task.description}")
    with counting(path.name, reads, BarColumn(), DownloadColumn(), TimeRemainingColumn()) as bar:
        yield bar


@contextmanager
def counting(what: str, *columns: ProgressColumn) -> Iterator[Progress | None]:
    """A progress bar for work that tells (done, total), on standard error of a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress as Bar

    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextmanager
def following(what: str) -> Iterator[Callable[[str], None] | None]:
    """A line on standard error of a terminal, whose text follows the work."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True).status(what) as line:
        yield lambda text: line.update(Text(text))


def read_data(path: Path, **how: Any) -> Dataset:
    """A dataset, or the error that says what else the file is."""
    from firstpage.data.dataset import Dataset
    from firstpage.data.formats.registry import read

    with reading(path) as progress:
        data = read(path, progress=progress, **how)
    if not isinstance(data, Dataset):
        kind = type(data).__name__.lower()
        raise FirstpageError(f"{path}: holds {kind} lines; give it as --{kind}.")
    return data


def read_any(path: Path, **how: Any) -> Dataset | Shards:
    """A dataset, or the shards of a folder; which files of the folder they are is said."""
    from firstpage.data.shards.shards import is_shard_folder, read_shards

    if not is_shard_folder(path):
        return read_data(path, **how)
    found = read_shards(path)
    if not found.shards[0].sizes:  # files as they are
        note_files(path, [shard.name for shard in found.shards])
    return found


def note_files(folder: Path, names: Sequence[str]) -> None:
    """Say which files of a folder are taken for one data set, and which are left out."""
    rest = sorted(f.name for f in folder.iterdir() if f.name not in names and f.name[0] != ".")
    files = f"file{'s' * (len(names) > 1)}"
    left = f"; left out: {_listed(rest)}" if rest else ""
    note(f"{folder}: takes {len(names)} {files} for one data set: {_listed(names)}{left}.")


def note(text: str) -> None:
    """Say in one line, on standard error, what was assumed on the way."""
    print(f"firstpage: note: {text}", file=sys.stderr)


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def read_truth(data: Path | None, qrels: Path | None) -> Dataset | Column | Shards:
    """From DATA or --qrels, whichever is given."""
    if (data is None) == (qrels is None):
        raise click.UsageError("give the truth once: a data file, or --qrels.")
    if qrels is not None:
        from firstpage.data.formats.trec import read_qrels

        return read_qrels(qrels)
    assert data is not None
    return read_any(data)


def read_scores_of(truth: Dataset | Column | Shards, path: Path) -> Any:
    """Scores for the documents of a data file or of shards, one per row."""
    from firstpage.data.formats.letor import read_scores
    from firstpage.data.formats.trec import Column

    if isinstance(truth, Column):
        raise click.UsageError("--scores go with a data file, whose documents they score.")
    scores = read_scores(path, truth.n_docs)
    return truth.to_row_order(scores) if hasattr(truth, "to_row_order") else scores


def system_names(files: Sequence[Path]) -> list[str]:
    """One name per file: the file's own; where that repeats, with the folder or a number."""
    own = [file.name for file in files]
    names: list[str] = []
    for file in files:
        name, number = file.name if own.count(file.name) == 1 else str(file), 2
        while name in names:
            name = f"{file} ({number})"
            number += 1
        names.append(name)
    return names


def named_systems(files: Sequence[Path], truth: Any, runs: bool) -> dict[str, Any]:
    """Systems of one kind, runs or scores, by name."""
    from firstpage.data.formats.trec import read_run
    from firstpage.data.shards.shards import Shards

    if runs and isinstance(truth, Shards):
        raise click.UsageError("shards go with --scores, or with --model in `evaluate`.")
    read = read_run if runs else partial(read_scores_of, truth)
    return dict(zip(system_names(files), map(read, files), strict=True))


def full_name(given: str | None, systems: dict[str, Any]) -> str | None:
    """A baseline may be named by its file, its file without suffix, or its tag."""
    if given is None or given in systems:
        return given
    found = [
        name
        for name, system in systems.items()
        if given in (Path(name).name, Path(name).stem, getattr(system, "name", None))
    ]
    if len(found) > 1:
        raise click.UsageError(f"--baseline {given} may be {' or '.join(found)}; name one in full.")
    return found[0] if found else given


def as_qrels(truth: Dataset | Column | Shards) -> Column:
    """Judgments for runs, also from a data file with document ids."""
    from firstpage.data.dataset import Dataset
    from firstpage.data.formats.trec import to_qrels
    from firstpage.data.shards.shards import Shards

    if isinstance(truth, Shards):
        raise FirstpageError(f"{truth.source}: shards go with --scores, not with --run.")
    if not isinstance(truth, Dataset):
        return truth
    if truth.docids is None:
        raise FirstpageError(
            f"{truth.source}: has no document ids, so --run cannot be joined to it."
        )
    return to_qrels(truth)


def ranker_from(
    name: str, settings: tuple[str, ...], measure: str, normalize: str, seed: int
) -> Ranker:
    """The ranker that the command line describes."""
    from firstpage.rankers.registry import ranker
    from firstpage.registry import literal, split

    given: dict[str, Any] = {"measure": measure, "seed": seed}
    if normalize != "none":
        given["normalize"] = normalize
    said = {key: f"--{key}" for key in ("measure", "seed", "normalize") if options.is_given(key)}
    for item in settings:
        key, equals, value = (part.strip() for part in item.partition("="))
        if not equals or not key:
            raise click.UsageError(f"--set reads NAME=VALUE; got {item!r}.")
        if key in said:
            raise click.UsageError(f"{key} is given twice: by {said[key]} and by --set {item}.")
        given[key], said[key] = literal(value), f"--set {item}"
    inside = split(name)[1]
    for key in inside:
        if key in said:
            raise click.UsageError(f"{key} is given twice: in {name} and by {said[key]}.")
    found = ranker(name, **{k: v for k, v in given.items() if k not in inside})
    found._check_parameters()
    return found


def check_rel(measures: Sequence[Measure]) -> None:
    """Refuse --rel where no measure asks which labels are relevant."""
    asks = any(hasattr(measure, "rel") and measure.rel is None for measure in measures)
    options.only_with("a measure of relevant documents that does not say rel itself", asks, "rel")


def refuse_without_validation(ranker: Ranker, needs: str, met: bool) -> None:
    """Refuse what only validation data would heed: the measure and the patience."""
    options.only_with(needs, met, "measure")
    if ranker.patience is not None and not met:
        raise click.UsageError(f"patience={ranker.patience} goes with {needs}.")


def function(text: str, option: str) -> Callable[..., Any]:
    """What `module:name` names; modules in the folder at hand count."""
    module, _, attribute = text.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found: Any = getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise DataError(f"{option} {text}: {error}; write module:name.") from error
    if not callable(found):
        raise DataError(f"{option} {text}: is no function; write module:name.")
    named: Callable[..., Any] = found
    return named


PACKAGES = ("fastapi", "sqlalchemy", "alembic", "uvicorn", "argon2", "multipart", "jinja2")


def need_web() -> None:
    """One line that says what to install, where something is missing."""
    for package in PACKAGES:
        if find_spec(package) is None:
            raise need(package, "web", "The labeling application")


def with_web(command: Command) -> Command:
    """Refuse a command before anything else, where a package of the application is missing."""

    @wraps(command)
    def checked(*args: Any, **options: Any) -> Any:
        need_web()
        return command(*args, **options)

    return cast("Command", checked)


@contextmanager
def open_store(where: str, make: bool = False) -> Iterator[Store]:
    """The store, ready; one that is not there is made only if `make` says so."""
    need_web()
    from firstpage.web.store.connect import FILE, Store

    if not make and "://" not in where and not (Path(where) / FILE).is_file():
        raise DataError(f"{where}: holds no labeling project; make one with: firstpage label setup")
    store = Store(where).prepare()
    try:
        with store.told():
            yield store
    finally:
        store.close()
