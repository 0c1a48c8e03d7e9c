"""Numpydoc docstrings as Markdown."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from textwrap import dedent, fill

from firstpage.core import split_sections

WIDTH = 100
# A line that began with one of these would be a list, a quote or a heading.
_MARKER = re.compile(r" (?=(?:[-+*>#=]+|\d+[.)])(?: |$))")


@dataclass(frozen=True)
class Entry:
    """One entry of a section: a name and a type, either of which may be missing, and a text."""

    name: str
    type: str
    text: str

    def markdown(self, indent: str = "") -> list[str]:
        """Return the entry as an item of a list."""
        head = f"`{self.name}`" + (f" ({inline(self.type)})" if self.type else "")
        return item(f"{head}: {self.text}" if self.text else head, indent)


@dataclass(frozen=True)
class Docstring:
    """The parts of a docstring: its summary, the text below, and its sections by title."""

    summary: str = ""
    text: str = ""
    sections: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, documented: object) -> Docstring:
        """Parse the docstring of an object itself, not of a base class."""
        docstring = getattr(documented, "__doc__", None) or ""
        name = getattr(documented, "__name__", "")
        if inspect.isclass(documented) and docstring.startswith(f"{name}("):
            return cls()  # written by `dataclass`
        text, sections = split_sections(docstring)
        summary, _, rest = text.partition("\n\n")
        return cls(" ".join(summary.split()), rest.strip("\n"), sections)

    def entries(self, title: str) -> list[Entry]:
        """Return the entries of a section such as Parameters or Returns."""
        entries = list[Entry]()
        for block in re.split(r"\n(?=\S)", self.sections.get(title, "").strip("\n")):
            head, _, body = block.partition("\n")
            name, _, kind = head.partition(" : ")
            if head:
                entries.append(Entry(name.strip(), kind.strip(), " ".join(dedent(body).split())))
        return entries

    def references(self) -> list[str]:
        """Return the references; a line that ends with a period ends its reference."""
        section = re.sub(r"^\.\. \[\w+\] ", "", self.sections.get("References", ""), flags=re.M)
        return [
            " ".join(each.split()) for each in re.split(r"(?<=\.)\n(?=\S)|\n\n", section) if each
        ]

    def example(self) -> list[str]:
        """Return the example as a block; `pycon` blocks are not run, doctest runs the docstring."""
        example = re.sub(r" +# doctest: .*", "", self.sections.get("Examples", ""))
        return ["```pycon", example, "```", ""] if example else []

    def paragraphs(self) -> list[str]:
        """Return summary and text as paragraphs; indented lines are set as they are."""
        lines = list[str]()
        for each in filter(None, [self.summary, *self.text.split("\n\n")]):
            if re.search(r"^\s", each, re.M):
                lines += ["```text", dedent(each), "```", ""]
            else:
                lines += [paragraph(each), ""]
        return lines


def inline(text: str) -> str:
    """Return a text of a docstring with its code spans written as in Markdown."""
    return re.sub(r"``(.+?)``", r"`\1`", text)


def paragraph(text: str, indent: str = "", first: str | None = None) -> str:
    """Return a text wrapped into lines."""
    glued = _MARKER.sub("\0", inline(" ".join(text.split())))
    wrapped = fill(
        glued,
        WIDTH,
        initial_indent=indent if first is None else first,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return wrapped.replace("\0", " ")


def item(text: str, indent: str = "") -> list[str]:
    """Return an item of a list."""
    return [paragraph(text, f"{indent}  ", f"{indent}- ")]


def listed(title: str, entries: Iterable[Entry]) -> list[str]:
    """Return entries below a title, nothing where there are none."""
    lines = [line for entry in entries for line in entry.markdown()]
    return [f"**{title}**", "", *lines, ""] if lines else []


def toctree(entries: Iterable[str], *options: str) -> str:
    """Return a list of pages for the navigation, which the page itself does not show."""
    return "\n".join(["", "```{toctree}", ":hidden:", *options, "", *entries, "```", ""])
