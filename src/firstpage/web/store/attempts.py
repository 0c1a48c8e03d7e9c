"""Sign-ins that failed: how often, for whom and from where, so that guessing is slow.

Failures of strangers must not lock out the account's owner: a device that signed in to the
account before is counted alone.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import IPv6Address, ip_address, ip_network

from sqlalchemy import ColumnElement, delete, select

from firstpage.errors import FirstpageError
from firstpage.web.store.connect import Tx
from firstpage.web.store.people import fold_login
from firstpage.web.store.tables import attempts

MINUTES = 15
# Failures in that time: of one login from one source, of one network, and of one login from
# everywhere.  An office may share an address.
BY_LOGIN_AND_SOURCE, BY_NETWORK, BY_LOGIN = 10, 50, 100
LOGIN_WIDTH, SOURCE_WIDTH = 100, 64  # of the columns
WITH_PORT = re.compile(r"^(?:\[([^\]]*)\](?::\d+)?|([\d.]+):\d+)$")  # [::1]:80, 192.0.2.7:80


@dataclass(frozen=True)
class Source:
    """Where a request comes from, for limits.

    `name`: its network, or, where `known`, the device that signed in to this account before.
    """

    address: str
    name: str
    known: bool = False


class TooMany(FirstpageError):
    """Too many failed sign-ins; wait `retry_after` seconds."""

    def __init__(self, retry_after: int) -> None:
        self.retry_after = retry_after
        minutes = math.ceil(retry_after / 60)
        super().__init__(
            "Too many failed sign-ins; please wait "
            + ("a minute." if minutes == 1 else f"{minutes} minutes.")
        )


def network(address: str) -> Source:
    """Return the source of an address: an IPv6 subscriber has a whole /64 of them.

    Some proxies add the port, which is another one each time.
    """
    host = WITH_PORT.sub(r"\1\2", address).partition("%")[0]
    try:
        parsed = ip_address(host)
    except ValueError:
        return Source(address, address[:SOURCE_WIDTH])
    if isinstance(parsed, IPv6Address):
        if parsed.ipv4_mapped is not None:
            return Source(address, str(parsed.ipv4_mapped))
        return Source(address, str(ip_network((parsed, 64), strict=False)))
    return Source(address, str(parsed))


def check(tx: Tx, login: str, source: Source) -> None:
    """Refuse where there were too many failures of late."""
    same_login = attempts.c.login == _counted(login)
    same_source = attempts.c.address == source.name
    limits: list[tuple[ColumnElement[bool], int]] = [
        (same_login & same_source, BY_LOGIN_AND_SOURCE)
    ]
    if not source.known:
        limits += [(same_source, BY_NETWORK), (same_login, BY_LOGIN)]
    since, waits = tx.later(minutes=-MINUTES), []
    for which, most in limits:
        oldest = tx.value(  # the one whose end makes room
            select(attempts.c.at)
            .where(which, attempts.c.at > since)
            .order_by(attempts.c.at.desc())
            .offset(most - 1)
            .limit(1)
        )
        if oldest is not None:
            waits.append(_seconds_until_over(tx, oldest))
    if waits:
        raise TooMany(max(waits))


def failed(tx: Tx, login: str, source: Source) -> None:
    """Count a failure."""
    tx.run(delete(attempts).where(attempts.c.at < tx.later(minutes=-MINUTES)))
    tx.add(attempts, login=_counted(login), address=source.name, at=tx.now)


def forget(tx: Tx, login: str, source: Source | None = None) -> None:
    """After the right password from `source`; without a source, all of the login."""
    found = delete(attempts).where(attempts.c.login == _counted(login))
    tx.run(found if source is None else found.where(attempts.c.address == source.name))


def _counted(login: str) -> str:
    """Return the login as it is counted; what is longer than any login is cut."""
    return fold_login(login)[:LOGIN_WIDTH]


def _seconds_until_over(tx: Tx, at: str) -> int:
    end = datetime.fromisoformat(at) + timedelta(minutes=MINUTES)
    return max(1, math.ceil((end - datetime.fromisoformat(tx.now)).total_seconds()))
