"""Analyzers: the terms of texts, in every language and for hostile texts."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstpage.core.errors import DataError
from firstpage.search.analyzer import (
    LANGUAGES,
    MAX_TOKEN,
    PLAIN,
    STOP,
    Analyzer,
    TermNumbers,
    tokenize,
)

PLAIN_TERMS = Analyzer(PLAIN)

TOKENS = [
    ("Red shoes", ["red", "shoes"]),
    ("C++: \"x", ["c", "x"]),
    ("a_b-c.d/e", ["a", "b", "c", "d", "e"]),
    ("mach 2.5 at 10,000ft", ["mach", "2", "5", "at", "10", "000ft"]),
    ("the dog's and dogs' and O'Brien's", ["the", "dog", "and", "dogs", "and", "o", "brien"]),
    ("DOG'S dog\u2019s it's 'sea", ["dog", "dog", "it", "sea"]),
    ("日本語 text", ["日", "本", "語", "text"]),
    ("x日y", ["x", "日", "y"]),
    ("\U00020000\U00020001", ["\U00020000", "\U00020001"]),
    ("한국어 문서", ["한국어", "문서"]),
    ("caf\u00e9 cafe\u0301", ["caf\u00e9", "caf\u00e9"]),
    ("x\u0301\u0302y", ["x\u0301\u0302y"]),
    ("தமிழ் மொழி", ["தமிழ்", "மொழி"]),
    ("हिन्दी", ["हिन्दी"]),
    ("هِنْدِي", ["هِنْدِي"]),
    ("\u0130stanbul ISTANBUL", ["istanbul", "istanbul"]),
    ("ﬁne ＦＵＬＬ ①", ["fine", "full", "1"]),
    ("co\u00adoperate", ["cooperate"]),
    ("a\x00b\tc\u2003d", ["a", "b", "c", "d"]),
    ("😀 👍🏽 x", ["x"]),
    ("\u0301 \u0301", []),
    ("", []),
    (" ,.;'\"'s", ["s"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "tokens"), TOKENS, ids=[repr(text) for text, _ in TOKENS])
def test_tokens(text: str, tokens: list[str]) -> None:
    assert tokenize(text) == tokens


TERMS = [
    (Analyzer(), "The running of the dogs", ["run", "dog"]),
    (Analyzer(stop_words=False), "The running of the dogs", ["the", "run", "of", "the", "dog"]),
    (Analyzer(stemming=False), "The running of the dogs", ["running", "dogs"]),
    (Analyzer(PLAIN), "The running of the dogs", ["the", "running", "of", "the", "dogs"]),
    (
        Analyzer(PLAIN),
        "Café Łódź straße Ørsted æther",
        ["cafe", "lodz", "strasse", "orsted", "aether"],
    ),
    (Analyzer(PLAIN, fold_accents=False), "Café Łódź", ["café", "łódź"]),
    (Analyzer("french"), "les cafés à Orléans", ["caf", "orlean"]),
    (Analyzer("greek"), "Αθήνα", Analyzer("greek").terms("Αθηνα")),
    (Analyzer(PLAIN), "хороший ёж", ["хороший", "еж"]),
    (Analyzer(PLAIN), "हिन्दी தமிழ் ガ が", ["हिन्दी", "தமிழ்", "ガ", "が"]),
    (Analyzer("german"), "die Häuser und das Haus", ["haus", "haus"]),
    (Analyzer("french"), "les chevaux", ["cheval"]),
    (Analyzer("russian"), "книги и книга", ["книг", "книг"]),
    (Analyzer(), "the of and", []),
    (Analyzer(), "run The run", ["run", "run"]),
]


@pytest.mark.parametrize(("analyzer", "text", "terms"), TERMS)
def test_terms(analyzer: Analyzer, text: str, terms: list[str]) -> None:
    assert analyzer.terms(text) == terms


@pytest.mark.parametrize("language", [*LANGUAGES, PLAIN])
def test_every_language_has_terms(language: str) -> None:
    analyzer = Analyzer(language)
    assert len(analyzer.terms("2026 zeppelin 東京")) == 4
    assert Analyzer.from_dict(analyzer.to_dict()) == analyzer


def test_parameters_survive() -> None:
    analyzer = Analyzer("dutch", stop_words=False, stemming=False)
    assert Analyzer.from_dict(analyzer.to_dict()) == analyzer


def test_an_unknown_language_is_refused() -> None:
    with pytest.raises(DataError, match="unknown language 'klingon'; the languages are arabic, "):
        Analyzer("klingon")


@pytest.mark.parametrize("character", ["a", "é", "日", "'", "😀", "\u0301", "a\u0301"])
def test_a_megabyte_of_one_character(character: str) -> None:
    terms = Analyzer().terms(character * (1_000_000 // len(character)))
    assert len(terms) == (1_000_000 if character == "日" else character[0] in "aé")
    assert max(map(len, terms), default=0) <= MAX_TOKEN


@given(st.text(max_size=60), st.sampled_from([*LANGUAGES, PLAIN]))
def test_terms_of_any_text(text: str, language: str) -> None:
    """Terms go to the engine separated by blanks, so none is empty or contains a blank."""
    tokens = tokenize(text)
    assert all(token and not any(c.isspace() for c in token) for token in tokens)
    letters = {c for c in unicodedata.normalize("NFKC", text).lower() if c.isalnum()}
    assert letters <= set("".join(tokens)) | {"s"}  # of a possessive
    analyzer = Analyzer(language)
    terms = analyzer.terms(text)
    assert all(term and not any(c.isspace() for c in term) for term in terms)
    term_of = analyzer.terms_of(tokens)
    assert [term_of[token] for token in tokens if term_of[token] != STOP] == terms


@given(st.lists(st.text("abé 日's", max_size=12), max_size=6))
def test_numbers_of_terms(texts: list[str]) -> None:
    """Numbers are those of first appearance, the same for both analyzers and after storage."""
    numbers = TermNumbers()
    for text in texts:
        for analyzer in (Analyzer(), PLAIN_TERMS):
            tokens = tokenize(text)
            number_of = numbers.of_tokens(analyzer, tokens)
            terms = [numbers.terms[number_of[token]] for token in tokens if number_of[token]]
            assert terms == analyzer.terms(text)
    assert len(set(numbers.terms)) == len(numbers)
    stored = TermNumbers(list(numbers.terms))
    assert [stored.number(term) for term in numbers.terms] == list(range(len(numbers)))
    assert stored.number("unseen") is None
