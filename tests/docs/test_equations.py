"""docs/papers: every equation and algorithm of the papers leads to a name that exists."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from firstpage.papers.theory.registry import CHECKS

PAPERS = Path(__file__).parents[2] / "docs" / "papers"
ENTRY = re.compile(r"\[([\w/.]+)\]\(\.\./\.\./(src/firstpage/[\w/.]+)\): ((?:`[\w.]+`(?:, )?)+)")
THEORY = re.compile(r"`firstpage theory ([\w/.-]+)`")
# What each paper numbers.
NUMBERED = {
    "niu2012": (3, 2), "lan2013": (18, 1), "zhou2013": (5, 0), "xia2009": (12, 0),
    "cheng2014": (13, 2),
}  # fmt: skip


def table(paper: str) -> str:
    """Return the rows of the page's table of equations."""
    page = (PAPERS / f"{paper}.md").read_text()
    return page.partition("## Equations and algorithms in the code")[2].partition("\n## ")[0]


@cache
def defined(path: str) -> set[str]:
    """Return the functions, classes and methods that a file defines."""
    names: set[str] = set()
    for node in ast.parse((PAPERS.parents[1] / path).read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            names |= {f"{node.name}.{m.name}" for m in node.body if isinstance(m, ast.FunctionDef)}
    return names


@pytest.mark.parametrize("paper", NUMBERED)
def test_every_name_of_the_table_exists(paper: str) -> None:
    entries = ENTRY.findall(table(paper))
    assert len(entries) >= 5
    for shown, path, names in entries:
        assert path == f"src/firstpage/{shown}"
        assert set(re.findall(r"`([\w.]+)`", names)) <= defined(path), shown


@pytest.mark.parametrize("paper", NUMBERED)
def test_every_check_of_the_table_exists(paper: str) -> None:
    known = {check.name for check in CHECKS}
    assert set(THEORY.findall(table(paper))) <= known


@pytest.mark.parametrize("paper", NUMBERED)
def test_every_numbered_equation_and_algorithm_is_listed(paper: str) -> None:
    rows = " ".join(row.split("|")[1] for row in table(paper).splitlines() if row.startswith("| "))
    listed = {int(n) for n in re.findall(r"\((\d+)\)", rows)}
    for first, last in re.findall(r"\((\d+)\) to \((\d+)\)", rows):
        listed |= set(range(int(first), int(last) + 1))
    equations, algorithms = NUMBERED[paper]
    assert set(range(1, equations + 1)) <= listed
    assert {f"Algorithm {n}" for n in range(1, algorithms + 1)} <= set(
        re.findall(r"Algorithm \d", rows)
    )
