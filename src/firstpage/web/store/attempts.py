"""Logins that failed: how often, by whom and from where, so that guessing is slow."""

from __future__ import annotations

from sqlalchemy import delete, func, select

from firstpage.errors import FirstpageError
from firstpage.web.store.connect import Tx
from firstpage.web.store.tables import attempts

MINUTES = 15
BY_LOGIN, BY_ADDRESS = 10, 50  # failures in that time; an office may share an address


class TooMany(FirstpageError):
    """Too many failed logins; wait."""


def check(tx: Tx, login: str, address: str) -> None:
    """Refuse where there were too many failures of late."""
    since = tx.later(minutes=-MINUTES)
    for column, value, most in (
        (attempts.c.login, login.lower(), BY_LOGIN),
        (attempts.c.address, address, BY_ADDRESS),
    ):
        found = select(func.count()).where(column == value, attempts.c.at > since)
        if tx.value(found) >= most:
            raise TooMany(f"Too many failed logins; please wait {MINUTES} minutes.")


def failed(tx: Tx, login: str, address: str) -> None:
    tx.run(delete(attempts).where(attempts.c.at < tx.later(minutes=-MINUTES)))
    tx.add(attempts, login=login.lower()[:100], address=address, at=tx.now)


def forget(tx: Tx, login: str) -> None:
    """After the right password."""
    tx.run(delete(attempts).where(attempts.c.login == login.lower()[:100]))
