"""Sanitized HTML of documents and of guidelines in Markdown: no code, no requests."""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from functools import cache, lru_cache
from html.parser import HTMLParser
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markupsafe import Markup
from nh3 import ALLOWED_TAGS, Cleaner

DROPPED = {  # with their content; of other tags that are not allowed the text stays
    "script", "iframe", "frame", "frameset", "object", "embed", "applet", "noscript", "noframes",
    "noembed", "template", "title", "svg", "math", "audio", "video",
}  # fmt: skip
DOCUMENT_TAGS = ALLOWED_TAGS | {
    "address", "big", "dir", "fieldset", "font", "label", "legend", "main", "menu", "meter", "nobr",
    "output", "picture", "progress", "rb", "search", "section", "style", "tfoot",
}  # fmt: skip
DOCUMENT_ATTRIBUTES = {
    "abbr", "align", "alt", "bgcolor", "border", "cellpadding", "cellspacing", "class", "color",
    "colspan", "datetime", "dir", "face", "headers", "height", "id", "lang", "open", "reversed",
    "rowspan", "scope", "size", "span", "start", "style", "title", "valign", "value", "width",
}  # fmt: skip
PAGE_ATTRIBUTES = {"alt", "colspan", "dir", "lang", "rowspan", "scope", "start", "title"}
LINK_SCHEMES = ("http://", "https://", "mailto:")


_LETTER = r"(?:2d|[46][0-9a-f]|[57][0-9a])"  # and a hyphen, by number
_ESCAPE = re.compile(
    rf"\\(?:(?:0000({_LETTER})|0{{0,3}}({_LETTER})(?![0-9a-f]))(?:\r\n|\s)?|([g-z]))", re.IGNORECASE
)
_LOAD = re.compile(
    r"@import\b[^;]*;?|(?:url|src|image|(?:-webkit-)?(?:image-set|cross-fade)|element)\s*\("
    r"(?!\s*[\"']?\s*data:image/)[^)]*\)?",
    re.IGNORECASE,
)
_STYLE_ELEMENT = re.compile(r"(?<=<style)[\s>].*?(?=</style>)", re.DOTALL)


def without_loads(css: str) -> str:
    """Return CSS without imports, and without addresses other than inline images.

    Letters written as escapes are decoded first, as browsers do.
    """

    def letter(match: re.Match[str]) -> str:
        number = match[1] or match[2]
        return chr(int(number, 16)) if number else match[3]

    return _LOAD.sub(" ", _ESCAPE.sub(letter, css))


def _filter_attribute(tag: str, name: str, value: str) -> str | None:
    """Return the value of an attribute, or None to drop it: images must be inline data."""
    if name == "style":
        return without_loads(value)
    if name == "src" and not value.strip().lower().startswith("data:image/"):
        return None
    if name == "href" and not value.lower().startswith(LINK_SCHEMES):
        return None
    return value


# Behind this, which no document can contain, the address of a link is only text.
_INERT = f"x-{secrets.token_hex(16)}:"


def _filter_document(tag: str, name: str, value: str) -> str | None:
    """Return the value of an attribute of a document; links are marked as inert."""
    if tag == "a" and name == "title":
        return None  # shows the address instead
    filtered = _filter_attribute(tag, name, value)
    return _INERT + filtered if name == "href" and filtered is not None else filtered


_DOCUMENT = Cleaner(
    tags=DOCUMENT_TAGS,
    clean_content_tags=DROPPED,
    attributes={"*": DOCUMENT_ATTRIBUTES, "img": {"src"}, "a": {"href"}},
    attribute_filter=_filter_document,
    url_schemes={"data", "http", "https", "mailto"},
    url_relative="deny",
    link_rel=None,
)
_PAGE = Cleaner(
    tags=ALLOWED_TAGS,
    clean_content_tags=DROPPED | {"style"},
    attributes={"*": PAGE_ATTRIBUTES, "a": {"href"}, "img": {"src"}},
    attribute_filter=_filter_attribute,
    url_schemes={"http", "https", "mailto", "data"},
    url_relative="deny",
    link_rel="noreferrer noopener",
    set_tag_attribute_values={"a": {"target": "_blank"}},
)


def sanitize_document(html: str) -> str:
    """Return a document's HTML with its style; images are inline data, and CSS loads nothing.

    Links lead nowhere: the address is their title, and `data-link` marks them.  The time to parse
    HTML that is `too_complex` has no useful bound.
    """
    clean = _DOCUMENT.clean(html).replace(f' href="{_INERT}', ' data-link title="')
    return _STYLE_ELEMENT.sub(lambda style: without_loads(style[0]), clean)


def sanitize_page(html: str) -> str:
    """Return HTML that can be part of a page: without style, links open in a new tab."""
    return _PAGE.clean(html)


MAX_TAGS = 20_000  # the time to parse nested tags is quadratic
MAX_LENGTH = 1_000_000  # characters without inline data
MAX_NAMES = 30_000  # distinct words; as attributes of one tag they take quadratic time
MAX_REOPENED = 500_000  # elements
_DATA = re.compile(r"data:[^\s\"'<>]*", re.IGNORECASE)
_NAME_END = re.compile(r"[\s/>=]+")
_FORMATTING = re.compile(  # group 2: the attributes, if their end is unambiguous
    r"<(b|big|code|em|font|i|nobr|s|small|strike|strong|tt|u)(?=[\s/])"
    r"((?:\s+[\w-]+\s*=\s*(?:\"[^\"<>]*\"|'[^'<>]*'|[\w#%.-]+))*+\s*/?>)?",
    re.IGNORECASE,
)


def too_complex(html: str) -> bool:
    """Return whether parsing HTML as browsers do could take minutes or gigabytes.

    Open formatting tags that differ (and up to 3 equal ones) are reopened in every block, so that
    a few thousand of them make millions of elements.
    """
    tags = html.count("<")
    text = _DATA.sub("", html)
    if tags > MAX_TAGS or len(text) > MAX_LENGTH or len(set(_NAME_END.split(text))) > MAX_NAMES:
        return True
    formats = {(m[1].lower(), m[2] or m.start()) for m in _FORMATTING.finditer(html)}
    return 3 * len(formats) * tags > MAX_REOPENED


HIDDEN_TAGS = {"script", "style", "template"}


def plain_text(html: str) -> str:
    """Return the visible text of a page in one line."""
    reader = _TextReader()
    reader.feed(html)
    reader.close()
    return " ".join("".join(reader.text).split())


class _TextReader(HTMLParser):
    """Collects the text of a page; tags separate words."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.text: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self._hidden += tag in HIDDEN_TAGS
        self.text.append(" ")

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in HIDDEN_TAGS and self._hidden > 0
        self.text.append(" ")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.text.append(data)


MAX_HEADING = 6
MAX_BRACKETS = 2000  # the time to find links is quadratic in their number


@lru_cache(maxsize=64)
def render_markdown(text: str, under: int = 1) -> Markup:
    """Return Markdown as sanitized HTML, with its headings below level `under`.

    Raw HTML is shown as text; an external image, which the policy of the pages forbids, becomes a
    link.  With more than `MAX_BRACKETS` brackets, links stay text.
    """
    parser = _parser(links=text.count("[") <= MAX_BRACKETS)
    tokens = parser.parse(text)
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(int(token.tag[1:]) + under, MAX_HEADING)}"
    return Markup(sanitize_page(parser.renderer.render(tokens, parser.options, {})))


@cache
def _parser(links: bool) -> MarkdownIt:
    parser = MarkdownIt("js-default", {"html": False})
    parser.add_render_rule("image", _image)
    if not links:
        parser.disable(["link", "image", "reference"])
    parser.parse("text")  # collects its rules, in which another thread must not catch it
    return parser


def _image(
    renderer: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Any
) -> str:
    token = tokens[index]
    source = str(token.attrs["src"])
    if source.startswith("data:"):
        return renderer.image(tokens, index, options, env)
    words = renderer.renderInlineAsText(token.children, options, env) or source
    return str(Markup('<a href="{}">{}</a>').format(source, words))
