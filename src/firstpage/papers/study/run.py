"""Run studies: each run of each experiment once, in any number of processes.

Random numbers depend only on the seed, the random stream of the experiment and the number of the
run, so that neither the order of runs nor the number of processes changes a result.

Finished runs are cached on disk, so that an interrupted reproduction resumes.  A run is a small
JSON file, written atomically.  Its folder is named after the code and the library versions, the
file after everything else that the numbers depend on.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import signal
import threading
import time
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import Any, get_args

import numpy as np

from firstpage.core import (
    DataError,
    FirstpageError,
    FirstpageWarning,
    ParameterError,
    Progress,
    atomic_replace,
    cache_folder,
)
from firstpage.data.io import json_digest
from firstpage.papers.study.registry import (
    DATASETS,
    data_folder,
    folder_digest,
    missing_data,
    select_entries,
)
from firstpage.papers.study.study import (
    Cells,
    Claim,
    EntryResult,
    Experiment,
    PaperEntry,
    PaperStudy,
    Protocol,
    Row,
    RunPlan,
    collect_cells,
)

FORMAT = 1
MAX_AGE_SECONDS = 30 * 86400.0  # after which cached runs of other code are deleted
LIBRARIES = ("numpy", "scipy", "numba")
DatasetFolders = dict[str, tuple[Path, str]]  # folder and digest, by name of the data set


@dataclass(frozen=True)
class RunCache:
    """The cached runs of one study, computed by one version of the code."""

    folder: Path

    def path(self, key: Sequence[Any]) -> Path:
        """Return the file of a run."""
        return self.folder / f"{json_digest(key)[:32]}.json"

    def load(self, key: Sequence[Any]) -> dict[str, Any] | None:
        """Return the cached run of a key; None if there is none, or if it is damaged."""
        try:
            record = json.loads(self.path(key).read_text())
        except (OSError, ValueError):
            return None
        return record if _is_valid(record) else None

    def save(self, key: Sequence[Any], record: dict[str, Any]) -> None:
        """Cache a run; a folder that cannot be written to is ignored."""
        with suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            with atomic_replace(self.path(key)) as draft:
                draft.write_text(json.dumps(record))


def _is_valid(record: Any) -> bool:
    """Return whether a cached run has rows, each with a number."""
    rows = record.get("rows") if isinstance(record, dict) else None
    return (
        isinstance(rows, list)
        and bool(rows)
        and all(isinstance(row, dict) and isinstance(row.get("value"), int | float) for row in rows)
    )


def open_run_cache(study: str, modules: Sequence[str]) -> RunCache:
    """Return the cache of a study for the current code, and delete old runs of other code."""
    base = cache_folder() / "studies" / study
    cache = RunCache(base / code_digest(modules))
    _delete_stale(base, cache.folder)
    return cache


def library_versions() -> dict[str, str]:
    """Return the versions of Python and of the numerical libraries."""
    return {"python": platform.python_version(), **{name: version(name) for name in LIBRARIES}}


def code_digest(modules: Sequence[str]) -> str:
    """Return a digest of the sources of these packages and modules, and of library versions."""
    sha256 = hashlib.sha256(json.dumps([FORMAT, library_versions()], sort_keys=True).encode())
    for name in modules:
        module = import_module(name)
        assert module.__file__ is not None
        file = Path(module.__file__)
        for source in sorted(file.parent.rglob("*.py")) if file.stem == "__init__" else [file]:
            sha256.update(source.name.encode() + b"\0" + source.read_bytes())
    return sha256.hexdigest()[:16]


def _delete_stale(base: Path, current: Path) -> None:
    """Delete old runs of other code."""
    with suppress(OSError):
        for folder in base.iterdir():
            if folder != current and time.time() - folder.stat().st_mtime > MAX_AGE_SECONDS:
                shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True)
class RunTask:
    """One run of an experiment, and the key that it is cached under."""

    experiment: Experiment
    run: int
    seed: int
    folders: Mapping[str, str | None]  # keyword arguments of the function
    data: str  # digests of the folders

    @property
    def key(self) -> list[Any]:
        experiment = self.experiment
        return [
            experiment.function_name,
            dict(experiment.params),
            experiment.stream,
            self.seed,
            self.run,
            self.data,
        ]


@dataclass(frozen=True, eq=False)
class Reproduction:
    """Results of the entries of one paper, returned by `reproduce`.

    Attributes
    ----------
    study : PaperStudy
        The paper: name, title and all its entries.
    plan : RunPlan
        The options of the reproduction.
    results : sequence of EntryResult
        Cells and tested claims of every selected entry.
    data_digests : dict
        SHA-256 digests of the data folders, by folder name.
    notes : sequence of str
        Warnings of the runs.
    computed_runs : int
        Number of runs that were computed; the others were cached.
    total_runs : int
        Number of runs.

    Examples
    --------
    >>> import firstpage as fp
    >>> (reproduction,) = fp.papers.reproduce("zhou2013/table1", seeds=2)
    >>> reproduction.study.name, reproduction.total_runs
    ('zhou2013', 2)
    >>> reproduction.results[0].cells.cell(label=3).paper
    473.0
    """

    study: PaperStudy
    plan: RunPlan
    results: Sequence[EntryResult]
    data_digests: dict[str, str]
    notes: Sequence[str]
    computed_runs: int
    total_runs: int

    def to_dict(self) -> dict[str, Any]:
        """Return cells, claims and provenance, as ``firstpage reproduce --json`` prints them.

        Returns
        -------
        dict
            Keys "study", "cells" and "claims" (lists of dicts with the name of their "entry"),
            "seed", "fast", "protocol", "thinned" (by entry), "data_digests", "versions" and
            "notes".
        """
        return {
            "study": self.study.name,
            "cells": [
                {"entry": r.entry.name, **c.to_dict()} for r in self.results for c in r.cells
            ],
            "claims": [
                {"entry": r.entry.name, **c.to_dict()} for r in self.results for c in r.claims
            ],
            "seed": self.plan.seed,
            "fast": self.plan.fast,
            "protocol": self.plan.protocol,
            "thinned": {r.entry.name: r.entry.thinned for r in self.results if r.entry.thinned},
            "data_digests": self.data_digests,
            "versions": library_versions(),
            "notes": list(self.notes),
        }


def merge_reproductions(reproductions: Sequence[Reproduction]) -> dict[str, Any]:
    """Return the JSON record of one or several papers; of several, entries have full names."""
    if len(reproductions) == 1:
        return reproductions[0].to_dict()
    records = [reproduction.to_dict() for reproduction in reproductions]
    merged: dict[str, Any] = {
        key: [
            {**item, "entry": f"{record['study']}/{item['entry']}"}
            for record in records
            for item in record[key]
        ]
        for key in ("cells", "claims")
    }
    options = {key: records[0][key] for key in ("seed", "fast", "protocol", "versions")}
    options["thinned"] = {
        f"{record['study']}/{entry}": text
        for record in records
        for entry, text in record["thinned"].items()
    }
    digests = {
        name: digest for record in records for name, digest in record["data_digests"].items()
    }
    notes = [note for record in records for note in record["notes"]]
    return {**merged, **options, "data_digests": digests, "notes": notes}


def reproduce(
    *targets: str,
    data: str | Path | None = None,
    seeds: int | None = None,
    fast: bool = False,
    seed: int = 0,
    jobs: int | None = None,
    recompute: bool = False,
    progress: Progress | None = None,
    protocol: Protocol = "quick",
    announce: Callable[[str], object] | None = None,
) -> list[Reproduction]:
    """Recompute tables and figures of papers, and test the claims about them.

    Finished runs are cached: an interrupted call resumes when it is repeated, and a repeated call
    computes nothing.  Entries whose data sets are missing have no cells, and an inconclusive
    claim that names the data.

    Parameters
    ----------
    *targets : str
        Papers ("xia2009", "niu2012", "lan2013", "zhou2013", "cheng2014"), entries of a paper
        such as "zhou2013/figure7", or "all".
    data : str or Path, optional
        Folder with the data sets; by default the environment variable ``FIRSTPAGE_DATA``.
    seeds : int, optional
        Number of runs of every randomized experiment; by default as each entry defines it,
        mostly 20.
    fast : bool, default False
        Use fewer runs, for a first look.
    seed : int, default 0
        Seed of all random streams.
    jobs : int, optional
        Number of processes; by default everything runs in this process.
    recompute : bool, default False
        Also repeat runs that are cached.
    progress : callable, optional
        Called with the number of finished runs and the number of all runs.
    protocol : {"quick", "paper"}, default "quick"
        "quick" thins the grids of some papers, as each entry says; "paper" uses the printed grids,
        rates and numbers of iterations in full, which takes much longer.
    announce : callable, optional
        With protocol="paper", called with one line before the runs start: how long they will take,
        by the time of one of them.

    Returns
    -------
    list of Reproduction
        One per paper, in the order of `targets`.

    Raises
    ------
    ParameterError
        If no target is given, if a paper, an entry or a protocol is unknown, or if `seeds` or
        `jobs` is less than 1.
    DataError
        If `data` is not a folder, or if a single entry is selected and its data are missing.

    Examples
    --------
    >>> import firstpage as fp
    >>> (reproduction,) = fp.papers.reproduce("zhou2013/figure1", seeds=3)
    >>> figure1 = reproduction.results[0]
    >>> cell = figure1.cells.cell(**{"discount": "natural logarithm", "DCG difference": 1.0})
    >>> cell.paper, round(cell.ours, 1)
    (0.8, 0.6)
    >>> [claim.verdict for claim in figure1.claims]
    ['holds', 'holds', 'does not hold', 'does not hold']
    """
    if not targets:
        raise ParameterError(
            "name a paper such as 'xia2009', an entry such as 'zhou2013/figure7', or 'all'."
        )
    for name, value in (("seeds", seeds), ("jobs", jobs)):
        if value is not None and value < 1:
            raise ParameterError(f"{name} must be an integer of at least 1; got {value}.")
    if protocol not in get_args(Protocol):
        raise ParameterError(f"protocol must be 'quick' or 'paper'; got {protocol!r}.")
    base = data_folder(data)
    if base is not None and not base.is_dir():
        raise DataError(f"{base}: no such folder; data must be a folder with data sets.")
    selected = select_entries(targets)
    entries = [entry for _, study_entries in selected for entry in study_entries]
    if len(entries) == 1 and (missing := missing_data(entries[0].datasets, base)):
        raise DataError(f"{entries[0].name} {missing}.")
    plan = RunPlan(seeds, fast, seed, base, jobs or 1, recompute, protocol)
    scheduled = [_schedule(study, study_entries, plan) for study, study_entries in selected]
    total = sum(len(schedule.unique_tasks) for schedule in scheduled)
    if protocol == "paper" and announce is not None and not recompute:
        announce(estimate_cost(scheduled, plan.jobs))
    reproductions = list[Reproduction]()
    finished = 0
    for schedule in scheduled:

        def report(done: int, _: int, before: int = finished) -> None:
            if progress is not None:
                progress(before + done, total)

        reproductions.append(_run_schedule(schedule, report))
        finished += len(schedule.unique_tasks)
    return reproductions


def estimate_cost(scheduled: Sequence[_Schedule], jobs: int) -> str:
    """Compute and cache the first run that is not cached; return what all others will cost.

    The time of one run is multiplied by the number of runs: an order of magnitude.
    """
    remaining = list[tuple[RunCache, RunTask]]()
    total = 0
    for schedule in scheduled:
        tasks = schedule.unique_tasks
        cache = open_run_cache(schedule.study.name, schedule.study.modules)
        records = _cached_records(tasks, cache)
        total += len(tasks)
        remaining += [(cache, task) for key, task in tasks.items() if key not in records]
    if not remaining:
        return f"all {total} runs are cached."
    (cache, task), start = remaining[0], time.perf_counter()
    cache.save(task.key, execute_run(task))
    seconds = time.perf_counter() - start
    rest = len(remaining) - 1
    return (
        f"{len(remaining)} of {total} runs are to be computed; the first took {seconds:.1f} s, so "
        f"the others will take about {format_duration(seconds * rest / min(jobs, max(rest, 1)))} "
        f"with {jobs} process{'es' * (jobs != 1)}. Finished runs are cached: stop at any time, and "
        "run the same command to continue."
    )


def format_duration(seconds: float) -> str:
    """Return a duration as text, in the unit of its size."""
    for unit, size in (("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} seconds"


def run_study(
    study: PaperStudy,
    entries: Sequence[PaperEntry],
    plan: RunPlan,
    progress: Progress | None = None,
) -> Reproduction:
    """Compute the runs that are not cached, and test the claims of these entries."""
    return _run_schedule(_schedule(study, entries, plan), progress)


@dataclass(frozen=True, eq=False)
class _Schedule:
    """The entries of a study, the tasks of those that can be computed, and missing data."""

    study: PaperStudy
    entries: Sequence[PaperEntry]
    plan: RunPlan
    missing: Mapping[str, str]  # by entry
    folders: DatasetFolders
    tasks: Mapping[str, list[list[RunTask]]]  # by entry: experiments, then runs

    @property
    def unique_tasks(self) -> dict[str, RunTask]:
        """The tasks by key; entries that share an experiment share its runs."""
        return {
            repr(task.key): task
            for experiments in self.tasks.values()
            for runs in experiments
            for task in runs
        }


def _schedule(study: PaperStudy, entries: Sequence[PaperEntry], plan: RunPlan) -> _Schedule:
    entries = [entry.with_protocol(plan.protocol) for entry in entries]
    missing = {entry.name: missing_data(entry.datasets, plan.data) for entry in entries}
    computable = [entry for entry in entries if not missing[entry.name]]
    folders = _dataset_folders(computable, plan)
    tasks = {
        entry.name: [list(_tasks(experiment, plan, folders)) for experiment in entry.experiments]
        for entry in computable
    }
    return _Schedule(study, entries, plan, missing, folders, tasks)


def _run_schedule(schedule: _Schedule, progress: Progress | None) -> Reproduction:
    study = schedule.study
    cache = open_run_cache(study.name, study.modules)
    records, computed_runs = _run_tasks(schedule.unique_tasks, cache, schedule.plan, progress)

    def rows(task: RunTask) -> list[Row]:
        task_rows: list[Row] = records[repr(task.key)]["rows"]
        return task_rows

    results = []
    for entry in schedule.entries:
        if entry.name in schedule.tasks:
            tasks = schedule.tasks[entry.name]
            cells = collect_cells(entry, [[rows(task) for task in runs] for runs in tasks])
            results.append(EntryResult(entry, cells, entry.evaluate_claims(cells)))
        else:
            results.append(_untested(entry, schedule.missing[entry.name]))
    notes = sorted({note for record in records.values() for note in record.get("notes", ())})
    digests = {folder.name: digest for folder, digest in schedule.folders.values()}
    return Reproduction(study, schedule.plan, results, digests, notes, computed_runs, len(records))


def _untested(entry: PaperEntry, missing: str) -> EntryResult:
    """Return the result of an entry whose data are missing."""
    claim = Claim(entry.statement, "inconclusive", missing, held_equal=entry.held_equal)
    return EntryResult(entry, Cells([]), [claim], missing)


def _dataset_folders(entries: Sequence[PaperEntry], plan: RunPlan) -> DatasetFolders:
    """Return the data sets of these entries with their digests; each folder is read once."""
    folders: DatasetFolders = {}
    digests: dict[Path, str] = {}
    experiments = [experiment for entry in entries for experiment in entry.experiments]
    names = {name for e in experiments for name in (e.dataset, e.optional_dataset)}
    for name in names - {None}:
        assert name is not None
        folder = DATASETS[name].find(plan.data)
        if folder is None:  # an optional data set may be missing
            continue
        if folder not in digests:
            digests[folder] = folder_digest(folder)
        folders[name] = (folder, digests[folder])
    return folders


def _tasks(experiment: Experiment, plan: RunPlan, folders: DatasetFolders) -> Iterator[RunTask]:
    arguments: dict[str, str | None] = {}
    digests = []
    if experiment.dataset is not None:
        folder, sha256 = folders[experiment.dataset]
        arguments["folder"] = str(folder)
        digests.append(sha256)
    if experiment.optional_dataset is not None:
        optional = folders.get(experiment.optional_dataset)
        arguments["optional_folder"] = None if optional is None else str(optional[0])
        digests += [] if optional is None else [optional[1]]
    for run in range(plan.n_runs(experiment)):
        yield RunTask(experiment, run, plan.seed, arguments, " ".join(digests))


def _run_tasks(
    tasks: Mapping[str, RunTask], cache: RunCache, plan: RunPlan, progress: Progress | None
) -> tuple[dict[str, dict[str, Any]], int]:
    """Return the record of every task by its key, and how many were computed."""
    records = {} if plan.recompute else _cached_records(tasks, cache)
    remaining = [task for key, task in tasks.items() if key not in records]
    report = progress or (lambda done, total: None)
    report(len(records), len(tasks))
    for task, record in _completed(remaining, plan.jobs):
        cache.save(task.key, record)
        records[repr(task.key)] = record
        report(len(records), len(tasks))
    return records, len(remaining)


def _cached_records(tasks: Mapping[str, RunTask], cache: RunCache) -> dict[str, dict[str, Any]]:
    records = {key: cache.load(task.key) for key, task in tasks.items()}
    return {key: record for key, record in records.items() if record is not None}


def _completed(tasks: Sequence[RunTask], jobs: int) -> Iterator[tuple[RunTask, dict[str, Any]]]:
    """Yield tasks with their records, in the order in which they finish."""
    if jobs < 2 or len(tasks) < 2:
        for task in tasks:
            yield task, execute_run(task)
        return
    # "spawn", not "fork": a fork loses the threads of the parent but keeps their locks.
    pool = ProcessPoolExecutor(min(jobs, len(tasks)), get_context("spawn"), _initialize_worker)
    try:
        futures = {pool.submit(execute_run, task): task for task in tasks}
        for future in as_completed(futures):
            yield futures[future], future.result()
    except BrokenProcessPool:
        raise FirstpageError(
            "a worker process ended unexpectedly, perhaps for lack of memory; finished runs are "
            "cached: run it again, with fewer --jobs."
        ) from None
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _initialize_worker() -> None:
    """End a worker silently at Ctrl-C, and when its parent process was killed."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    parent = os.getppid()

    def watch_parent() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch_parent, daemon=True).start()


def execute_run(task: RunTask) -> dict[str, Any]:
    """Return the rows of one run, and the warnings of the package as notes."""
    experiment = task.experiment
    stream = zlib.crc32((experiment.stream or experiment.function_name).encode())
    rng = np.random.default_rng([task.seed, stream, task.run])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", FirstpageWarning)
        rows = experiment.function(rng, **experiment.params, **task.folders)
    return {"rows": rows, "notes": sorted({str(w.message) for w in caught})}
