"""Running a study: every run of every work once, in as many processes as wanted.

Random numbers depend on the first seed, the work's stream and the number of the run alone, so
neither the order nor the number of processes changes a digit.

Finished runs are kept on disk: what was done once is not done again, also after a kill.  A run is a
small JSON file, written beside its place and renamed.  Its folder is named after the code and the
versions that made it, its name after everything else the numbers depend on.
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
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from firstpage.data.io.json_files import json_digest
from firstpage.errors import FirstpageError, FirstpageWarning
from firstpage.folders import atomic_replace, cache_folder
from firstpage.papers.study.registry import SOURCES, fingerprint, missing
from firstpage.papers.study.study import (
    Cells,
    Claim,
    Entry,
    Outcome,
    Plan,
    Row,
    Study,
    Work,
    cells_of,
)
from firstpage.types import Progress

FORMAT = 1
OLD = 30 * 86400.0  # seconds after which what other code made is thrown away
LIBRARIES = ("numpy", "scipy", "numba")


@dataclass(frozen=True)
class Shelf:
    """The place of one study's runs, made by one state of the code."""

    folder: Path

    def path(self, key: Sequence[Any]) -> Path:
        return self.folder / f"{json_digest(key)[:32]}.json"

    def load(self, key: Sequence[Any]) -> dict[str, Any] | None:
        """What is kept under a key; None where there is nothing, or something damaged."""
        try:
            kept = json.loads(self.path(key).read_text())
        except (OSError, ValueError):
            return None
        return kept if _whole(kept) else None

    def save(self, key: Sequence[Any], value: dict[str, Any]) -> None:
        """Keep a run; where nothing can be written, nothing is, and nobody is bothered."""
        with suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            with atomic_replace(self.path(key)) as draft:
                draft.write_text(json.dumps(value))


def _whole(kept: Any) -> bool:
    """Rows, at least one, each with a number."""
    rows = kept.get("rows") if isinstance(kept, dict) else None
    return (
        isinstance(rows, list)
        and bool(rows)
        and all(isinstance(row, dict) and isinstance(row.get("value"), int | float) for row in rows)
    )


def shelf(study: str, modules: Sequence[str]) -> Shelf:
    """The shelf for the code as it stands."""
    base = cache_folder() / "studies" / study
    found = Shelf(base / code_digest(modules))
    _sweep(base, found.folder)
    return found


def versions() -> dict[str, str]:
    """Of what the numbers come from."""
    return {"python": platform.python_version(), **{name: version(name) for name in LIBRARIES}}


def code_digest(modules: Sequence[str]) -> str:
    """Changes with the sources of these packages and modules, and with the libraries' versions."""
    told = hashlib.sha256(json.dumps([FORMAT, versions()], sort_keys=True).encode())
    for name in modules:
        module = import_module(name)
        assert module.__file__ is not None
        file = Path(module.__file__)
        for source in sorted(file.parent.rglob("*.py")) if file.stem == "__init__" else [file]:
            told.update(source.name.encode() + b"\0" + source.read_bytes())
    return told.hexdigest()[:16]


def _sweep(base: Path, own: Path) -> None:
    """Runs of other code go when they are old."""
    with suppress(OSError):
        for folder in base.iterdir():
            if folder != own and time.time() - folder.stat().st_mtime > OLD:
                shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True)
class Task:
    """One run of a work, and what it is kept under."""

    work: Work
    run: int
    seed: int
    folders: Mapping[str, str | None]  # as its function gets them
    data: str  # the fingerprints of the folders

    @property
    def key(self) -> list[Any]:
        work = self.work
        return [work.name, dict(work.params), work.stream, self.seed, self.run, self.data]


@dataclass(frozen=True, eq=False)
class Reproduction:
    """All that was found, and what it was found with."""

    study: Study
    plan: Plan
    outcomes: Sequence[Outcome]
    data: dict[str, str]  # folders by name, with their fingerprints
    notes: Sequence[str]
    fresh: int  # runs done now; the others were there
    total: int

    def to_dict(self) -> dict[str, Any]:
        """What `--json` prints."""
        every = self.outcomes
        return {
            "study": self.study.name,
            "cells": [{"entry": o.entry.name, **c.to_dict()} for o in every for c in o.cells],
            "claims": [{"entry": o.entry.name, **c.to_dict()} for o in every for c in o.claims],
            "seed": self.plan.seed, "fast": self.plan.fast, "data": self.data,
            "versions": versions(), "notes": list(self.notes),
        }  # fmt: skip


def merged(every: Sequence[Reproduction]) -> dict[str, Any]:
    """What `--json` prints of several studies: entries are named with their paper."""
    if len(every) == 1:
        return every[0].to_dict()
    told = [found.to_dict() for found in every]
    whole: dict[str, Any] = {
        what: [
            {**item, "entry": f"{one['study']}/{item['entry']}"}
            for one in told
            for item in one[what]
        ]
        for what in ("cells", "claims")
    }
    rest = {key: told[0][key] for key in ("seed", "fast", "versions")}
    data = {name: mark for one in told for name, mark in one["data"].items()}
    return {**whole, **rest, "data": data, "notes": [n for one in told for n in one["notes"]]}


def reproduce(
    study: Study, entries: Sequence[Entry], plan: Plan, progress: Progress | None = None
) -> Reproduction:
    """Do what is not done yet, and judge the claims."""
    lost = {entry.name: missing(entry.needs, plan.data) for entry in entries}
    doable = [entry for entry in entries if not lost[entry.name]]
    folders = _folders(doable, plan)
    tasks = {
        entry.name: [list(_tasks(work, plan, folders)) for work in entry.works] for entry in doable
    }
    kept, fresh = _done(
        [t for works in tasks.values() for runs in works for t in runs],
        shelf(study.name, study.modules), plan, progress,
    )  # fmt: skip

    def rows(task: Task) -> list[Row]:
        found: list[Row] = kept[repr(task.key)]["rows"]
        return found

    outcomes = []
    for entry in entries:
        if entry.name in tasks:
            cells = cells_of(entry, [[rows(t) for t in runs] for runs in tasks[entry.name]])
            outcomes.append(Outcome(entry, cells, entry.judged(cells)))
        else:
            outcomes.append(_untested(entry, lost[entry.name]))
    notes = sorted({note for value in kept.values() for note in value.get("notes", ())})
    data = {folder.name: mark for folder, mark in folders.values()}
    return Reproduction(study, plan, outcomes, data, notes, fresh, len(kept))


def _untested(entry: Entry, why: str) -> Outcome:
    claim = Claim(entry.says, "cannot be tested", why, held_equal=entry.held_equal)
    return Outcome(entry, Cells([]), [claim], why)


def _folders(entries: Sequence[Entry], plan: Plan) -> dict[str, tuple[Path, str]]:
    """The data sets of these entries, with fingerprints; each folder is read once."""
    found: dict[str, tuple[Path, str]] = {}
    marks: dict[Path, str] = {}
    works = [work for entry in entries for work in entry.works]
    for name in {name for work in works for name in (work.needs, work.beside) if name is not None}:
        folder = SOURCES[name].find(plan.data)
        if folder is None:  # what stands beside may be missing
            continue
        if folder not in marks:
            marks[folder] = fingerprint(folder)
        found[name] = (folder, marks[folder])
    return found


def _tasks(work: Work, plan: Plan, folders: dict[str, tuple[Path, str]]) -> Iterator[Task]:
    given: dict[str, str | None] = {}
    marks = []
    if work.needs is not None:
        folder, mark = folders[work.needs]
        given["folder"] = str(folder)
        marks.append(mark)
    if work.beside is not None:
        other = folders.get(work.beside)
        given["beside"] = None if other is None else str(other[0])
        marks += [] if other is None else [other[1]]
    for run in range(plan.runs(work)):
        yield Task(work, run, plan.seed, given, " ".join(marks))


def _done(
    tasks: Sequence[Task], place: Shelf, plan: Plan, progress: Progress | None
) -> tuple[dict[str, dict[str, Any]], int]:
    """What every task gave, by its key; figures that share work share its runs."""
    every = {repr(task.key): task for task in tasks}
    kept = {} if plan.again else _kept(every, place)
    left = [task for key, task in every.items() if key not in kept]
    tell = progress or (lambda done, total: None)
    tell(len(kept), len(every))
    for task, value in _results(left, plan.jobs):
        place.save(task.key, value)
        kept[repr(task.key)] = value
        tell(len(kept), len(every))
    return kept, len(left)


def _kept(every: dict[str, Task], place: Shelf) -> dict[str, dict[str, Any]]:
    found = {key: place.load(task.key) for key, task in every.items()}
    return {key: value for key, value in found.items() if value is not None}


def _results(tasks: Sequence[Task], jobs: int) -> Iterator[tuple[Task, dict[str, Any]]]:
    """In the order in which they end."""
    if jobs < 2 or len(tasks) < 2:
        for task in tasks:
            yield task, perform(task)
        return
    # Fresh processes, not forks: threads of the parent would be lost in a fork, and locks stay.
    pool = ProcessPoolExecutor(min(jobs, len(tasks)), get_context("spawn"), _end_quietly)
    try:
        waiting = {pool.submit(perform, task): task for task in tasks}
        for future in as_completed(waiting):
            yield waiting[future], future.result()
    except BrokenProcessPool:
        raise FirstpageError(
            "a process ended before its work did, perhaps for want of memory; what was finished is "
            "kept: run it again, with fewer --jobs."
        ) from None
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _end_quietly() -> None:
    """At Ctrl-C a process just ends; the first one says what is to be said.  If that one is killed,
    its helpers end too, instead of waiting for work for ever."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def perform(task: Task) -> dict[str, Any]:
    """One run: its rows, and what was noted on the way."""
    stream = zlib.crc32((task.work.stream or task.work.name).encode())
    rng = np.random.default_rng([task.seed, stream, task.run])
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", FirstpageWarning)
        rows = task.work.do(rng, **task.work.params, **task.folders)
    return {"rows": rows, "notes": sorted({str(w.message) for w in said})}
