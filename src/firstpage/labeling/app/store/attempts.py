"""Rate limits for failed sign-ins, by login and by network.

Failures of strangers must not lock out the owner of an account: a device that signed in to the
account before is counted separately.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, delete, select

from firstpage.core import FirstpageError
from firstpage.core.http import network_name
from firstpage.labeling.app.store.connect import Tx
from firstpage.labeling.app.store.people import fold_login
from firstpage.labeling.app.store.tables import attempts

MINUTES = 15
# The maximum number of failures in that time: per login and source, per network, and per login
# from all sources.  An office may share an address.
BY_LOGIN_AND_SOURCE, BY_NETWORK, BY_LOGIN = 10, 50, 100
LOGIN_WIDTH = 100  # of the column


@dataclass(frozen=True)
class RequestSource:
    """The origin of a request, for rate limits.

    `name` is its network or, if `known`, a device that signed in to this account before.
    """

    address: str
    name: str
    known: bool = False


class TooMany(FirstpageError):
    """Too many failed sign-ins; try again after `retry_after` seconds."""

    def __init__(self, retry_after: int) -> None:
        self.retry_after = retry_after
        minutes = math.ceil(retry_after / 60)
        super().__init__(
            "Too many failed sign-ins; please wait "
            + ("a minute." if minutes == 1 else f"{minutes} minutes.")
        )


def network(address: str) -> RequestSource:
    """Return the source of an address: its network."""
    return RequestSource(address, network_name(address))


def check(tx: Tx, login: str, source: RequestSource) -> None:
    """Raise `TooMany` after too many recent failures."""
    same_login = attempts.c.login == _stored(login)
    same_source = attempts.c.address == source.name
    limits: list[tuple[ColumnElement[bool], int]] = [
        (same_login & same_source, BY_LOGIN_AND_SOURCE)
    ]
    if not source.known:
        limits += [(same_source, BY_NETWORK), (same_login, BY_LOGIN)]
    since, waits = tx.later(minutes=-MINUTES), []
    for condition, limit in limits:
        oldest = tx.value(  # once this one expires, another attempt is allowed
            select(attempts.c.recorded_at)
            .where(condition, attempts.c.recorded_at > since)
            .order_by(attempts.c.recorded_at.desc())
            .offset(limit - 1)
            .limit(1)
        )
        if oldest is not None:
            waits.append(_seconds_until_expired(tx, oldest))
    if waits:
        raise TooMany(max(waits))


def add_failure(tx: Tx, login: str, source: RequestSource) -> None:
    """Record a failure."""
    tx.run(delete(attempts).where(attempts.c.recorded_at < tx.later(minutes=-MINUTES)))
    tx.add(attempts, login=_stored(login), address=source.name, recorded_at=tx.now)


def forget(tx: Tx, login: str, source: RequestSource | None = None) -> None:
    """Delete the failures of a login from a source, or from all sources."""
    statement = delete(attempts).where(attempts.c.login == _stored(login))
    tx.run(statement if source is None else statement.where(attempts.c.address == source.name))


def _stored(login: str) -> str:
    """Return the login as it is stored, truncated to the width of the column."""
    return fold_login(login)[:LOGIN_WIDTH]


def _seconds_until_expired(tx: Tx, at: str) -> int:
    end = datetime.fromisoformat(at) + timedelta(minutes=MINUTES)
    return max(1, math.ceil((end - datetime.fromisoformat(tx.now)).total_seconds()))
