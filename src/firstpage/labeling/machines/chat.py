"""A language model behind an OpenAI-compatible chat endpoint as assessor."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, get_args

from firstpage.errors import DataError
from firstpage.labeling.assessors import (
    OUTCOMES,
    AssessorAnswer,
    DocumentText,
    InvalidReplyError,
)
from firstpage.labeling.machines.client import ChatReply, post_chat
from firstpage.labeling.machines.limits import RateLimiter
from firstpage.labeling.machines.prompts import DEFAULT_RUBRIC, Example, Prompt, Rubric, short_hash

Conflicts = Literal["tie", "skip", "first"]
CONFLICTS: tuple[Conflicts, ...] = get_args(Conflicts)
CONTRADICTION = "the model contradicted itself when the order was swapped"


class ReplyJournal(Protocol):
    """The durable replies to one question; a reply in it is not asked for again."""

    def get(self, part: int, request: str) -> ChatReply | None:
        """Return the stored reply to a request, by its number in the question and its hash."""

    def put(self, part: int, request: str, reply: ChatReply) -> None:
        """Store a reply; it is durable on return."""


@dataclass(frozen=True)
class Chat:
    """A language model behind an OpenAI-compatible chat endpoint as assessor.

    A pair is asked in both orders, since models favor a position; `conflicts` says what is
    recorded where the two answers differ. A grade is asked once, by a rubric.

    Parameters
    ----------
    url : str
        Base address of the endpoint, up to and including ``/v1``.
    model : str
        Name of the model.
    key : str, default ""
        API key, sent as bearer token; it is not shown in the repr.
    guidelines : str, default ""
        Instructions for assessors, appended to the prompt.
    prices : (float, float), default (0.0, 0.0)
        Price per million input tokens and per million output tokens.
    max_chars : int, default 8000
        Number of characters of a document that are sent. The cost of an answer names longer
        documents under "truncated".
    timeout : float, default 60.0
        Seconds to wait for a reply.
    max_attempts : int, default 6
        Number of attempts per request if the endpoint is busy or fails.
    backoff : float, default 1.0
        Seconds before the second attempt; doubled for each further one, and varied at random. The
        header Retry-After takes precedence.
    conflicts : {"tie", "skip", "first"}, default "tie"
        What is recorded where the two orders give different answers: a tie, a skipped question,
        or the answer to the first order.
    ties : bool, default True
        Whether the model may answer that neither document is better.
    rubric : Rubric, optional
        The meaning of the grades; by default five grades from bad to perfect.
    instructions : str, default ""
        Replaces the first paragraph of the prompt.
    prompt_name : str, default "default"
        Name of the instructions; the log of judgments has it with a hash of the prompt.
    examples : tuple of Example, default ()
        Questions with the answers of people, from which each question gets examples.
    max_examples : int, default 0
        Number of examples per question; they come from other queries.
    limiter : RateLimiter, optional
        Limits the rate of requests of all threads that use this assessor.

    Raises
    ------
    DataError
        If `url` is not an http or https address, or `conflicts` is unknown.

    Examples
    --------
    >>> import firstpage as fp
    >>> fp.labeling.Chat("http://localhost:8000/v1", "some-model", prices=(0.2, 0.8)).conflicts
    'tie'
    """

    url: str
    model: str
    key: str = field(default="", repr=False)
    guidelines: str = ""
    prices: tuple[float, float] = (0.0, 0.0)
    max_chars: int = 8_000
    timeout: float = 60.0
    max_attempts: int = 6
    backoff: float = 1.0
    conflicts: Conflicts = "tie"
    ties: bool = True
    rubric: Rubric = DEFAULT_RUBRIC
    instructions: str = ""
    prompt_name: str = "default"
    examples: tuple[Example, ...] = field(default=(), repr=False)
    max_examples: int = 0
    limiter: RateLimiter = field(default_factory=RateLimiter, repr=False, compare=False)
    prompt: Prompt = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not re.match(r"https?://", self.url):
            raise DataError(f"the endpoint must be an http or https address; got {self.url!r}.")
        if self.conflicts not in CONFLICTS:
            raise DataError(
                f"conflicts must be one of {', '.join(CONFLICTS)}; got {self.conflicts!r}."
            )
        prompt = Prompt(
            self.rubric, self.guidelines, self.ties, self.instructions, self.prompt_name,
            self.examples, self.max_examples, self.max_chars,
        )  # fmt: skip
        object.__setattr__(self, "prompt", prompt)

    def judge(self, query: str, left: DocumentText, right: DocumentText | None) -> AssessorAnswer:
        """Ask the model: once for a grade, twice for a pair.

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
            The answer, with seconds, tokens, price, model, prompt and replies.

        Raises
        ------
        InvalidReplyError
            If a reply is none of the allowed answers.
        DataError
            If the endpoint cannot be reached or answers with an error.
        """
        return self.judge_recorded(query, left, right, None)

    def judge_recorded(
        self,
        query: str,
        left: DocumentText,
        right: DocumentText | None,
        journal: ReplyJournal | None,
    ) -> AssessorAnswer:
        """Ask the model as `judge` does, for replies that are not in the journal yet.

        Parameters
        ----------
        query : str
            The query.
        left : DocumentText
            The left document, or the document to grade.
        right : DocumentText or None
            The right document; None to grade the left one.
        journal : ReplyJournal or None
            The durable replies to this question; each reply is stored when it is received.

        Returns
        -------
        AssessorAnswer
            The answer with its cost.
        """
        if right is None:
            reply = self._ask(0, query, left, None, journal)
            cost = self._cost(query, [reply], left)
            return AssessorAnswer(_parse_grade(reply, self.rubric.highest, cost), cost=cost)
        first = self._ask(0, query, left, right, journal)
        second = self._ask(1, query, right, left, journal)
        cost = self._cost(query, [first, second], left, right)
        straight, swapped = _parse_better(first, cost), -_parse_better(second, cost)
        cost["orders"] = [straight, swapped]
        if straight == swapped or self.conflicts == "first":
            return AssessorAnswer(straight, cost=cost)
        return AssessorAnswer(
            0, cost=cost, skipped=CONTRADICTION if self.conflicts == "skip" else None
        )

    def settings(self) -> dict[str, Any]:
        """Return everything that determines the answers, for the project's audit log.

        Returns
        -------
        dict
            Endpoint, model, the full texts of prompts and rubric, and the names of the examples;
            not the API key.
        """
        return {
            "endpoint": self.url, "model": self.model, "temperature": 0,
            "conflicts": self.conflicts, "max_chars": self.max_chars, "prices": list(self.prices),
            "prompt_name": self.prompt_name, "rubric_name": self.rubric.name,
            "prompts": {
                kind: {"text": text, "hash": short_hash(text)}
                for kind, text in (
                    ("pairs", self.prompt.system(True)), ("grades", self.prompt.system(False))
                )
            },
            "examples": self.max_examples,
        }  # fmt: skip

    def _ask(
        self, part: int, query: str, left: DocumentText, right: DocumentText | None,
        journal: ReplyJournal | None,
    ) -> ChatReply:  # fmt: skip
        body = {
            "model": self.model, "temperature": 0,
            "messages": self.prompt.messages(query, left, right),
        }  # fmt: skip
        request = short_hash(json.dumps(body))
        stored = None if journal is None else journal.get(part, request)
        if stored is not None:
            return stored
        reply = post_chat(
            self.url, self.key, body, timeout=self.timeout, max_attempts=self.max_attempts,
            backoff=self.backoff, limiter=self.limiter,
        )  # fmt: skip
        if journal is not None:
            journal.put(part, request, reply)
        return reply

    def _cost(
        self, query: str, replies: list[ChatReply], *documents: DocumentText
    ) -> dict[str, Any]:
        """Return the cost of the replies, as it is stored in the log."""
        input_tokens = sum(reply.input_tokens for reply in replies)
        output_tokens = sum(reply.output_tokens for reply in replies)
        price = (input_tokens * self.prices[0] + output_tokens * self.prices[1]) / 1e6
        truncated = [document.key for document in documents if len(document.body) > self.max_chars]
        return {
            "seconds": sum(reply.seconds for reply in replies),
            "input_tokens": input_tokens,
            "output_tokens": output_tokens,
            "price": price,
            "attempts": sum(reply.attempts for reply in replies),
            "model": self.model,
            **self.prompt.provenance(query, len(replies) > 1),
            "replies": [reply.text for reply in replies],
            **({"truncated": truncated} if truncated else {}),
            **({} if all(reply.counted for reply in replies) else {"uncounted": True}),
        }


def _parse_better(reply: ChatReply, cost: Mapping[str, Any]) -> int:
    """Return 1 for A, -1 for B and 0 for a tie."""
    match = re.search(r'"better"\s*:\s*"?(A|B|tie)\b', reply.text, re.IGNORECASE)
    match = match or re.fullmatch(r"\W*(A|B|tie)\W*", reply.text, re.IGNORECASE)
    if match is None:
        raise InvalidReplyError(_invalid("A, B or tie", reply), cost)
    return OUTCOMES[match[1].lower()]


def _parse_grade(reply: ChatReply, highest: int, cost: Mapping[str, Any]) -> int:
    match = re.search(r'"grade"\s*:\s*"?(\d+)\b(?!\.\d)', reply.text)
    match = match or re.fullmatch(r"\W*(\d+)\W*", reply.text)
    if match is None or int(match[1]) > highest:
        raise InvalidReplyError(_invalid(f"a grade from 0 to {highest}", reply), cost)
    return int(match[1])


def _invalid(allowed: str, reply: ChatReply) -> str:
    cut = ", cut at the endpoint's limit of tokens" if reply.truncated else ""
    return f"the model must answer {allowed}; it answered {reply.text[:200]!r}{cut}."
