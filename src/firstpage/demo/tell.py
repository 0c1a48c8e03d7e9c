"""What the demo says on the way: numbered steps, how long each took, bars where one waits."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import wrap

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
