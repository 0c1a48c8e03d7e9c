"""Published results, to stand beside ours: LETOR's baseline files, or CSV tables."""

from __future__ import annotations

import csv
import re
from pathlib import Path

from firstpage.data.files import read_all
from firstpage.errors import DataError

ALIASES = {"pre": "p", "map": "ap", "meanndcg": "meanndcg"}
Results = dict[str, dict[str, str]]
"""Values by measure by method; measures are written small."""


def read_published(path: Path) -> Results:
    """A file, or all files of a folder.

    LETOR 4.0's text ("Algorithm: .." with a line of averages over folds on the testing set); a CSV
    table with one method a line; or one with the columns algorithm, table, trial, measure, value.
    """
    files = sorted(p for p in path.iterdir() if p.is_file()) if path.is_dir() else [path]
    found: Results = {}
    for file in files:
        text = read_all(file).decode("utf-8", "replace")
        if text.startswith("Algorithm:"):
            found |= _letor(text)
        else:
            found |= _table(file, text)
    return found


def plain(measure: str) -> str:
    """`Pre@5` and `P@5`, `MAP` and `AP` are the same."""
    name, at, cut = measure.strip().lower().partition("@")
    return ALIASES.get(name, name) + at + cut


def _letor(text: str) -> Results:
    name = text.splitlines()[0].partition(":")[2].strip()
    tests = re.split(r"^Performance on ", text, flags=re.M)[1:]
    values: dict[str, str] = {}
    for part in tests:
        if not part.lower().startswith("test"):
            continue
        head: list[str] = []
        for line in part.splitlines():
            cells = line.split()
            if cells and cells[0].lower() in ("folds", "para"):
                head = cells
            elif cells and cells[0].lower() in ("average", "avg") and len(cells) == len(head):
                values |= {plain(m): v for m, v in zip(head[1:], cells[1:], strict=True)}
    return {name: values}


def _table(file: Path, text: str) -> Results:
    lines = [row for row in csv.reader(text.splitlines()) if row]
    if not lines or len(lines[0]) < 2:
        raise DataError(f"{file}:1: the first line must name a column for methods, then measures.")
    head = [cell.strip().lower() for cell in lines[0]]
    found: Results = {}
    for number, line in enumerate(lines[1:], 2):
        if len(line) != len(head):
            raise DataError(f"{file}:{number}: has {len(line)} cells, and the head {len(head)}.")
        cells = dict(zip(head, line, strict=True))
        if {"algorithm", "trial", "measure", "value"} <= set(head):
            if "test" in cells.get("table", "test") and cells["trial"].lower() == "average":
                found.setdefault(cells["algorithm"], {})[plain(cells["measure"])] = cells["value"]
        else:
            found[line[0]] = {plain(m): v for m, v in zip(head[1:], line[1:], strict=True)}
    return found
