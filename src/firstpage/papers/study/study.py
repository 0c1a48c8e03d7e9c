"""Data structures of a study: tables and figures of one paper, with experiments and claims.

An experiment of an entry is run several times, each time with its own random generator.  A run
returns rows: labels, a value and, where the value is a mean over queries, the value of each query.
Rows with equal labels form a cell: our mean, its standard error (over queries, or else over runs)
and the value printed in the paper.  Claims are tested on cells and get a verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from firstpage.core import Floats

Row = dict[str, Any]  # labels, "value", and optionally "queries"
VALUE_KEYS = ("value", "queries")  # all other keys of a row are labels
ClaimVerdict = Literal["holds", "does not hold", "inconclusive"]
Protocol = Literal["quick", "paper"]
LabelKey = tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Experiment:
    """A computation of an entry that is repeated with different seeds; its runs are cached.

    Attributes
    ----------
    function : callable
        ``function(rng, **params)`` returns rows.  It must be a function of a module, so that
        worker processes can import it.
    params : mapping
        Plain values; part of the key of a cached run.
    stream : str
        Name of the random stream.  Experiments with the same stream get the same random numbers,
        so that their runs are paired.  Empty: the name of the function.
    runs : int
        Number of runs by default.
    fast_runs : int
        Number of runs with ``fast=True``.
    dataset : str or None
        Name of the data set whose folder is passed as `folder`.
    randomized : bool
        False if the result does not depend on the random generator: one run is enough.
    optional_dataset : str or None
        Name of another data set, whose folder is passed as `optional_folder`; None is passed
        where it is missing.
    """

    function: Callable[..., list[Row]]
    params: Mapping[str, Any] = field(default_factory=dict)
    stream: str = ""
    runs: int = 20
    fast_runs: int = 5
    dataset: str | None = None
    randomized: bool = True
    optional_dataset: str | None = None

    @property
    def function_name(self) -> str:
        """Return the path of the function, which is also the name of the default random stream."""
        return f"{self.function.__module__}:{self.function.__qualname__}"


@dataclass(frozen=True)
class RunPlan:
    """Options of a reproduction.

    Attributes
    ----------
    seeds : int or None
        Number of runs of every experiment; None: as each experiment defines it.
    fast : bool
        Use the smaller number of runs of each experiment.
    seed : int
        Seed of all random streams.
    data : Path or None
        Folder with the data sets.
    jobs : int
        Number of processes.
    recompute : bool
        Also repeat runs that are cached.
    protocol : {"quick", "paper"}
        Run the thinned experiments of each entry, or those with everything that the paper prints.
    """

    seeds: int | None = None
    fast: bool = False
    seed: int = 0
    data: Path | None = None
    jobs: int = 1
    recompute: bool = False
    protocol: Protocol = "quick"

    def n_runs(self, experiment: Experiment) -> int:
        """Return the number of runs of an experiment."""
        if not experiment.randomized:
            return 1
        if self.seeds is not None:
            return self.seeds
        return experiment.fast_runs if self.fast else experiment.runs


@dataclass(frozen=True, eq=False)
class Cell:
    """A number of a table, or a point of a figure.

    Attributes
    ----------
    labels : mapping
        What identifies the cell in its entry: method, measure, data set, ...
    values : ndarray
        One value per run of each experiment (of each fold, for instance).
    paper : float or None
        The value printed in the paper.
    queries : ndarray or None
        One value per query, averaged over runs, where the values are means over queries.
    """

    labels: Mapping[str, Any]
    values: Floats
    paper: float | None = None
    queries: Floats | None = None

    @property
    def ours(self) -> float:
        """Our value: the mean over runs."""
        return float(self.values.mean())

    @property
    def samples(self) -> Floats:
        """The values that significance tests use: per query, or else per run."""
        return self.values if self.queries is None else self.queries

    @property
    def se(self) -> float | None:
        """Standard error of the mean, over queries or else over runs."""
        n = len(self.samples)
        return float(self.samples.std(ddof=1) / np.sqrt(n)) if n > 1 else None

    def to_dict(self) -> dict[str, Any]:
        """Return labels and numbers for JSON."""
        record = {**self.labels, "paper": self.paper, "ours": self.ours, "se": self.se,
                  "runs": len(self.values)}  # fmt: skip
        return record if self.queries is None else {**record, "queries": len(self.queries)}


class Cells:
    """The cells of an entry, selected by their labels."""

    def __init__(self, cells: Iterable[Cell]) -> None:
        self.cells = list(cells)
        self._by_labels: dict[tuple[str, ...], dict[tuple[Any, ...], list[Cell]]] = {}

    def __iter__(self) -> Iterator[Cell]:
        return iter(self.cells)

    def __len__(self) -> int:
        return len(self.cells)

    def cell(self, **labels: Any) -> Cell:
        """Return the only cell with these labels."""
        names = tuple(labels)
        if names not in self._by_labels:
            groups = self._by_labels[names] = {}
            for cell in self.cells:
                groups.setdefault(tuple(map(cell.labels.get, names)), []).append(cell)
        matches = self._by_labels[names].get(tuple(labels.values()), [])
        if len(matches) != 1:
            raise KeyError(f"{len(matches)} cells have the labels {labels}")
        return matches[0]

    def samples(self, **labels: Any) -> Floats:
        """Return the values per query, or else per run, of the only cell with these labels.

        The order of queries and runs is the same in all cells of an entry.
        """
        return self.cell(**labels).samples

    def label_values(self, label: str) -> list[Any]:
        """Return the distinct values of a label, in the order of the cells."""
        return list(dict.fromkeys(c.labels[label] for c in self.cells if label in c.labels))


@dataclass(frozen=True)
class Claim:
    """A tested statement.

    Attributes
    ----------
    text : str
        The statement.
    verdict : {"holds", "does not hold", "inconclusive"}
        "inconclusive" also where data are missing, or nothing here can test the statement.
    evidence : str
        The numbers behind the verdict.
    source : {"paper", "ours"}
        Who makes the statement.
    held_equal : str
        What is the same on both sides of the comparison; empty: as its entry says.
    """

    text: str
    verdict: ClaimVerdict
    evidence: str
    source: Literal["paper", "ours"] = "paper"
    held_equal: str = ""

    @property
    def label(self) -> str:
        """The statement, marked if it is ours."""
        return self.text + (" (ours)" if self.source == "ours" else "")

    def to_dict(self) -> dict[str, Any]:
        """Return the claim for JSON."""
        return dict(vars(self))


@dataclass(frozen=True)
class Plot:
    """Layout of a figure: one line per value of the label `series`.

    Attributes
    ----------
    series : str
        Label whose values are the lines.
    x : str or None
        Label along the x axis; None: a row of dots with error bars per group of cells.
    y : str
        Title of the y axis.
    dashed : sequence of str
        Lines of methods without training.
    log_x : bool
        Logarithmic x axis; a value that is a string is drawn after the largest number.
    """

    series: str
    x: str | None
    y: str
    dashed: Sequence[str] = ()
    log_x: bool = False


@dataclass(frozen=True)
class TableLayout:
    """Layout of a table with rows and columns; printed values are below ours."""

    row: str  # label of the rows
    column: str  # label of the columns
    title: str = ""


@dataclass(frozen=True)
class PaperProtocol:
    """The experiments of an entry with the grids, rates and iterations that the paper prints.

    Attributes
    ----------
    experiments : sequence of Experiment
        Everything that is computed.
    note, held_equal : str
        As those of the entry; empty: the same text.
    """

    experiments: Sequence[Experiment]
    note: str = ""
    held_equal: str = ""


def every_row(row: Row) -> bool:
    """Return that a row belongs to an entry."""
    return True


@dataclass(frozen=True)
class PaperEntry:
    """A table or a figure of a paper.

    Attributes
    ----------
    name, title : str
        Name such as "figure7", and a title.
    statement : str
        What the paper says about it, in a sentence.
    experiments : sequence of Experiment
        Everything that is computed for it.
    claims : callable
        Returns the claims for the cells.
    plots : sequence of (str, Plot)
        Figures; each shows the cells that have this value among their labels ("": all cells).
    row_filter : callable
        Whether a row belongs to this entry: entries may share experiments.
    paper_values : sequence of (mapping, float)
        Values printed in the paper, with the labels of their cells.
    note : str
        What a reader must know about our version.
    layouts : sequence of (str, TableLayout)
        Tables, selected as `plots` are; without one, tables follow the plots.
    held_equal : str
        What is the same for everything that the claims compare, and what is not.
    thinned : str
        What the experiments leave out of the paper's protocol; empty: nothing.
    paper_protocol : PaperProtocol or None
        The experiments without that; None: the same experiments.
    """

    name: str
    title: str
    statement: str
    experiments: Sequence[Experiment]
    claims: Callable[[Cells], list[Claim]]
    plots: Sequence[tuple[str, Plot]] = ()
    row_filter: Callable[[Row], bool] = every_row
    paper_values: Sequence[tuple[Mapping[str, Any], float]] = ()
    note: str = ""
    layouts: Sequence[tuple[str, TableLayout]] = ()
    _: KW_ONLY
    held_equal: str
    thinned: str = ""
    paper_protocol: PaperProtocol | None = None

    def with_protocol(self, protocol: Protocol) -> PaperEntry:
        """Return the entry whose experiments follow this protocol."""
        full = self.paper_protocol
        if protocol == "quick" or full is None:
            return self
        return replace(
            self,
            experiments=full.experiments,
            note=full.note or self.note,
            held_equal=full.held_equal or self.held_equal,
            thinned="",
            paper_protocol=None,
        )

    def evaluate_claims(self, cells: Cells) -> list[Claim]:
        """Return the claims about these cells, each with what was held equal."""
        return [
            claim if claim.held_equal else replace(claim, held_equal=self.held_equal)
            for claim in self.claims(cells)
        ]

    @property
    def datasets(self) -> list[str]:
        """Names of the data sets that the entry cannot do without."""
        return list(dict.fromkeys(e.dataset for e in self.experiments if e.dataset is not None))


@dataclass(frozen=True)
class PaperStudy:
    """The entries of a paper; `modules` are the packages and modules that compute its numbers."""

    name: str
    title: str
    entries: Mapping[str, PaperEntry]
    modules: Sequence[str]


@dataclass(frozen=True, eq=False)
class EntryResult:
    """Cells and tested claims of an entry.

    Attributes
    ----------
    entry : PaperEntry
        The table or figure: name, title, statement of the paper.
    cells : Cells
        Our numbers; empty where data are missing.
    claims : sequence of Claim
        The claims with their verdicts.
    missing : str
        The missing data; empty where the entry was computed.
    """

    entry: PaperEntry
    cells: Cells
    claims: Sequence[Claim]
    missing: str = ""


def collect_cells(entry: PaperEntry, runs: Sequence[Sequence[Sequence[Row]]]) -> Cells:
    """Return the cells of an entry from its rows, by experiment and run."""
    values: dict[LabelKey, list[float]] = {}
    queries: dict[LabelKey, list[Floats]] = {}
    for experiment_runs in runs:
        run_queries: dict[LabelKey, list[Any]] = {}
        for row in (row for rows in experiment_runs for row in rows if entry.row_filter(row)):
            labels = tuple((k, v) for k, v in row.items() if k not in VALUE_KEYS)
            values.setdefault(labels, []).append(float(row["value"]))
            if "queries" in row:
                run_queries.setdefault(labels, []).append(row["queries"])
        for labels, query_values in run_queries.items():  # experiments are folds here
            queries.setdefault(labels, []).append(np.mean(query_values, axis=0))
    return Cells(
        Cell(
            dict(labels),
            np.array(cell_values),
            _paper_value(entry, dict(labels)),
            np.concatenate(queries[labels]) if labels in queries else None,
        )
        for labels, cell_values in values.items()
    )


def _paper_value(entry: PaperEntry, cell_labels: Mapping[str, Any]) -> float | None:
    """Return the value printed in the paper for a cell."""
    for labels, value in entry.paper_values:
        if all(cell_labels.get(k) == v for k, v in labels.items()):
            return value
    return None
