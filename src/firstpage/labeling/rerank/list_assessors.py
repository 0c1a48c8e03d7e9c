"""Programs that say which of several documents are best: a chat endpoint, a function, a model."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from string import ascii_uppercase
from typing import Any, Protocol

from firstpage.core import DataError, imported
from firstpage.core.http import RateLimiter, Retries, check_key
from firstpage.labeling.assessors import DocumentText, InvalidReplyError
from firstpage.labeling.machines.chat import check_url, parse_value
from firstpage.labeling.machines.client import ChatReply, post_chat
from firstpage.labeling.machines.prompts import FORMAT, REPLY, quoted
from firstpage.search import CrossEncoder, value_text

INSTRUCTIONS = """A person searched for a query. Decide which of the documents that person would \
rather see first. Judge only how well each answers the query."""
BEST = ', the letter of the best document, such as: {"best": "B"}.'
ORDER = ', the letters of all documents from the best to the worst, such as: {"order": ["B", "A"]}.'
REMINDER = "The reply to this question was not of this form. "
MAX_SHOWN = len(ascii_uppercase)  # documents of a question, which have a letter each


@dataclass(frozen=True)
class ListReply:
    """A reply to a question, and what it cost.

    Attributes
    ----------
    ranking : tuple of int
        Positions of the shown documents, best first; empty if the reply is malformed.
    price : float
        What it cost.
    tokens : int
        Tokens that were read and written.
    problem : str
        Why a malformed reply is not an answer.
    """

    ranking: tuple[int, ...]
    price: float = 0.0
    tokens: int = 0
    problem: str = ""


class ListAssessor(Protocol):
    """A program that names the best of several documents, or their order."""

    def request(
        self, query: str, documents: Sequence[DocumentText], best_only: bool, again: bool
    ) -> Mapping[str, Any]:
        """Return all that decides the reply, for JSON; a cache finds the reply by it."""
        ...

    def reply(
        self, request: Mapping[str, Any], query: str, documents: Sequence[DocumentText]
    ) -> ListReply:
        """Return the reply to a request about these documents."""
        ...


@dataclass(frozen=True)
class ChatListAssessor:
    """A language model behind an OpenAI-compatible chat endpoint that compares documents.

    Documents are strings of one JSON object, each with a letter by its random position, so a text
    cannot leave its string and does not know its letter. A reply must name letters, and nothing
    else.

    Parameters
    ----------
    url : str
        Base address of the endpoint, up to and including ``/v1``.
    model : str
        Name of the model.
    key : str, default ""
        API key, sent as bearer token to `url` alone.
    prices : (float, float), default (0.0, 0.0)
        Price per million input tokens and per million output tokens.
    guidelines : str, default ""
        Instructions about what makes a document good, appended to the prompt.
    max_chars : int, default 2000
        Number of characters of a document that are sent.
    timeout : float, default 60.0
        Seconds for a request with its whole reply.
    max_attempts : int, default 6
        Number of attempts per request if the endpoint is busy or fails.
    backoff : float, default 1.0
        Seconds before the second attempt; doubled for each further one.
    limiter : RateLimiter, optional
        Limits the rate of requests of all threads that use this assessor.

    Raises
    ------
    DataError
        If `url` is not an http or https address, or `key` cannot be sent in a header.

    Examples
    --------
    >>> import firstpage as fp
    >>> fp.labeling.ChatListAssessor("http://localhost:8000/v1", "some-model").max_chars
    2000
    """

    url: str
    model: str
    key: str = field(default="", repr=False)
    prices: tuple[float, float] = (0.0, 0.0)
    guidelines: str = ""
    max_chars: int = 2_000
    timeout: float = 60.0
    max_attempts: int = 6
    backoff: float = 1.0
    limiter: RateLimiter = field(default_factory=RateLimiter, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_url(self.url)
        check_key(self.key)

    def request(
        self, query: str, documents: Sequence[DocumentText], best_only: bool, again: bool
    ) -> Mapping[str, Any]:
        """Return the body of the request.

        Parameters
        ----------
        query : str
            The query.
        documents : sequence of DocumentText
            The documents in the order in which they are shown.
        best_only : bool
            Ask for the best one only, not for the order.
        again : bool
            The question is asked again, since the first reply was malformed.

        Returns
        -------
        mapping
            The body, with model and messages.
        """
        system = [INSTRUCTIONS, FORMAT]
        if self.guidelines:
            system.append(f"Guidelines: {quoted(self.guidelines)}")
        system.append(REMINDER * again + REPLY + (BEST if best_only else ORDER))
        rows = [f'"query": {quoted(str(query))}']
        for letter, document in zip(ascii_uppercase, documents, strict=False):
            texts = {"title": document.title, "text": document.body[: self.max_chars]}
            rows.append(f'"{letter}": {quoted(texts)}')
        question = "{\n" + ",\n".join(rows) + "\n}"
        return {
            "model": self.model,
            "temperature": 0,
            "messages": [
                {"role": "system", "content": "\n".join(system)},
                {"role": "user", "content": question},
            ],
        }

    def reply(
        self, request: Mapping[str, Any], query: str, documents: Sequence[DocumentText]
    ) -> ListReply:
        """Send a request and parse its reply.

        Parameters
        ----------
        request : mapping
            The body that `request` returned.
        query : str
            The query.
        documents : sequence of DocumentText
            The documents that are shown.

        Returns
        -------
        ListReply
            The ranking; an empty one if the reply is malformed.

        Raises
        ------
        DataError
            If the endpoint cannot be reached or answers with an error.
        """
        retries = Retries(self.timeout, self.max_attempts, self.backoff)
        reply = post_chat(self.url, self.key, request, retries=retries, limiter=self.limiter)
        tokens = reply.input_tokens, reply.output_tokens
        price = sum(count * each for count, each in zip(tokens, self.prices, strict=True)) / 1e6
        try:
            best_only = BEST in request["messages"][0]["content"]
            ranking = parse_ranking(reply, len(documents), best_only)
        except InvalidReplyError as error:
            return ListReply((), price, sum(tokens), str(error))
        return ListReply(ranking, price, sum(tokens))


def parse_ranking(reply: ChatReply, shown: int, best_only: bool) -> tuple[int, ...]:
    """Return the positions that a reply names: one, or all of them, each once."""
    letters = ascii_uppercase[:shown]
    allowed = f"one letter from A to {letters[-1]}"
    if not best_only:
        allowed = f"all letters from A to {letters[-1]}, each once"
    value = parse_value(reply, "best" if best_only else "order", allowed, {})
    names = [value] if best_only else value
    if isinstance(names, list) and all(isinstance(name, str) for name in names):
        named = [name.strip(" .").upper() for name in names]
        expected = named[:1] if best_only and named[0] in [*letters] else [*letters]
        if sorted(named) == expected:
            return tuple(letters.index(name) for name in named)
    raise InvalidReplyError(f"the model must answer {allowed}; it answered {reply.text[:200]!r}.")


@dataclass(frozen=True)
class FunctionListAssessor:
    """A Python function that compares documents.

    Parameters
    ----------
    call : callable
        Function of (query, documents) that returns the ids of the documents, best first; where
        only the best one is needed, the others may be missing. A document has `key` (its id),
        `body` (its text) and `title`.
    name : str, default ""
        Name of the function, by which a cache finds its answers.

    Examples
    --------
    >>> import firstpage as fp
    >>> def longest_first(query, documents):
    ...     return [each.key for each in sorted(documents, key=lambda d: -len(d.body))]
    >>> fp.labeling.FunctionListAssessor(longest_first, "longest").name
    'longest'
    """

    call: Callable[[str, Sequence[DocumentText]], Sequence[str]]
    name: str = ""

    def request(
        self, query: str, documents: Sequence[DocumentText], best_only: bool, again: bool
    ) -> Mapping[str, Any]:
        """Return the name of the function, the query and the texts.

        Parameters
        ----------
        query : str
            The query.
        documents : sequence of DocumentText
            The documents in the order in which they are shown.
        best_only : bool
            Only the best one is needed.
        again : bool
            The question is asked again.

        Returns
        -------
        mapping
            All that decides the answer.
        """
        texts = [[each.key, each.title, each.body] for each in documents]
        return {
            "function": self.name, "query": str(query), "documents": texts,
            "best": best_only, "again": again,
        }  # fmt: skip

    def reply(
        self, request: Mapping[str, Any], query: str, documents: Sequence[DocumentText]
    ) -> ListReply:
        """Call the function.

        Parameters
        ----------
        request : mapping
            What `request` returned.
        query : str
            The query.
        documents : sequence of DocumentText
            The documents that are shown.

        Returns
        -------
        ListReply
            The ranking; an empty one if the function returned something else.
        """
        answer = self.call(query, documents)
        ids = [answer] if isinstance(answer, str) else list(answer)
        at = {each.key: place for place, each in enumerate(documents)}
        least = 1 if request["best"] else len(at)
        valid = all(each in at for each in ids) and least <= len(ids) == len(set(ids))
        if not valid:
            wanted = "the id of the best document" if request["best"] else "all ids, best first"
            return ListReply((), problem=f"the function must return {wanted}; it returned {ids!r}.")
        return ListReply(tuple(at[each] for each in ids[: 1 if request["best"] else None]))


@dataclass(frozen=True)
class CrossEncoderAssessor:
    """A local cross-encoder: a model that reads a query and a document, and returns a score.

    Parameters
    ----------
    model : CrossEncoder
        The model.
    """

    model: CrossEncoder
    _scores: dict[tuple[str, str, str], float] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def request(
        self, query: str, documents: Sequence[DocumentText], best_only: bool, again: bool
    ) -> Mapping[str, Any]:
        """Return the digest of the model, the query and the texts."""
        texts = [[each.title, each.body] for each in documents]
        return {
            "model": self.model.digest, "query": str(query), "documents": texts, "best": best_only,
        }  # fmt: skip

    def reply(
        self, request: Mapping[str, Any], query: str, documents: Sequence[DocumentText]
    ) -> ListReply:
        """Order the documents by their scores; a document is scored once per query."""
        keys = [(str(query), each.title, each.body) for each in documents]
        new = [key for key in dict.fromkeys(keys) if key not in self._scores]
        if new:
            texts = [f"{title}\n{body}".strip() for _, title, body in new]
            scores = self.model.scores(str(query), texts)
            self._scores.update(zip(new, scores.tolist(), strict=True))
        order = sorted(range(len(keys)), key=lambda place: -self._scores[keys[place]])
        return ListReply(tuple(order[: 1 if request["best"] else None]))


def load_list_assessor(
    name: str, function: Callable[..., Any] | None = None, **settings: Any
) -> ListAssessor:
    """Return the assessor of a name.

    Parameters
    ----------
    name : str
        ``http://host/v1#model``, ``module:function``, or the folder of a cross-encoder in ONNX.
    function : callable, optional
        The function of this name, if the caller has loaded it.
    **settings
        Parameters of `ChatListAssessor`, for an endpoint.

    Returns
    -------
    ListAssessor
        The assessor.

    Raises
    ------
    DataError
        If there is no such folder or function, or the address lacks the model.

    Examples
    --------
    >>> import firstpage as fp
    >>> fp.labeling.load_list_assessor("http://localhost:8000/v1#some-model").model
    'some-model'
    """
    if name.startswith(("http://", "https://")):
        url, _, model = name.partition("#")
        if not model:
            raise DataError(f"assessor {name}: name the model after #, such as {url}#some-model.")
        return ChatListAssessor(url, model, **settings)
    if os.path.isdir(name):
        return CrossEncoderAssessor(CrossEncoder(Path(name)))
    if ":" in name:
        return FunctionListAssessor(function or imported(name, "function"), name)
    raise DataError(
        f"assessor {name}: there is no such folder; give http://host/v1#model, module:function, or "
        "the folder of a cross-encoder."
    )


def document_text(key: str, values: Mapping[str, Any]) -> DocumentText:
    """Return the title of a document and its other fields, named if there are several."""
    title = value_text(values.get("title", ""))
    rest = {name: value_text(value) for name, value in values.items() if name != "title"}
    if len(rest) == 1:
        return DocumentText(key, next(iter(rest.values())), title)
    return DocumentText(key, "\n".join(f"{name}: {text}" for name, text in rest.items()), title)


def check_size(size: int, best_only: bool) -> None:
    """Refuse questions about fewer than two documents, or more than have a letter."""
    if not 2 <= size <= MAX_SHOWN:
        kind = "best" if best_only else "order"
        raise DataError(
            f"a question {kind!r} must show from 2 to {MAX_SHOWN} documents; got {size}."
        )


def request_text(request: Mapping[str, Any]) -> str:
    """Return a request as text, of which a cache stores the digest."""
    return json.dumps(request, sort_keys=True, ensure_ascii=True)
