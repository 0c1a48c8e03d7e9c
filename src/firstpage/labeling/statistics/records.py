"""What assessors did, as plain rows: single judgments with their times, and final results."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, TypeAlias

from firstpage.data.formats.row_reader import read_file_rows, read_json_rows
from firstpage.errors import DataError

TOOLS = ("pairs", "grades", "lists")
KINDS = ("judgment", "repeat", "gold", "training")

Labels: TypeAlias = Mapping[str, float]
"""A label a document of one query; higher is better."""
Results: TypeAlias = Mapping[tuple[str, str, str], Labels]
"""(query, assessor, tool): the labels that the assessor ended with."""


@dataclass(frozen=True)
class Record:
    """One answer of one assessor.

    `left` and `right` are documents as they were shown; with grades there is only `left`.
    `outcome` is +1 where left was better, 0 for a tie, -1 where right was; None with grades.
    `bad` names documents flagged as such.  Times are seconds: `active` on the judgment,
    `paused` by the button, `away` without a sign of life; `answered_at` is a time of day in
    seconds, None if not known.  `kind` is a judgment that counts, a hidden repeat of an
    earlier one, a gold question whose right answer is `expected` (an outcome or a grade), or
    training.  `adjusted`: the times were not as reported, and so are in no statistic of time.
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
        wrong = _wrong(self)
        if wrong:
            raise DataError(f"a record of query {self.query!r} by {self.assessor!r}: {wrong}.")

    @property
    def pair(self) -> tuple[str, str, int] | None:
        """(a, b, relation of a to b) with a < b by name; None where no pair was answered."""
        if self.right is None or self.outcome is None:
            return None
        if self.left < self.right:
            return self.left, self.right, self.outcome
        return self.right, self.left, -self.outcome


def _wrong(r: Record) -> str | None:
    """What does not fit, or None."""
    for name in ("query", "assessor", "left"):
        if not isinstance(getattr(r, name), str):
            return f"{name} must be a text; got {getattr(r, name)!r}"
    for name in ("grade", "expected"):
        if not isinstance(getattr(r, name), int | None):
            return f"{name} must be a whole number or null; got {getattr(r, name)!r}"
    if not isinstance(r.adjusted, bool):
        return f"adjusted must be true or false; got {r.adjusted!r}"
    if not isinstance(r.right, str | None):
        return f"right must be a text or null; got {r.right!r}"
    if not isinstance(r.answered_at, int | float | None):
        return f"answered_at must be seconds or null; got {r.answered_at!r}"
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
            return f"{name} must be seconds from 0 on; got {seconds!r}"
    return None


def judged(records: Iterable[Record]) -> Iterator[Record]:
    """Those that count: no repeats, gold questions or training."""
    return (r for r in records if r.kind == "judgment")


def read_records(path: str | Path) -> list[Record]:
    """Records of a JSON-lines file, as `write_records` writes it; plain or compressed."""
    return [_record(row, where) for where, row in read_file_rows(Path(path), read_json_rows)]


def write_records(path: str | Path, records: Iterable[Record]) -> None:
    """One JSON object a line; what is as by default is left out."""
    defaults = {f.name: f.default for f in fields(Record)}
    with open(path, "w", encoding="utf-8") as out:
        for record in records:
            row = {k: v for k, v in asdict(record).items() if v != defaults[k]}
            out.write(json.dumps(row, ensure_ascii=False) + "\n")


def read_results(path: str | Path) -> dict[tuple[str, str, str], dict[str, float]]:
    """Final results of a JSON-lines file: query, assessor, tool, and labels by document."""
    found: dict[tuple[str, str, str], dict[str, float]] = {}
    for where, row in read_file_rows(Path(path), read_json_rows):
        try:
            key = str(row["query"]), str(row["assessor"]), str(row["tool"])
            labels = {str(doc): float(label) for doc, label in row["labels"].items()}
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DataError(
                f"{where}: a result needs query, assessor, tool and labels "
                f"{{document: number}}; {error!r}."
            ) from error
        if not all(map(math.isfinite, labels.values())):
            raise DataError(f"{where}: labels must be finite numbers.")
        if key in found:
            raise DataError(f"{where}: a second result of {', '.join(key)}; keep one.")
        found[key] = labels
    return found


def _record(row: Mapping[str, Any], where: str) -> Record:
    known = {f.name for f in fields(Record)}
    odd = sorted(set(row) - known)
    if odd:
        raise DataError(f"{where}: a record has no field {odd[0]!r}.")
    try:
        return Record(**{**row, "bad": tuple(row.get("bad", ()))})
    except TypeError as error:
        missing = [n for n in ("query", "assessor", "tool", "left") if n not in row]
        what = f"the field {missing[0]!r} is missing" if missing else str(error)
        raise DataError(f"{where}: {what}.") from error
    except DataError as error:
        raise DataError(f"{where}: {error}") from error
