"""Known devices: a cookie that proves that somebody signed in to an account from this browser.

It lets nobody in.  It is signed with the stored hash of the account's password, which is secret,
so no table is needed, and a new password ends all of an account's known devices.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Mapping

PREFIX = "firstpage_device_"
DAYS = 365


def cookie(person: int, password_hash: str) -> tuple[str, str]:
    """Return the name and the value of a new device's cookie."""
    nonce = secrets.token_hex(16)
    return f"{PREFIX}{person}", f"{nonce}.{_signature(person, password_hash, nonce)}"


def known(cookies: Mapping[str, str], person: int, password_hash: str | None) -> str | None:
    """Return the device's own number, if the account knows the device."""
    nonce, _, signature = cookies.get(f"{PREFIX}{person}", "").partition(".")
    if password_hash is None or len(nonce) != 32 or not nonce.isalnum() or not nonce.isascii():
        return None
    wanted = _signature(person, password_hash, nonce)
    same = hmac.compare_digest(signature.encode("utf-8", "replace"), wanted.encode())
    return nonce if same else None


def any_claimed(cookies: Mapping[str, str]) -> bool:
    """Is there a cookie to look at?"""
    return any(name.startswith(PREFIX) for name in cookies)


def _signature(person: int, password_hash: str, nonce: str) -> str:
    message = f"firstpage device {person} {nonce}".encode()
    return hmac.new(password_hash.encode(), message, hashlib.sha256).hexdigest()
