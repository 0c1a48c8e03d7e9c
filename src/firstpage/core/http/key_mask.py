"""What an endpoint sends, as it may be shown and stored: without the API key that it may repeat."""

from __future__ import annotations

import re
from base64 import b64encode
from dataclasses import dataclass, field
from functools import cache

from firstpage.core.errors import DataError

MASK = "[key]"
MIN_KEY = 8  # characters; shorter ones are placeholders such as "ollama", which replies contain
MIN_PREFIX = 8  # characters of the key that are masked even if the rest was cut
MAX_EXCERPT = 200  # characters
LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
UNSTORABLE = re.compile("[\0\ud800-\udfff]")  # databases refuse them


def check_key(key: str) -> None:
    """Refuse a key that cannot be sent in a header; the message does not repeat it."""
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise DataError(
            "the API key must consist of printable ASCII characters without blanks or line breaks."
        )


@dataclass(frozen=True)
class KeyMask:
    """Replaces an API key in texts, also if it is encoded or if its end was cut.

    It is found in plain text, with escapes of URLs, JSON or HTML for any of its characters, in
    base64 at any offset, and in hexadecimal.
    """

    key: str = field(repr=False)

    def __call__(self, text: str) -> str:
        """Return the text with every appearance of the key replaced."""
        for spelling in _spellings(self.key):
            text = _without(text, spelling)
        return text

    def stored(self, text: str) -> str:
        """Return a text as it may be stored."""
        return self(UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", text))

    def excerpt(self, text: str) -> str:
        """Return the first characters of a text on one line, without control characters."""
        printable = "".join(c if c.isprintable() else " " if c.isspace() else "" for c in text)
        shown = self(" ".join(printable.split()))
        return shown if len(shown) <= MAX_EXCERPT else f"{shown[:MAX_EXCERPT]}..."


def _spellings(key: str) -> list[str]:
    """Return the texts that are masked: the key, its base64 at three offsets, and its digits."""
    if len(key) < MIN_KEY:
        return []
    encoded = []
    for offset in range(3):
        data = b"\0" * offset + key.encode()
        first, last = -(-8 * offset // 6), 8 * len(data) // 6  # digits that depend on the key alone
        encoded.append(b64encode(data).decode()[first:last])
    return [key, *encoded, key.encode().hex()]


def _without(text: str, spelling: str) -> str:
    """Return the text without a spelling of the key, or a beginning of it that is long enough."""
    folded = text.translate(LOWER)  # of the same length
    escapes = [_any_escape(char) for char in spelling.lower()]
    length = min(len(escapes), MIN_PREFIX)
    beginning = re.compile("".join(escapes[:length]))
    parts, position = [], 0
    while match := beginning.search(folded, position):
        end = match.end()
        for escape in escapes[length:]:
            further = re.compile(escape).match(folded, end)
            if further is None:
                break
            end = further.end()
        parts += [text[position : match.start()], MASK]
        position = end
    return "".join([*parts, text[position:]])


@cache
def _any_escape(char: str) -> str:
    """Return a pattern of a letter in either case: as it is, or escaped in URLs, JSON, HTML or C.

    Alternatives begin with different letters and repetitions are limited, so that it is fast.
    """
    plain = {"+": "[+-]", "/": "[/_]"}.get(char, re.escape(char))  # base64 of URLs has - and _
    codes = {ord(char), ord(char.upper())}
    digits = "|".join(f"{code:02x}" for code in codes)
    decimal = "|".join(map(str, codes))
    return (
        rf"(?:{plain}|\\{{1,4}}(?:{plain}|(?:u00|x)(?:{digits}))|%(?:25){{0,3}}(?:{digits})"
        rf"|&\#0{{0,4}}(?:{decimal}|x0{{0,4}}(?:{digits}));)"
    )
