"""Files of preferences: JSON lines, CSV, Parquet, or arrays (.npz).

A row is a pair of rankings and what somebody said of it:

    {"query": "q1", "left": [3, 0, null], "right": [1, 3, 0], "outcome": 1}

`left` and `right` are grades from the first place on (null: unjudged); in a table, words such as
`3 0 -`.  With judgments (qrels) they are documents instead, and with runs the name of a run, or
are left out where there are just two.  `outcome` is 2, 1, 0, -1, -2 or left, tie, right; or
`label` is 1 (left much better) to 5 (right much better), as in Zhou et al. (2013).  Also read:
`weight`, `segment`.  A pool, of pairs that nobody judged yet, has no outcomes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from firstpage.data.formats.row_reader import read_file_rows
from firstpage.data.formats.trec import Column
from firstpage.data.groups import sort_groups
from firstpage.data.io.files import check_readable, suffix_of, write_bytes
from firstpage.data.preferences.preferences import MAX_WEIGHT, UNKNOWN, Preferences
from firstpage.errors import DataError

OUTCOME_WORDS = {
    "left much better": 2, "left": 1, "a": 1, "tie": 0, "same": 0, "equal": 0, "both": 0,
    "right": -1, "b": -1, "right much better": -2, ">>": 2, ">": 1, "=": 0, "<": -1, "<<": -2,
}  # fmt: skip
NO_GRADE = ("-", "?", "null", "none", "nan", "")
MAX_LIST_LENGTH = 1000  # places of a list that are kept
Grades = list[float | None]
Lookup = Callable[[str, str, Any, int], Grades]
"""(where, query, what the row has as a side, 0 for left or 1 for right) -> grades"""


def read_preferences(
    path: str | os.PathLike[str], *, qrels: Column | None = None,
    runs: Mapping[str, Column] | None = None, grades: Sequence[int] | None = None,
    pool: bool = False,
) -> Preferences:  # fmt: skip
    """Read pairs of rankings; with `qrels` (and `runs`) documents get their grades from there.

    `pool`: outcomes may be missing, and then are 0.
    """
    file = Path(path)
    check_readable(file)
    if suffix_of(file)[0] == ".npz":
        return _from_arrays(file, grades, pool)
    lookup = _lookup(qrels, runs)
    rows = [_Row(where, row, lookup, pool) for where, row in read_file_rows(file)]
    if not rows:
        raise DataError(f"{file}: holds no pair.")
    found = Preferences.from_grades(
        [r.left for r in rows], [r.right for r in rows], [r.outcome for r in rows],
        weight=[r.weight for r in rows], grades=grades, source=str(file),
        query=_named(rows),
        segment=[r.segment for r in rows] if any(r.segment for r in rows) else None,
    )  # fmt: skip
    return found


def _named(rows: Sequence[_Row]) -> list[str] | None:
    """Queries, where any is named; a pair without one is a query of its own."""
    if not any(row.query for row in rows):
        return None
    return [row.query or f"pair {number}" for number, row in enumerate(rows, 1)]


def rows_to_judge(path: str | os.PathLike[str], rows: Sequence[int]) -> list[dict[str, Any]]:
    """Rows of a file as they stand in it, but for what somebody may have said of them."""
    file = Path(path)
    if suffix_of(file)[0] == ".npz":
        found = list(preference_rows(read_preferences(file, pool=True)))
    else:
        found = [dict(row) for _, row in read_file_rows(file)]
    said = ("outcome", "preference", "label")
    return [{k: v for k, v in found[at].items() if k not in said} for at in rows]


class _Row:
    """One pair as read, checked."""

    def __init__(self, where: str, row: Mapping[str, Any], lookup: Lookup, pool: bool) -> None:
        self.query = _name(row, ("query", "qid", "query_id"))
        self.segment = _name(row, ("segment",))
        self.outcome = _outcome(where, row, pool)
        self.left = lookup(where, self.query, row.get("left"), 0)
        self.right = lookup(where, self.query, row.get("right"), 1)
        self.weight = _weight(where, row.get("weight", 1.0))


def _name(row: Mapping[str, Any], names: Sequence[str]) -> str:
    value = next((row[name] for name in names if row.get(name) is not None), "")
    return str(value)


def _outcome(where: str, row: Mapping[str, Any], pool: bool) -> int:
    value = row.get("outcome", row.get("preference"))
    if value is None and row.get("label") is not None:
        number = _whole(row["label"])
        if number is None or not 1 <= number <= 5:
            raise DataError(
                f"{where}: a label is 1 (left much better) to 5 (right much better); got "
                f"{row['label']!r}."
            )
        return 3 - number
    if value is None and pool:
        return 0
    if value is None:
        raise DataError(f"{where}: there is no outcome; write 1 (left is better), 0 or -1.")
    if isinstance(value, str) and value.strip().lower() in OUTCOME_WORDS:
        return OUTCOME_WORDS[value.strip().lower()]
    number = _whole(value)
    if number is None or not -2 <= number <= 2:
        raise DataError(
            f"{where}: an outcome is 2, 1 (left is better), 0 (equal), -1 or -2 (right is), or "
            f"left, tie, right; got {value!r}."
        )
    return number


def _whole(value: Any) -> int | None:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return int(number) if number.is_integer() and not isinstance(value, bool) else None


def _weight(where: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = np.nan
    if not 0 <= number <= MAX_WEIGHT:
        raise DataError(
            f"{where}: a weight is a number from 0 to {MAX_WEIGHT:g}; got {repr(value)[:40]}."
        )
    return number


def _lookup(qrels: Column | None, runs: Mapping[str, Column] | None) -> Lookup:
    if qrels is None:
        if runs:
            raise DataError("runs name documents only; give the judgments (qrels) with them.")
        return _grades
    judged = qrels.to_dict()
    listed = {name: _rankings(run) for name, run in (runs or {}).items()}

    def grades(where: str, query: str, side: Any, at: int) -> Grades:
        if not query:
            raise DataError(f"{where}: there is no query, and documents are judged for one.")
        if query not in judged:
            raise DataError(f"{where}: query {query!r} has no judgments.")
        documents = _documents(
            where, query, _run(where, at, listed) if side is None else side, listed
        )
        return [judged[query].get(document) for document in documents]

    return grades


def _rankings(run: Column) -> dict[str, list[str]]:
    """Documents of each query, the best first, as deep as anyone looks."""
    order, _ = sort_groups(run.values, run.offsets)
    ends = run.offsets.tolist()
    return {
        query: [run.docids[int(row)] for row in order[lo : min(hi, lo + MAX_LIST_LENGTH)]]
        for query, lo, hi in zip(run.queries, ends, ends[1:], strict=False)
    }


def _documents(
    where: str, query: str, side: Any, runs: Mapping[str, Mapping[str, list[str]]]
) -> list[str]:
    """Of a run by its name, or those that the row lists."""
    if isinstance(side, str) and side in runs:
        if query not in runs[side]:
            raise DataError(f"{where}: the run {side!r} has no query {query!r}.")
        return runs[side][query]
    if isinstance(side, str):
        return side.split()
    if not isinstance(side, list):
        raise DataError(f"{where}: a side is a list of documents, or a run; got {side!r}.")
    return [str(document) for document in side]


def _run(where: str, at: int, runs: Mapping[str, Any]) -> str:
    """The run that a row means which names none: the first is left, the second right."""
    if len(runs) != 2:
        raise DataError(
            f"{where}: 'left' or 'right' is missing; list documents, or name one of the runs "
            f"({', '.join(runs) or 'there are none'})."
        )
    return list(runs)[at]


def _grades(where: str, query: str, side: Any, at: int) -> Grades:
    """Grades as the row lists them."""
    if side is None:
        name = ("left", "right")[at]
        raise DataError(f"{where}: {name!r} is missing; it is a list of grades such as [3, 0, 1].")
    items = side.replace(",", " ").split() if isinstance(side, str) else side
    if not isinstance(items, list):  # an empty one has nothing judged
        raise DataError(f"{where}: a side is a list of grades such as [3, 0, 1]; got {side!r}.")
    return [_grade(where, item) for item in items[:MAX_LIST_LENGTH]]


def _grade(where: str, item: Any) -> float | None:
    if item is None or (isinstance(item, str) and item.lower() in NO_GRADE):
        return None
    number = _whole(item)
    if number is None:
        raise DataError(
            f"{where}: a grade is a whole number, or - where there is none; got {item!r}. "
            "Documents need the judgments (--qrels)."
        )
    return number


def _from_arrays(file: Path, grades: Sequence[int] | None, pool: bool) -> Preferences:
    try:
        held = np.load(file, allow_pickle=False)
        if not isinstance(held, np.lib.npyio.NpzFile):
            raise ValueError("it is one array; left, right and outcome are three")
        with held:
            arrays = {name: held[name] for name in held.files}
    except (OSError, ValueError, BadZipFile, EOFError) as error:
        raise DataError(f"{file}: cannot be read as arrays ({error}).") from None
    if pool and "left" in arrays:
        arrays.setdefault("outcome", np.zeros(len(arrays["left"])))
    for name in ("left", "right", "outcome"):
        if name not in arrays:
            raise DataError(f"{file}: has no array {name!r}; it needs left, right and outcome.")
    kept = arrays.get("grades")
    more = {name: arrays[name] for name in ("weight", "query", "segment") if name in arrays}
    known = grades if grades is not None or kept is None else kept.ravel().tolist()
    return Preferences.from_grades(
        arrays["left"], arrays["right"], arrays["outcome"], grades=known, source=str(file), **more
    )


def write_preferences(given: Preferences, path: str | os.PathLike[str]) -> None:
    """As JSON lines, or as arrays where the name ends in .npz."""
    file = Path(path)
    if suffix_of(file)[0] == ".npz":
        _write_arrays(given, file)
    else:
        write_json_lines(preference_rows(given), file)


def write_json_lines(rows: Iterable[Mapping[str, Any]], path: str | os.PathLike[str]) -> None:
    """JSON lines; another kind of name would be read as something else."""
    file = Path(path)
    if str(file) != "-" and suffix_of(file)[0] not in (".jsonl", ".ndjson"):
        raise DataError(f"{file}: pairs are written as .jsonl; name it so.")
    with write_bytes(file) as out:
        for row in rows:
            out.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")


def _graded(given: Preferences, side: Any) -> Any:
    """Grades with NaN for what is unknown; whole numbers where nothing is."""
    known = np.asarray(given.grades)[np.maximum(side, 0)]
    return known if (side != UNKNOWN).all() else np.where(side == UNKNOWN, np.nan, known)


def _write_arrays(given: Preferences, file: Path) -> None:
    arrays: dict[str, Any] = {
        "left": _graded(given, given.left), "right": _graded(given, given.right),
        "outcome": given.outcome, "weight": given.weight, "grades": np.array(given.grades),
    }  # fmt: skip
    for name, ids in (("query", given.query), ("segment", given.segment)):
        if ids is not None:
            arrays[name] = np.array(list(ids))
    with write_bytes(file) as out:
        np.savez_compressed(out, **arrays)


def preference_rows(given: Preferences) -> Iterator[dict[str, Any]]:
    """Rows as a file has them."""

    def side(levels: Any) -> list[int | None]:
        found = [given.grades[v] if v != UNKNOWN else None for v in levels]
        while found and found[-1] is None:
            found.pop()
        return found

    for at in range(len(given)):
        row: dict[str, Any] = {} if given.query is None else {"query": given.query[at]}
        row |= {"left": side(given.left[at]), "right": side(given.right[at])}
        row["outcome"] = int(given.outcome[at])
        if given.weight[at] != 1.0:
            row["weight"] = float(given.weight[at])
        if given.segment is not None:
            row["segment"] = given.segment[at]
        yield row


PREFERENCE_SUFFIXES = (".jsonl", ".ndjson", ".csv", ".tsv", ".parquet", ".npz")


@dataclass(frozen=True)
class PreferenceFiles:
    """Files of preferences, in their order: a shard each."""

    paths: tuple[Path, ...]
    source: str

    def __len__(self) -> int:
        """The number of files."""
        return len(self.paths)

    @classmethod
    def from_paths(cls, given: str | os.PathLike[str] | Iterable[Path]) -> PreferenceFiles:
        """Those of a folder, by name; or those that are listed."""
        if not isinstance(given, (str, os.PathLike)):
            paths = tuple(Path(path) for path in given)
            return cls(paths, str(paths[0].parent) if paths else "no files")
        place = Path(given)
        if not place.is_dir():
            raise DataError(f"{place}: no such folder of preferences.")
        found = tuple(
            sorted(f for f in place.iterdir() if f.is_file() and not f.name.startswith("."))
        )
        other = [f.name for f in found if suffix_of(f)[0] not in PREFERENCE_SUFFIXES]
        if other:
            raise DataError(
                f"{place}: {other[0]} is no file of preferences; they end in {', '.join(PREFERENCE_SUFFIXES)}, "
                "and nothing else may be among them."
            )
        if not found:
            raise DataError(
                f"{place}: holds no file of preferences ({', '.join(PREFERENCE_SUFFIXES)})."
            )
        return cls(found, str(place))
