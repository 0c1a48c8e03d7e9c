"""Files of votes on pairs of documents: CSV, JSON lines or Parquet.

A row is one vote: the query, two documents and which of them is better:

    query,left,right,outcome,weight,voter
    tea,d1,d2,left,1,ada

`outcome` is left, right or tie (also a1, a2, equal; 1, -1, 0).  Instead of left, right and outcome
a row may have `preferred` and `other`.  `weight` and `voter` are optional.  The files of
`firstpage label export --content pairs`, of `firstpage import clicks` and of crowdsourcing projects
(topic, arg1, arg2, vote, worker) are of this form.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from firstpage.core import DataError, csv_line, location, unescape_formula
from firstpage.data.column_names import QUERY_NAMES
from firstpage.data.formats.row_reader import read_file_cells, read_file_rows
from firstpage.data.ids import encode_text
from firstpage.data.io.files import check_readable, suffix_of, write_bytes
from firstpage.data.preferences.pairs import PreferencePairs
from firstpage.data.preferences.preferences import vote_weight

COLUMNS = {
    "query": QUERY_NAMES,
    "left": ("arg1", "left", "a"),
    "right": ("arg2", "right", "b"),
    "outcome": ("vote", "outcome", "label"),
    "preferred": ("preferred",),
    "other": ("other",),
    "weight": ("weight",),
    "voter": ("worker", "voter", "assessor"),
}
ROW_SUFFIXES = (".jsonl", ".ndjson", ".parquet")
NAMES = {name for names in COLUMNS.values() for name in names}
OUTCOMES = {
    "a1": 1, "left": 1, "1": 1, "a2": -1, "right": -1, "-1": -1, "2": -1,
    "equal": 0, "tie": 0, "0": 0,
}  # fmt: skip
HEADER = ("query", "left", "right", "outcome", "weight", "voter")
LOG_COLUMNS = {"event", "seq", "task"}  # of the log of a labeling project
IS_LOG = (
    "{}: is the log of a labeling project, in which judgments are also revised, repeated and taken "
    "back; give its votes: firstpage label export PROJECT --content pairs -o votes.csv"
)


class Vote(NamedTuple):
    """One vote: `outcome` is 1 if left is better, -1 if right is, 0 if neither is."""

    query: str
    left: str
    right: str
    outcome: int
    weight: float = 1.0
    voter: str | None = None


def read_pairs(path: str | os.PathLike[str]) -> PreferencePairs:
    """Read votes on pairs of documents.

    Parameters
    ----------
    path : path
        A CSV, JSON lines or Parquet file with a row per vote.  Its columns are query (or topic,
        qid), left (arg1, a), right (arg2, b) and outcome (vote, label): left (a1, 1), right (a2,
        -1, 2) or tie (equal, 0); or query, preferred and other.  Optional are weight, and voter
        (worker, assessor).

    Returns
    -------
    PreferencePairs
        The votes, in the order of the file.

    Raises
    ------
    DataError
        If the file cannot be read, has no votes, is the log of a labeling project, or a row is
        invalid; the message names file and line.

    Examples
    --------
    >>> import os, tempfile
    >>> import firstpage as fp
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "votes.csv")
    ...     with open(path, "w") as file:
    ...         _ = file.write("query,left,right,outcome\\ntea,a,b,left\\ntea,b,a,tie\\n")
    ...     pairs = fp.read_pairs(path)
    >>> len(pairs), int(pairs.tied.sum())
    (2, 1)
    """
    file = Path(path)
    check_readable(file)
    return pairs_of(list(read_vote_rows(file, refuse_log=True)), str(file))


def pairs_of(votes: Iterable[Vote], source: str) -> PreferencePairs:
    """Return votes as pairs; raise an error if there are none."""
    rows = list(votes)
    if not rows:
        raise DataError(f"{source}: there are no votes.")
    named = any(row.voter for row in rows)
    return PreferencePairs.from_arrays(
        [row.query for row in rows],
        [row.right if row.outcome < 0 else row.left for row in rows],
        [row.left if row.outcome < 0 else row.right for row in rows],
        weight=[row.weight for row in rows],
        tied=[row.outcome == 0 for row in rows],
        voter=[row.voter or "" for row in rows] if named else None,
        source=source,
    )


def read_vote_rows(file: Path, refuse_log: bool = False) -> Iterator[Vote]:
    """Yield the votes of a file, checked; with `refuse_log`, not those of a project's log."""
    read = _named_rows if suffix_of(file)[0] in ROW_SUFFIXES else _table_rows
    rows = read(file, refuse_log)
    for where, fields in rows:
        yield _vote(where, fields)


def _named_rows(file: Path, refuse_log: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield location and fields of the rows of JSON lines or Parquet."""
    for where, row in read_file_rows(file):
        if refuse_log and row.keys() >= LOG_COLUMNS:
            raise DataError(IS_LOG.format(file))
        names = [name for name in row if name.strip().lower() in NAMES]
        columns = _columns(where, names)
        yield where, {field: row[names[i]] for field, i in columns.items()}


def _table_rows(file: Path, refuse_log: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield location and fields of the rows of a table."""
    table = read_file_cells(file)
    _, header = next(table, (1, []))
    if not header:
        return
    if refuse_log and {name.strip().lower() for name in header} >= LOG_COLUMNS:
        raise DataError(IS_LOG.format(file))
    where = location(file, 1)
    columns = _columns(where, header)
    needed = ("preferred", "other") if "preferred" in columns else ("left", "right", "outcome")
    for field in ("query", *needed):
        if field not in columns:
            raise DataError(f"{where}: there is no column {' or '.join(COLUMNS[field])}.")
    for number, row in table:
        where = location(file, number)
        if len(row) <= max(columns.values()):
            raise DataError(f"{where}: the row has {len(row)} fields; the header has more.")
        cells = {field: row[i] for field, i in columns.items() if row[i] != ""}
        yield where, {field: unescape_formula(cell) for field, cell in cells.items()}


def _columns(where: str, header: Sequence[str]) -> dict[str, int]:
    """Return the index of each field; of several columns the first of its names is taken."""
    names = [name.strip().lower() for name in header]
    columns: dict[str, int] = {}
    for field, known in COLUMNS.items():
        matching = [name for name in names if name in known]
        if len(matching) > 1:
            raise DataError(
                f"{where}: the {field} is in several columns: {' and '.join(matching)}; keep one."
            )
        if matching:
            columns[field] = names.index(matching[0])
    return columns


def _vote(where: str, fields: Mapping[str, Any]) -> Vote:
    """Return the vote of a row."""
    if "preferred" in fields or "other" in fields:
        clash = next((name for name in ("left", "right", "outcome") if name in fields), None)
        if clash is not None:
            raise DataError(f"{where}: has preferred or other, and {clash}; give one form.")
        left, right = (_name(where, fields, name) for name in ("preferred", "other"))
        outcome = 1
    else:
        left, right = (_name(where, fields, name) for name in ("left", "right"))
        vote = fields.get("outcome", "")
        found = OUTCOMES.get(_text(vote).strip().lower())
        if found is None or isinstance(vote, bool):
            raise DataError(
                f"{where}: the vote {_text(vote)!r}; a vote must be left (a1), right (a2) or tie "
                "(equal)."
            )
        outcome = found
    if left == right:
        raise DataError(
            f"{where}: a document against itself ({left!r}); a vote must be on two documents."
        )
    voter = _text(fields["voter"]) if "voter" in fields else None
    query = _name(where, fields, "query")
    return Vote(query, left, right, outcome, vote_weight(where, fields.get("weight", 1.0)), voter)


def _name(where: str, fields: Mapping[str, Any], field: str) -> str:
    """Return the id of a query or of a document."""
    value = fields.get(field)
    if value is None or isinstance(value, (list, dict, bool)) or not (text := _text(value)):
        names = " or ".join(COLUMNS[field])
        raise DataError(f"{where}: there is no {field}; it is read from the column {names}.")
    return text


def _text(value: Any) -> str:
    """Return an id as text; integral floats as integers."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def write_pairs(pairs: PreferencePairs, path: str | os.PathLike[str]) -> None:
    """Write votes on pairs of documents as a CSV file, which `read_pairs` reads.

    Parameters
    ----------
    pairs : PreferencePairs
        The votes.
    path : path
        The file (.csv); it is replaced atomically.

    Raises
    ------
    DataError
        If the file has another suffix.

    Examples
    --------
    >>> import os, tempfile
    >>> import firstpage as fp
    >>> pairs = fp.PreferencePairs.from_arrays(["tea"], ["a"], ["b"], weight=[2.5])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "votes.csv")
    ...     fp.write_pairs(pairs, path)
    ...     fp.read_pairs(path).weight.tolist()
    [2.5]
    """
    file = Path(path)
    if str(file) != "-" and suffix_of(file)[0] != ".csv":
        raise DataError(f"{file}: pairs are written as CSV; use the suffix .csv.")
    with write_bytes(file) as out:
        for line in csv_lines(votes_of(pairs)):
            out.write(encode_text(line))


def votes_of(pairs: PreferencePairs) -> list[Vote]:
    """Return the votes, with the preferred document to the left."""
    queries, documents = list(pairs.queries), list(pairs.docids)
    numbers = pairs.query_of(pairs.preferred).tolist()
    voters = [None] * len(pairs) if pairs.voter is None else list(pairs.voter)
    columns = (pairs.preferred.tolist(), pairs.other.tolist(), pairs.tied.tolist())
    return [
        Vote(queries[q], documents[a], documents[b], 0 if tied else 1, weight, voter)
        for q, a, b, tied, weight, voter in zip(
            numbers, *columns, pairs.weight.tolist(), voters, strict=True
        )
    ]


def csv_lines(votes: Iterable[Vote]) -> Iterator[str]:
    """Yield the lines of a CSV file without formulas; columns without information are left out."""
    rows = list(votes)
    weighted = any(row.weight != 1 for row in rows)
    named = any(row.voter for row in rows)
    width = 6 if named else 5 if weighted else 4
    words = {1: "left", -1: "right", 0: "tie"}
    yield csv_line(HEADER[:width])
    for row in rows:
        weight = int(row.weight) if float(row.weight).is_integer() else row.weight
        cells = (row.query, row.left, row.right, words[row.outcome], weight, row.voter)
        yield csv_line(cells[:width])
