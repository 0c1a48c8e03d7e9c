"""Self-contained HTML pages: no scripts, no requests, light and dark colors."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

from firstpage import __version__
from firstpage.core import DARK, LIGHT, SVG_STYLE

STYLE = f""":root {{ {LIGHT} }}
@media (prefers-color-scheme: dark) {{ :root {{ {DARK} }} }}
"""
STYLE += "\n" + Path(__file__).with_suffix(".css").read_text("utf-8") + SVG_STYLE
MIN_CONTENTS = 3  # sections that are listed at the top


def page(
    title: str, lead: str, sections: Sequence[tuple[str, Sequence[str]]], style: str = ""
) -> str:
    """Return a self-contained HTML page."""
    headings = [heading for heading, _ in sections]
    ids = _distinct_anchors(headings)
    body = "".join(
        f'<h2 id="{name}">{escape(heading)}</h2>{"".join(blocks)}'
        for name, (heading, blocks) in zip(ids, sections, strict=True)
    )
    # A table that is wider than the page scrolls, which needs the focus of the keyboard.
    body = body.replace(
        "<table", '<div class="scroll" role="group" aria-label="Table" tabindex="0"><table'
    )
    body = body.replace("</table>", "</table></div>")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}{style}</style></head><body>"
        f'<header><h1>{escape(title)}</h1><p class="lead">{escape(lead)}</p></header>'
        f"{_contents(headings, ids)}<main>{body}</main>"
        f'<footer><p class="note">Firstpage {__version__}</p></footer></body></html>\n'
    )


def _contents(headings: Sequence[str], ids: Sequence[str]) -> str:
    """Return links to the sections; nothing where there are only a few."""
    if len(headings) < MIN_CONTENTS:
        return ""
    links = "".join(
        f'<li><a href="#{name}">{escape(heading)}</a></li>'
        for name, heading in zip(ids, headings, strict=True)
    )
    return f'<nav class="contents" aria-label="Contents"><b>Contents</b><ol>{links}</ol></nav>'


def _distinct_anchors(headings: Sequence[str]) -> list[str]:
    """Return the anchors of the sections; equal ones get a number."""
    ids: list[str] = []
    for heading in headings:
        name, number = anchor(heading), 2
        while name in ids:
            name, number = f"{anchor(heading)}-{number}", number + 1
        ids.append(name)
    return ids


def anchor(heading: str) -> str:
    """Return the id of a section: its heading up to a colon, in lower-case ASCII."""
    name = heading.partition(":")[0].strip().lower()
    return "".join(c if c.isalnum() and c.isascii() else "-" for c in name)


def figure(drawing: str, caption: str) -> str:
    """Return an HTML figure with a drawing and a caption.

    On a phone it scrolls, which needs the focus of the keyboard.
    """
    return f'<figure tabindex="0">{drawing}<figcaption>{escape(caption)}</figcaption></figure>'


def paragraph(text: str) -> str:
    """Return an HTML paragraph with plain text."""
    return f"<p>{escape(text)}</p>"
