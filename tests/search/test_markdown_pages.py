"""The title and the text of Markdown files."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it.ruler import Ruler

import firstpage as fp
from firstpage.search import markdown_pages
from firstpage.search.markdown_pages import MAX_INLINE, MAX_NESTING, markdown_values

PAGES = {  # Markdown, title, text
    "heading": ("# A *good* `title`\n\nText.", "A good title", "Text."),
    "second heading": ("Text.\n\n## Title\n\nMore.\n\n# Last", "Title", "Text.\nMore.\nLast"),
    "underlined": ("Title\n=====\ntext", "Title", "text"),
    "no heading": ("Just text.\r\nTwo lines.", "", "Just text.\nTwo lines."),
    "front matter": ("---\ntitle: 'Mine'\ntags: [x]\n---\n# Heading\n\ntext", "Mine", "Heading\ntext"),
    "toml": ('+++\ntitle = "Mine"\n+++\ntext', "Mine", "text"),
    "front matter without a title": ("---\ntags: x\n---\n# Heading\ntext", "Heading", "text"),
    "a rule at the beginning": ("---\nno end\n\n# T", "T", "no end"),
    "a section between rules": ("---\n\nIntro.\n\n---\n\n# T\n\nBody", "T", "Intro.\nBody"),
    "a key after a blank line": ("---\n\nNote: x\n\n---\n\ny", "", "Note: x\ny"),
    "text between rules": ("---\n[a](b) and more\n\n---\n\n# T", "T", "a and more"),
    "a comment in front matter": ("---\n# no\n\ntitle: Mine\n---\ntext", "Mine", "text"),
    "quotes in a title": ("---\ntitle: \"Say 'hi'\"\n---\ntext", "Say 'hi'", "text"),
    "a title with one quote": ("---\ntitle: The dogs'\n---\ntext", "The dogs'", "text"),
    "links": (
        'A [link](https://e.org "tip"), [ref][r], <https://auto.org>, ![a cat](cat.png).\n\n'
        "[r]: https://r.org",
        "",
        "A link, ref, https://auto.org, a cat.",
    ),
    "code": ("Use `a*b`.\n\n```python\nx = [1](2)  # **not bold**\n```\n\n    y *= 2", "",
             "Use a*b.\nx = [1](2) # **not bold**\ny *= 2"),
    "table": ("| a | b |\n|---|--:|\n| *x* | y z |\n", "", "a b\nx y z"),
    "lists and quotes": ("- one\n  1. two\n- three\n\n> four\n> five", "",
                         "one\ntwo\nthree\nfour\nfive"),
    "html": ("<!-- no -->\n<div>a <b>b</b></div>\n\nc<br>d<i>e</i> &amp; f\n\n<script>no</script>", "",
             "a b\nc de & f"),
    "marks": ("**bold** _it_ ~~old~~ 2*3*4 snake_case_name \\*kept\\*", "",
              "bold it old 234 snake_case_name *kept*"),
    "empty": ("", "", ""),
}  # fmt: skip


@pytest.mark.parametrize("name", PAGES)
def test_pages(name: str) -> None:
    text, title, expected = PAGES[name]
    assert markdown_values(text, "a.md") == {"title": title, "text": expected}


def test_deep_nesting_and_long_paragraphs_lose_no_text() -> None:
    assert "deep" in markdown_values("> " * (2 * MAX_NESTING) + "deep", "a.md")["text"]
    words = "[word](x) " * MAX_INLINE
    assert markdown_values(f"# T\n\n{words}", "a.md") == {"title": "T", "text": words.strip()}


@pytest.mark.parametrize("part", ["[", "![", "*a ", "> ", "`", "a**b", "<a ", "|", "- ", "\n#"])
def test_hostile_files_are_read(part: str) -> None:
    """Without limits, some of them take minutes."""
    values = markdown_values(f"{part * (200_000 // len(part))}\n\nend", "a.md")
    assert values["text"].endswith("end")


@given(st.text(alphabet='ab*_`[]()!<>#-|~\\ \n:=+"&;1.\t', max_size=80))
def test_any_text_gives_a_page(text: str) -> None:
    values = markdown_values(text, "a.md")
    assert set(values) == {"title", "text"}
    assert all(value == value.strip() for value in values.values())


def test_threads_share_only_parsers_that_are_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    """While a parser collects its rules, another thread finds some of them, or none."""
    parser = markdown_pages._parser.__wrapped__()
    monkeypatch.setattr(markdown_pages, "_parser", lambda: parser)
    monkeypatch.setattr(Ruler, "__compile__", None)
    assert markdown_values("# A *b*\n\n- c\n\n| d |\n|---|", "a.md")["title"] == "A b"


def test_a_folder_is_searched_by_its_titles(tmp_path: Path) -> None:
    pytest.importorskip("tantivy")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/a.md").write_text("# Red shoes\n\nSee [the shop](https://hidden.example).")
    (tmp_path / "docs/b.md").write_text("# Coats\n\nA red coat.")
    index = fp.Index.from_documents(fp.read_documents(tmp_path / "docs"), tmp_path / "i", latent=0)
    assert list(index.schema.analyzers) == ["title", "text"]
    assert [hit.id for hit in index.search("shoe shop")] == ["a.md"]
    assert index.search("hidden example") == []
    assert index.document("a.md") == {"title": "Red shoes", "text": "See the shop."}
