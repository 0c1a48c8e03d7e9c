"""The sources of the site, and the check of its links; `make site` builds it."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from firstpage.evaluation.measures import measure_classes
from tests.docs.pages import ROOT
from tests.docs.test_docs import anchors
from tests.public_names import public_objects


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(ROOT / "docs")
    return import_module("made.stage")


@pytest.fixture
def source(stage: ModuleType, tmp_path: Path) -> Path:
    stage.stage(tmp_path)
    return tmp_path


def test_every_name_command_and_page_has_a_page(source: Path) -> None:
    from firstpage.cli import app

    for name, _ in public_objects():
        assert name.startswith("fp.torch.") or (source / "python" / f"{name}.rst").exists(), name
    for verb in app.commands:
        assert f"# firstpage {verb}" in (source / "commands" / f"{verb}.md").read_text()
    written = "\n".join(file.read_text() for file in source.rglob("*.md"))
    listed = set(re.findall(r"^/?([\w./-]+)$", written, re.M))
    for page in [*source.glob("*.md"), *source.glob("papers/*.md")]:
        name = str(page.relative_to(source).with_suffix(""))
        assert name == "index" or name in listed, name


def test_every_measure_has_a_picture_and_an_example(source: Path) -> None:
    for cls in measure_classes():
        name = cls.__name__.lower()
        page = (source / "measures" / f"{name}.md").read_text()
        assert ">>> import firstpage as fp" in page, name
        constant = name in ("numq", "numrel")  # they count judgments, whatever the ranking
        assert (source / "images" / "measures" / f"{name}-dark.svg").exists() is not constant, name
        assert (f"images/measures/{name}.svg" in page) is not constant, name


def test_links_of_the_sources_lead_somewhere(source: Path) -> None:
    for page in source.rglob("*.md"):
        text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S)
        for target, anchor in re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", text):
            if target != "../gallery/index.rst":  # written when the site is built
                assert (page.parent / target).exists(), (page, target)
            named = anchors(page.parent / target if target else page) if anchor else {""}
            assert anchor in named, (page, target, anchor)


def test_a_picture_with_two_themes_is_shown_in_one(stage: ModuleType, tmp_path: Path) -> None:
    light = (ROOT / "docs" / "images" / "hybrid-weights.svg").read_text()
    assert "#0b66c3" in light
    assert "#0b66c3" not in stage.dark(light)
    assert "](images/demo-dark.png){.only-dark}" in stage.adapted(
        ROOT / "docs" / "index.md", "index.md"
    )


def test_programs_get_markdown_and_a_list_of_it(stage: ModuleType, tmp_path: Path) -> None:
    stage.write_raw_pages(tmp_path)
    listed = re.findall(r"\]\(([\w./-]+\.md)", (tmp_path / "llms.txt").read_text())
    assert {"train.md", "rankers/index.md", "python.md"} <= set(listed)
    assert [name for name in listed if not (tmp_path / name).exists()] == []
    assert "topk" in (tmp_path / "python" / "fp.ListMLE.md").read_text().lower().replace("-", "")


def test_a_link_that_leads_nowhere_is_reported(stage: ModuleType, tmp_path: Path) -> None:
    check = import_module("made.check").check
    (tmp_path / "a.html").write_text(
        '<a href="b.html#x">b</a><a href="b.html#y">b</a><a href="c.html">c</a>'
        '<a href="mailto:P@10">P@10</a>'
        '<a href="https://example.org/">out</a><script src="https://example.org/x.js"></script>'
    )
    (tmp_path / "b.html").write_text('<p id="x">')
    assert check(tmp_path) == [
        "a.html: b.html#y leads nowhere",
        "a.html: c.html leads nowhere",
        "a.html: https://example.org/x.js is loaded from elsewhere",
        "a.html: mailto:P@10 is not an address",
    ]
    assert (tmp_path / "external-links.txt").read_text() == (
        "https://example.org/\nhttps://example.org/x.js\nmailto:P@10\n"
    )
