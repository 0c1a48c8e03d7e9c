"""A language model behind an OpenAI-compatible chat endpoint as assessor."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, get_args
from urllib.parse import urlsplit

from firstpage.core import DataError
from firstpage.core.http import RateLimiter, Retries, check_key
from firstpage.labeling.assessors import OUTCOMES, AssessorAnswer, DocumentText, InvalidReplyError
from firstpage.labeling.machines.client import ChatReply, post_chat
from firstpage.labeling.machines.prompts import DEFAULT_RUBRIC, Example, Prompt, Rubric, short_hash

REASONING = r"(?:think|thinking|reasoning)"
REASONING_END = re.compile(rf".*</{REASONING}>", re.DOTALL | re.IGNORECASE)
UNFINISHED_REASONING = re.compile(rf"<{REASONING}>.*", re.DOTALL | re.IGNORECASE)
SINGLE_WORD = re.compile(r"[^\w+-]*([0-9A-Za-z]+)[^\w+-]*")  # in quotes, bold or with a period
MAX_FAILURES = 200  # braces that begin no object, each of which takes time like the whole text
CUT = "the model's reply was cut at the endpoint's limit of tokens"
REFUSED = "the model refused to answer"
SEVERAL = "the model gave several answers in one reply"


def parse_better(reply: ChatReply, cost: Mapping[str, Any]) -> int:
    """Return 1 for A, -1 for B and 0 for a tie."""
    word = _word(reply, "better", "A, B or tie", cost)
    if word.lower() not in ("a", "b", "tie"):
        raise _invalid("A, B or tie", reply, cost)
    return OUTCOMES[word.lower()]


def parse_grade(reply: ChatReply, highest: int, cost: Mapping[str, Any]) -> int:
    """Return the grade."""
    allowed = f"a grade from 0 to {highest}"
    word = _word(reply, "grade", allowed, cost)
    if not re.fullmatch("[0-9]{1,3}", word) or int(word) > highest:
        raise _invalid(allowed, reply, cost)
    return int(word)


def _word(reply: ChatReply, key: str, allowed: str, cost: Mapping[str, Any]) -> str:
    """Return the value of a key in the only JSON object of a reply, or the only word of a reply."""
    value = parse_value(reply, key, allowed, cost)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value.strip(" .") if isinstance(value, str) else json.dumps(value)


def parse_value(reply: ChatReply, key: str, allowed: str, cost: Mapping[str, Any]) -> Any:
    """Return the value of a key in the only JSON object of a reply, or the only word of a reply.

    Reasoning between tags is ignored; other text around the object is, too.
    """
    if reply.refused:
        raise _invalid(allowed, reply, cost, REFUSED)
    if reply.truncated:
        raise _invalid(allowed, reply, cost, CUT)
    finished = REASONING_END.match(reply.text)
    text = UNFINISHED_REASONING.sub("", reply.text[finished.end() if finished else 0 :])
    objects = _json_objects(text)
    answers = re.findall(rf"[\"']{key}[\"']\s*:", text, re.IGNORECASE)
    if len(objects) > 1 or len(answers) > 1:
        raise _invalid(allowed, reply, cost, SEVERAL)
    if not objects:
        word = SINGLE_WORD.fullmatch(text)
        if word is None:
            raise _invalid(allowed, reply, cost)
        return word[1]
    return _value(objects[0], key)


def _value(answer: dict[str, Any], key: str) -> Any:
    """Return the value of a key in an object, or in the objects inside; None if it is absent."""
    for name, value in answer.items():
        if name.lower() == key:
            return value
    inside = (_value(value, key) for value in answer.values() if isinstance(value, dict))
    return next((value for value in inside if value is not None), None)


def _json_objects(text: str) -> list[dict[str, Any]]:
    """Return the JSON objects in a text, without those inside of others."""
    decoder, objects, failures = json.JSONDecoder(), [], 0
    start = text.find("{")
    while start >= 0 and failures < MAX_FAILURES:
        try:
            value, end = decoder.raw_decode(text, start)
            objects.append(value)
        except ValueError:
            end, failures = start + 1, failures + 1
        except RecursionError:
            return []
        start = text.find("{", end)
    return objects if start < 0 else []


def _invalid(
    allowed: str, reply: ChatReply, cost: Mapping[str, Any], reason: str | None = None
) -> InvalidReplyError:
    note = "" if reason is None else f" ({reason})"
    return InvalidReplyError(
        f"the model must answer {allowed}; it answered {reply.text[:200]!r}{note}.", cost, reason
    )


Orders = Literal["both", "random"]
Conflicts = Literal["tie", "skip", "first"]
CONFLICTS: tuple[Conflicts, ...] = get_args(Conflicts)
ORDERS: tuple[Orders, ...] = get_args(Orders)
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
    recorded where the two answers differ. With ``orders="random"`` it is asked once, at half the
    cost, in an order that is random but always the same for this pair and query: a preference for
    a position is then noise. A grade is asked once, by a rubric.

    Parameters
    ----------
    url : str
        Base address of the endpoint, up to and including ``/v1``.
    model : str
        Name of the model.
    key : str, default ""
        API key, sent as bearer token to `url` alone; redirects are not followed. It is not shown
        in the repr, and is replaced by "[key]" in errors and replies that repeat it.
    guidelines : str, default ""
        Instructions for assessors, appended to the prompt.
    prices : (float, float), default (0.0, 0.0)
        Price per million input tokens and per million output tokens.
    max_chars : int, default 8000
        Number of characters of a document that are sent. The cost of an answer names longer
        documents under "truncated".
    timeout : float, default 60.0
        Seconds for a request with its whole reply.
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
    orders : {"both", "random"}, default "both"
        Whether a pair is asked in both orders, or in one order at random.
    limiter : RateLimiter, optional
        Limits the rate of requests of all threads that use this assessor.

    Raises
    ------
    DataError
        If `url` is not an http or https address or contains a password or a query, `key` cannot
        be sent in a header, or `conflicts` or `orders` is unknown.

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
    orders: Orders = "both"
    limiter: RateLimiter = field(default_factory=RateLimiter, repr=False, compare=False)
    prompt: Prompt = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_url(self.url)
        check_key(self.key)
        for name, values in (("conflicts", CONFLICTS), ("orders", ORDERS)):
            if getattr(self, name) not in values:
                raise DataError(
                    f"{name} must be one of {', '.join(values)}; got {getattr(self, name)!r}."
                )
        prompt = Prompt(
            self.rubric,
            self.guidelines,
            self.ties,
            self.instructions,
            self.prompt_name,
            self.examples,
            self.max_examples,
            self.max_chars,
        )
        object.__setattr__(self, "prompt", prompt)

    def judge(self, query: str, left: DocumentText, right: DocumentText | None) -> AssessorAnswer:
        """Ask the model: once for a grade, twice for a pair unless `orders` is "random".

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
            return AssessorAnswer(parse_grade(reply, self.rubric.highest, cost), cost=cost)
        if self.orders == "random":
            pair = "\n".join([query, *sorted((left.key, right.key))])
            turned = (int(short_hash(pair), 16) % 2 == 1) == (left.key < right.key)
            shown = (right, left) if turned else (left, right)
            reply = self._ask(0, query, *shown, journal)
            cost = self._cost(query, [reply], left, right)
            cost["shown_first"] = shown[0].key
            return AssessorAnswer(parse_better(reply, cost) * (-1 if turned else 1), cost=cost)
        first = self._ask(0, query, left, right, journal)
        second = self._ask(1, query, right, left, journal)
        cost = self._cost(query, [first, second], left, right)
        straight, swapped = parse_better(first, cost), -parse_better(second, cost)
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
            "endpoint": self.url,
            "model": self.model,
            "temperature": 0,
            "conflicts": self.conflicts,
            "orders": self.orders,
            "max_chars": self.max_chars,
            "prices": list(self.prices),
            "prompt_name": self.prompt_name,
            "rubric_name": self.rubric.name,
            "prompts": {
                kind: {"text": text, "hash": short_hash(text)}
                for kind, text in (
                    ("pairs", self.prompt.system(True)),
                    ("grades", self.prompt.system(False)),
                )
            },
            "examples": self.max_examples,
        }

    def _ask(
        self,
        part: int,
        query: str,
        left: DocumentText,
        right: DocumentText | None,
        journal: ReplyJournal | None,
    ) -> ChatReply:
        body = {
            "model": self.model,
            "temperature": 0,
            "messages": self.prompt.messages(query, left, right),
        }
        request = short_hash(json.dumps(body))
        stored = None if journal is None else journal.get(part, request)
        if stored is not None:
            return stored
        reply = post_chat(
            self.url,
            self.key,
            body,
            retries=Retries(self.timeout, self.max_attempts, self.backoff),
            limiter=self.limiter,
        )
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
            **self.prompt.provenance(query, len(documents) > 1),
            "replies": [reply.text for reply in replies],
            **({"truncated": truncated} if truncated else {}),
            **({} if all(reply.counted for reply in replies) else {"uncounted": True}),
        }


def check_url(url: str) -> None:
    """Refuse an address that cannot be requested, or that contains a password or a query."""
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if not valid or not (url.isascii() and url.isprintable()) or " " in url:
        shown = re.split("[?#]", url.rpartition("@")[2])[0]  # without a password or a key
        raise DataError(f"the endpoint must be an http or https address; got {shown!r}.")
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise DataError(
            "the address of the endpoint must end with its path, such as /v1, and contain no "
            "password; give the API key as `key`, or in FIRSTPAGE_ENDPOINT_KEY."
        )
