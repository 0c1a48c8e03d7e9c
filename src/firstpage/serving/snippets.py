"""Texts of documents for display: cut, cleaned, and with the words of the query marked."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from typing import Any

from firstpage.search import INVISIBLE, UNSPACED, Analyzer, combining_marks, tokenize

MAX_SCANNED = 20_000  # characters of a field that are searched for the words of the query
MAX_TITLE = 200
MAX_NAME = 80  # of a document or a feature
SNIPPET_WORDS = 32
LEAD_WORDS = 6  # before the first word of the query
MAX_STARTS = 200  # windows that are compared
MAX_WORD_WIDTH = 20  # characters, on average; a passage of longer words is cut
MAX_WORDS = 200_000  # whose terms are remembered
ASCII_WORD = re.compile(
    r"(?:[A-Za-z](?:\.[A-Za-z])+(?![A-Za-z0-9])|[A-Za-z0-9]+)(?:'[sS]\b)?"
)  # "i.e" is one word, so that its letters are not marked for the word "I" of a query
# Embeddings, overrides and isolates: they could show a text in an order that is not its own.
DIRECTION_CONTROLS = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ufff9-\ufffb]+")

Match = tuple[int, tuple[str, ...]]


@dataclass(frozen=True)
class MarkedText:
    """A text for display, in one line and without control characters.

    `marks` are where the words of the query begin and end; the cuts say whether the document's text
    has more before and after it.
    """

    text: str
    marks: tuple[tuple[int, int], ...] = ()
    cut_start: bool = False
    cut_end: bool = False

    @property
    def is_cut(self) -> bool:
        """Whether this is not the whole text."""
        return self.cut_start or self.cut_end

    def parts(self) -> Iterator[tuple[str, bool]]:
        """Yield the parts of the text, and whether each is a word of the query."""
        end = 0
        for start, stop in self.marks:
            yield self.text[end:start], False
            yield self.text[start:stop], True
            end = stop
        yield self.text[end:], False


def displayed(value: Any, limit: int = MAX_NAME) -> MarkedText:
    """Return a value as text of at most `limit` characters, without control characters."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = str(value)
    head = text[:limit]
    if not head.isascii():
        head = unicodedata.normalize("NFC", DIRECTION_CONTROLS.sub("", head))
    return MarkedText(CONTROLS.sub(" ", head).strip(), (), False, len(text) > limit)


class WordTerms:
    """The terms of words, which are remembered: most words of a document are in others too."""

    def __init__(self) -> None:
        self._known: dict[Analyzer, dict[str, tuple[str, ...]]] = {}

    def of(self, analyzer: Analyzer, words: set[str]) -> Mapping[str, tuple[str, ...]]:
        """Return a mapping that has the terms of each word."""
        known = self._known.get(analyzer)
        if known is None or len(known) > MAX_WORDS:
            known = self._known[analyzer] = {}
        unknown = [word for word in words if word not in known]
        if unknown:
            tokens = {word: tokenize(word) for word in unknown}
            term_of = analyzer.terms_of({token for each in tokens.values() for token in each})
            for word, each in tokens.items():
                known[word] = tuple(term_of[token] for token in each)
        return known


class Highlighter:
    """Marks the words whose terms are terms of a query, and the abbreviations that it has.

    Parameters
    ----------
    query : str
        What was typed.
    analyzers : mapping of str to Analyzer
        The analyzer of each text field.
    words : WordTerms, optional
        The terms of words that are known already.
    """

    def __init__(
        self, query: str, analyzers: Mapping[str, Analyzer], words: WordTerms | None = None
    ) -> None:
        self._analyzers, self._words = analyzers, words or WordTerms()
        self._wanted = dict[Analyzer, set[tuple[str, ...]]]()
        for analyzer in set(analyzers.values()):
            words_of_query = set(_pattern(query).findall(query))
            known = self._words.of(analyzer, words_of_query)
            wanted = {terms for word in words_of_query if len(terms := known[word]) > 1}
            self._wanted[analyzer] = wanted | {(term,) for term in analyzer.terms(query)}

    def title(self, field: str, value: Any) -> MarkedText:
        """Return a title with its marks."""
        shown = displayed(value, MAX_TITLE)
        pattern = _pattern(shown.text)
        matches = self._matches(field, pattern.findall(shown.text))
        spans = [match.span() for match in pattern.finditer(shown.text)] if matches else []
        return replace(shown, marks=tuple(spans[number] for number, _ in matches))

    def snippet(self, fields: Mapping[str, Any], title: str = "") -> MarkedText:
        """Return the passage of the fields with most terms of the query.

        A title with which a field begins is left out, since it is shown already.
        """
        best, best_value = MarkedText(""), (-1, -1)
        for field, value in fields.items():
            shown = displayed(value, MAX_SCANNED)
            if title and shown.text.startswith(title):
                shown = replace(shown, text=shown.text[len(title) :].lstrip())
            words = _pattern(shown.text).findall(shown.text)
            matches = self._matches(field, words)
            start, value_of_start = _best_window(matches, len(words))
            if value_of_start > best_value and shown.text:
                best, best_value = _window(shown, len(words), matches, start), value_of_start
        return best

    def _matches(self, field: str, words: Sequence[str]) -> list[Match]:
        """Return the numbers of the words that match the query, and the terms that they match."""
        analyzer, distinct = self._analyzers[field], set(words)
        known, wanted = self._words.of(analyzer, distinct), self._wanted[analyzer]
        matching = {word: known[word] for word in distinct if known[word] in wanted}
        if not matching:
            return []
        return [(i, matching[word]) for i, word in enumerate(words) if word in matching]


def _pattern(text: str) -> re.Pattern[str]:
    """Return the pattern of the words of a text; that of ASCII is four times faster."""
    return ASCII_WORD if text.isascii() else _unicode_word()


@cache
def _unicode_word() -> re.Pattern[str]:
    """Return the pattern of a word: a token of the analyzer as it is written.

    It may contain invisible characters, which the analyzer drops, and end in a possessive 's.
    """
    letter, within = f"[^\\W_{UNSPACED}]", f"[{combining_marks()}{INVISIBLE}]"
    single = f"[^\\W\\d_{UNSPACED}]"
    abbreviation = f"{single}(?:\\.{single})+(?!{letter}|{within})"
    word = f"(?:{abbreviation}|{letter}+(?:{within}+{letter}*)*)"
    return re.compile(f"[{UNSPACED}]|{word}(?:['\u2019][sS]\\b)?")


def _best_window(matches: Sequence[Match], count: int) -> tuple[int, tuple[int, int]]:
    """Return the first word of the window with most distinct terms, and how many it has."""
    best, best_value = 0, (0, 0)
    for i, (number, _) in enumerate(matches[:MAX_STARTS]):
        start = max(0, min(number - LEAD_WORDS, count - SNIPPET_WORDS))
        end = start + SNIPPET_WORDS
        terms = [term for position, term in matches[i : i + SNIPPET_WORDS] if position < end]
        value = len(set(terms)), len(terms)
        if value > best_value:
            best, best_value = start, value
    return best, best_value


def _window(shown: MarkedText, count: int, matches: Sequence[Match], start: int) -> MarkedText:
    """Return the passage from a word on, of a text with `count` words."""
    end = min(start + SNIPPET_WORDS, count)
    found = _pattern(shown.text).finditer(shown.text)
    spans = [match.span() for match in islice(found, start, end)]
    first = spans[0][0] if start else 0
    last = spans[-1][1] if end < count else len(shown.text)
    last = min(last, first + SNIPPET_WORDS * MAX_WORD_WIDTH)
    chosen = [spans[number - start] for number, _ in matches if start <= number < end]
    marks = tuple((s - first, e - first) for s, e in chosen if e <= last)
    return MarkedText(
        shown.text[first:last], marks, first > 0, last < len(shown.text) or shown.cut_end
    )
