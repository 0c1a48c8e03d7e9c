"""Texts of documents for display: cut, cleaned, and with the words of the query marked."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from firstpage.text.analyzer import UNSPACED, Analyzer, tokenize

MAX_SCANNED = 20_000  # characters of a field that are searched for the words of the query
MAX_TITLE = 200
MAX_ID = 80
SNIPPET_WORDS = 32
LEAD_WORDS = 6  # before the first word of the query
MAX_STARTS = 200  # windows that are compared
WORD = re.compile(f"[{UNSPACED}]|[^\\W_{UNSPACED}]+(?:['\u2019][sS]\\b)?")
# Embeddings, overrides and isolates: they could show a text in an order that is not its own.
DIRECTION_CONTROLS = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ufff9-\ufffb]+")


@dataclass(frozen=True)
class MarkedText:
    """A text for display.

    Attributes
    ----------
    text : str
        The text, in one line and without control characters.
    marks : tuple of (int, int)
        Where the words of the query begin and end.
    cut_start, cut_end : bool
        Whether the document's text has more before and after it.
    """

    text: str
    marks: tuple[tuple[int, int], ...] = ()
    cut_start: bool = False
    cut_end: bool = False

    @property
    def is_cut(self) -> bool:
        """Whether this is not the whole text."""
        return self.cut_start or self.cut_end


def displayed(value: Any, limit: int) -> MarkedText:
    """Return a value as text of at most `limit` characters, without control characters."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = str(value)
    head = text[:limit]
    shown = CONTROLS.sub(" ", DIRECTION_CONTROLS.sub("", head))
    return MarkedText(unicodedata.normalize("NFC", shown).strip(), (), False, len(text) > limit)


class Highlighter:
    """Marks the words whose terms are terms of a query.

    Parameters
    ----------
    query : str
        What was typed.
    analyzers : mapping of str to Analyzer
        The analyzer of each text field.
    """

    def __init__(self, query: str, analyzers: Mapping[str, Analyzer]) -> None:
        self._analyzers = analyzers
        self._terms = {a: frozenset(a.terms(query)) for a in set(analyzers.values())}
        self._known: dict[Analyzer, dict[str, str | None]] = {a: {} for a in self._terms}

    def title(self, field: str, value: Any) -> MarkedText:
        """Return a title with its marks."""
        shown = displayed(value, MAX_TITLE)
        marks = [(start, end) for start, end, term in self._words(field, shown.text) if term]
        return MarkedText(shown.text, tuple(marks), False, shown.cut_end)

    def snippet(self, fields: Mapping[str, Any], title: str = "") -> MarkedText:
        """Return the passage of the fields with most terms of the query.

        A title with which a field begins is left out, since it is shown already.
        """
        best, best_value = MarkedText(""), (-1, -1)
        for field, value in fields.items():
            shown = displayed(value, MAX_SCANNED)
            if title and shown.text.startswith(title):
                shown = replace(shown, text=shown.text[len(title) :].lstrip())
            words = self._words(field, shown.text)
            start, value_of_start = _best_window(words)
            if value_of_start > best_value and shown.text:
                best, best_value = _window(shown, words, start), value_of_start
        return best

    def prepare(self, texts: Iterable[tuple[str, Any]]) -> None:
        """Analyze the words of many fields at once, which is faster than one by one."""
        words: dict[Analyzer, set[str]] = {}
        for field, value in texts:
            found = WORD.findall(displayed(value, MAX_SCANNED).text)
            words.setdefault(self._analyzers[field], set()).update(found)
        for analyzer, distinct in words.items():
            self._learn(analyzer, distinct)

    def _learn(self, analyzer: Analyzer, words: set[str]) -> None:
        known, wanted = self._known[analyzer], self._terms[analyzer]
        tokens = {word: tokenize(word) for word in words if word not in known}
        term_of = analyzer.terms_of({token for each in tokens.values() for token in each})
        for word, each in tokens.items():
            terms = (term_of[token] for token in each)
            known[word] = next((term for term in terms if term in wanted), None)

    def _words(self, field: str, text: str) -> list[tuple[int, int, str | None]]:
        """Return where each word begins and ends, and its term if the query has it."""
        analyzer = self._analyzers[field]
        found = [(match.start(), match.end(), match[0]) for match in WORD.finditer(text)]
        self._learn(analyzer, {word for _, _, word in found})
        known = self._known[analyzer]
        return [(start, end, known[word]) for start, end, word in found]


def _best_window(words: list[tuple[int, int, str | None]]) -> tuple[int, tuple[int, int]]:
    """Return the first word of the window with most distinct terms, and how many it has."""
    best, best_value = 0, (0, 0)
    matched = [number for number, (_, _, term) in enumerate(words) if term]
    for number in matched[:MAX_STARTS]:
        start = max(0, min(number - LEAD_WORDS, len(words) - SNIPPET_WORDS))
        terms = [term for _, _, term in words[start : start + SNIPPET_WORDS] if term]
        value = len(set(terms)), len(terms)
        if value > best_value:
            best, best_value = start, value
    return best, best_value


def _window(shown: MarkedText, words: list[tuple[int, int, str | None]], start: int) -> MarkedText:
    chosen = words[start : start + SNIPPET_WORDS]
    is_last = start + SNIPPET_WORDS >= len(words)
    first = 0 if start == 0 or not chosen else chosen[0][0]
    last = len(shown.text) if is_last else chosen[-1][1]
    last = min(last, first + SNIPPET_WORDS * 20)  # words may be long
    marks = tuple((s - first, e - first) for s, e, term in chosen if term and e <= last)
    return MarkedText(
        shown.text[first:last], marks, first > 0, last < len(shown.text) or shown.cut_end
    )
