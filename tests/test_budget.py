"""Packages stay within the budgets of code lines in docs/design.md, and the Makefile in its words."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

import firstpage

ROOT = Path(firstpage.__file__).parent
PROJECT = Path(__file__).parents[1]
ROW = re.compile(r"^\| `(\w+)` \| ([\d,]+) \|$", re.MULTILINE)
TOLERANCE = 1.05
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def code_lines(source: str) -> int:
    """Return the number of lines that are neither blank, nor comments, nor docstrings."""
    lines = [line.strip() for line in source.splitlines()]
    numbers = {i for i, line in enumerate(lines, 1) if line and not line.startswith("#")}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            docstring = node.body[0]
            numbers -= set(range(docstring.lineno, (docstring.end_lineno or 0) + 1))
    return len(numbers)


def test_code_lines_leave_out_comments_and_docstrings() -> None:
    source = '"""One.\n\nTwo."""\n\n# three\nx = 1  # four\n\n\ndef f():\n    """Five."""\n    return 6\n'
    assert code_lines(source) == 3


def test_every_package_stays_within_its_budget() -> None:
    """Growth is a decision that edits the table of docs/design.md and says why."""
    budgets = {
        name: int(lines.replace(",", ""))
        for name, lines in ROW.findall((PROJECT / "docs/design.md").read_text())
    }
    sizes: Counter[str] = Counter()
    for file in ROOT.rglob("*.py"):
        parts = file.relative_to(ROOT).parts
        sizes[parts[0] if len(parts) > 1 else "firstpage"] += code_lines(file.read_text())
    assert set(budgets) == set(sizes)
    exceeded = {
        name: f"{lines:,} code lines of at most {budgets[name]:,}"
        for name, lines in sizes.items()
        if lines > TOLERANCE * budgets[name]
    }
    assert exceeded == {}


def make(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["make", "--dry-run", *arguments], cwd=PROJECT, capture_output=True, text=True
    )


def test_one_package_is_checked_alone() -> None:
    commands = make("check", "PACKAGE=evaluation").stdout
    assert "mypy src/firstpage/evaluation tests/evaluation" in commands
    assert re.search(r"pytest -n \d+ tests/evaluation -m .not long.$", commands, re.MULTILINE)
    assert "hadolint" not in commands
    everything = make("check").stdout
    assert "hadolint" in everything
    assert "not long" not in everything
    unknown = make("check", "PACKAGE=evalution")
    assert unknown.returncode == 2
    assert "there is no package evalution; there are: cli clicks core data" in unknown.stderr


@pytest.mark.parametrize(("system", "installs"), [("yes", True), ("no", False)])
def test_what_is_missing_is_installed_or_named(system: str, installs: bool, tmp_path: Path) -> None:
    shell = shutil.which("sh")
    assert shell is not None
    calls = tmp_path / "calls"
    for name, script in {"id": "echo 0", "apt-get": f'echo "$*" >> {calls}; exit 1'}.items():
        program = tmp_path / name  # no browser or database server is on this path
        program.write_text(f"#!{shell}\n{script}\n")
        program.chmod(0o755)
    done = subprocess.run(
        [shell, str(PROJECT / "tests/system.sh")],
        env={**os.environ, "PATH": str(tmp_path), "SYSTEM": system},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0
    assert calls.exists() == installs
    for package in ("chromium", "postgresql"):
        assert (f"installing {package}" in done.stdout) == installs
        assert f"NOT INSTALLED: {package}. Tests " in done.stdout
        assert f"to run them: apt-get install {package}\n" in done.stdout
