"""Accounts and passwords."""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from sqlalchemy import ColumnElement, func, select

from firstpage.core import DataError
from firstpage.labeling.app.store import audit
from firstpage.labeling.app.store.connect import Tx, from_row
from firstpage.labeling.app.store.tables import adjudications, people, tasks

if TYPE_CHECKING:
    from argon2 import PasswordHasher

PRESENT = people.c.deleted.is_(None)
LOCAL = "local"  # the login of the single user of `--open`, who has no password
LOGIN = re.compile(r"[\w.@+\-]{1,100}")
MIN_LENGTH, MAX_LENGTH = 10, 500  # of a password; hashing a long one costs the server
MIN_DISTINCT = 4  # characters of a password
MIN_WORD = 3  # letters of a word of a login; shorter ones occur in any password
# The first passwords to be guessed: these words, also with digits or punctuation; rows of keys.
COMMON_WORDS = frozenset(
    ("admin", "administrator", "adminadmin", "baseball", "changeme", "chocolate", "correcthorse",
     "correcthorsebatterystaple", "dragon", "firstpage", "football", "hello", "helloworld",
     "iloveyou", "labeling", "labelling", "letmein", "letmeinplease", "liverpool", "login",
     "manchester", "master", "monkey", "mypassword", "p@ssword", "p@ssw0rd", "pass", "passw0rd",
     "password", "passwordpassword", "princess", "qazwsxedcrfv", "qwerasdfzxcv", "qwerty", "qwertz",
     "qwertyqwerty", "secret", "starwars", "sunshine", "superman", "test", "testtest",
     "thisisapassword", "trustno", "user", "welcome", "whatever")
)  # fmt: skip
KEY_ROWS = (
    "01234567890123456789", "abcdefghijklmnopqrstuvwxyz0123456789", "1q2w3e4r5t6y7u8i9o0p",
    "q1w2e3r4t5y6u7i8o9p0", "1qaz2wsx3edc4rfv5tgb6yhn7ujm", "qazwsxedcrfvtgbyhnujmikolp",
    "qwertyuiop[]asdfghjkl;'zxcvbnm,./", "qwertzuiopüasdfghjklöäyxcvbnm",
    "azertyuiopqsdfghjklmwxcvbn", "qwertyuiop0123456789", "asdfghjkl0123456789",
    "zxcvbnm0123456789", "123456789abcdefghij", "qwertyuiop123456789", "abc123456789",
    "a1234567890", "1122334455667788990", "asdfghjkl123456789", "zxcvbnm123456789",
)  # fmt: skip


@dataclass(frozen=True)
class Person:
    """A person with an account; an `admin` (the first lead) manages all projects."""

    id: int
    login: str
    name: str
    admin: bool = False


def fold_login(login: str) -> str:
    """Return the normalized form in which a login is stored, compared and counted."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", login.strip()).casefold())


def create(
    tx: Tx, login: str, name: str = "", password_hash: str | None = None, admin: bool = False
) -> Person:
    """Create an account; without a password hash nobody can sign in to it."""
    login = fold_login(login)
    if not LOGIN.fullmatch(login):
        raise DataError(
            f"a login must have 1 to 100 letters, digits or . @ + - _; got {login[:110]!r}."
        )
    if tx.value(select(people.c.id).where(people.c.login == login)):
        raise DataError(f"the login {login!r} is taken; choose another.")
    if password_hash is not None:
        _check_password_allowed(login)
    name = (name.strip() or login)[:200]
    values = {"login": login, "name": name, "admin": admin, "password_hash": password_hash}
    row = tx.add(people, created=tx.now, **values)
    audit.note(tx, "person created", row)
    return Person(row, login, name, admin)


def get(tx: Tx, person: int) -> Person | None:
    """Return a person by id; None if there is none, or the account is deleted."""
    return _person(tx, people.c.id == person)


def by_login(tx: Tx, login: str) -> Person | None:
    """Return a person by login; None if there is none, or the account is deleted."""
    return _person(tx, people.c.login == fold_login(login))


def any_account(tx: Tx) -> bool:
    """Return whether there is any account."""
    return tx.count(people) > 0


def has_admin(tx: Tx) -> bool:
    """Return whether an admin can sign in."""
    return tx.count(people, people.c.admin, people.c.password_hash.is_not(None), PRESENT) > 0


def admin_without_password(tx: Tx) -> Person | None:
    """Return an admin who has not set a password yet."""
    return _person(tx, people.c.admin, people.c.password_hash.is_(None), people.c.login != LOCAL)


def ensure(tx: Tx, login: str, name: str = "", admin: bool = False) -> Person:
    """Return the person with this login; create the account if there is none."""
    return by_login(tx, login) or create(tx, login, name, admin=admin)


def set_password(tx: Tx, person: Person, password_hash: str) -> None:
    """Set a password by its hash, which is computed outside the transaction: it is slow."""
    _check_password_allowed(person.login)
    tx.run(people.update().where(people.c.id == person.id).values(password_hash=password_hash))
    audit.note(tx, "password changed", person)


def _check_password_allowed(login: str) -> None:
    """Refuse a password for the single user of `--open`, who has none."""
    if login == LOCAL:
        raise DataError(
            f"the login {LOCAL!r} is for `label serve --open` and has no password; choose another."
        )


def make_admin(tx: Tx, person: Person) -> None:
    """Make a person an admin."""
    tx.run(people.update().where(people.c.id == person.id).values(admin=True))
    audit.note(tx, "made admin", person)


def password_hash(tx: Tx, person: int) -> str | None:
    """Return the hash of a person's password; None if it is not set."""
    value: str | None = tx.value(select(people.c.password_hash).where(people.c.id == person))
    return value


def check_password(password: str, login: str) -> None:
    """Refuse a password that is too short, too long, or among the first to be guessed."""
    if not MIN_LENGTH <= len(password) <= MAX_LENGTH:
        raise DataError(
            f"a password must have {MIN_LENGTH} to {MAX_LENGTH} characters; got {len(password)}."
        )
    folded = fold_login(password)
    if folded == fold_login(login):
        raise DataError("the password is the same as the login; choose another.")
    if len(set(folded)) < MIN_DISTINCT:
        raise DataError(
            f"a password must have at least {MIN_DISTINCT} different characters; "
            f"got {len(set(folded))}."
        )
    if any(folded in row or folded[::-1] in row for row in KEY_ROWS) or _consists_of(
        folded, COMMON_WORDS
    ):
        raise DataError("this is one of the most common passwords; choose another.")
    if _consists_of(folded, COMMON_WORDS | _login_words(login)):
        raise DataError("the password consists of the login; choose another.")


def _login_words(login: str) -> frozenset[str]:
    """Return the login, its letters and its longer parts, each forward and backward."""
    folded = fold_login(login)
    words = {folded, _letters(folded), *re.split(r"[\W\d_]+", folded)}
    return frozenset(w[::step] for w in words if len(w) >= MIN_WORD for step in (1, -1))


def _consists_of(folded: str, words: Collection[str]) -> bool:
    """Return whether a password is only these words, with digits, punctuation and blanks."""
    plain = "".join(folded.split()).strip(string.digits + string.punctuation)
    return any(_is_joined(text, words) for text in (plain, _letters(folded)))


def _is_joined(text: str, words: Collection[str]) -> bool:
    """Return whether a text is a concatenation of one or more of the words."""
    ends = {0}
    for at in range(len(text)):
        if at in ends:
            ends.update(at + len(word) for word in words if text.startswith(word, at))
    return bool(text) and len(text) in ends


def _letters(text: str) -> str:
    return "".join(filter(str.isalpha, text))


def hash_password(password: str, login: str) -> str:
    """Return the Argon2id hash of the password of `login`; a trivial password is refused."""
    check_password(password, login)
    return hasher().hash(password)


def verify_password(password: str, password_hash: str | None) -> bool:
    """Return whether this is the password.

    Without an account it takes as long, so that the time does not reveal which logins exist.
    """
    from argon2.exceptions import InvalidHashError, VerificationError

    try:
        dummy = _dummy_hash()
        matches = hasher().verify(password_hash or dummy, password[: MAX_LENGTH + 1])
    except (VerificationError, InvalidHashError):
        return False
    return matches and password_hash is not None


@cache
def hasher() -> PasswordHasher:
    """Return the Argon2id hasher."""
    from argon2 import PasswordHasher

    return PasswordHasher()


@cache
def _dummy_hash() -> str:
    return hasher().hash("nobody has this password")


def judgments_by_others(tx: Tx, logins: Collection[str]) -> int:
    """Return the number of judgments and verdicts by people with other logins than these."""
    others = people.c.login.not_in(logins)
    judgments = select(func.sum(tasks.c.judgments)).join_from(tasks, people).where(others)
    return (tx.value(judgments) or 0) + tx.count(adjudications.join(people), others)


def _person(tx: Tx, *conditions: ColumnElement[bool]) -> Person | None:
    """Return the first person for whom these hold, and whose account is not deleted."""
    row = tx.first(select(people).where(*conditions, PRESENT).order_by(people.c.id))
    return None if row is None else from_row(Person, row)
