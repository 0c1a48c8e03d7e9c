"""The answer in a model's reply: one JSON object, or nothing but the answer's word."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from firstpage.labeling.assessors import OUTCOMES, InvalidReplyError
from firstpage.labeling.machines.client import ChatReply

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
    value = _value(objects[0], key)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value.strip(" .") if isinstance(value, str) else json.dumps(value)


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
