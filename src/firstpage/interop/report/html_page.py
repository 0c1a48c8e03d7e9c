"""Self-contained HTML pages: no scripts, no requests, light and dark colors."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from firstpage import __version__
from firstpage.core import DARK, LIGHT, SVG_STYLE

STYLE = f""":root {{ {LIGHT} }}
@media (prefers-color-scheme: dark) {{ :root {{ {DARK} }} }}
"""
STYLE += """
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--back);
  max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; margin-bottom: 0; } h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; }
h2, h3 { scroll-margin-top: 1rem; } a { color: var(--strong); }
:focus-visible { outline: 3px solid var(--strong); outline-offset: 2px; }
p.lead { color: var(--soft); margin-top: .2rem; } p.note, figcaption { color: var(--soft);
  font-size: .88rem; } figure { margin: 1rem 0; } li p.note { margin: 0 0 .3rem; }
.scroll { overflow-x: auto; margin: .5rem 0; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .95rem; }
caption { text-align: left; color: var(--soft); padding-bottom: .3rem; }
th, td { padding: .28rem .8rem .28rem 0; text-align: left; border-bottom: 1px solid var(--line);
  white-space: nowrap; } .n { text-align: right; }
svg { width: 100%; max-width: 44rem; font: 12px system-ui, sans-serif; }
.contents { font-size: .95rem; margin: 1rem 0; } .contents b { color: var(--soft); }
.contents ol { list-style: none; margin: .2rem 0; padding: 0; columns: 15rem; }
.contents li { break-inside: avoid; } .contents a { display: inline-block; padding: .2rem 0; }
@media (max-width: 42rem) { figure { overflow-x: auto; } figure svg { min-width: 38rem; } }
@media (min-width: 75rem) { body:has(.contents) { display: grid; max-width: 75rem; gap: 0 2rem;
  grid-template-columns: 13rem minmax(0, 60rem); } body:has(.contents) > * { grid-column: 2; }
  body .contents { grid-column: 1; grid-row: 1 / span 3; position: sticky; top: 1rem;
  align-self: start; max-height: calc(100vh - 2rem); overflow-y: auto; }
  .contents ol { columns: 1; } }
@media print { body, body:has(.contents) { display: block; max-width: none; margin: 0; }
  body .contents { position: static; } .scroll { overflow: visible; } h2 { break-after: avoid; }
  figure, tr { break-inside: avoid; } th, td { white-space: normal; } }
"""
MIN_CONTENTS = 3  # sections that are listed at the top
STYLE += SVG_STYLE


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
