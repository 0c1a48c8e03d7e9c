"""Files of preferences: JSON lines, CSV, Parquet, or arrays (.npz).

A row is a pair of rankings and the preference between them:

    {"query": "q1", "left": [3, 0, null], "right": [1, 3, 0], "outcome": 1}

`left` and `right` are grades from the first position on (null: unjudged); in a table, words such as
`3 0 -`.  With judgments (qrels) they are documents instead, and with runs the name of a run; they
may be omitted if there are exactly two runs.  `outcome` is 2, 1, 0, -1, -2 or left, tie, right; or
`label` is 1 (left much better) to 5 (right much better), as in Zhou et al. (2013).  `weight` and
`segment` are read too.  With `"lists": "documents"` a row is refused without judgments, so that ids
that are numbers are not taken for grades.  A pool, of pairs that nobody has judged yet, has no
outcomes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from firstpage.core import Advice, DataError
from firstpage.data.column_names import QUERY_NAMES
from firstpage.data.formats.row_reader import read_file_rows
from firstpage.data.groups import sort_groups
from firstpage.data.io.files import DECOMPRESSION_ERRORS, check_readable, suffix_of, write_bytes
from firstpage.data.preferences.preferences import UNKNOWN, Preferences, vote_weight
from firstpage.data.runs import Column

OUTCOME_WORDS = {
    "left much better": 2, "left": 1, "a": 1, "tie": 0, "same": 0, "equal": 0, "both": 0,
    "right": -1, "b": -1, "right much better": -2, ">>": 2, ">": 1, "=": 0, "<": -1, "<<": -2,
}  # fmt: skip
UNJUDGED_WORDS = ("-", "?", "null", "none", "nan", "")
MAX_LIST_LENGTH = 1000  # positions of a list that are read
ARRAY_DIMENSIONS = {"left": 2, "right": 2, "query": 1, "segment": 1}
GradeList = list[float | None]
GradeLookup = Callable[[str, str, Any, int], GradeList]
"""Maps location, query, content of a side and 0 (left) or 1 (right) to grades."""


def read_preferences(
    path: str | os.PathLike[str],
    *,
    qrels: Column | None = None,
    runs: Mapping[str, Column] | None = None,
    grades: Sequence[int] | None = None,
    pool: bool = False,
) -> Preferences:
    """Read pairs of rankings and the preferences between them.

    Parameters
    ----------
    path : path
        A file of JSON lines, CSV, Parquet or arrays (.npz).  A row has `left` and `right` (lists
        of grades), `outcome` (2, 1, 0, -1, -2 or left, tie, right), and optionally `query`,
        `segment` and `weight`.
    qrels : Qrels, optional
        Judgments; `left` and `right` are then lists of documents, graded by these.
    runs : mapping of str to Run, optional
        Runs by name; `left` and `right` may then name a run.
    grades : sequence of int, optional
        All grades in ascending order; by default the integers between those that occur.
    pool : bool, default False
        Outcomes may be missing, and are then 0.

    Returns
    -------
    Preferences
        The pairs.

    Raises
    ------
    DataError
        If the file cannot be read or a row is invalid; the message names file and line.

    Examples
    --------
    >>> import os, tempfile
    >>> import firstpage as fp
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "pairs.jsonl")
    ...     with open(path, "w") as file:
    ...         _ = file.write('{"left": [3, 0], "right": [0, 3], "outcome": "left"}')
    ...     fp.dcglearn.read_preferences(path)
    Preferences(1 pairs, 0 ties; 2 positions, grades 0 to 3)
    """
    file = Path(path)
    check_readable(file)
    if suffix_of(file)[0] == ".npz":
        if qrels is not None or runs:
            raise DataError(
                f"{file}: arrays contain grades, not documents; leave out the judgments and runs."
            )
        return _read_arrays(file, grades, pool)
    lookup = _grade_lookup(qrels, runs)
    rows = [_PairRow(where, row, lookup, pool) for where, row in read_file_rows(file)]
    if not rows:
        raise DataError(f"{file}: contains no pairs.")
    return Preferences.from_grades(
        [r.left for r in rows],
        [r.right for r in rows],
        [r.outcome for r in rows],
        weight=[r.weight for r in rows],
        grades=grades,
        source=str(file),
        query=_query_names(rows),
        segment=[r.segment for r in rows] if any(r.segment for r in rows) else None,
    )


def _query_names(rows: Sequence[_PairRow]) -> list[str] | None:
    """Return the queries if any is named; a pair without one is a query of its own."""
    if not any(row.query for row in rows):
        return None
    return [row.query or f"pair {number}" for number, row in enumerate(rows, 1)]


def rows_to_judge(path: str | os.PathLike[str], rows: Sequence[int]) -> list[dict[str, Any]]:
    """Return these rows of a file as they are written there, without their outcomes."""
    file = Path(path)
    if suffix_of(file)[0] == ".npz":
        contents = list(preference_rows(read_preferences(file, pool=True)))
    else:
        contents = [dict(row) for _, row in read_file_rows(file)]
    outcomes = ("outcome", "preference", "label")
    return [{k: v for k, v in contents[row].items() if k not in outcomes} for row in rows]


class _PairRow:
    """One pair of rankings as read from a row, checked."""

    def __init__(self, where: str, row: Mapping[str, Any], lookup: GradeLookup, pool: bool) -> None:
        self.query = _name(row, QUERY_NAMES)
        self.segment = _name(row, ("segment",))
        self.outcome = _outcome(where, row, pool)
        if row.get("lists") == "documents" and lookup is _listed_grades:
            raise DataError(
                f"{where}: lists documents, not grades, and needs their judgments.",
                Advice("Give them with {}.", "qrels"),
            )
        self.left = lookup(where, self.query, row.get("left"), 0)
        self.right = lookup(where, self.query, row.get("right"), 1)
        self.weight = vote_weight(where, row.get("weight", 1.0))


def _name(row: Mapping[str, Any], names: Sequence[str]) -> str:
    value = next((row[name] for name in names if row.get(name) is not None), "")
    return str(value)


def _outcome(where: str, row: Mapping[str, Any], pool: bool) -> int:
    value = row.get("outcome", row.get("preference"))
    if value is None and row.get("label") is not None:
        number = _integer(row["label"])
        if number is None or not 1 <= number <= 5:
            raise DataError(
                f"{where}: a label must be 1 (left much better) to 5 (right much better); got "
                f"{row['label']!r}."
            )
        return 3 - number
    if value is None and pool:
        return 0
    if value is None:
        raise DataError(f"{where}: the outcome is missing; write 1 (left is better), 0 or -1.")
    if isinstance(value, str) and value.strip().lower() in OUTCOME_WORDS:
        return OUTCOME_WORDS[value.strip().lower()]
    number = _integer(value)
    if number is None or not -2 <= number <= 2:
        raise DataError(
            f"{where}: an outcome must be 2, 1 (left is better), 0 (equal), -1 or -2 (right is "
            f"better), or left, tie, right; got {value!r}."
        )
    return number


def _integer(value: Any) -> int | None:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return int(number) if number.is_integer() and not isinstance(value, bool) else None


def _grade_lookup(qrels: Column | None, runs: Mapping[str, Column] | None) -> GradeLookup:
    """Return a function that gives the grades of a side: as listed, or by the judgments."""
    if qrels is None:
        if runs:
            raise DataError("runs contain no grades; give the judgments (qrels) with them.")
        return _listed_grades
    judged = qrels.to_dict()
    rankings = {name: _rankings(run) for name, run in (runs or {}).items()}

    def grades(where: str, query: str, side: Any, index: int) -> GradeList:
        if not query:
            raise DataError(f"{where}: the query is missing, which judgments of documents need.")
        if query not in judged:
            raise DataError(f"{where}: query {query!r} has no judgments.")
        content = _default_run(where, index, rankings) if side is None else side
        documents = _documents(where, query, content, rankings, judged[query])
        return [judged[query].get(document) for document in documents]

    return grades


def _rankings(run: Column) -> dict[str, list[str]]:
    """Return the first documents of each query, best first."""
    order, _ = sort_groups(run.values, run.offsets)
    ends = run.offsets.tolist()
    return {
        query: [run.docids[int(row)] for row in order[lo : min(hi, lo + MAX_LIST_LENGTH)]]
        for query, lo, hi in zip(run.queries, ends, ends[1:], strict=False)
    }


def _documents(
    where: str,
    query: str,
    side: Any,
    runs: Mapping[str, Mapping[str, list[str]]],
    judged: Collection[str],
) -> list[str]:
    """Return the documents of a side: those of the named run, or those listed."""
    if isinstance(side, str) and side in runs:
        if query not in runs[side]:
            raise DataError(f"{where}: the run {side!r} has no query {query!r}.")
        return runs[side][query]
    if isinstance(side, str):
        words = side.split()
        if runs and len(words) == 1 and words[0] not in judged:
            raise DataError(
                f"{where}: {words[0]!r} is neither a run nor a judged document of query {query!r}; "
                f"the runs are {', '.join(runs)}."
            )
        return words
    if not isinstance(side, list):
        raise DataError(f"{where}: a side must be a list of documents or a run; got {side!r}.")
    return [str(document) for document in side]


def _default_run(where: str, index: int, runs: Mapping[str, Any]) -> str:
    """Return the run of a side that a row omits: the first for left, the second for right."""
    if len(runs) != 2:
        raise DataError(
            f"{where}: 'left' or 'right' is missing; list documents, or name one of the runs "
            f"({', '.join(runs) or 'there are none'})."
        )
    return list(runs)[index]


def _listed_grades(where: str, query: str, side: Any, index: int) -> GradeList:
    """Return the grades that the row lists."""
    if side is None:
        name = ("left", "right")[index]
        raise DataError(f"{where}: {name!r} is missing; give a list of grades such as [3, 0, 1].")
    items = side.replace(",", " ").split() if isinstance(side, str) else side
    if not isinstance(items, list):  # an empty list has nothing judged
        raise DataError(
            f"{where}: a side must be a list of grades such as [3, 0, 1]; got {side!r}."
        )
    return [_grade(where, item) for item in items[:MAX_LIST_LENGTH]]


def _grade(where: str, item: Any) -> float | None:
    if item is None or (isinstance(item, str) and item.lower() in UNJUDGED_WORDS):
        return None
    number = _integer(item)
    if number is None:
        raise DataError(
            f"{where}: a grade must be an integer, or - if there is none; got {item!r}. "
            "Lists of documents need their judgments.",
            Advice("Give them with {}.", "qrels"),
        )
    return number


def _read_arrays(file: Path, grades: Sequence[int] | None, pool: bool) -> Preferences:
    try:
        with file.open("rb") as stream:
            stored = np.load(stream, allow_pickle=False)
            if not isinstance(stored, np.lib.npyio.NpzFile):
                raise ValueError("it is a single array; left, right and outcome are needed")
            arrays = {name: stored[name] for name in stored.files}
    except (*DECOMPRESSION_ERRORS, ValueError, BadZipFile, RuntimeError) as error:
        raise DataError(f"{file}: cannot be read as arrays ({error}).") from None
    for name, dimensions in ARRAY_DIMENSIONS.items():
        if name in arrays and arrays[name].ndim != dimensions:
            content = "a row" if dimensions == 2 else "an entry"
            raise DataError(
                f"{file}: {name} must have {content} per pair; its shape is {arrays[name].shape}."
            )
    if pool and "left" in arrays:
        arrays.setdefault("outcome", np.zeros(len(arrays["left"])))
    for name in ("left", "right", "outcome"):
        if name not in arrays:
            raise DataError(f"{file}: has no array {name!r}; it needs left, right and outcome.")
    stored_grades = arrays.get("grades")
    optional = {name: arrays[name] for name in ("weight", "query", "segment") if name in arrays}
    if grades is None and stored_grades is not None:
        grades = stored_grades.ravel().tolist()
    return Preferences.from_grades(
        arrays["left"],
        arrays["right"],
        arrays["outcome"],
        grades=grades,
        source=str(file),
        **optional,
    )


def write_preferences(preferences: Preferences, path: str | os.PathLike[str]) -> None:
    """Write preferences as JSON lines, or as arrays if the name ends in .npz.

    Parameters
    ----------
    preferences : Preferences
        The pairs.
    path : path
        The file: .jsonl, .ndjson or .npz.

    Raises
    ------
    DataError
        If the file has another suffix.

    Examples
    --------
    >>> import os, tempfile
    >>> import firstpage as fp
    >>> pairs = fp.dcglearn.Preferences.from_grades([[3, 0]], [[0, 3]], [1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "pairs.npz")
    ...     fp.dcglearn.write_preferences(pairs, path)
    ...     len(fp.dcglearn.read_preferences(path))
    1
    """
    file = Path(path)
    if suffix_of(file)[0] == ".npz":
        _write_arrays(preferences, file)
    else:
        write_json_lines(preference_rows(preferences), file)


def write_json_lines(rows: Iterable[Mapping[str, Any]], path: str | os.PathLike[str]) -> None:
    """Write rows as JSON lines; other suffixes are refused, as they are read as other formats."""
    file = Path(path)
    if str(file) != "-" and suffix_of(file)[0] not in (".jsonl", ".ndjson"):
        raise DataError(f"{file}: pairs are written as JSON lines; use the suffix .jsonl.")
    with write_bytes(file) as out:
        for row in rows:
            out.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")


def _grade_matrix(preferences: Preferences, levels: Any) -> Any:
    """Return grades with NaN for unknown ones; integers if all are known."""
    grades = np.asarray(preferences.grades)[np.maximum(levels, 0)]
    return grades if (levels != UNKNOWN).all() else np.where(levels == UNKNOWN, np.nan, grades)


def _write_arrays(preferences: Preferences, file: Path) -> None:
    arrays: dict[str, Any] = {
        "left": _grade_matrix(preferences, preferences.left),
        "right": _grade_matrix(preferences, preferences.right),
        "outcome": preferences.outcome,
        "weight": preferences.weight,
        "grades": np.array(preferences.grades),
    }
    for name, ids in (("query", preferences.query), ("segment", preferences.segment)):
        if ids is not None:
            arrays[name] = np.array(list(ids))
    with write_bytes(file) as out:
        np.savez_compressed(out, **arrays)


def preference_rows(preferences: Preferences) -> Iterator[dict[str, Any]]:
    """Yield the pairs as rows of a JSON lines file."""

    def grades(levels: Any) -> list[int | None]:
        side = [preferences.grades[v] if v != UNKNOWN else None for v in levels]
        while side and side[-1] is None:
            side.pop()
        return side

    for pair in range(len(preferences)):
        query, segment = preferences.query, preferences.segment
        row: dict[str, Any] = {} if query is None else {"query": query[pair]}
        row |= {"left": grades(preferences.left[pair]), "right": grades(preferences.right[pair])}
        row["outcome"] = int(preferences.outcome[pair])
        if preferences.weight[pair] != 1.0:
            row["weight"] = float(preferences.weight[pair])
        if segment is not None:
            row["segment"] = segment[pair]
        yield row
