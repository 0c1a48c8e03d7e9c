"""TREC collections: documents between `<DOC>` and `</DOC>`, topics between `<top>` and `</top>`."""

from __future__ import annotations

import html
import re
from collections import deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from firstpage.core import DataError, location
from firstpage.data.formats import LocatedRow
from firstpage.search.html_pages import page_values
from firstpage.search.sources import MAX_RECORD_CHARACTERS, Notes

TITLES = frozenset({"title", "headline", "head", "hl", "ti", "ttl"})
PAGE_HEADER = "dochdr"  # of web collections, where a page of HTML follows
TOPIC_PARTS = {"description": "desc", "narrative": "narr", "number": "num"}
_TAG = re.compile(r"<(/?)([A-Za-z][\w.:-]*)(?:\s[^<>]*)?/?>")
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_ID_ATTRIBUTE = re.compile(r"\sid\s*=\s*[\"']?([^\"'<>]+)", re.I)
_LABEL = {
    "num": "number", "title": "topic", "desc": "description", "narr": "narrative",
    "dom": "domain", "smry": "summary", "con": "concepts?", "fac": "factors?",
    "def": "definitions?",
}  # fmt: skip


class Block(NamedTuple):
    """The text between a start and an end tag, its line, and the attributes of the start tag."""

    where: str
    attributes: str
    text: str


def blocks(name: str, lines: Iterable[tuple[int, str]], tag: str, notes: Notes) -> Iterator[Block]:
    """Yield the blocks between `<tag>` and `</tag>`; raise if one is not closed."""
    start = re.compile(rf"\s*<{tag}(\s[^<>]*)?>", re.I)
    end = re.compile(rf"</{tag}\s*>", re.I)
    where, attributes, size, count = "", "", 0, 0
    parts: list[str] = []
    for number, line in lines:
        position = 0
        while position < len(line) or where:
            opened = start.match(line, position)
            if where and opened:
                raise DataError(
                    f"{where}: <{tag}> is not closed by </{tag}> before the next in line {number}."
                )
            if not where and opened:
                where, attributes = location(name, number), opened[1] or ""
                parts, size, position = [], 0, opened.end()
            elif not where:
                if line[position:].strip():
                    notes.once(
                        f"outside {tag}",
                        f"{location(name, number)}: what is outside of <{tag}> and </{tag}> is "
                        "ignored, here and below.",
                    )
                break
            closed = end.search(line, position) if "</" in line else None
            stop = closed.start() if closed else len(line)
            parts.append(line[position:stop])
            size += stop - position + 1
            if size > MAX_RECORD_CHARACTERS:
                raise DataError(f"{where}: is longer than {MAX_RECORD_CHARACTERS:,} characters.")
            if closed is None:
                break
            yield Block(where, attributes, "\n".join(parts))
            where, count, position = "", count + 1, closed.end()
    if where:
        raise DataError(f"{where}: <{tag}> is not closed by </{tag}>.")
    if not count:
        raise DataError(f"{name}: contains no <{tag}>.")


def trec_documents(
    name: str, lines: Iterable[tuple[int, str]], notes: Notes
) -> Iterator[LocatedRow]:
    """Yield the documents of a TREC file: the text of each element, by its name in lower case.

    Headlines are the title; a repeated element continues the first; text outside of elements is
    appended to the text.  `<DOC id="..">` is the id where there is no `<DOCNO>`.
    """
    for where, attributes, text in blocks(name, lines, "DOC", notes):
        row = _elements(_without_comments(text), where)
        if "docno" not in row and (named := _ID_ATTRIBUTE.search(attributes)):
            row["docno"] = named[1]
        yield where, row


def _elements(text: str, where: str) -> dict[str, str]:
    """Return the text of the elements that are not inside another one."""
    tags = list(_TAG.finditer(text))
    ends: dict[str, deque[int]] = {}  # positions in `tags` of the end tags of each name
    for position, tag in enumerate(tags):
        if tag[1]:
            ends.setdefault(tag[2].lower(), deque()).append(position)
    values: dict[str, list[str]] = {}
    position = begin = 0
    while position < len(tags):
        tag = tags[position]
        name = tag[2].lower()
        closing = ends.get(name, deque())
        while closing and closing[0] <= position:
            closing.popleft()
        _add(values, "text", text[begin : tag.start()])
        begin = tag.end()
        if not tag[1] and closing:
            position = closing[0]
            _add(values, "title" if name in TITLES else name, text[begin : tags[position].start()])
            begin = tags[position].end()
            if name == PAGE_HEADER:
                for field, part in page_values(text[begin:], where).items():
                    _add(values, field, part)
                begin = len(text)
                break
        position += 1
    _add(values, "text", text[begin:])
    return {name: "\n".join(parts) for name, parts in values.items()}


def _add(values: dict[str, list[str]], name: str, marked: str) -> None:
    """Append the text between tags to the values of a field, unless it is blank."""
    if text := plain(marked):
        values.setdefault(name, []).append(text)


def plain(marked: str) -> str:
    """Return a text without tags, its entities replaced and blanks around it removed."""
    if "<" in marked:
        marked = _TAG.sub(" ", marked)
    if "&" in marked:
        marked = _ENTITY.sub(lambda entity: html.unescape(entity[0]), marked)
    return marked.strip()


def _without_comments(text: str) -> str:
    """Return a text without `<!-- comments -->`; one that is not closed is text."""
    parts, begin = [], 0
    while (start := text.find("<!--", begin)) >= 0 and (end := text.find("-->", start)) >= 0:
        parts.append(text[begin:start])
        begin = end + len("-->")
    return " ".join([*parts, text[begin:]])


def trec_topics(name: str, lines: Iterable[tuple[int, str]], notes: Notes) -> Iterator[LocatedRow]:
    """Yield the topics of a TREC file: the text after each tag, without its label (`Number:`)."""
    for where, _, text in blocks(name, lines, "top", notes):
        values: dict[str, list[str]] = {}
        tags = list(_TAG.finditer(text))
        for tag, following in zip(tags, [*tags[1:], None], strict=True):
            if tag[1]:
                continue
            section, end = tag[2].lower(), following.start() if following else len(text)
            label = _LABEL.get(section, re.escape(section))
            part = re.sub(rf"\A\s*{label}\s*:", "", text[tag.end() : end], flags=re.I)
            values.setdefault(section, []).append(" ".join(plain(part).split()))
        yield where, {section: "\n".join(parts).strip() for section, parts in values.items()}
