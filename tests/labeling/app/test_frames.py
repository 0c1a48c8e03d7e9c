"""Documents are untrusted: hostile ones are sanitized."""

from __future__ import annotations

import re

import pytest

from firstpage.labeling.app.document_html import content_of
from firstpage.labeling.app.sanitize import sanitize_document
from firstpage.labeling.app.store import texts
from firstpage.labeling.app.store.texts import DocumentRecord, QueryRecord
from tests.labeling.app.site import Site, add_query
from tests.narrow import present

POLICY = (
    "default-src 'none'; img-src 'self' data:; style-src 'unsafe-inline'; "
    "sandbox allow-same-origin; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)
HOSTILE = """<html><head><title>t</title><meta http-equiv=refresh content="0;url=http://evil">
<base href="http://evil/"><link rel=preconnect href="//evil"><script>alert(1)</script></head>
<body onload="alert(2)"><p onclick=alert(3) style="color:red">Text</p>
<img src="http://evil/x.png" onerror=alert(4)><img src="data:image/png;base64,AAAA" alt="ok">
<form action="http://evil"><input name=a><button>go</button></form>
<iframe src="//evil"></iframe><a href="javascript:alert(5)" ping="//evil">link</a>
<svg><script>alert(6)</script></svg><object data=//evil></object><embed src=//evil>
<p>Last <scr<script>ipt>alert(7)</script></body></html>"""


def serve(site: Site, body: str, kind: str = "html", title: str = "T"):
    site.project("frames", queries=0)
    with site.store.write() as tx:
        from firstpage.labeling.app.store import projects

        project = present(projects.by_slug(tx, "frames"))
        query = add_query(
            tx, project.id, QueryRecord("q", "q", "", (DocumentRecord("d", title, kind, body),)), 0
        )
        number = texts.documents_of(tx, query)[0]["id"]
    return site.client("lena").get(f"/documents/{number}")


def test_the_policy_of_a_frame(site: Site) -> None:
    reply = serve(site, HOSTILE)
    assert reply.headers["cache-control"] == "no-store"
    assert reply.headers["content-security-policy"] == POLICY
    assert reply.headers["content-type"] == "text/html; charset=utf-8"
    assert reply.headers["x-content-type-options"] == "nosniff"
    assert reply.headers["x-dns-prefetch-control"] == "off"


def test_hostile_documents_are_sanitized(site: Site) -> None:
    body = serve(site, HOSTILE).text.split("<body>")[1]
    evils = (
        "evil", "alert(1", "alert(6", "<script", "onload", "onclick", "javascript", "<form",
        "<iframe", "<link", "<meta", "<svg",
    )  # fmt: skip
    for evil in evils:
        assert evil not in body, evil
    assert '<p style="color:red">Text</p>' in body
    assert '<img src="data:image/png;base64,AAAA" alt="ok">' in body
    assert "<a>link</a>" in body


@pytest.mark.parametrize(
    "html",
    ["<p>a &lt;script&gt; b</p>", "<p>1 &lt; 2 &amp; 3</p>", "<h1>Ü</h1><ul><li>x</li></ul>",
     "<table><tbody><tr><td colspan=\"2\">x</td></tr></tbody></table>",
     '<section class="a"><font color="red" size="2">x</font></section>', "<pre>a\n b</pre>"],
)  # fmt: skip
def test_harmless_documents_are_unchanged(html: str) -> None:
    assert sanitize_document(html) == html


def test_a_style_sheet_cannot_close_its_element() -> None:
    assert "<script" not in sanitize_document("<style>a{}</style><script>x</script>")
    assert sanitize_document("<style>p{color:red}</style>") == "<style>p{color:red}</style>"


def test_a_page_that_is_too_complex_is_shown_as_text(site: Site) -> None:
    body = serve(site, "<div>" * 30_000 + "<b>the words</b> &lt;i&gt;").text.split("<body>")[1]
    assert "too large or too deeply nested" in body
    assert '<p dir="auto">the words &lt;i&gt;</p>' in body


def test_text_is_text(site: Site) -> None:
    body = serve(site, "<b>no</b>\nline\n\nsecond", "text", "<i>T</i>").text
    assert "&lt;b&gt;no&lt;/b&gt;<br>\nline" in body
    assert '<p dir="auto">second</p>' in body
    assert "<i>T</i>" not in body


@pytest.mark.parametrize(
    ("text", "joined"),
    [
        ("a" * 60 + " end\nof the paragraph\n" + "b" * 61, [True, True]),
        ("short\nlines of\nverse", []),
        ("x" * 70 + "\n- item\n" + "y" * 70 + "\n  code", [False, True, False]),
        ("x" * 70 + "\nDear Ann,\nthanks for " + "z" * 45, [True, False]),
        ("x" * 300 + "\n" + "y" * 300, []),
    ],
)
def test_breaks_of_wrapped_lines(text: str, joined: list[bool]) -> None:
    """Only lines that end where a word more would not fit are continued in the next line."""
    body = content_of(
        {"id": 1, "title": "", "kind": "text", "body": text, "fields": None, "image": None}
    ).body
    breaks = re.findall(r'<br(?: class="(wrap)")?>\n', body)
    assert [name == "wrap" for name in breaks] == (joined or [False] * text.count("\n"))


@pytest.mark.parametrize(
    ("html", "clean"),
    [
        ('<a href="https://x/?a=1&b=2" title="old">t</a>', '<a data-link title="https://x/?a=1&amp;b=2">t</a>'),
        ("<a href='http://x/\" onclick=\"y'>t</a>", '<a data-link title="http://x/&quot; onclick=&quot;y">t</a>'),
        ("<a href='javascript:x'>t</a><a href='/logout'>u</a>", "<a>t</a><a>u</a>"),
        ('<p>&lt;a href="http://x"&gt;</p>', '<p>&lt;a href="http://x"&gt;</p>'),
        ("<area href=http://x><link href=http://x><img href=http://x>", "<area><img>"),
    ],
)  # fmt: skip
def test_links_are_visible_and_lead_nowhere(html: str, clean: str) -> None:
    assert sanitize_document(html) == clean
