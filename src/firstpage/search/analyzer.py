"""Analyzers: from a text to the sequence of its terms.

The index, its queries and its features use the same analyzer, so that a term means the same thing
everywhere.  A text is normalized (Unicode NFKC, lower case) and split into runs of letters, digits
and the marks that combine with them; ideographs, which are written without blanks, are terms of
their own, and a possessive 's is dropped.  Stop words are removed; all other tokens are stemmed,
and the accents of Latin and Greek letters are removed from the stems.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from firstpage.core import DataError
from firstpage.search.engine import tantivy

LANGUAGES = (
    "arabic", "danish", "dutch", "english", "finnish", "french", "german", "greek", "hungarian",
    "italian", "norwegian", "portuguese", "romanian", "russian", "spanish", "swedish", "tamil",
    "turkish",
)  # fmt: skip
WITHOUT_STOP_WORDS = ("arabic", "greek", "romanian", "tamil", "turkish")  # the engine has no list
PLAIN = "none"  # lower case only: no stop words, no stems
UNSPACED = (  # Thai, Japanese, Chinese
    "\u0e00-\u0e7f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003fffd"
)
ASCII_TOKEN = re.compile("[a-z0-9]+")
INVISIBLE = "\u00ad\u200c\u200d\u2060\ufeff"  # soft hyphens, joiners
INVISIBLE_CHARACTER = re.compile(f"[{INVISIBLE}]")
LAST_MARK = 0x1FFFF  # no combining character of a script follows
POSSESSIVE = re.compile(r"(?<=\w)'[sS]\b")
MAX_TOKEN = 100  # characters; longer tokens are cut, as they are not words

OTHER_LETTERS = str.maketrans({  # which Unicode does not decompose
    "ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "đ": "d", "ð": "d", "þ": "th", "ł": "l", "ı": "i",
    "ħ": "h", "ŋ": "n", "ŧ": "t", "ё": "е",
})  # fmt: skip

STOP = ""  # stands for a stop word in a sequence of terms


@dataclass(frozen=True)
class Analyzer:
    """How texts of a field are split into terms.

    Parameters
    ----------
    language : str, default "english"
        The language of stop words and stems, or "none" for lower case only.
    stop_words : bool, default True
        Whether the stop words of the language are removed.
    stemming : bool, default True
        Whether words are reduced to their stems (Snowball).
    fold_accents : bool, default True
        Whether letters lose their accents, so that "cafe" finds "café".  Marks of other scripts
        than Latin and Greek are kept, since words differ by them.

    Raises
    ------
    DataError
        If the language is unknown.

    Examples
    --------
    >>> from firstpage.search.analyzer import Analyzer
    >>> Analyzer("english").terms("The Running of the C++ dogs")
    ['run', 'c', 'dog']
    """

    language: str = "english"
    stop_words: bool = True
    stemming: bool = True
    fold_accents: bool = True

    def __post_init__(self) -> None:
        if self.language not in (*LANGUAGES, PLAIN):
            raise DataError(
                f"unknown language {self.language!r}; the languages are "
                f"{', '.join((*LANGUAGES, PLAIN))}."
            )

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters as JSON."""
        return dict(vars(self))

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Analyzer:
        """Return the analyzer of stored parameters."""
        return cls(
            stored["language"],
            stored["stop_words"],
            stored["stemming"],
            stored.get("fold_accents", False),  # indexes before accents were folded
        )

    def terms(self, text: str) -> list[str]:
        """Return the terms of a text in their order, without stop words."""
        tokens = tokenize(text)
        term_of = self.terms_of(set(tokens))
        return [term for token in tokens if (term := term_of[token]) != STOP]

    def terms_of(self, tokens: Iterable[str]) -> dict[str, str]:
        """Return the term of each token; that of a stop word is `STOP`."""
        distinct = list(tokens)
        if not distinct:
            return {}
        joined = " ".join(distinct)
        stems = distinct
        if self.stemming and self.language != PLAIN:
            stems = _filtered(self.language, "stemmer", joined)
        if self.fold_accents and not joined.isascii():
            stems = [without_accents(stem) for stem in stems]
        term_of = {t: stem[:MAX_TOKEN] for t, stem in zip(distinct, stems, strict=True)}
        if self.stop_words and self.language != PLAIN and self.language not in WITHOUT_STOP_WORDS:
            for token in term_of.keys() - set(_filtered(self.language, "stopword", joined)):
                term_of[token] = STOP
        return term_of


def without_accents(word: str) -> str:
    """Return a word in lower case without the accents of its Latin and Greek letters.

    A word of accents alone stays as it is.
    """
    if word.isascii():
        return word
    word = word.translate(OTHER_LETTERS)
    letters: list[str] = []
    base = ""
    for character in unicodedata.normalize("NFD", word):
        if not unicodedata.combining(character):
            base = character
        elif _loses_accents(base):
            continue
        letters.append(character)
    return unicodedata.normalize("NFC", "".join(letters))


@cache
def _loses_accents(letter: str) -> bool:
    """Return whether a letter is Latin or Greek."""
    return bool(letter) and unicodedata.name(letter, "").startswith(("LATIN", "GREEK"))


def tokenize(text: str) -> list[str]:
    """Return the tokens of a text: runs of letters and digits in lower case, and ideographs."""
    plain = text.isascii()
    if not plain:
        text = unicodedata.normalize("NFKC", INVISIBLE_CHARACTER.sub("", text)).replace(
            "\u2019", "'"
        )
    if "'" in text:
        text = POSSESSIVE.sub("", text)
    text = text.lower()
    if plain:
        return ASCII_TOKEN.findall(text)
    return _unicode_token().findall(
        text.replace("i\u0307", "i")
    )  # lower case of the Turkish \u0130


@cache
def _unicode_token() -> re.Pattern[str]:
    """Return the pattern of a token: a letter or digit with what follows, marks included."""
    return re.compile(f"(?:[^\\W_{UNSPACED}]+[{combining_marks()}]*)+|[{UNSPACED}]")


@cache
def combining_marks() -> str:
    """Return the ranges of combining characters, for a class of a regular expression.

    Python counts them, such as the vowels of Tamil and Hindi, to no word.
    """
    unspaced = re.compile(f"[{UNSPACED}]")
    marks: list[list[int]] = []  # first and last of each range
    for point in range(0x300, LAST_MARK):
        if unicodedata.category(chr(point))[0] == "M" and not unspaced.match(chr(point)):
            if marks and marks[-1][1] == point - 1:
                marks[-1][1] = point
            else:
                marks.append([point, point])
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in marks)


@dataclass
class TermNumbers:
    """Numbers terms in the order in which they first appear, starting at 1; 0 is a stop word."""

    terms: list[str] = field(default_factory=lambda: [STOP])
    _number_of: dict[str, int] = field(default_factory=dict)
    _token_numbers: dict[Analyzer, dict[str, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._number_of = {term: number for number, term in enumerate(self.terms)}

    def __len__(self) -> int:
        return len(self.terms)

    def number(self, term: str) -> int | None:
        """Return the number of a term, or None if no text contains it."""
        return self._number_of.get(term)

    def of_tokens(self, analyzer: Analyzer, tokens: Iterable[str]) -> dict[str, int]:
        """Return a mapping that has the number of each token; new terms get new numbers."""
        known = self._token_numbers.setdefault(analyzer, {})
        unknown = set(tokens).difference(known)
        for token, term in analyzer.terms_of(sorted(unknown)).items():
            number = self._number_of.get(term)
            if number is None:
                number = self._number_of[term] = len(self.terms)
                self.terms.append(term)
            known[token] = number
        return known


def _filtered(language: str, filter_name: str, text: str) -> list[str]:
    """Return what a filter of the engine makes of the words of a text."""
    words: list[str] = _filter(language, filter_name).analyze(text)
    return words


@cache
def _filter(language: str, filter_name: str) -> Any:
    """Return the engine's stemmer or stop word filter, applied to words separated by blanks."""
    engine = tantivy()
    builder = engine.TextAnalyzerBuilder(engine.Tokenizer.whitespace())
    return builder.filter(getattr(engine.Filter, filter_name)(language)).build()
