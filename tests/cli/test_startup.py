"""The start-up budget of docs/benchmarks.md, as modules that a command must not import.

Imports take most of the time of a small command, and their seconds depend on the machine: so every
command runs in a process of its own, whose modules are compared with a table.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import firstpage as fp
from firstpage import cli
from firstpage.data.formats import to_qrels, to_run, write_qrels, write_scores
from tests.narrow import dense
from tests.patience import PATIENCE

WEB = ("starlette", "msgspec", "uvicorn", "jinja2", "sqlalchemy", "alembic")
TABLES = ("pandas", "polars", "pyarrow")
SEVERAL = ("numba", "rich", *WEB, *TABLES)  # used by no command below
HEAVY = ("scipy", "sklearn", *SEVERAL)
TRAINING = ("firstpage.learning.rankers.base", "firstpage.learning.solvers")
# scikit-learn, of which rankers are estimators, imports pandas and PyArrow where they are installed.
NOT_BY_RANKERS = ("numba", "rich", "polars", *WEB)
# Measures that the commands below do not compute, comparisons and gates, and what only reads
# versions of packages.
NOT_BY_NDCG = (
    "email",
    "importlib.metadata",
    "statistics",
    "xml.etree.ElementTree",
    "firstpage.evaluation.comparison.comparison",
    "firstpage.evaluation.measures.diversity",
    "firstpage.evaluation.measures.order",
    "firstpage.evaluation.measures.preference_accuracy",
    "firstpage.evaluation.measures.user_models",
    "firstpage.evaluation.planning.release_gate",
)
OTHERS = ("firstpage.cli.compare", "firstpage.cli.train", "firstpage.cli.label")
ABSENT = {  # command: modules that it must not import
    "--help": ("numpy", "firstpage.cli.options", *HEAVY, *OTHERS),
    "--version": ("numpy", "firstpage.cli.options", *HEAVY, *OTHERS),
    "label --help": ("numpy", "firstpage.cli.options", *HEAVY),
    "dcglearn --help": ("numpy", "firstpage.cli.options", *HEAVY),
    "evaluate --help": (*HEAVY, *TRAINING, *OTHERS),
    "train --help": (*NOT_BY_RANKERS, "firstpage.cli.evaluate", "firstpage.cli.crossval"),
    "serve --help": SEVERAL,
    "label setup --help": (*SEVERAL, "sklearn", "firstpage.cli.label.serve"),
    "evaluate data.txt --scores data.scores": (*HEAVY, *TRAINING, *OTHERS, *NOT_BY_NDCG),
    "evaluate data.qrels data.run": (*HEAVY, *TRAINING, *OTHERS, *NOT_BY_NDCG),
    "evaluate data.txt --model model.json": (*HEAVY, *TRAINING, *OTHERS, *NOT_BY_NDCG),
    "rank model.json data.txt -o ranked.scores": (*HEAVY, *TRAINING),
    "compare data.qrels data.run other.run": ("sklearn", *SEVERAL, *TRAINING),
    "train ListNet data.txt -o trained.json": NOT_BY_RANKERS,
}
SCRIPT = """
import json, sys
from firstpage.cli import main
sys.argv[0] = "firstpage"
try:
    main()
finally:
    print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""
FOR_TERMINALS = {"shared.py": "rich"}  # only a progress bar needs Rich, which takes .1 s to import


def run(line: str, folder: Path, **environment: str) -> tuple[str, set[str]]:
    """Run a command in a new process; return what it prints, and the modules that it imports."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *line.split()],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, **environment},
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, set(json.loads(done.stderr.splitlines()[-1]))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with small data, judgments, scores, runs and a model."""
    path = tmp_path_factory.mktemp("startup")
    data = fp.Synthetic(queries=4, docs=5, features=3, seed=0).dataset()
    fp.write(data, path / "data.txt")
    write_qrels(to_qrels(data), path / "data.qrels")
    write_scores(dense(data.X)[:, 0], path / "data.scores")
    for number, name in enumerate(("data.run", "other.run")):
        fp.write_run(to_run(data, dense(data.X)[:, number]), path / name)
    fp.ListNet().fit(data).save(path / "model.json")
    return path


@pytest.mark.parametrize("line", ABSENT)
def test_a_command_imports_only_what_it_needs(line: str, folder: Path) -> None:
    modules = run(line, folder)[1]
    if "numba" in modules:  # some kernel is compiled once per machine
        modules = run(line, folder)[1]
    assert modules.intersection(ABSENT[line]) == set()
    assert {"click", "firstpage.cli"} <= modules


def test_modules_of_the_table_exist() -> None:
    """A misspelled module would never be imported."""
    assert [name for names in ABSENT.values() for name in names if find_spec(name) is None] == []


def test_a_small_file_is_evaluated_before_any_kernel_is_compiled(
    folder: Path, tmp_path: Path
) -> None:
    line = "evaluate data.txt --scores data.scores --json"
    printed, modules = run(line, folder, FIRSTPAGE_CACHE=str(tmp_path / "empty"))
    assert modules.intersection(("numba", *HEAVY)) == set()
    compiled = fp.evaluate(
        fp.read_scores(folder / "data.scores"), fp.read_letor(folder / "data.txt")
    )
    assert json.loads(printed)["measures"] == compiled.means


def test_imports_are_at_the_heads_of_modules() -> None:
    root = Path(cli.__file__).parent
    inner = {
        (path.relative_to(root).as_posix(), name.partition(".")[0])
        for path in root.rglob("*.py")
        for function in ast.walk(ast.parse(path.read_text()))
        if isinstance(function, ast.FunctionDef)
        for node in ast.walk(function)
        for name in imported(node)
    }
    assert inner == set(FOR_TERMINALS.items())


def imported(node: ast.AST) -> list[str]:
    """Return the modules that a statement imports."""
    if isinstance(node, ast.ImportFrom):
        return [node.module or ""]
    return [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
