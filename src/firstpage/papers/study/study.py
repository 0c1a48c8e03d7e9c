"""What a study is: tables and figures of one paper, each with its work and its claims.

The work of an entry is done in runs, each with random numbers of its own.  A run yields rows:
labels, a value and, where it is the mean over queries, the value of each.  Rows of equal labels
are a cell: our mean, its standard error (over queries, else over runs), and beside them what the
paper says.  Claims look at cells and give a verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from firstpage.types import Floats

Row = dict[str, Any]  # labels, "value", and perhaps "queries"
NUMBERS = ("value", "queries")
SPELLED = {  # names of works whose functions moved since
    "lan2013.lists:curves": "lan2013.tails:curves",
    "niu2012.labeling:seconds": "niu2012.voted:seconds",
    "niu2012.labeling:voted_agreement": "niu2012.voted:agreement",
    "niu2012.labeling:voted_effort": "niu2012.voted:effort",
    "zhou2013.news:editors": "zhou2013.active:editors",
    "zhou2013.news:real_lists": "zhou2013.active:real_lists",
    "zhou2013.news:simulated": "zhou2013.active:simulated",
    "zhou2013.worlds:noisy": "zhou2013.web:noisy",
    "zhou2013.worlds:web_by_difference": "zhou2013.web:by_difference",
    "zhou2013.worlds:web_learning": "zhou2013.web:learning",
}
Verdict = Literal["holds", "does not hold", "cannot be tested"]


@dataclass(frozen=True)
class Work:
    """A piece of an entry that is done once a run, and kept when it is done.

    do      do(rng, **params) gives rows; a function of a module, so that processes find it
    params  plain values, by which (among others) a finished run is found again
    stream  works of one stream see the same random numbers: their runs compare pair by pair
    runs    as many unless asked otherwise; `quick`: in haste
    needs   the data set whose folder `do` gets as `folder`
    beside  another one, whose folder `do` gets as `beside`; None where it is not there
    chance  False: nothing in it is random, so that one run says all
    """

    do: Callable[..., list[Row]]
    params: Mapping[str, Any] = field(default_factory=dict)
    stream: str = ""
    runs: int = 20
    quick: int = 5
    needs: str | None = None
    chance: bool = True
    beside: str | None = None

    @property
    def name(self) -> str:
        """The function's name; without a stream it is also that of its random numbers.

        It is spelled as it was when the figures of docs/papers were made, so that they come again.
        """
        name = f"{self.do.__module__}:{self.do.__qualname__}"
        if not name.startswith("firstpage.papers."):
            return name
        own = name.removeprefix("firstpage.papers.")
        return "firstpage.studies." + SPELLED.get(own, own.replace(".labeling:", ".labelling:"))


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
        if not work.chance:
            return 1
        if self.seeds is not None:
            return self.seeds
        return work.quick if self.fast else work.runs


@dataclass(frozen=True, eq=False)
class Cell:
    """One number of a table or point of a figure.

    values   one a run of each of its works (of a fold, say)
    paper    what the paper says, where it does
    queries  one a query, averaged over runs, where the values are means over queries
    """

    where: Mapping[str, Any]
    values: Floats
    paper: float | None = None
    queries: Floats | None = None

    @property
    def ours(self) -> float:
        return float(self.values.mean())

    @property
    def units(self) -> Floats:
        """What chance is judged by: queries, else runs."""
        return self.values if self.queries is None else self.queries

    @property
    def se(self) -> float | None:
        """Standard error of the mean, over queries or else over runs."""
        n = len(self.units)
        return float(self.units.std(ddof=1) / np.sqrt(n)) if n > 1 else None

    def to_dict(self) -> dict[str, Any]:
        found = {**self.where, "paper": self.paper, "ours": self.ours, "se": self.se,
                 "runs": len(self.values)}  # fmt: skip
        return found if self.queries is None else {**found, "queries": len(self.queries)}


class Cells:
    """The cells of an entry, found by their labels."""

    def __init__(self, cells: Iterable[Cell]) -> None:
        self.cells = list(cells)

    def __iter__(self) -> Any:
        return iter(self.cells)

    def __len__(self) -> int:
        return len(self.cells)

    def one(self, **labels: Any) -> Cell:
        """The only cell with these labels."""
        found = [c for c in self.cells if all(c.where.get(k) == v for k, v in labels.items())]
        if len(found) != 1:
            raise KeyError(f"{len(found)} cells have {labels}")
        return found[0]

    def at(self, **labels: Any) -> Floats:
        """Its values by query, else by run, always in the same order."""
        return self.one(**labels).units

    def names(self, label: str) -> list[Any]:
        """What a label says, in the order of cells."""
        return list(dict.fromkeys(c.where[label] for c in self.cells if label in c.where))


@dataclass(frozen=True)
class Claim:
    """A statement, whether it stands, and the numbers that say so.

    held_equal  what is the same on both sides of the comparison; empty: what its entry says
    """

    text: str
    verdict: Verdict
    why: str
    whose: Literal["paper", "ours"] = "paper"
    held_equal: str = ""

    @property
    def label(self) -> str:
        """The statement, and whether it is ours."""
        return self.text + (" (ours)" if self.whose == "ours" else "")

    def to_dict(self) -> dict[str, Any]:
        return dict(vars(self))


@dataclass(frozen=True)
class Drawing:
    """How cells become a picture: a line (or, without `across`, a group) a value of `line`.

    dashed  lines that nothing is learned for
    log     equal ratios along `across` are equally far apart; a word there is drawn at the end
    """

    line: str
    across: str | None
    up: str
    dashed: Sequence[str] = ()
    log: bool = False


@dataclass(frozen=True)
class Grid:
    """How cells become a table as papers print it; the paper's numbers stand below ours."""

    row: str
    column: str
    title: str = ""


@dataclass(frozen=True)
class Entry:
    """A table or a figure.

    says    what the paper says of it, in a sentence
    works   all that is computed for it
    claims  verdicts on its cells
    drawings  pictures: the word that its cells have among their labels ("": all), and how
    grids   tables, likewise; without one, numbers are shown as they are drawn
    note    what a reader must know of ours
    keep    which rows of its works are its own: figures may share work
    paper   numbers that the paper gives, as (labels, value)
    held_equal  what is the same for all that its claims compare, and what is not; a claim that
            compares other things says so itself
    """

    name: str
    title: str
    says: str
    works: Sequence[Work]
    claims: Callable[[Cells], list[Claim]]
    drawings: Sequence[tuple[str, Drawing]] = ()
    keep: Callable[[Row], bool] = lambda row: True
    paper: Sequence[tuple[Mapping[str, Any], float]] = ()
    note: str = ""
    grids: Sequence[tuple[str, Grid]] = ()
    _: KW_ONLY
    held_equal: str

    def judged(self, cells: Cells) -> list[Claim]:
        """Return the claims on these cells, each with what was held equal."""
        return [
            claim if claim.held_equal else replace(claim, held_equal=self.held_equal)
            for claim in self.claims(cells)
        ]

    @property
    def needs(self) -> list[str]:
        return list(dict.fromkeys(w.needs for w in self.works if w.needs is not None))


@dataclass(frozen=True)
class Study:
    """A paper's entries; `modules` are the packages and modules that its numbers come from."""

    name: str
    title: str
    entries: Mapping[str, Entry]
    modules: Sequence[str]


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
    queries: dict[tuple[tuple[str, Any], ...], list[Floats]] = {}
    for work in runs:
        own: dict[tuple[tuple[str, Any], ...], list[Any]] = {}
        for row in (row for rows in work for row in rows if entry.keep(row)):
            labels = tuple((k, v) for k, v in row.items() if k not in NUMBERS)
            values.setdefault(labels, []).append(float(row["value"]))
            if "queries" in row:
                own.setdefault(labels, []).append(row["queries"])
        for labels, every in own.items():  # works are folds here: their queries differ
            queries.setdefault(labels, []).append(np.mean(every, axis=0))
    return Cells(
        Cell(
            dict(labels), np.array(found), _said(entry, dict(labels)),
            np.concatenate(queries[labels]) if labels in queries else None,
        )
        for labels, found in values.items()
    )  # fmt: skip


def _said(entry: Entry, where: Mapping[str, Any]) -> float | None:
    """What the paper says of a cell."""
    for labels, value in entry.paper:
        if all(where.get(k) == v for k, v in labels.items()):
            return value
    return None
