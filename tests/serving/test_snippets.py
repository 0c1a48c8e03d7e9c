"""Passages: which words are marked, which are shown, and what is cut or neutralized."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstpage.search.analyzer import Analyzer, tokenize
from firstpage.serving.snippets import (
    DIRECTION_CONTROLS,
    MAX_TITLE,
    SNIPPET_WORDS,
    Highlighter,
    _pattern,
    displayed,
)

ENGLISH = {
    "title": Analyzer("english"), "text": Analyzer("english"), "code": Analyzer("none"),
    "tamil": Analyzer("tamil"),
}  # fmt: skip


def marked(query: str, text: str, field: str = "text") -> list[str]:
    passage = Highlighter(query, ENGLISH).snippet({field: text})
    return [passage.text[start:end] for start, end in passage.marks]


@pytest.mark.parametrize(
    ("query", "text", "expected"),
    [
        ("running", "He runs; a runner ran RUNNING home", ["runs", "RUNNING"]),
        ("the dog", "The dog's bone", ["dog's"]),
        ("dogs", "the dog\u2019s", ["dog\u2019s"]),
        ("caf\u00e9", "le cafe\u0301 et le caf\u00e9", ["caf\u00e9", "caf\u00e9"]),
        ("\ufb01nd", "find \ufb01nd", ["find", "\ufb01nd"]),
        ("\u6771\u4eac", "\u6771\u4eac\u90fd", ["\u6771", "\u4eac"]),
        ("the", "the", []),
        ("<b>", "a <b> b", ["b", "b"]),
        ("how can I run", "I run, i.e. faster (caf\u00e9)", ["I", "run"]),
        ("how can I run", "I run, i.e. faster", ["I", "run"]),
        ("the m", "10 a.m., 3 m", ["m"]),
        ("i.e. the dog", "i.e. a dog's", ["i.e", "dog's"]),
        ("u.s.a.", "U.S.A's army, u.s, u", ["U.S.A's", "u"]),
    ],
)
def test_a_word_is_marked_if_its_term_is_a_term_of_the_query(
    query: str, text: str, expected: list[str]
) -> None:
    assert marked(query, text) == expected


@pytest.mark.parametrize(
    ("query", "text", "expected"),
    [
        ("தமிழ்", "இது தமிழ் மொழி", ["தமிழ்"]),
        ("हिन्दी", "यह हिन्दी है", ["हिन्दी"]),
        ("هِنْدِي", "لغة هِنْدِي", ["هِنْدِي"]),
        ("cooperate", "we co\u00adoperate", ["co\u00adoperate"]),
        ("x\u0301y", "x\u0301y z\u0301", ["x\u0301y"]),
        ("می\u200cخواهم", "من می\u200cخواهم", ["می\u200cخواهم"]),
        ("日", "日\u00ad本", ["日"]),
        ("\u0e01", "\u0e01\u0e31", ["\u0e01"]),
    ],
)
def test_words_with_marks_and_invisible_characters(
    query: str, text: str, expected: list[str]
) -> None:
    for field in ("tamil", "code"):
        assert marked(query, text, field) == expected


@given(st.text("a1bs'é日தமிழ்हिन्दीهِنْ\u0301\u00ad\u200c\u200d\u2060_ .", max_size=40))
def test_words_have_the_tokens_of_their_text(text: str) -> None:
    """So that every word that matches the query can be marked."""
    shown = displayed(text, 1000).text
    words = _pattern(shown).findall(shown)
    assert [token for word in words for token in tokenize(word)] == tokenize(shown)


def test_each_field_has_its_own_analyzer() -> None:
    assert marked("dogs", "dog dogs", "text") == ["dog", "dogs"]
    assert marked("dogs", "dog dogs", "code") == ["dogs"]


def test_the_passage_with_most_terms_is_shown() -> None:
    text = "red " + "filler " * 100 + "the red shoes of a runner " + "filler " * 100
    passage = Highlighter("red shoes", ENGLISH).snippet({"title": "", "text": text})
    assert "the red shoes of a runner" in passage.text
    assert passage.cut_start
    assert passage.cut_end
    assert len(passage.text.split()) <= SNIPPET_WORDS


def test_a_title_at_the_beginning_is_not_repeated() -> None:
    passage = Highlighter("shoes", ENGLISH).snippet(
        {"text": "Red shoes\n Good shoes."}, "Red shoes"
    )
    assert passage.text == "Good shoes."


def test_long_values_are_cut_and_say_so() -> None:
    highlighter = Highlighter("red", ENGLISH)
    assert highlighter.title("title", "a" * (MAX_TITLE + 1)).is_cut
    assert not highlighter.title("title", "a" * MAX_TITLE).is_cut
    assert len(highlighter.snippet({"text": "x" * 10**6}).text) < 1000
    assert highlighter.snippet({"text": "x" * 10**6}).cut_end


def test_values_that_are_no_texts() -> None:
    assert displayed(49.0, 10).text == "49"
    assert displayed(49.5, 10).text == "49.5"
    assert displayed(1234567.0, 10).text == "1234567"


@given(st.text(max_size=300), st.text(max_size=20))
def test_marks_are_within_the_text_and_nothing_dangerous_is_shown(text: str, query: str) -> None:
    passage = Highlighter(query, ENGLISH).snippet({"text": text})
    end = 0
    for start, stop in passage.marks:
        assert end <= start < stop <= len(passage.text)
        end = stop
    assert not DIRECTION_CONTROLS.search(passage.text)
    assert not any(ord(c) < 32 or 127 <= ord(c) < 160 for c in passage.text)
