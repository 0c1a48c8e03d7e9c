"""HTML of documents and Markdown of guidelines, without anything that could act or call out."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from html import escape
from html.parser import HTMLParser
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markupsafe import Markup

DROPPED = {  # with all they hold
    "script", "iframe", "frame", "frameset", "object", "embed", "applet", "noscript", "template",
    "title", "svg", "math", "audio", "video",
}  # fmt: skip
BARRED = {  # the tag alone
    "html", "head", "body", "link", "meta", "base", "form", "button", "input", "textarea",
    "select", "option", "source", "track", "param", "dialog", "portal", "fencedframe",
}  # fmt: skip
VOID = {"area", "br", "col", "hr", "img", "wbr", "link", "meta", "base", "input", "source",
        "track", "param", "embed", "frame"}  # fmt: skip
PLAIN = {
    "abbr", "align", "alt", "bgcolor", "border", "cellpadding", "cellspacing", "class", "color",
    "colspan", "datetime", "dir", "face", "headers", "height", "id", "lang", "open", "reversed",
    "rowspan", "scope", "size", "span", "start", "style", "title", "valign", "value", "width",
}  # fmt: skip


PAGE_ATTRIBUTES = {"alt", "colspan", "dir", "lang", "rowspan", "scope", "start", "title"}
LINKS = ("http://", "https://", "mailto:")


def cleaned(html: str) -> str:
    """The document's text and looks; links lead nowhere, pictures are inline data or none."""
    return _written(_Cleaner(), html)


def cleaned_for_page(html: str) -> str:
    """Return HTML that may stand in a page of ours: its looks are the page's, links open apart."""
    return _written(_PageCleaner(), html)


def _written(cleaner: _Cleaner, html: str) -> str:
    cleaner.feed(html)
    cleaner.close()
    return "".join(cleaner.out)


class _Cleaner(HTMLParser):
    """Writes again what is harmless, with every attribute quoted anew."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.out: list[str] = []
        self._inside: list[str] = []  # dropped elements that are open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in DROPPED:
            if tag not in VOID:
                self._inside.append(tag)
        elif not self._inside and tag not in BARRED and tag.isalnum():
            kept = self.attributes(tag, attrs)
            self.out.append("".join([f"<{tag}", *(f' {n}="{escape(v)}"' for n, v in kept), ">"]))

    def attributes(self, tag: str, attrs: list[tuple[str, str | None]]) -> list[tuple[str, str]]:
        """Those to write again."""
        return [(n, v or "") for n, v in attrs if _harmless(tag, n, v)]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in DROPPED:
            self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        if tag in self._inside:
            while self._inside.pop() != tag:
                pass
        elif not self._inside and tag not in BARRED | DROPPED | VOID and tag.isalnum():
            self.out.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        if self._inside:
            return
        raw = self.cdata_elem == "style"  # a style sheet is not text; its end tag ends it
        self.out.append(data.replace("</", "<\\/") if raw else escape(data, quote=False))


class _PageCleaner(_Cleaner):
    """Besides drops all that could meet the page's own names and styles."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "style":
            self._inside.append(tag)
        else:
            super().handle_starttag(tag, attrs)

    def attributes(self, tag: str, attrs: list[tuple[str, str | None]]) -> list[tuple[str, str]]:
        """A link leaves the page alone: it opens in a window of its own."""
        kept = [
            (name, value)
            for name, value in super().attributes(tag, attrs)
            if name in PAGE_ATTRIBUTES or name == "src"
        ]
        target = dict(attrs).get("href") or ""
        if tag == "a" and target.lower().startswith(LINKS):
            kept += [("href", target), ("target", "_blank"), ("rel", "noreferrer noopener")]
        return kept


def _harmless(tag: str, name: str, value: str | None) -> bool:
    if name in PLAIN:
        return True
    data = (value or "").strip().lower().startswith("data:image/")
    return tag == "img" and name == "src" and data


LAST_HEADING = 6
MAX_BRACKETS = 2000  # the time to look for links grows with the square of these


@lru_cache(maxsize=64)
def rendered(text: str, under: int = 1) -> Markup:
    """Return a text in Markdown as harmless HTML; its headings come below those of level `under`.

    Raw HTML is shown as the text that it is; a picture that would be loaded from elsewhere, which
    the pages' policy forbids, becomes a link to it.  Beyond `MAX_BRACKETS` links stay text.
    """
    parser = _parser(links=text.count("[") <= MAX_BRACKETS)
    tokens = parser.parse(text)
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(int(token.tag[1:]) + under, LAST_HEADING)}"
    return Markup(cleaned_for_page(parser.renderer.render(tokens, parser.options, {})))


@cache
def _parser(links: bool) -> MarkdownIt:
    parser = MarkdownIt("js-default", {"html": False})
    parser.add_render_rule("image", _image)
    return parser if links else parser.disable(["link", "image", "reference"])


def _image(
    renderer: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Any
) -> str:
    token = tokens[index]
    source = str(token.attrs["src"])
    if source.startswith("data:"):
        return renderer.image(tokens, index, options, env)
    words = renderer.renderInlineAsText(token.children, options, env) or source
    return str(Markup('<a href="{}">{}</a>').format(source, words))
