"""People: their accounts and passwords."""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Collection
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

LOCAL = "local"  # the login of the one person of `--open`, who has no password
LOGIN = re.compile(r"[\w.@+\-]{1,100}")
SHORTEST, LONGEST = 10, 500  # of a password; a long one costs the server, not the attacker
DIFFERENT = 4  # characters of a password
SHORTEST_WORD = 3  # of a login; shorter ones are in any password
# The first passwords to be guessed: these words, digits and signs after them; keys in a row.
COMMON_WORDS = frozenset(
    ("admin", "administrator", "adminadmin", "baseball", "changeme", "chocolate", "correcthorse",
     "correcthorsebatterystaple", "dragon", "firstpage", "football", "hello", "helloworld",
     "iloveyou", "labeling", "labeling", "letmein", "letmeinplease", "liverpool", "login",
     "manchester", "master", "monkey", "mypassword", "p@ssword", "p@ssw0rd", "pass", "passw0rd",
     "password", "passwordpassword", "princess", "qazwsxedcrfv", "qwerasdfzxcv", "qwerty", "qwertz",
     "qwertyqwerty", "secret", "starwars", "sunshine", "superman", "test", "testtest",
     "thisisapassword", "trustno", "user", "welcome", "whatever")
)  # fmt: skip
ROWS = (
    "01234567890123456789", "abcdefghijklmnopqrstuvwxyz0123456789", "1q2w3e4r5t6y7u8i9o0p",
    "q1w2e3r4t5y6u7i8o9p0", "1qaz2wsx3edc4rfv5tgb6yhn7ujm", "qazwsxedcrfvtgbyhnujmikolp",
    "qwertyuiop[]asdfghjkl;'zxcvbnm,./", "qwertzuiopüasdfghjklöäyxcvbnm",
    "azertyuiopqsdfghjklmwxcvbn", "qwertyuiop0123456789", "asdfghjkl0123456789",
    "zxcvbnm0123456789", "123456789abcdefghij", "qwertyuiop123456789", "abc123456789",
    "a1234567890", "1122334455667788990", "asdfghjkl123456789", "zxcvbnm123456789",
)  # fmt: skip


@dataclass(frozen=True)
class Person:
    """Somebody with an account.  `admin`: may see to all projects (the first lead)."""

    id: int
    login: str
    name: str
    admin: bool = False


def fold_login(login: str) -> str:
    """Return a login as it is stored, compared and counted: one form for all ways to write it."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", login.strip()).casefold())


def create(
    tx: Tx, login: str, name: str = "", known: str | None = None, admin: bool = False
) -> Person:
    """A new account; without a password (`known` is its hash) nobody can log in to it."""
    login = fold_login(login)
    if not LOGIN.fullmatch(login):
        raise DataError(f"a login has 1 to 100 letters, digits and . @ + - _; got {login[:110]!r}.")
    if tx.value(select(people.c.id).where(people.c.login == login)):
        raise DataError(f"the login {login!r} is taken; choose another.")
    if known is not None:
        _check_password_allowed(login)
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
        tx.first(
            select(people).where(people.c.login == fold_login(login), people.c.deleted.is_(None))
        )
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


def waiting_admin(tx: Tx) -> Person | None:
    """Return an admin who never set a password and has only to come in."""
    return _person(
        tx.first(
            select(people)
            .where(
                people.c.admin, people.c.password_hash.is_(None), people.c.deleted.is_(None),
                people.c.login != LOCAL,
            )
            .order_by(people.c.id)
        )
    )  # fmt: skip


def ensure(tx: Tx, login: str, name: str = "", admin: bool = False) -> Person:
    """The person of this login, made if absent."""
    return by_login(tx, login) or create(tx, login, name, admin=admin)


def set_password(tx: Tx, person: Person, known: str) -> None:
    """By its hash, which is made outside the transaction, since it is slow by design."""
    _check_password_allowed(person.login)
    tx.run(people.update().where(people.c.id == person.id).values(password_hash=known))
    audit.note(tx, "password changed", person=person.id)


def _check_password_allowed(login: str) -> None:
    """Refuse a password for the person of `--open`, who sees to everything without one."""
    if login == LOCAL:
        raise DataError(
            f"the login {LOCAL!r} is for `label serve --open` and has no password; choose another."
        )


def make_admin(tx: Tx, person: Person) -> None:
    tx.run(people.update().where(people.c.id == person.id).values(admin=True))
    audit.note(tx, "made admin", person=person.id)


def password_hash(tx: Tx, person: int) -> str | None:
    found: str | None = tx.value(select(people.c.password_hash).where(people.c.id == person))
    return found


def check_password(password: str, login: str) -> None:
    """Refuse a password that is too short, absurdly long, or among the first to be guessed."""
    if not SHORTEST <= len(password) <= LONGEST:
        raise DataError(f"a password has {SHORTEST} to {LONGEST} characters; got {len(password)}.")
    folded = fold_login(password)
    if folded == fold_login(login):
        raise DataError("the password is the login; choose another.")
    if len(set(folded)) < DIFFERENT:
        raise DataError(
            f"a password has at least {DIFFERENT} different characters; got {len(set(folded))}."
        )
    if any(folded in row or folded[::-1] in row for row in ROWS) or _made_of(folded, COMMON_WORDS):
        raise DataError("this is one of the most common passwords; choose another.")
    if _made_of(folded, COMMON_WORDS | _login_words(login)):
        raise DataError("the password is made of the login; choose another.")


def _login_words(login: str) -> frozenset[str]:
    """Return the login, its letters and its longer parts, each forward and backward."""
    folded = fold_login(login)
    found = {folded, _letters(folded), *re.split(r"[\W\d_]+", folded)}
    return frozenset(w[::way] for w in found if len(w) >= SHORTEST_WORD for way in (1, -1))


def _made_of(folded: str, words: Collection[str]) -> bool:
    """Return whether a password is nothing but these words, with digits, signs and blanks."""
    plain = "".join(folded.split()).strip(string.digits + string.punctuation)
    return any(_is_joined(text, words) for text in (plain, _letters(folded)))


def _is_joined(text: str, words: Collection[str]) -> bool:
    """Return whether a text is one of the words, or several without anything between."""
    ends = {0}
    for at in range(len(text)):
        if at in ends:
            ends.update(at + len(word) for word in words if text.startswith(word, at))
    return bool(text) and len(text) in ends


def _letters(text: str) -> str:
    return "".join(filter(str.isalpha, text))


def hashed(password: str, login: str) -> str:
    """Return the Argon2id hash of the password of `login`; a trivial password is refused."""
    check_password(password, login)
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
