"""Coming in: sign in, accept an invitation, set a password.  The API and the pages share this.

All of it hashes passwords, so it is run by the gate (`web/gate.py`).
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

from firstpage.errors import DataError, FirstpageError
from firstpage.web.store import attempts, audit, invitations, logins, people
from firstpage.web.store.attempts import Source
from firstpage.web.store.connect import Store
from firstpage.web.store.logins import Login
from firstpage.web.store.people import Person
from firstpage.web.store.projects import Project

PREFIX = "firstpage_device_"
DAYS = 365


def cookie(person: int, password_hash: str) -> tuple[str, str]:
    """Return the name and the value of a new device's cookie."""
    nonce = secrets.token_hex(16)
    return f"{PREFIX}{person}", f"{nonce}.{_signature(person, password_hash, nonce)}"


def known(cookies: Mapping[str, str], person: int, password_hash: str | None) -> str | None:
    """Return the device's own number, if the account knows the device."""
    nonce, _, signature = cookies.get(f"{PREFIX}{person}", "").partition(".")
    if password_hash is None or len(nonce) != 32 or not nonce.isalnum() or not nonce.isascii():
        return None
    wanted = _signature(person, password_hash, nonce)
    same = hmac.compare_digest(signature.encode("utf-8", "replace"), wanted.encode())
    return nonce if same else None


def any_claimed(cookies: Mapping[str, str]) -> bool:
    """Is there a cookie to look at?"""
    return any(name.startswith(PREFIX) for name in cookies)


def _signature(person: int, password_hash: str, nonce: str) -> str:
    message = f"firstpage device {person} {nonce}".encode()
    return hmac.new(password_hash.encode(), message, hashlib.sha256).hexdigest()


P = ParamSpec("P")
T = TypeVar("T")

HASHES = 2  # at the same time
PLACES = 32  # for those who hash and those who wait
RESERVED = 8  # of them for known devices, so that strangers cannot fill all
PER_SOURCE = 8  # places of one network or device


class Crowded(FirstpageError):
    """Too many are signing in at this moment."""


class Gate:
    """Runs sign-in work of one application, each piece as a whole on one of `HASHES` threads."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(HASHES, "sign-in")
        self._lock = threading.Lock()
        self._taken: Counter[str] = Counter()

    async def run(
        self, source: Source, work: Callable[P, T], *given: P.args, **more: P.kwargs
    ) -> T:
        """Return what `work` returns; refused at once where no place is free."""
        self._enter(source)
        try:
            future = self._threads.submit(work, *given, **more)
        except BaseException:
            self._leave(source)
            raise
        future.add_done_callback(lambda _: self._leave(source))
        return await asyncio.wrap_future(future)

    def _enter(self, source: Source) -> None:
        with self._lock:
            places = PLACES if source.known else PLACES - RESERVED
            if self._taken.total() >= places or self._taken[source.name] >= PER_SOURCE:
                raise Crowded("Many people are signing in; please try again in a moment.")
            self._taken[source.name] += 1

    def _leave(self, source: Source) -> None:
        with self._lock:
            self._taken[source.name] -= 1
            self._taken += Counter()  # forget those at zero


WRONG = "This login and password do not fit together."


class WrongLogin(FirstpageError):
    """No such login, or another password; which of them is not said."""


@dataclass(frozen=True)
class Entered:
    """What a browser receives: the cookie of a known device, and the token of a new session."""

    device: tuple[str, str] | None = None
    token: str | None = None
    login: Login | None = None
    project: Project | None = None


def source(store: Store, login: str, address: str, cookies: Mapping[str, str]) -> Source:
    """Return where a sign-in comes from: a device that this account knows, or its network."""
    stranger = attempts.network(address)
    if not any_claimed(cookies):
        return stranger
    with store.read() as tx:
        person = people.by_login(tx, login)
        password_hash = None if person is None else people.password_hash(tx, person.id)
    nonce = None if person is None else known(cookies, person.id, password_hash)
    return stranger if nonce is None else Source(address, f"device {nonce}", known=True)


def log_in(
    store: Store, login: str, password: str, source: Source, before: Login | None = None
) -> Entered:
    """Start a new session; one that the browser had `before` ends.

    The password is checked outside any transaction: it is slow by design.  The attempt is
    written down first, so that many at once do not slip through, and taken back if it was right.
    """
    login = login.strip()[:100]
    with store.write() as tx:
        attempts.check(tx, login, source)
        attempts.failed(tx, login, source)
        person = people.by_login(tx, login)
        password_hash = None if person is None else people.password_hash(tx, person.id)
    if not people.fits(password, password_hash) or person is None or password_hash is None:
        who = person.id if person else None
        with store.write() as tx:
            audit.note(tx, "login failed", person=who, address=source.address)
        raise WrongLogin(WRONG)
    with store.write() as tx:
        attempts.forget(tx, login, source)
        if before is not None:
            logins.end(tx, before.id)
        audit.note(tx, "logged in", person=person.id, address=source.address)
        token, session = logins.start(tx, person)
    return Entered(cookie(person.id, password_hash), token, session)


def accept(
    store: Store, token: str, *, login: str = "", name: str = "", password: str = "",
    person: Person | None = None,
) -> Entered:  # fmt: skip
    """Take up an invitation as `person`, or with a new account, which is then signed in."""
    with store.read() as tx:
        invitations.offered(tx, token, person)  # before the slow hash
    password_hash = None if person is not None else people.hashed(password, login)
    with store.write() as tx:
        offer = invitations.offered(tx, token, person)
        who = person or people.create(tx, login, name, password_hash)
        project = invitations.join(tx, offer, who)
        if password_hash is None:
            return Entered(project=project)
        started, session = logins.start(tx, who)
    return Entered(cookie(who.id, password_hash), started, session, project)


def reset(store: Store, token: str, password: str) -> Entered:
    """Set a new password by a link; all sessions of the account end."""
    with store.read() as tx:
        offer = invitations.look(tx, token, "reset")
    password_hash = people.hashed(password, offer.login or "")
    with store.write() as tx:
        offer = invitations.look(tx, token, "reset")
        person = people.get(tx, offer.person or 0)
        if person is None:
            raise DataError(invitations.OVER)
        invitations.use(tx, offer, person)
        people.set_password(tx, person, password_hash)
        logins.end_all(tx, person.id)
    return Entered(cookie(person.id, password_hash))


def change_password(store: Store, login: Login, old: str, new: str, source: Source) -> Entered:
    """Change it for a person who knows the old one; other sessions end.  Guessing is limited."""
    who = login.person
    people.check_password(new, who.login)
    with store.write() as tx:
        attempts.check(tx, who.login, source)
        attempts.failed(tx, who.login, source)
        known = people.password_hash(tx, who.id)
    if not people.fits(old, known):
        raise DataError("the old password is not this one.")
    password_hash = people.hashed(new, who.login)
    with store.write() as tx:
        attempts.forget(tx, who.login, source)
        people.set_password(tx, who, password_hash)
        logins.end_all(tx, who.id, but=login.id)
    return Entered(cookie(who.id, password_hash))
