"""Judgments and final results of assessors, as rows of JSON-lines files."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, TypeAlias

from firstpage.core import DataError
from firstpage.data.formats import read_file_rows, read_json_rows
from firstpage.data.io import write_bytes

TOOLS = ("pairs", "grades", "lists")
KINDS = ("judgment", "repeat", "gold", "training", "probe")

Labels: TypeAlias = Mapping[str, float]
"""The label per document of a query; higher is better."""
Results: TypeAlias = Mapping[tuple[str, str, str], Labels]
"""The final labels per (query, assessor, tool)."""


@dataclass(frozen=True)
class Record:
    """One answer of one assessor.

    Parameters
    ----------
    query, assessor : str
        Who judged what.
    tool : {"pairs", "grades", "lists"}
        The tool.
    left : str
        The left document, or the document that was graded.
    right : str, optional
        The right document; None for a grade.
    outcome : {1, 0, -1}, optional
        1 if the left document is better, -1 if the right one is, 0 for a tie; None for a grade.
    grade : int, optional
        The grade; None for a pair.
    bad : tuple of str, default ()
        Documents flagged as clearly irrelevant.
    active, paused, away : float, default 0.0
        Seconds spent on the judgment, paused by the button, and without any activity.
    answered_at : float, optional
        Time of the answer in seconds since the epoch.
    kind : {"judgment", "repeat", "gold", "training", "probe"}, default "judgment"
        A judgment that counts, a hidden repetition, a gold question, training, or a pair whose
        outcome was implied by transitivity.
    expected : int, optional
        The known outcome or grade of a gold question.
    adjusted : bool, default False
        Whether the times differ from those reported; they are then in no statistic of time.

    Raises
    ------
    DataError
        If a field has the wrong type or value.

    Examples
    --------
    >>> import firstpage as fp
    >>> record = fp.labeling.Record("q1", "ann", "pairs", left="b", right="a", outcome=1)
    >>> record.pair
    ('a', 'b', -1)
    """

    query: str
    assessor: str
    tool: str
    left: str
    right: str | None = None
    outcome: int | None = None
    grade: int | None = None
    bad: tuple[str, ...] = ()
    active: float = 0.0
    paused: float = 0.0
    away: float = 0.0
    answered_at: float | None = None
    kind: str = "judgment"
    expected: int | None = None
    adjusted: bool = False

    def __post_init__(self) -> None:
        problem = _problem(self)
        if problem:
            raise DataError(f"record of query {self.query!r} by {self.assessor!r}: {problem}.")

    @property
    def pair(self) -> tuple[str, str, int] | None:
        """(a, b, relation of a to b) with a < b by name; None if no pair was answered."""
        if self.right is None or self.outcome is None:
            return None
        if self.left < self.right:
            return self.left, self.right, self.outcome
        return self.right, self.left, -self.outcome


def _problem(r: Record) -> str | None:
    """Return what is wrong with a record, or None."""
    for name in ("query", "assessor", "left"):
        if not isinstance(getattr(r, name), str):
            return f"{name} must be a string; got {getattr(r, name)!r}"
    for name in ("grade", "expected"):
        if not isinstance(getattr(r, name), int | None):
            return f"{name} must be an integer or null; got {getattr(r, name)!r}"
    if not isinstance(r.adjusted, bool):
        return f"adjusted must be true or false; got {r.adjusted!r}"
    if not isinstance(r.right, str | None):
        return f"right must be a string or null; got {r.right!r}"
    if not isinstance(r.answered_at, int | float | None):
        return f"answered_at must be a number of seconds or null; got {r.answered_at!r}"
    if r.tool not in TOOLS:
        return f"tool must be one of {', '.join(TOOLS)}; got {r.tool!r}"
    if r.kind not in KINDS:
        return f"kind must be one of {', '.join(KINDS)}; got {r.kind!r}"
    if r.outcome not in (None, 1, 0, -1):
        return f"outcome must be 1 (left better), 0 (tie), -1 (right) or null; got {r.outcome!r}"
    if r.outcome is not None and r.right is None:
        return "an outcome needs two documents; right is missing"
    if r.left == r.right:
        return f"left and right are the same document {r.left!r}"
    for name in ("active", "paused", "away"):
        seconds: Any = getattr(r, name)
        if not isinstance(seconds, int | float) or not 0 <= seconds < math.inf:
            return f"{name} must be a number of seconds, at least 0; got {seconds!r}"
    return None


def counted_records(records: Iterable[Record]) -> Iterator[Record]:
    """Return the records that count: no repeats, gold questions, training or probes."""
    return (r for r in records if r.kind == "judgment")


def read_records(path: str | Path) -> list[Record]:
    """Read the records of a JSON-lines file, plain or compressed.

    Parameters
    ----------
    path : str or Path
        The file; one object per line, with the fields of `Record`.

    Returns
    -------
    list of Record
        The answers, in the order of the file.

    Raises
    ------
    DataError
        If a line is not a record; the message names the line.

    Examples
    --------
    >>> import firstpage as fp
    >>> with open("records.jsonl", "w") as file:
    ...     line = '{"query": "q", "assessor": "ann", "tool": "grades", "left": "a", "grade": 3}'
    ...     _ = file.write(line)
    >>> fp.labeling.read_records("records.jsonl")[0].grade
    3
    """
    return [_record(row, location) for location, row in read_file_rows(Path(path), read_json_rows)]


def write_records(path: str | Path, records: Iterable[Record]) -> None:
    """Write one JSON object per line; fields with their default value are omitted."""
    defaults = {f.name: f.default for f in fields(Record)}
    with write_bytes(Path(path)) as out:
        for record in records:
            row = {k: v for k, v in asdict(record).items() if v != defaults[k]}
            out.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")


def read_results(path: str | Path) -> dict[tuple[str, str, str], dict[str, float]]:
    """Read final results from a JSON-lines file: query, assessor, tool, and labels by document.

    Parameters
    ----------
    path : str or Path
        The file; one object per line with the keys query, assessor, tool and labels.

    Returns
    -------
    dict
        The label per document of each (query, assessor, tool).

    Raises
    ------
    DataError
        If a line is not a result, or a result occurs twice; the message names the line.

    Examples
    --------
    >>> import firstpage as fp
    >>> with open("results.jsonl", "w") as file:
    ...     line = '{"query": "q", "assessor": "ann", "tool": "pairs", "labels": {"a": 1, "b": 0}}'
    ...     _ = file.write(line)
    >>> fp.labeling.read_results("results.jsonl")
    {('q', 'ann', 'pairs'): {'a': 1.0, 'b': 0.0}}
    """
    results: dict[tuple[str, str, str], dict[str, float]] = {}
    for location, row in read_file_rows(Path(path), read_json_rows):
        try:
            key = str(row["query"]), str(row["assessor"]), str(row["tool"])
            labels = {str(doc): float(label) for doc, label in row["labels"].items()}
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DataError(
                f"{location}: a result needs query, assessor, tool and labels "
                f"{{document: number}}; {error!r}."
            ) from error
        if not all(map(math.isfinite, labels.values())):
            raise DataError(f"{location}: labels must be finite numbers.")
        if key in results:
            raise DataError(f"{location}: there is a second result of {', '.join(key)}; keep one.")
        results[key] = labels
    return results


def _record(row: Mapping[str, Any], location: str) -> Record:
    known = {f.name for f in fields(Record)}
    unknown = sorted(set(row) - known)
    if unknown:
        raise DataError(f"{location}: a record has no field {unknown[0]!r}.")
    try:
        return Record(**{**row, "bad": tuple(row.get("bad", ()))})
    except TypeError as error:
        missing = [n for n in ("query", "assessor", "tool", "left") if n not in row]
        problem = f"the field {missing[0]!r} is missing" if missing else str(error)
        if not isinstance(row.get("bad", ()), Iterable):
            problem = f"bad must be a list of documents; got {row['bad']!r}"
        raise DataError(f"{location}: {problem}.") from error
    except DataError as error:
        raise DataError(f"{location}: {error}") from error
