"""Letters that stand for systems and groups in tables."""

from __future__ import annotations

ALPHABET = "abcdefghijklmnopqrstuvwxyz"


def system_letter(number: int) -> str:
    """Return a, b, .. z, a1, b1, .. ."""
    round_, letter = divmod(number, len(ALPHABET))
    return ALPHABET[letter] + (str(round_) if round_ else "")
