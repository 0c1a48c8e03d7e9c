"""Login sessions: stored on the server, where they can be ended; a browser has a random token."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass

from sqlalchemy import bindparam, delete, select, update

from firstpage.labeling.app.store.connect import Tx
from firstpage.labeling.app.store.people import Person
from firstpage.labeling.app.store.tables import logins, people

DAYS = 30  # until an unused session expires
STALE = 3600.0  # seconds after which the last use is recorded again

LOGIN_BY_TOKEN = (
    select(logins, people.c.login, people.c.name, people.c.admin)
    .join(people, people.c.id == logins.c.person)
    .where(
        logins.c.token_hash == bindparam("token"),
        logins.c.expires > bindparam("now"),
        people.c.deleted.is_(None),
    )
)


@dataclass(frozen=True)
class Login:
    """A session: the person, and the CSRF token of their forms.  `stale`: it should be touched.

    `scope` is set for a program with an API token, whose id is `id`; it needs no CSRF token.
    """

    id: int
    person: Person
    csrf: str
    stale: bool = False
    scope: str | None = None
    by_proxy: bool = False  # signed in by the header of a proxy


def token_hash(token: str) -> str:
    """Return the digest under which a token is stored, so that a leaked database has no tokens."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


def start(tx: Tx, person: Person) -> tuple[str, Login]:
    """Start a session with a new token; a token from before the login is never reused."""
    token = secrets.token_urlsafe(32)
    return token, _start(tx, person, token_hash(token))


def _start(tx: Tx, person: Person, key: str, by_proxy: bool = False) -> Login:
    """Start a session in place of one with the same key; expired ones end."""
    csrf, expires = secrets.token_urlsafe(32), tx.later(days=DAYS)
    tx.run(delete(logins).where((logins.c.expires < tx.now) | (logins.c.token_hash == key)))
    times = {"created": tx.now, "last_seen": tx.now, "expires": expires}
    row = tx.add(logins, token_hash=key, person=person.id, csrf=csrf, **times)
    return Login(row, person, csrf, by_proxy=by_proxy)


def find(tx: Tx, token: str) -> Login | None:
    """Return the session of a token; None if it is unknown or expired."""
    row = tx.first(LOGIN_BY_TOKEN, token=token_hash(token), now=tx.now)
    if row is None:
        return None
    person = Person(row["person"], row["login"], row["name"], row["admin"])
    return Login(row["id"], person, row["csrf"], row["last_seen"] < tx.later(seconds=-STALE))


def of_proxy(tx: Tx, person: Person) -> Login | None:
    """Return the session of a person whom a proxy signed in; None if there is none yet."""
    row = tx.first(select(logins).where(logins.c.token_hash == _proxy_key(person)))
    if row is None or row["expires"] <= tx.now:
        return None
    stale = row["last_seen"] < tx.later(seconds=-STALE)
    return Login(row["id"], person, row["csrf"], stale, by_proxy=True)


def start_by_proxy(tx: Tx, person: Person) -> Login:
    """Start the session of a person whom a proxy signed in: one per person, without a cookie."""
    started = of_proxy(tx, person)  # perhaps by a concurrent request
    return started or _start(tx, person, _proxy_key(person), by_proxy=True)


def _proxy_key(person: Person) -> str:
    """Return a value of `token_hash` that no token has: it is not a hexadecimal digest."""
    return f"proxy {person.id}"


def touch(tx: Tx, login: int) -> None:
    """Record that a session is in use, and extend it."""
    tx.run(
        update(logins)
        .where(logins.c.id == login)
        .values(last_seen=tx.now, expires=tx.later(days=DAYS))
    )


def end(tx: Tx, login: int) -> None:
    """End a session."""
    tx.run(delete(logins).where(logins.c.id == login))


def end_all(tx: Tx, person: int, keep: int | None = None) -> None:
    """End all sessions of a person, except `keep`."""
    statement = delete(logins).where(logins.c.person == person)
    tx.run(statement if keep is None else statement.where(logins.c.id != keep))
