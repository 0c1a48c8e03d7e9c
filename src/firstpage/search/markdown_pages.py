"""The title and the text of Markdown files, without their markup."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from firstpage.core import missing_dependency
from firstpage.search.html_pages import INLINE, page_values

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

MAX_NESTING = 100  # of quotes and lists; the parser leaves deeper text out
MAX_INLINE = 20_000  # characters of a paragraph; finding links takes quadratic time
_FRONT_MATTER = re.compile(r"\A(---|\+\+\+)[ \t]*\n(.*?)^\1[ \t]*$\n?", re.DOTALL | re.MULTILINE)
_METADATA = re.compile(  # anything else between two rules is text
    r"(?![ \t]*\n)(?:[ \t]*(?:#[^\n]*)?\n)*[ \t]*[\"']?[\w.-]+[\"']?[ \t]*(:\s|=)"
)
_TITLE = re.compile(r"^title[ \t]*[:=][ \t]*([^\s>|].*?)[ \t]*$", re.MULTILINE | re.IGNORECASE)
_TAG = re.compile(r"</?([a-z][a-z0-9]*)", re.IGNORECASE)
_CELLS = frozenset({"td_open", "td_close", "th_open", "th_close"})


def markdown_values(text: str, where: str) -> dict[str, str]:
    """Return the title and the text of a Markdown file.

    The title is that of the front matter, or else the first heading, which is then no part of the
    text.  Of links the text remains, of images the description, and of HTML the visible text.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    title = ""
    front = _FRONT_MATTER.match(text)
    if front is not None and _METADATA.match(front[2]):
        text = text[front.end() :]
        if (named := _TITLE.search(front[2])) is not None:
            title = _unquoted(named[1])
    parser, definitions = _parser(), dict[str, Any]()  # of links
    tokens = parser.parse(text, definitions)
    if any(token.level >= MAX_NESTING - 1 for token in tokens):
        return {"title": title, "text": text.strip()}
    pieces: list[str] = []
    heading = False
    for token in tokens:
        if token.type == "inline":
            content = token.content
            if len(content) <= MAX_INLINE:
                children: list[Token] = []
                parser.inline.parse(content, parser, definitions, children)
                content = _inline_text(children)
            if heading and not title:
                title = content
            else:
                pieces.append(content)
        elif token.type in ("fence", "code_block"):
            pieces.append(f"\n{token.content}")
        elif token.type == "html_block":
            pieces.append(f"\n{page_values(token.content, where)['text']}")
        else:
            heading = token.type == "heading_open"
            pieces.append(" " if token.type in _CELLS else "\n")
    lines = (" ".join(line.split()) for line in "".join(pieces).split("\n"))
    return {"title": " ".join(title.split()), "text": "\n".join(filter(None, lines))}


def _unquoted(value: str) -> str:
    """Return a value of the front matter without the pair of quotes around it."""
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] in "\"'" else value


@cache
def _parser() -> MarkdownIt:
    try:
        from markdown_it import MarkdownIt
    except ImportError as error:
        raise missing_dependency("markdown-it-py", "search", "Reading Markdown") from error
    parser = MarkdownIt("commonmark", {"maxNesting": MAX_NESTING})
    parser.enable(["table", "strikethrough"])
    parser.disable(["inline", "text_join"])  # of the whole file; see `MAX_INLINE`
    parser.parse("text")  # collects its rules, in which another thread must not catch it
    parser.inline.parse("text", parser, {}, [])
    return parser


def _inline_text(tokens: Sequence[Token]) -> str:
    """Return the text of a paragraph, heading or cell."""
    pieces = []
    for token in tokens:
        if token.type == "image":
            pieces.append(_inline_text(token.children or ()))
        elif token.type in ("softbreak", "hardbreak"):
            pieces.append("\n")
        elif token.type == "html_inline":
            tag = _TAG.match(token.content)
            pieces.append("" if tag is None or tag[1].lower() in INLINE else " ")
        else:
            pieces.append(token.content)
    return "".join(pieces)
