"""The title and the visible text of HTML pages."""

from __future__ import annotations

import codecs
import re
from html.parser import HTMLParser

from firstpage.core import DataError

INVISIBLE = frozenset(
    {"script", "style", "template", "noscript", "iframe", "object", "svg", "math"}
)
INLINE = {
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em",
    "font", "i", "ins", "kbd", "label", "mark", "q", "s", "samp", "small", "span", "strike",
    "strong", "sub", "sup", "time", "tt", "u", "var", "wbr",
}  # fmt: skip
_CHARSET = re.compile(rb"<meta[^<>]{0,200}?charset\s{0,9}=\s{0,9}[\"']?\s{0,9}([\w-]{1,40})", re.I)
_SUPERSETS = {  # that browsers use for the encodings that pages declare (WHATWG)
    "cp1252": (
        "iso-8859-1", "latin1", "latin-1", "us-ascii", "ascii", "windows-1252", "cp1252"
    ),
    "cp1254": ("iso-8859-9", "latin5"),
    "cp874": ("iso-8859-11", "windows-874", "tis-620"),
    "cp932": ("shift_jis", "shift-jis", "sjis", "x-sjis", "windows-31j", "ms_kanji"),
    "cp949": ("euc-kr", "ks_c_5601-1987", "windows-949", "korean"),
    "gb18030": ("gb2312", "gb_2312-80", "gbk", "x-gbk"),
    "big5hkscs": ("big5", "big5-hkscs"),
}  # fmt: skip
_CODECS = {label: codec for codec, labels in _SUPERSETS.items() for label in labels}
_BROWSER_ENCODINGS = re.compile(
    r"utf-8|iso-8859-\d+|windows-\d+|koi8-[ru]|macintosh|ibm866|euc-jp|iso-2022-jp|gb18030"
)
_BLANKS = re.compile(r"[^\S\n]+")
_LINES = re.compile(r"\s*\n\s*")


class _Page(HTMLParser):
    """Collects the first title and the text outside of scripts, styles and other invisible parts.

    Elements that are not inline separate words.
    """

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.title: list[str] = []
        self.text: list[str] = []
        self._hidden: str | None = None  # the invisible element that is open, and its depth
        self._depth = 0
        self._in_title = False
        self._title_read = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._hidden is not None:
            self._depth += tag == self._hidden
        elif tag in INVISIBLE:
            self._hidden, self._depth = tag, 1
        elif tag == "title" and not self._title_read:
            self._in_title = True
        elif tag not in INLINE:
            self._in_title = self._in_title and tag not in ("body", "p", "div", "meta", "link")
            self.text.append("\n")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._hidden is None and tag not in INLINE:
            self.text.append("\n")

    def handle_endtag(self, tag: str) -> None:
        if self._hidden is not None:
            self._depth -= tag == self._hidden
            if self._depth == 0:
                self._hidden = None
        elif tag == "title":
            self._title_read = self._title_read or self._in_title
            self._in_title = False
        elif tag not in INLINE:
            self.text.append("\n")

    def handle_data(self, data: str) -> None:
        if self._hidden is None:
            (self.title if self._in_title else self.text).append(data)

    def parse_marked_section(self, i: int, report: int = 1) -> int:
        """Skip `<![...>`, a comment to a browser; the base class raises on unknown keywords."""
        return self.rawdata.find(">", i) + 1 or -1


def page_values(html: str, where: str) -> dict[str, str]:
    """Return the title and the visible text of a page, with single blanks and line ends.

    What an unclosed comment, tag or script contains up to the end of the file is invisible, as in a
    browser; so the parser's `close`, which searches it again from every `<`, is not called.
    """
    page = _Page()
    try:
        page.feed(html + "\n")
    except (ValueError, AssertionError, RecursionError) as error:
        raise DataError(f"{where}: cannot be parsed as HTML ({error}).") from error
    return {"title": " ".join("".join(page.title).split()), "text": _layout("".join(page.text))}


def _layout(text: str) -> str:
    return _LINES.sub("\n", _BLANKS.sub(" ", text)).strip()


def declared_encoding(raw: bytes) -> str | None:
    """Return the encoding that a page declares, as browsers understand it; None without one."""
    declared = _CHARSET.search(raw[:2048])
    name = declared[1].decode("ascii", "replace").lower() if declared else ""
    if name in _CODECS:
        return _CODECS[name]
    return name if _BROWSER_ENCODINGS.fullmatch(name) and _is_known(name) else None


def _is_known(encoding: str) -> bool:
    try:
        codecs.lookup(encoding)
    except LookupError:
        return False
    return True
