"""Where the demo goes and what it says on the way.

Numbered steps with how long each took, bars where one waits; and the folder, where its own files
are replaced and those of others are left alone.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import wrap
from typing import Any

from firstpage.data.io.files import write_bytes
from firstpage.data.io.json_files import JsonFormat, write_json
from firstpage.errors import DataError
from firstpage.types import Progress

WIDE = 96  # columns
Counting = Callable[[str], AbstractContextManager[Progress | None]]


def program() -> str:
    """How to call Firstpage from here: by its name, where the shell knows it."""
    here = Path(sys.argv[0])
    known = shutil.which("firstpage")
    if here.name != "firstpage" or (known is not None and Path(known).samefile(here)):
        return "firstpage"
    return os.path.relpath(here)


def silent(what: str) -> AbstractContextManager[Progress | None]:
    """No bar."""
    return nullcontext()


@dataclass
class Teller:
    """Prints steps as they come; `counting` shows a bar where there is a terminal."""

    counting: Counting = silent
    steps: int = 0
    seconds: dict[str, float] = field(default_factory=dict)
    _began: float = field(default_factory=time.perf_counter)

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        """A numbered step; its seconds are told at the end."""
        self.steps += 1
        began = time.perf_counter()
        self.say(f"\n{self.steps}. {title}")
        yield
        self.seconds[title] = time.perf_counter() - began
        self.say(f"   {self.seconds[title]:.1f} s")

    def say(self, text: str) -> None:
        print(text, flush=True)

    def note(self, text: str) -> None:
        """Lines that belong to a step; long ones, which are sentences, are wrapped."""
        for line in text.splitlines():
            for part in [line] if len(line) <= WIDE else wrap(line, WIDE):
                self.say(f"   {part}".rstrip())

    @property
    def total(self) -> float:
        return time.perf_counter() - self._began


KIND = JsonFormat("firstpage-demo", 1, "demo summary")
SUMMARY = "demo.json"
DATABASE = ("firstpage.db", "firstpage.db-wal", "firstpage.db-shm")
FILES = {
    "report.html": "this report",
    "collection.txt": "questions and documents as features, with the right answers (LETOR)",
    "collection.qrels": "the right answers (TREC)",
    "queries.jsonl": "the questions as texts, for label setup",
    "documents.jsonl": "the documents as texts, for label setup",
    "firstpage.db": "the labeling projects, with every answer",
    "judged.txt": "the same documents with the labels that the assessors gave (LETOR)",
    "judged.qrels": "these labels alone (TREC)",
    "truth.jsonl": "the top places of each question as the assessors ordered them",
    "model.json": "the best ranker, trained on all questions",
    "pages.jsonl": "the questions whose first pages editors compared",
    "lists.jsonl": "these first pages",
    "preferences.jsonl": "what the editors answered",
    "measure.json": "the measure that was learned from them",
    SUMMARY: "all figures of the report",
}
RUNS = "runs"  # a folder of them


@dataclass(frozen=True)
class Folder:
    """Where everything goes."""

    path: Path

    def __truediv__(self, name: str) -> Path:
        return self.path / name

    @classmethod
    def ready(cls, path: Path) -> Folder:
        """Make it, or take over one of an older demo; a folder of others is refused."""
        try:
            _check(path)
            (path / RUNS).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DataError(f"{path}: cannot make this folder ({error.strerror}).") from error
        folder = cls(path)
        folder.summarize({})  # from here on it is the demo's
        for name in DATABASE:
            (path / name).unlink(missing_ok=True)
        return folder

    def summarize(self, figures: Mapping[str, Any]) -> None:
        """Keep the figures; the file also says whose folder this is."""
        write_json(KIND.with_header({"figures": dict(figures)}), self / SUMMARY)

    def write(self, name: str, text: str) -> Path:
        with write_bytes(self / name) as out:
            out.write(text.encode())
        return self / name

    def run(self, name: str) -> Path:
        """Where the run of a system lies."""
        return self.path / RUNS / f"{slug(name)}.run"


def slug(name: str) -> str:
    """A system's name as a file's name."""
    words = "".join(c if c.isalnum() else " " for c in name.lower()).split()
    return "-".join(words)


def _check(path: Path) -> None:
    """Refuse a folder whose files would be lost."""
    if (path / SUMMARY).exists():
        KIND.read(path / SUMMARY)  # a foreign file of that name is refused here
        _check_projects(path)
        return
    if (path / DATABASE[0]).exists():
        raise DataError(
            f"{path}: holds a labeling project that is not the demo's; choose another folder (-o)."
        )
    taken = [name for name in (*FILES, RUNS) if (path / name).exists()]
    if taken:
        raise DataError(f"{path}: holds {taken[0]}, not the demo's; choose another folder (-o).")


def _check_projects(path: Path) -> None:
    """Somebody may have put a project of their own beside the demo's."""
    if not (path / DATABASE[0]).exists():
        return
    from firstpage.demo.project import SLUGS
    from firstpage.web.store.connect import Store
    from firstpage.web.store.projects import every_project

    store = Store(path).prepare()
    try:
        with store.told(), store.read() as tx:
            own = [p.slug for p in every_project(tx) if p.slug not in SLUGS]
    finally:
        store.close()
    if own:
        raise DataError(
            f"{path}: holds the labeling project {own[0]!r}, which is not the demo's; "
            "choose another folder (-o)."
        )
