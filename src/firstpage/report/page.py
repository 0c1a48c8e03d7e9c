"""Self-contained HTML pages: no scripts, no requests, light and dark colors."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from firstpage import __version__
from firstpage.charts import DARK, LIGHT, SVG_STYLE

STYLE = f""":root {{ {LIGHT} }}
@media (prefers-color-scheme: dark) {{ :root {{ {DARK} }} }}
"""
STYLE += """
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--back);
  max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; margin-bottom: 0; } h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; }
p.lead { color: var(--soft); margin-top: .2rem; } p.note, figcaption { color: var(--soft);
  font-size: .88rem; } figure { margin: 1rem 0; } li p.note { margin: 0 0 .3rem; }
table { border-collapse: collapse; margin: .5rem 0; font-variant-numeric: tabular-nums;
  font-size: .95rem; display: block; overflow-x: auto; }
caption { text-align: left; color: var(--soft); padding-bottom: .3rem; }
th, td { padding: .28rem .8rem .28rem 0; text-align: left; border-bottom: 1px solid var(--line);
  white-space: nowrap; } .n { text-align: right; }
svg { width: 100%; max-width: 44rem; font: 12px system-ui, sans-serif; }
"""
STYLE += SVG_STYLE


def page(
    title: str, lead: str, sections: Sequence[tuple[str, Sequence[str]]], style: str = ""
) -> str:
    """Return a self-contained HTML page.

    Parameters
    ----------
    title : str
        Title, in plain text.
    lead : str
        One sentence below the title, in plain text.
    sections : sequence of (str, sequence of str)
        Heading in plain text, and HTML blocks (tables, figures, paragraphs) of each section.
    style : str, default ""
        CSS rules of this page, after the common ones.

    Returns
    -------
    str
        The HTML document.
    """
    body = "".join(
        f'<h2 id="{anchor(heading)}">{escape(heading)}</h2>{"".join(blocks)}'
        for heading, blocks in sections
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}{style}</style></head><body>"
        f'<h1>{escape(title)}</h1><p class="lead">{escape(lead)}</p>{body}'
        f'<p class="note">Firstpage {__version__}</p></body></html>\n'
    )


def anchor(heading: str) -> str:
    """Return the id of a section: its heading up to a colon, in lower-case ASCII."""
    name = heading.partition(":")[0].strip().lower()
    return "".join(c if c.isalnum() and c.isascii() else "-" for c in name)


def figure(drawing: str, caption: str) -> str:
    """Return an HTML figure with a drawing and a caption."""
    return f"<figure>{drawing}<figcaption>{escape(caption)}</figcaption></figure>"


def paragraph(text: str) -> str:
    """Return an HTML paragraph with plain text."""
    return f"<p>{escape(text)}</p>"
