"""Guidelines in Markdown are rendered as harmless HTML."""

from __future__ import annotations

import re
import time

import pytest
from markdown_it.ruler import Ruler

from firstpage.labeling.app import sanitize
from firstpage.labeling.app.sanitize import (
    MAX_BRACKETS,
    render_markdown,
    sanitize_document,
    sanitize_page,
    too_complex,
)
from tests.labeling.app.site import Site


def test_headings_come_below_those_of_the_page() -> None:
    assert render_markdown("# One\n\n###### Six") == "<h2>One</h2>\n<h6>Six</h6>\n"
    assert render_markdown("# One", 2) == "<h3>One</h3>\n"


def test_lists_tables_and_emphasis() -> None:
    html = render_markdown("- *a*\n\n3. b\n\n| x | y |\n|---|--:|\n| 1 | 2 |\n")
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
def test_no_scripts_and_no_external_loads(text: str) -> None:
    html = render_markdown(text)
    for tag in ("<script", "<style", "<img", "<p style", "<p id"):
        assert tag not in html
    for scheme in ("javascript:", "data:", "vbscript:"):
        assert f'href="{scheme}' not in html
    assert " onclick=" not in html.replace("&quot;", '"').split(">", 1)[0]


def test_links_open_in_a_new_window() -> None:
    html = render_markdown("[a](https://x.example/?a=1&b=2)")
    assert html == (
        '<p><a href="https://x.example/?a=1&amp;b=2" target="_blank" '
        'rel="noreferrer noopener">a</a></p>\n'
    )


def test_the_sanitizer_alone_is_sufficient() -> None:
    """The sanitizer must suffice even if Markdown passes HTML through."""
    hostile = (
        '<style>p{}</style><form><p id="main" class="hidden" style="x" onclick="a()">t'
        '<a href=" javascript:x">l</a><img src="http://x"><script>1</script></p></form>'
    )
    link = '<a target="_blank" rel="noreferrer noopener">l</a>'
    assert sanitize_page(hostile) == f"<p>t{link}<img></p>"


FONTS = "".join(f"<font size={i}>" for i in range(3000))


@pytest.mark.parametrize(
    "bomb",
    [
        "<div>" * 30_000, FONTS, f"<p>{FONTS}</p>" + "<p>x</p>" * 3000, "<b x " * 1000 + ">",
        f"<p {' '.join(f'a{i}' for i in range(40_000))}>", "x" * 2_000_000,
    ],
)  # fmt: skip
def test_slow_html_is_detected_before_parsing(bomb: str) -> None:
    """Some kilobytes of nested formatting tags become millions of elements."""
    assert too_complex(bomb)


def test_usual_pages_are_not_too_complex() -> None:
    words = " ".join(f"<i>word{i}</i>" for i in range(3000))
    page = words + (
        '<p class="a"><b style="color: red">x</b> <i class=\'y\'>z</i> <a href="u">v</a></p>' * 1500
    )
    picture = f'<img src="data:image/png;base64,{"A" * 2_000_000}">'
    assert not too_complex(page + picture)
    start = time.process_time()
    assert picture in sanitize_document(page + picture)
    assert time.process_time() - start < 10


@pytest.mark.parametrize(
    "html",
    [
        '<svg><style><a title="</style><img src=x onerror=alert(1)>">',
        '<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror=alert(1)&gt;">',
        '<noscript><p title="</noscript><img src=x onerror=alert(1)>">', "<img src=x onerror=alert(1)//",
        '<style><a title="</style><img src=x onerror=alert(1)>">', "<form><form><input onfocus=alert(1)>",
        "<a href='data:text/html,x'>x</a>", "<a href='java\tscript:alert(1)'>x</a>", "<img src='data:text/html,x'>",
        "<div style='x' onclick\x00=alert(1)>", "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
    ],
)  # fmt: skip
def test_known_attacks_on_sanitizers(html: str) -> None:
    """Namespaces, raw text, comments and incomplete tags are handled by the library."""
    for clean in (sanitize_document, sanitize_page):
        left = re.sub(r"(title|style)=\"[^\"]*\"|<style>.*?</style>", "", clean(html))
        assert not re.search(r"<[^>]*(\son\w+|javascript|script|data:text|svg|math)", left), left


@pytest.mark.parametrize(
    "css",
    [
        '@import "http://evil.test/a.css"', "@IMPORT url(http://evil.test)", r"@\69mport 'http://evil.test'",
        "p{background:url(//evil.test)}", "p{background:URL( '//evil.test' )}", r"p{background:u\72 l(//evil.test)}",
        r"p{background:\000075\000072l(//evil.test)}", r"p{background:\u\r\l(//evil.test)}",
        "p{background:image-set('//evil.test' 1x)}", r"p{background:image\2dset('//evil.test' 1x)}",
        r"p{background:cross\00002dfade(url(//evil.test),red)}", "p{background:url(//evil.test",
        "p{background:url(/documents/7/image)}", "@font-face{src:url(//evil.test)}",
    ],
)  # fmt: skip
def test_styles_load_nothing(css: str) -> None:
    for html in (
        f"<style>{css}</style>",
        f'<style media="all">{css}</style>',
        f'<p style="{css}">x</p>',
    ):
        assert not re.search(r"evil|documents|import", sanitize_document(html), re.IGNORECASE)


def test_harmless_styles_stay() -> None:
    for css in (
        r'p::before{content:"\201C  \75ab"}',
        "p{background:url(data:image/png;base64,AAA=)}",
    ):
        assert sanitize_document(f"<style>{css}</style>") == f"<style>{css}</style>"
    title = '<p title="a &lt;style&gt; url(b)">url(c)</p>'
    assert sanitize_document(title) == title


def test_many_brackets_are_rendered_in_linear_time() -> None:
    start = time.process_time()
    html = render_markdown("[" * 20 * MAX_BRACKETS)
    assert time.process_time() - start < 10
    assert "[[[" in html


@pytest.mark.parametrize("links", [True, False])
def test_threads_share_only_parsers_that_are_ready(
    links: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a parser collects its rules, another thread finds some of them, or none."""
    parser = sanitize._parser.__wrapped__(links)
    monkeypatch.setattr(Ruler, "__compile__", None)
    assert "<strong>b</strong>" in parser.render("# Title\n\n- a **b**\n\n> c")


def test_a_project_without_guidelines_has_default_ones(site: Site) -> None:
    site.project(tool="grades")
    text = site.client("ada").get("/p/books/guidelines").text
    assert "<strong>Five grades.</strong>" in text
    assert "Side by side" not in text
