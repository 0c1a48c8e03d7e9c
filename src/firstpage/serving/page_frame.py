"""The frame of all pages: top, search box and footer."""

from __future__ import annotations

from collections.abc import Sequence

from firstpage.serving.markup import Child, Html, tag

BRAND = Html(
    '<a class="brand" href="/" aria-label="Firstpage, home"><svg viewBox="0 0 24 24" '
    'aria-hidden="true" focusable="false"><rect x="3" y="3" width="18" height="5" rx="1.5" '
    'fill="var(--accent)"/><rect x="3" y="10" width="14" height="4" rx="1.5" fill="currentColor" '
    'opacity=".55"/><rect x="3" y="16" width="9" height="4" rx="1.5" fill="currentColor" '
    'opacity=".3"/></svg><span>Firstpage</span></a>'
)
THEME = Html(
    '<button type="button" class="quiet icon" data-theme-toggle aria-label="Light or dark" '
    'title="Light or dark"><svg viewBox="0 0 24 24" width="20" height="20" aria-hidden="true" '
    'focusable="false"><circle cx="12" cy="12" r="8" fill="none" stroke="currentColor" '
    'stroke-width="2"/><path d="M12 4a8 8 0 0 1 0 16z" fill="currentColor"/></svg></button>'
)
LINKS = {"/model": "Model", "/health": "Health", "/metrics": "Metrics", "/openapi.json": "API"}


def document(
    title: str,
    static: str,
    content: Sequence[Child],
    box: Html | None = None,
    about: str = "/about",
) -> str:
    """Return an HTML document in the look of the application.

    `static` is the address of the static files, and `about` that of the page about this server.
    """
    links = [tag("a", text, href=path) for path, text in {about: "About", **LINKS}.items()]
    head = tag(
        "head",
        Html('<meta charset="utf-8">'),
        Html('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        Html('<meta name="color-scheme" content="light dark">'),
        tag("title", title),
        tag("link", rel="icon", href=f"{static}/icon.svg", type="image/svg+xml"),
        tag("script", src=f"{static}/theme.js"),
        tag("link", rel="stylesheet", href=f"{static}/base.css"),
        tag("link", rel="stylesheet", href=f"{static}/search.css"),
        tag("script", src=f"{static}/search.js", type="module"),
    )
    body = tag(
        "body",
        tag("a", "Skip to content", href="#main", class_="skip"),
        tag("header", BRAND, box, tag("div", THEME, class_="top-end"), class_="top"),
        tag("main", *content, id="main", class_="page wide", tabindex="-1"),
        tag("footer", links, class_="foot soft"),
    )
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def search_box(text: str = "", depth: int | None = None, focus: bool = False) -> Html:
    """Return the form that searches; `depth` is kept for the next query unless it is None."""
    return tag(
        "form",
        tag("label", "Search", for_="q", class_="sr"),
        tag(
            "input",
            type="search",
            id="q",
            name="q",
            value=text,
            dir="auto",
            placeholder="Search",
            autocomplete="off",
            spellcheck="false",
            autofocus=focus,
        ),
        None if depth is None else tag("input", type="hidden", name="depth", value=depth),
        tag("button", "Search", class_="main"),
        action="/",
        method="get",
        role="search",
        class_="search",
    )


def facts(rows: Sequence[tuple[str, Child]]) -> Html:
    """Return a list of names and values."""
    return tag("dl", [[tag("dt", name), tag("dd", value)] for name, value in rows], class_="facts")


def error_document(title: str, detail: str, static: str) -> str:
    """Return a page that says why a request was refused."""
    back = tag("p", tag("a", "Back to the search", href="/"))
    text = tag("p", sentence(detail), class_="note wrong")
    return document(f"{title} - Firstpage", static, [tag("h1", title), text, back])


def sentence(detail: str) -> str:
    """Return a detail with a capital first letter."""
    return detail[:1].upper() + detail[1:]
