"""The demo's output: numbered steps on the terminal, and the folder with its files.

The folder's own files are replaced; files of others are refused or left alone.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sqlite3
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import wrap
from typing import Any

from firstpage.core import DataError, Progress
from firstpage.data.io import JsonFormat, write_bytes, write_json

LINE_WIDTH = 96
ProgressBar = Callable[[str], AbstractContextManager[Progress | None]]


def program() -> str:
    """Return the command to call Firstpage: its name if the shell finds it, else its path."""
    called = Path(sys.argv[0])
    installed = shutil.which("firstpage") if called.exists() else None
    if called.name != "firstpage" or (installed is not None and Path(installed).samefile(called)):
        return "firstpage"
    return shlex.quote(os.path.relpath(called))


def no_progress(title: str) -> AbstractContextManager[Progress | None]:
    """Return a context without a progress bar."""
    return nullcontext()


@dataclass
class StepPrinter:
    """Prints numbered steps and their durations.

    Attributes
    ----------
    progress : callable
        Function of a title that returns a context with a progress callback or None.
    steps : int
        Number of steps so far.
    seconds : dict of str to float
        Duration per step.
    commands : dict of str to list of str
        The commands that do the same, per step.
    own_commands : dict of str to list of str
        The commands with which the reader judges and continues, per purpose.
    """

    progress: ProgressBar = no_progress
    steps: int = 0
    seconds: dict[str, float] = field(default_factory=dict)
    commands: dict[str, list[str]] = field(default_factory=dict)
    own_commands: dict[str, list[str]] = field(default_factory=dict)
    _started: float = field(default_factory=time.perf_counter)

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        """Print a numbered title, and the duration of the block at its end."""
        self.steps += 1
        started = time.perf_counter()
        self.print(f"\n{self.steps}. {title}")
        self.commands[title] = []
        yield
        self.seconds[title] = time.perf_counter() - started
        self.print(f"   {self.seconds[title]:.1f} s")

    def print(self, text: str) -> None:
        """Print a line at once."""
        print(text, flush=True)

    def note(self, text: str) -> None:
        """Print indented lines that belong to a step; long lines are wrapped."""
        for line in text.splitlines():
            for piece in [line] if len(line) <= LINE_WIDTH else wrap(line, LINE_WIDTH):
                self.print(f"   {piece}".rstrip())

    def command(self, words: Sequence[str]) -> None:
        """Print a command of Firstpage that does what the step did."""
        self.commands[next(reversed(self.commands))].append(command_line(*words))
        self._print_command(words)

    def own(self, purpose: str, *commands: Sequence[str]) -> None:
        """Print the commands with which the reader judges and continues, for a purpose."""
        self.own_commands[purpose] = [command_line(*words) for words in commands]
        self.note(f"{purpose}:")
        for words in commands:
            self._print_command(words)

    def _print_command(self, words: Sequence[str]) -> None:
        lines = wrap_command(f"$ {command_line(*words, called=program())}")
        self.print("\n".join(f"   {line}" for line in lines))

    @property
    def total(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self._started


def command_line(*words: str | Path, called: str = "firstpage") -> str:
    """Return a command of Firstpage as one types it."""
    return " ".join([called, *(shlex.quote(str(word)) for word in words)])


def wrap_command(text: str) -> list[str]:
    """Return the lines of a command; all but the last end with a backslash."""
    lines = [""]
    for word in re.findall(r"(?:'[^']*'|\"[^\"]*\"|\S)+", text):
        if lines[-1] and len(lines[-1]) + len(word) > LINE_WIDTH - 3:
            lines[-1] += " \\"
            lines.append(" " * 4 + word)
        else:
            lines[-1] = f"{lines[-1]} {word}" if lines[-1] else word
    return lines


KIND = JsonFormat("firstpage-demo", 1, "demo summary")
SUMMARY = "demo.json"
DATABASE = ("firstpage.db", "firstpage.db-wal", "firstpage.db-shm")
FILES = {
    "report.html": "this report",
    "documents.jsonl": "the entries of Python's documentation",
    "queries.jsonl": "the questions",
    "answers.qrels": "the correct answers: 3 is the answer, 2 also answers the question, 1 helps",
    "candidates.run": "the candidates of every question, by words and, with an encoder, by meaning",
    "firstpage.db": "the labeling projects, with every judgment",
    "labels.qrels": "the assessors' labels: 5 for the best document, 4 for the next, down to 0",
    "features.npz": "the features of all candidates, with the assessors' labels",
    "model.json": "the best ranker, trained on all questions",
    "preferences.jsonl": "the editors' preferences between first pages",
    "measure.json": "the measure learned from these preferences",
    SUMMARY: "all figures of the report",
}
INDEX = "python.index"  # folder of the index
RUNS = "runs"  # folder of run files


@dataclass(frozen=True)
class Folder:
    """The demo's folder."""

    path: Path

    def __truediv__(self, name: str) -> Path:
        return self.path / name

    @classmethod
    def prepare(cls, path: Path) -> Folder:
        """Create the folder, or reuse one of an earlier demo; other folders are refused."""
        try:
            _check(path)
            (path / RUNS).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DataError(f"{path}: cannot create this folder ({error.strerror}).") from error
        folder = cls(path)
        folder.write_summary({})  # marks the folder as the demo's
        for old in (path / RUNS).glob("*.run"):
            old.unlink()
        for name in DATABASE:
            (path / name).unlink(missing_ok=True)
        return folder

    def write_summary(self, figures: Mapping[str, Any]) -> None:
        """Write all figures; the file also marks the folder as the demo's."""
        write_json(KIND.with_header({"figures": dict(figures)}), self / SUMMARY)

    def write(self, name: str, text: str) -> Path:
        """Write a text file; return its path."""
        with write_bytes(self / name) as out:
            out.write(text.encode())
        return self / name

    def write_rows(self, name: str, rows: Iterable[Mapping[str, Any]]) -> Path:
        """Write JSON lines; return their path."""
        return self.write(name, "".join(json.dumps(row) + "\n" for row in rows))

    def words(self, command: str) -> list[str]:
        """Return the words of a command, in which `@NAME` stands for a file of this folder."""
        return [
            str(self / word[1:]) if word.startswith("@") else word for word in shlex.split(command)
        ]

    def run(self, name: str) -> Path:
        """Return the path of a system's run file."""
        return self.path / RUNS / f"{slug(name)}.run"


def slug(name: str) -> str:
    """Return a system's name as a file name, as `crossval --write-runs` does."""
    return "-".join(re.findall(r"[a-z0-9.]+", name.lower()))


def _check(path: Path) -> None:
    """Raise a DataError if files of others would be lost."""
    if (path / SUMMARY).exists():
        KIND.read(path / SUMMARY)  # refuses another file of that name
        if (path / DATABASE[0]).exists():
            _check_projects(path)
            _check_unused(path / DATABASE[0])
        return
    if (path / DATABASE[0]).exists():
        raise DataError(
            f"{path}: contains a labeling project that is not the demo's; choose another folder "
            "(-o)."
        )
    existing = [name for name in (*FILES, INDEX, RUNS) if (path / name).exists()]
    if existing:
        raise DataError(
            f"{path}: contains {existing[0]}, which is not the demo's; choose another folder (-o)."
        )


def _check_projects(path: Path) -> None:
    """Raise a DataError if there are judgments by people, or projects beside the demo's."""
    from firstpage.demo.project import SLUGS, TEAM
    from firstpage.labeling.app.store import Store, all_projects, people

    store = Store(path).prepare()
    try:
        with store.readable_errors(), store.read() as tx:
            others = [p.slug for p in all_projects(tx) if p.slug not in SLUGS]
            judgments = people.judgments_by_others(tx, TEAM)
    finally:
        store.close()
    if others:
        raise DataError(
            f"{path}: contains the labeling project {others[0]!r}, which is not the demo's; "
            "choose another folder (-o)."
        )
    if judgments:
        raise DataError(
            f"{path}: contains judgments of yours ({judgments}), which the demo would delete; "
            f"choose another folder (-o), or export them and remove {path / DATABASE[0]}."
        )


def _check_unused(database: Path) -> None:
    """Raise a DataError if another connection is open, which would go on with a deleted file.

    SQLite leaves the mode of write-ahead logs only if no other connection is open.
    """
    with closing(sqlite3.connect(database, timeout=0)) as connection:
        try:
            connection.execute("PRAGMA journal_mode=DELETE")
        except sqlite3.OperationalError as error:
            raise DataError(
                f"{database}: is in use ({error}); stop the server or the demo that uses it, or "
                "choose another folder (-o)."
            ) from error
