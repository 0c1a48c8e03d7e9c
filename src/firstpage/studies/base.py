"""What a study is: tables and figures of one paper, each with its work and its claims.

The work of an entry is done in runs, each with random numbers of its own.  A run yields rows:
labels, and a value.  Rows of equal labels over the runs are a cell: our mean, its standard
error, and beside them what the paper says.  Claims look at cells and give a verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from firstpage.types import Floats

Row = dict[str, Any]  # labels, and "value"
Verdict = Literal["holds", "does not hold", "cannot be tested"]


@dataclass(frozen=True)
class Work:
    """A piece of an entry that is done once a run, and kept when it is done.

    do      do(rng, **params) gives rows; a function of a module, so that processes find it
    params  plain values, by which (among others) a finished run is found again
    stream  works of one stream see the same random numbers: their runs compare pair by pair
    runs    as many unless asked otherwise; `quick`: in haste
    needs   the data set whose folder `do` gets as `folder`
    """

    do: Callable[..., list[Row]]
    params: Mapping[str, Any] = field(default_factory=dict)
    stream: str = ""
    runs: int = 20
    quick: int = 5
    needs: str | None = None

    @property
    def name(self) -> str:
        return f"{self.do.__module__}:{self.do.__qualname__}"


@dataclass(frozen=True)
class Plan:
    """How to go about it: runs (None: as each work has it), haste, first seed, data, processes.

    again: do also what is kept
    """

    seeds: int | None = None
    fast: bool = False
    seed: int = 0
    data: Path | None = None
    jobs: int = 1
    again: bool = False

    def runs(self, work: Work) -> int:
        if self.seeds is not None:
            return self.seeds
        return work.quick if self.fast else work.runs


@dataclass(frozen=True, eq=False)
class Cell:
    """One number of a table or point of a figure: a value a run; `paper`, where it says one."""

    where: Mapping[str, Any]
    values: Floats
    paper: float | None = None

    @property
    def ours(self) -> float:
        return float(self.values.mean())

    @property
    def se(self) -> float | None:
        """Standard error of the mean over runs."""
        n = len(self.values)
        return float(self.values.std(ddof=1) / np.sqrt(n)) if n > 1 else None

    def to_dict(self) -> dict[str, Any]:
        return {**self.where, "paper": self.paper, "ours": self.ours, "se": self.se,
                "runs": len(self.values)}  # fmt: skip


class Cells:
    """The cells of an entry, found by their labels."""

    def __init__(self, cells: Iterable[Cell]) -> None:
        self.cells = list(cells)

    def __iter__(self) -> Any:
        return iter(self.cells)

    def __len__(self) -> int:
        return len(self.cells)

    def at(self, **labels: Any) -> Floats:
        """The values of the only cell with these labels, in the order of runs."""
        found = [c for c in self.cells if all(c.where.get(k) == v for k, v in labels.items())]
        if len(found) != 1:
            raise KeyError(f"{len(found)} cells have {labels}")
        return found[0].values

    def names(self, label: str) -> list[Any]:
        """What a label says, in the order of cells."""
        return list(dict.fromkeys(c.where[label] for c in self.cells if label in c.where))


@dataclass(frozen=True)
class Claim:
    """A statement, whether it stands, and the numbers that say so."""

    text: str
    verdict: Verdict
    why: str
    whose: Literal["paper", "ours"] = "paper"

    def to_dict(self) -> dict[str, Any]:
        return {"text": self.text, "verdict": self.verdict, "why": self.why, "whose": self.whose}


@dataclass(frozen=True)
class Drawing:
    """How cells become a picture: a line (or, without `across`, a group) a value of `line`.

    dashed  lines that nothing is learned for
    """

    line: str
    across: str | None
    up: str
    dashed: Sequence[str] = ()


def _everything(row: Row) -> bool:
    return True


@dataclass(frozen=True)
class Entry:
    """A table or a figure.

    says    what the paper says of it, in a sentence
    works   all that is computed for it
    claims  verdicts on its cells
    drawings  pictures: the word that its cells have among their labels ("": all), and how
    note    what a reader must know of ours
    keep    which rows of its works are its own: figures may share work
    paper   numbers that the paper gives, as (labels, value)
    """

    name: str
    title: str
    says: str
    works: Sequence[Work]
    claims: Callable[[Cells], list[Claim]]
    drawings: Sequence[tuple[str, Drawing]] = ()
    keep: Callable[[Row], bool] = _everything
    paper: Sequence[tuple[Mapping[str, Any], float]] = ()
    note: str = ""

    @property
    def needs(self) -> list[str]:
        return list(dict.fromkeys(w.needs for w in self.works if w.needs is not None))


@dataclass(frozen=True)
class Study:
    """A paper's entries; `rooms` are the packages and modules that its numbers come from."""

    name: str
    title: str
    entries: Mapping[str, Entry]
    rooms: Sequence[str]


@dataclass(frozen=True, eq=False)
class Outcome:
    """What came of an entry; `missing` says what kept it from being done."""

    entry: Entry
    cells: Cells
    claims: Sequence[Claim]
    missing: str = ""


def cells_of(entry: Entry, runs: Sequence[Sequence[Sequence[Row]]]) -> Cells:
    """Rows of all runs of all works of an entry, by their labels."""
    values: dict[tuple[tuple[str, Any], ...], list[float]] = {}
    for work in runs:
        for rows in work:
            for row in rows:
                if entry.keep(row):
                    labels = tuple((k, v) for k, v in row.items() if k != "value")
                    values.setdefault(labels, []).append(float(row["value"]))
    return Cells(
        Cell(dict(labels), np.array(found), _said(entry, dict(labels)))
        for labels, found in values.items()
    )


def _said(entry: Entry, where: Mapping[str, Any]) -> float | None:
    """What the paper says of a cell."""
    for labels, value in entry.paper:
        if all(where.get(k) == v for k, v in labels.items()):
            return value
    return None
