"""People: their accounts and passwords."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from sqlalchemy import func, select

from firstpage.errors import DataError
from firstpage.web.store import audit
from firstpage.web.store.connect import Tx
from firstpage.web.store.tables import people

if TYPE_CHECKING:
    from argon2 import PasswordHasher

LOGIN = re.compile(r"[\w.@+\-]{1,100}")
SHORTEST, LONGEST = 10, 500  # of a password; a long one costs the server, not the attacker


@dataclass(frozen=True)
class Person:
    """Somebody with an account.  `admin`: may see to all projects (the first lead)."""

    id: int
    login: str
    name: str
    admin: bool = False


def plain(login: str) -> str:
    """As it is kept: one form for all ways to write the same letters, capitals or not."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", login.strip()).casefold())


def create(
    tx: Tx, login: str, name: str = "", known: str | None = None, admin: bool = False
) -> Person:
    """A new account; without a password (`known` is its hash) nobody can log in to it."""
    login = plain(login)
    if not LOGIN.fullmatch(login):
        raise DataError(f"a login has 1 to 100 letters, digits and . @ + - _; got {login[:110]!r}.")
    if tx.value(select(people.c.id).where(people.c.login == login)):
        raise DataError(f"the login {login!r} is taken; choose another.")
    name = (name.strip() or login)[:200]
    row = tx.add(
        people, login=login, name=name, admin=admin, created=tx.now,
        password_hash=known,
    )  # fmt: skip
    audit.note(tx, "person created", person=row)
    return Person(row, login, name, admin)


def get(tx: Tx, person: int) -> Person | None:
    """By id; those deleted are not there."""
    return _person(
        tx.first(select(people).where(people.c.id == person, people.c.deleted.is_(None)))
    )


def by_login(tx: Tx, login: str) -> Person | None:
    return _person(
        tx.first(select(people).where(people.c.login == plain(login), people.c.deleted.is_(None)))
    )


def anybody(tx: Tx) -> bool:
    """Is there an account at all?"""
    return bool(tx.value(select(func.count()).select_from(people)))


def an_admin(tx: Tx) -> bool:
    """Can somebody who may do everything come in?"""
    found = select(func.count()).where(
        people.c.admin, people.c.password_hash.is_not(None), people.c.deleted.is_(None)
    )
    return bool(tx.value(found))


def ensure(tx: Tx, login: str, name: str = "", admin: bool = False) -> Person:
    """The person of this login, made if absent."""
    return by_login(tx, login) or create(tx, login, name, admin=admin)


def set_password(tx: Tx, person: Person, known: str) -> None:
    """By its hash, which is made outside the transaction, since it is slow by design."""
    tx.run(people.update().where(people.c.id == person.id).values(password_hash=known))
    audit.note(tx, "password changed", person=person.id)


def make_admin(tx: Tx, person: Person) -> None:
    tx.run(people.update().where(people.c.id == person.id).values(admin=True))
    audit.note(tx, "made admin", person=person.id)


def password_hash(tx: Tx, person: int) -> str | None:
    found: str | None = tx.value(select(people.c.password_hash).where(people.c.id == person))
    return found


def hashed(password: str) -> str:
    """Argon2id; refuses what is too short or absurdly long."""
    if not SHORTEST <= len(password) <= LONGEST:
        raise DataError(f"a password has {SHORTEST} to {LONGEST} characters; got {len(password)}.")
    return hasher().hash(password)


def fits(password: str, known: str | None) -> bool:
    """Is this the password?  Takes as long where there is no account, so that one cannot tell."""
    from argon2.exceptions import InvalidHashError, VerificationError

    try:
        nobodys = _nobodys()
        right = hasher().verify(known or nobodys, password[: LONGEST + 1])
    except (VerificationError, InvalidHashError):
        return False
    return right and known is not None


@cache
def hasher() -> PasswordHasher:
    from argon2 import PasswordHasher

    return PasswordHasher()


@cache
def _nobodys() -> str:
    return hasher().hash("nobody has this password")


def _person(row: Any) -> Person | None:
    return None if row is None else Person(row["id"], row["login"], row["name"], row["admin"])
