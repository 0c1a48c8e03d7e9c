"""Guidelines in Markdown: rendered for our own pages, and harmless there."""

from __future__ import annotations

import time

import pytest

from firstpage.web.sanitize import MAX_BRACKETS, cleaned_for_page, rendered
from tests.web.site import Site


def test_headings_come_below_those_of_the_page() -> None:
    assert rendered("# One\n\n###### Six") == "<h2>One</h2>\n<h6>Six</h6>\n"
    assert rendered("# One", 2) == "<h3>One</h3>\n"


def test_lists_tables_and_emphasis() -> None:
    html = rendered("- *a*\n\n3. b\n\n| x | y |\n|---|--:|\n| 1 | 2 |\n")
    for part in ("<li><em>a</em></li>", '<ol start="3">', "<th>x</th>", "<td>2</td>"):
        assert part in html
    assert "style" not in html


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "[a](javascript:alert(1))",
        "[a](data:text/html,x)", "[a](vbscript:x)", "<p style='color: red' id=main>x</p>",
        "<style>body { display: none }</style>", '[a](https://x "t\\" onclick=\\"alert(1)")',
        "![a](https://x.example/y.png)", "![a](x onerror=alert(1))", "<javascript:alert(1)>",
    ],
)  # fmt: skip
def test_nothing_acts_and_nothing_is_loaded(text: str) -> None:
    html = rendered(text)
    for tag in ("<script", "<style", "<img", "<p style", "<p id"):
        assert tag not in html
    for scheme in ("javascript:", "data:", "vbscript:"):
        assert f'href="{scheme}' not in html
    assert " onclick=" not in html.replace("&quot;", '"').split(">", 1)[0]


def test_links_open_in_a_window_of_their_own() -> None:
    html = rendered("[a](https://x.example/?a=1&b=2)")
    assert html == (
        '<p><a href="https://x.example/?a=1&amp;b=2" target="_blank" '
        'rel="noreferrer noopener">a</a></p>\n'
    )


def test_the_cleaner_alone_keeps_a_page_safe() -> None:
    """Should Markdown ever let HTML through."""
    hostile = (
        '<style>p{}</style><form><p id="main" class="veiled" style="x" onclick="a()">t'
        '<a href=" javascript:x">l</a><img src="http://x"><script>1</script></p></form>'
    )
    assert cleaned_for_page(hostile) == "<p>t<a>l</a><img></p>"


def test_many_brackets_cost_no_more_than_text() -> None:
    start = time.perf_counter()
    html = rendered("[" * 20 * MAX_BRACKETS)
    assert time.perf_counter() - start < 10
    assert "[[[" in html


def test_a_project_without_guidelines_has_general_ones(site: Site) -> None:
    site.project(tool="grades")
    text = site.client("ada").get("/p/books/guidelines").text
    assert "<strong>Five grades.</strong>" in text
    assert "Side by side" not in text
