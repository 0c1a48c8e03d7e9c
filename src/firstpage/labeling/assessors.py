"""Programs as assessors of documents: what they read and answer, and a Python function as one."""

from __future__ import annotations

import operator
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from firstpage.core import DataError
from firstpage.labeling.session.events import Judgment, to_dict
from firstpage.labeling.session.session import Session
from firstpage.labeling.strategies.exhaustive import GRADES

OUTCOMES = {"left": 1, "a": 1, "right": -1, "b": -1, "tie": 0, "equal": 0}
BAD = {"left bad": -1, "right bad": 1, "both bad": 0}
SKIP = "skip"
UNREADABLE = "the answer could not be parsed"


@dataclass(frozen=True)
class DocumentText:
    """The text of a document, as a program reads it.

    Attributes
    ----------
    key : str
        The document's id.
    body : str
        Its text: a page without tags; the fields of a card or the items of a list, one per line.
    title : str
        Its title, or "".
    kind : str
        text, html, image, card or list.
    fields : mapping
        Labels and values of a card.
    items : sequence of mappings
        The results of a list, first to last, without their grades.
    url : str or None
        Its address.
    """

    key: str
    body: str
    title: str = ""
    kind: str = "text"
    fields: Mapping[str, Any] = field(default_factory=dict)
    items: Sequence[Mapping[str, Any]] = ()
    url: str | None = None


class QueryText(str):
    """The text of a query followed by its description, with the query's id as attribute `key`."""

    key: str
    text: str
    description: str

    def __new__(cls, key: str, text: str, description: str = "") -> QueryText:
        """Return the query; `text` and `description` are also separate attributes."""
        query = super().__new__(cls, f"{text}\n{description}".strip())
        query.key, query.text, query.description = key, text, description
        return query


@dataclass(frozen=True)
class AssessorAnswer:
    """A program's answer to a question, and what it cost.

    Attributes
    ----------
    outcome : int
        1 if the left document is better, -1 if the right one is, 0 if neither is; or a grade.
    bad : tuple of str
        Documents that are clearly irrelevant.
    cost : mapping
        Seconds, tokens, price and replies; it is stored in the log with the judgment.
    skipped : str or None
        Why there is no answer; the question is then recorded as skipped.
    """

    outcome: int
    bad: tuple[str, ...] = ()
    cost: Mapping[str, Any] = field(default_factory=dict)
    skipped: str | None = None


class InvalidReplyError(DataError):
    """A model's reply is none of the allowed answers.

    `cost` is what the reply cost, `reason` why the question is recorded as skipped.
    """

    def __init__(
        self, message: str, cost: Mapping[str, Any] | None = None, reason: str | None = None
    ) -> None:
        super().__init__(message)
        self.cost = dict(cost or {})
        self.reason = reason or UNREADABLE


class Assessor(Protocol):
    """A program that answers questions about the documents of a query."""

    def judge(self, query: str, left: DocumentText, right: DocumentText | None) -> AssessorAnswer:
        """Return which of two documents is better; the grade of the left if `right` is None."""
        ...


@dataclass(frozen=True)
class Function:
    """A Python function as assessor.

    Parameters
    ----------
    call : callable
        Function of (query, left document, right document or None). The query is a string; a
        query of a project also has the attributes `key`, `text` and `description`. A document
        has `key` (its id), `body` (its text), `title`, `kind`, `fields`, `items` and `url`.
        The function returns 1, 0 or -1, or "left", "tie" or "right" (for two lists also 2 or
        -2: much better); "left bad", "right bad" or "both bad" if a document of a pair is clearly
        irrelevant, so that it loses and is not asked about again; a grade where the right document
        is None; or "skip".
    grades : int, default 5
        Number of grades; they are 0, 1, ..., `grades` - 1.

    Examples
    --------
    >>> import firstpage as fp
    >>> texts = {"a": "short", "b": "much longer", "c": "tiny"}
    >>> session = fp.labeling.Session(list(texts), fp.labeling.Setting("tournament", k=1))
    >>> def longer_text(query, a, b):
    ...     return "left" if len(a.body) > len(b.body) else "right"
    >>> longer = fp.labeling.Function(longer_text)
    >>> for judgment, record in fp.labeling.label(session, longer, "long texts", texts):
    ...     pass
    >>> session.order
    ('b',)
    """

    call: Callable[[str, DocumentText, Any], int | str]
    grades: int = len(GRADES)

    def judge(self, query: str, left: DocumentText, right: DocumentText | None) -> AssessorAnswer:
        """Call the function and check its answer.

        Parameters
        ----------
        query : str
            The query.
        left : DocumentText
            The left document, or the document to grade.
        right : DocumentText or None
            The right document; None to grade the left one.

        Returns
        -------
        AssessorAnswer
            The answer, with the seconds it took.

        Raises
        ------
        DataError
            If the function returns anything else than an allowed answer.
        """
        began = time.perf_counter()
        value = self.call(query, left, right)
        cost = {"seconds": time.perf_counter() - began}
        word = " ".join(value.lower().split()) if isinstance(value, str) else None
        if word == SKIP:
            return AssessorAnswer(0, cost=cost, skipped="the function skipped this question")
        if right is None:
            allowed = range(self.grades)
            outcome = _integer(value)
            answers = f"a grade from 0 to {self.grades - 1}"
        elif left.kind == "list":
            allowed = range(-2, 3)
            outcome = _integer(value) if word is None else OUTCOMES.get(word)
            answers = "left, right, tie, or an integer from -2 to 2"
        else:
            allowed = range(-1, 2)
            outcome = _integer(value) if word is None else (OUTCOMES | BAD).get(word)
            answers = "left, right, tie, 1, 0, -1, left bad, right bad or both bad"
        if outcome is None or outcome not in allowed:
            raise DataError(f"the assessor must answer {answers}, or skip; it answered {value!r}.")
        return AssessorAnswer(outcome, _bad_documents(word, left, right), cost)


def _bad_documents(
    word: str | None, left: DocumentText, right: DocumentText | None
) -> tuple[str, ...]:
    """Return the documents that an answer such as "left bad" names."""
    if word not in BAD or right is None:
        return ()
    sides = {"left": (left.key,), "right": (right.key,), "both": (left.key, right.key)}
    return sides[word.partition(" ")[0]]


def _integer(value: object) -> int | None:
    """Return an integer as it is and None for anything else, such as True and 0.7."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        return None
    return operator.index(value)


FetchText = Callable[[str], DocumentText]  # a document by its key


def label(
    session: Session,
    assessor: Assessor,
    query: str,
    documents: Mapping[str, str] | FetchText,
    max_answers: int | None = None,
) -> Iterator[tuple[Judgment, dict[str, Any]]]:
    """Let an assessor answer the questions of a session until the query is complete.

    The judgment is already part of the session when it is yielded, so a caller who stores the
    log can store it then.

    Parameters
    ----------
    session : Session
        The session; it is changed.
    assessor : Assessor
        `Function`, `Chat` or any object with a method ``judge(query, left, right)``.
    query : str
        The query.
    documents : mapping of str to str, or callable
        The text per document name, or a function that returns the `DocumentText` of a name.
    max_answers : int, optional
        Stop after this number of answers.

    Yields
    ------
    judgment : Judgment
        The judgment.
    record : dict
        The judgment for JSON, with its cost.

    Raises
    ------
    DataError
        If the assessor gives an answer that is not allowed.

    Examples
    --------
    >>> import firstpage as fp
    >>> texts = {"a": "short", "b": "much longer", "c": "tiny"}
    >>> def longer_text(query, a, b):
    ...     return "left" if len(a.body) > len(b.body) else "right"
    >>> longer = fp.labeling.Function(longer_text)
    >>> session = fp.labeling.Session(list(texts), fp.labeling.Setting("tournament", k=1))
    >>> answers = fp.labeling.label(session, longer, "long texts", texts)
    >>> judgments = [judgment for judgment, _ in answers]
    >>> session.order
    ('b',)
    """
    fetch = documents if callable(documents) else _fetch_from(documents)
    answers = 0
    while (shown := session.question) is not None and (
        max_answers is None or answers < max_answers
    ):
        right = None if shown.right is None else fetch(shown.right)
        answer = assessor.judge(query, fetch(shown.left), right)
        event = session.answer(answer.outcome, answer.bad, answer.skipped is not None)
        answers += 1
        yield event, {**to_dict(event), "cost": dict(answer.cost)}


def _fetch_from(texts: Mapping[str, str]) -> FetchText:
    return lambda key: DocumentText(key, texts[key])
