"""Every code block of the README and the manual runs, and the generated pages are current."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from contextlib import redirect_stdout
from importlib import import_module
from io import StringIO
from itertools import combinations, product
from pathlib import Path

import click
import numpy as np
import pytest

import firstpage as fp
from firstpage.data.trec import run_of
from firstpage.dcglearn.worlds import world
from firstpage.demo import loop
from tests.demo.small import small_collection

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])


def blocks(language: str) -> list:
    found = []
    for page in PAGES:
        pattern = rf"^```{language}\n(.*?)^```"
        for number, match in enumerate(re.findall(pattern, page.read_text(), re.M | re.S), 1):
            found.append(pytest.param(match, id=f"{page.name} {number}"))
    return found


@pytest.mark.parametrize("code", blocks("python"))
def test_python_blocks_run(code: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "block", "exec"), {"__name__": "block"})
    assert code.strip()


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `firstpage demo -o shop` leaves behind, of fewer questions."""
    folder = tmp_path_factory.mktemp("docs") / "shop"
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(StringIO()):
        patch.setattr(loop, "stdlib_collection", small_collection)
        loop.run_demo(folder)
    return folder


@pytest.fixture
def example(tmp_path: Path) -> Path:
    """The files that the examples speak of."""
    recipe = fp.Synthetic(queries=15, docs=12, features=4, grades=3)
    data = recipe.dataset()
    fp.write_letor(data, tmp_path / "test.txt")
    fp.write_letor(data[:9], tmp_path / "train.txt")
    fp.write_letor(data[9:], tmp_path / "vali.txt")
    fp.write_folds(data, tmp_path / "letor", 3)
    fp.write_qrels(data, tmp_path / "test.qrels")
    good = recipe.true_utility(data.X)
    other = np.random.default_rng(0).random(data.n_docs)
    for name, scores in (("ours", good), ("theirs", other)):
        fp.write_scores(scores, tmp_path / f"{name}.scores")
    fp.write_scores(good, tmp_path / "scores.txt")
    fp.write_run(run_of(data, good, "ours"), tmp_path / "ours.run")
    fp.write_run(run_of(data, other, "bm25"), tmp_path / "bm25.run")
    fp.Utility.standard("exp", range(3), 10).save(tmp_path / "measure.json")
    for_labelling(tmp_path)
    for_dcglearn(tmp_path)
    for_import(tmp_path)
    return tmp_path


def for_labelling(folder: Path) -> None:
    """Queries, documents and votes."""
    texts = [f"document {i} " + "word " * i for i in range(5)]
    queries = [{"query": q, "text": f"words of {q}"} for q in ("q1", "q2", "q3")]
    documents = [
        {"query": row["query"], "document": f"d{i}", "text": text}
        for row in queries
        for i, text in enumerate(texts)
    ]
    for name, rows in (("queries", queries), ("documents", documents)):
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{name}.jsonl").write_text(lines)
    graded_lists(folder)
    votes = [f"t,d{a},d{b},a1" for a, b in combinations(range(6), 2)]
    (folder / "votes.csv").write_text("\n".join(["topic,arg1,arg2,vote", *votes, ""]))


def graded_lists(folder: Path) -> None:
    """Two lists a query, the grades of their items, and somebody who counts the good ones."""
    rng = np.random.default_rng(0)
    lists, qrels = [], []
    for q, side in product(range(25), ("ours", "theirs")):
        grades = rng.integers(0, 3, 4).tolist()
        items = [{"id": f"{side}{i}", "title": "boot " * g} for i, g in enumerate(grades)]
        lists.append({"query": f"q{q}", "document": side, "items": items})
        qrels += [f"q{q} 0 {side}{i} {g}\n" for i, g in enumerate(grades)]
    (folder / "lists.jsonl").write_text("".join(json.dumps(row) + "\n" for row in lists))
    (folder / "lists.qrels").write_text("".join(qrels))
    (folder / "taste.py").write_text(
        "def more_boots(query, left, right):\n"
        "    return 'left' if left.count('boot') > right.count('boot') else 'right'\n"
    )


def for_import(folder: Path) -> None:
    """A model of RankLib, judgments of Quepid, a feature log and clicks."""
    (folder / "ranklib.txt").write_text("## Coordinate Ascent\n1:0.5 2:0.25 4:-1.0\n")
    (folder / "quepid.csv").write_text("query,docid,rating\nred shoes,d1,3\nred shoes,d2,0\n")
    features = [{"name": "title", "value": 2.5}, {"name": "body"}]
    found = [{"_id": d, "fields": {"_ltrlog": [{"log": features}]}} for d in ("d1", "d2", "d3")]
    line = {"query": "red shoes", "response": {"hits": {"hits": found}}}
    (folder / "log.jsonl").write_text(json.dumps(line) + "\n")
    shown = ["query,docid,position,clicked", "q,d1,1,0", "q,d2,2,1", ""]
    (folder / "clicks.csv").write_text("\n".join(shown))


def for_dcglearn(folder: Path) -> None:
    """Preferences over rankings, a pool, and a measure."""
    rng = np.random.default_rng(0)
    fp.write_preferences(world(2).pairs(60, rng), folder / "prefs.jsonl")
    fp.write_preferences(world(2).pairs(10, rng), folder / "pool.jsonl")
    (folder / "many").mkdir()
    for part in range(2):
        fp.write_preferences(world(2).pairs(60, rng), folder / "many" / f"{part}.npz")
    fp.Utility.standard("exp", range(3), 10).save(folder / "measure.json")
    said = [{"query": str(q), "outcome": int(rng.integers(-2, 3))} for q in range(1, 16)]
    (folder / "said.jsonl").write_text("".join(json.dumps(row) + "\n" for row in said))


@pytest.mark.parametrize("text", blocks("console"))
def test_console_blocks_run(text: str, example: Path, request: pytest.FixtureRequest) -> None:
    if " shop/" in text or "stats shop" in text:
        shutil.copytree(request.getfixturevalue("shop"), example / "shop")
    ran = 0
    for line in text.splitlines():
        command = line.removeprefix("$ ").split("#")[0].strip()
        if command.startswith("firstpage "):
            args = [sys.executable, "-m", *shlex.split(command)]
            done = subprocess.run(args, cwd=example, capture_output=True, text=True, timeout=300)
            assert done.returncode == 0, (command, done.stderr)
        else:
            assert command.split()[1] in (ROOT / "Makefile").read_text()
        ran += 1
    assert ran


def test_generated_pages_are_current(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "docs")
    generate = import_module("generate")
    for name, make in generate.PAGES.items():
        assert (ROOT / "docs" / name).read_text() == make(), f"{name}: run `make docs`"


def test_links_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), (page.name, target)


def test_every_verb_and_extra_is_documented() -> None:
    from firstpage.cli import app

    own = [page for page in PAGES if page.name not in ("commands.md", "python.md")]  # made of it
    manual = "\n".join(page.read_text() for page in [*own, ROOT / "CHANGELOG.md"])
    for verb in app.commands:
        assert f"firstpage {verb}" in manual or f"`{verb}`" in manual, verb
    group = app.commands["label"]
    assert isinstance(group, click.Group)
    for verb in group.commands:
        assert f"label {verb}" in manual, verb
