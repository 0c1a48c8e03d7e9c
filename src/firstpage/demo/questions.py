"""Questions about Python, with the entries of its documentation that answer them."""

from __future__ import annotations

from pathlib import Path

Question = tuple[str, dict[int, tuple[str, ...]]]
"""A question, and the names of its answers by grade: 3 is the answer, 2 also answers the question, 1
helps."""


def read_questions() -> tuple[Question, ...]:
    """Return the questions of questions.tsv."""
    lines = (Path(__file__).parent / "questions.tsv").read_text("utf-8").splitlines()
    rows = [(line + "\t\t").split("\t") for line in lines if not line.startswith("#")]
    return tuple(
        (text, {3: tuple(best.split()), 2: tuple(good.split()), 1: tuple(helpful.split())})
        for text, best, good, helpful, *_ in rows
    )


QUESTIONS = read_questions()
