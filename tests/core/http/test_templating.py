"""Templates of all applications: escaping, undefined names, and errors as sentences."""

from __future__ import annotations

from pathlib import Path

import pytest
from jinja2 import Environment, FileSystemLoader, UndefinedError

from firstpage.core.http import page_templates, sentence
from firstpage.labeling.app.pages import rendering
from firstpage.serving import pages
from tests.narrow import instance


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "base.html").write_text(
        '{% extends "layout.html" %}{% block main %}{{ text }}{% endblock %}'
    )
    return tmp_path


CONTEXT = {"static": "/static/1", "note": None, "problem": None}


def test_values_are_escaped_in_the_shared_layout(folder: Path) -> None:
    page = page_templates(folder).get_template("base.html").render(CONTEXT, text="<b>'\"&")
    assert page.startswith("<!doctype html>\n<html lang=")
    assert "<b>" not in page
    assert "&lt;b&gt;&#39;&#34;&amp;" in page
    assert page.count("/static/1/") == 4


def test_undefined_names_are_errors(folder: Path) -> None:
    with pytest.raises(UndefinedError, match="'text' is undefined"):
        page_templates(folder).get_template("base.html").render(CONTEXT)


def test_the_error_page_has_the_frame_of_the_application(folder: Path) -> None:
    context = {**CONTEXT, "title": "Not <stored>", "detail": "a & b"}
    page = page_templates(folder).get_template("error.html").render(context)
    assert "<title>Not &lt;stored&gt; · Firstpage</title>" in page
    assert "<p>a &amp; b</p>" in page


@pytest.mark.parametrize("environment", [rendering.templates(), pages.templates()])
def test_every_template_compiles_and_no_two_have_the_same_name(environment: Environment) -> None:
    folders = instance(FileSystemLoader, environment.loader).searchpath
    names = [
        str(path.relative_to(folder)) for folder in folders for path in Path(folder).rglob("*.html")
    ]
    assert sorted(names) == environment.list_templates()
    for name in names:
        environment.get_template(name)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("shop.jsonl:1: has no id.", "shop.jsonl:1: has no id."),
        ("run:2: has no score.", "run:2: has no score."),
        ("run: has no\nscores.", "run: has no scores."),
        ("k must be at least 1.", "k must be at least 1."),
        ("a query has no\ndocument.", "A query has no document."),
        ("people's votes differ.", "People's votes differ."),
        ("two-way tables need people.", "Two-way tables need people."),
        ("", ""),
    ],
)
def test_errors_are_sentences_that_keep_names_of_files(text: str, expected: str) -> None:
    assert sentence(text) == expected
