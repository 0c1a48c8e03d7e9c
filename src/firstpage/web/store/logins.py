"""Who is logged in: sessions are kept here and can be ended; a browser has a random token."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass

from sqlalchemy import bindparam, delete, select, update

from firstpage.web.store.connect import Tx
from firstpage.web.store.people import Person
from firstpage.web.store.tables import logins, people

DAYS = 30  # how long one stays logged in without being seen
STALE = 3600.0  # seconds after which being seen is written down again

FOUND = (
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
    """A session: who, and the token that forms must carry.  `stale`: should be touched."""

    id: int
    person: Person
    csrf: str
    stale: bool = False


def token_hash(token: str) -> str:
    """What is stored of a secret token; a copy of the database opens no door."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


def start(tx: Tx, person: Person) -> tuple[str, Login]:
    """A new session with a token of its own: one that was there before login is never kept."""
    token, csrf = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
    tx.run(delete(logins).where(logins.c.expires < tx.now))
    row = tx.add(
        logins, token_hash=token_hash(token), person=person.id, csrf=csrf,
        created=tx.now, seen=tx.now, expires=tx.later(days=DAYS),
    )  # fmt: skip
    return token, Login(row, person, csrf)


def find(tx: Tx, token: str) -> Login | None:
    """The session of a token, unless it is over."""
    row = tx.first(FOUND, token=token_hash(token), now=tx.now)
    if row is None:
        return None
    person = Person(row["person"], row["login"], row["name"], row["admin"])
    return Login(row["id"], person, row["csrf"], row["seen"] < tx.later(seconds=-STALE))


def touch(tx: Tx, login: int) -> None:
    """The person was here just now."""
    tx.run(
        update(logins).where(logins.c.id == login).values(seen=tx.now, expires=tx.later(days=DAYS))
    )


def end(tx: Tx, login: int) -> None:
    tx.run(delete(logins).where(logins.c.id == login))


def end_all(tx: Tx, person: int, but: int | None = None) -> None:
    """All sessions of a person, after a change of password; `but` the one that made it."""
    found = delete(logins).where(logins.c.person == person)
    tx.run(found if but is None else found.where(logins.c.id != but))
