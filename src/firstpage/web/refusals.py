"""How a user's error is answered: its status, and after how long to try again.

The API and the pages share this.
"""

from __future__ import annotations

from firstpage.web.sign_in import Crowded, WrongLogin
from firstpage.web.store.attempts import TooMany
from firstpage.web.store.connect import Busy
from firstpage.web.store.state import NotThere

STATUS: dict[type[Exception], int] = {
    NotThere: 404,
    WrongLogin: 401,
    TooMany: 429,
    Crowded: 503,
    Busy: 503,
}  # any other mistake of a user is a 400
RETRY_AFTER = 2  # seconds, where the error does not say


def status_of(error: Exception) -> int:
    """Return the HTTP status of an error."""
    return next((code for kind, code in STATUS.items() if isinstance(error, kind)), 400)


def headers_of(error: Exception) -> dict[str, str]:
    """Return what is sent along: with "later" comes how much later."""
    if status_of(error) not in (429, 503):
        return {}
    return {"Retry-After": str(getattr(error, "retry_after", RETRY_AFTER))}
