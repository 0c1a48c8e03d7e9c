"""API tokens: how programs sign in as a person, with a scope, until they are revoked.

A token is shown once and stored as a digest.  Its prefix lets scanners of leaked secrets recognize
it, and distinguishes it from bearer tokens that a proxy adds for its own purposes.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Literal, get_args

from sqlalchemy import bindparam, delete, select, update

from firstpage.core import DataError
from firstpage.labeling.app.store import audit
from firstpage.labeling.app.store.connect import Tx, from_row
from firstpage.labeling.app.store.logins import Login, token_hash
from firstpage.labeling.app.store.people import Person
from firstpage.labeling.app.store.tables import api_tokens, people

Scope = Literal["read", "judge", "lead"]  # each allows what those before it allow
SCOPES: tuple[Scope, ...] = get_args(Scope)
PREFIX = "firstpage_"
MAX_TOKENS = 50  # per person
MAX_DAYS = 3650
STALE = 60.0  # seconds after which the last use is recorded again

TOKEN = (
    select(
        api_tokens.c.id,
        api_tokens.c.scope,
        api_tokens.c.last_used,
        people.c.id.label("person"),
        people.c.login,
        people.c.name,
        people.c.admin,
    )
    .join(people, people.c.id == api_tokens.c.person)
    .where(
        api_tokens.c.token_hash == bindparam("token"),
        api_tokens.c.expires.is_(None) | (api_tokens.c.expires > bindparam("now")),
        people.c.deleted.is_(None),
    )
)


@dataclass(frozen=True)
class ApiToken:
    """A token as lists show it, without its secret."""

    id: int
    login: str
    name: str
    scope: str
    created: str
    expires: str | None
    last_used: str | None


def create(
    tx: Tx, person: Person, name: str, scope: str, days: float | None = None
) -> tuple[str, ApiToken]:
    """Create a token of a person; return the secret, which is not stored, and its row."""
    name = name.strip()
    if not 1 <= len(name) <= 100:
        raise DataError(f"the name of a token must have 1 to 100 characters; got {len(name)}.")
    if scope not in SCOPES:
        raise DataError(f"the scope of a token must be one of {', '.join(SCOPES)}; got {scope!r}.")
    if days is not None and not 0 < days <= MAX_DAYS:
        raise DataError(f"a token must be valid for up to {MAX_DAYS:,} days; got {days:g}.")
    if tx.count(api_tokens, api_tokens.c.person == person.id) >= MAX_TOKENS:
        raise DataError(f"{person.login} has {MAX_TOKENS} tokens; revoke one first.")
    secret = PREFIX + secrets.token_urlsafe(32)
    expires = None if days is None else tx.later(days=days)
    row = tx.add(
        api_tokens,
        token_hash=token_hash(secret),
        person=person.id,
        name=name,
        scope=scope,
        created=tx.now,
        expires=expires,
    )
    audit.note(tx, "token created", person, token=row, scope=scope)
    return secret, ApiToken(row, person.login, name, scope, tx.now, expires, None)


def find(tx: Tx, token: str) -> Login | None:
    """Return the login of a token; None if it is unknown, expired or revoked."""
    row = tx.first(TOKEN, token=token_hash(token), now=tx.now)
    if row is None:
        return None
    person = Person(row["person"], row["login"], row["name"], row["admin"])
    stale = row["last_used"] is None or row["last_used"] < tx.later(seconds=-STALE)
    return Login(row["id"], person, csrf="", stale=stale, scope=row["scope"])


def touch(tx: Tx, token: int) -> None:
    """Record that a token is in use."""
    tx.run(update(api_tokens).where(api_tokens.c.id == token).values(last_used=tx.now))


def listed(tx: Tx, person: int | None = None) -> list[ApiToken]:
    """Return the tokens of a person, or of all people, newest first."""
    rows = (
        select(api_tokens, people.c.login)
        .join(people, people.c.id == api_tokens.c.person)
        .order_by(api_tokens.c.id.desc())
    )
    listed = rows if person is None else rows.where(api_tokens.c.person == person)
    return [from_row(ApiToken, row) for row in tx.all(listed)]


def revoke(tx: Tx, token: int, by: int | None, person: int | None = None) -> bool:
    """Revoke a token, of this person if given; return whether there was one."""
    owner = tx.value(select(api_tokens.c.person).where(api_tokens.c.id == token))
    if owner is None or person not in (None, owner):
        return False
    tx.run(delete(api_tokens).where(api_tokens.c.id == token))
    audit.note(tx, "token revoked", by, token=token, account=owner)
    return True


def revoke_all(tx: Tx, person: int) -> None:
    """Revoke all tokens of a person."""
    tx.run(delete(api_tokens).where(api_tokens.c.person == person))
