"""Sign in, accept an invitation, set a password; shared by the API and the pages.

All of this hashes passwords, so it runs in the `SignInPool`.
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

from firstpage.core import DataError, FirstpageError
from firstpage.labeling.app.store import attempts, audit, invitations, logins, people, tokens
from firstpage.labeling.app.store.attempts import RequestSource
from firstpage.labeling.app.store.connect import Store
from firstpage.labeling.app.store.logins import Login
from firstpage.labeling.app.store.people import Person
from firstpage.labeling.app.store.projects import Project

COOKIE_PREFIX = "firstpage_device_"
DAYS = 365  # until the cookie of a device expires


def device_cookie(person: int, password_hash: str) -> tuple[str, str]:
    """Return the name and value of the cookie of a new device."""
    nonce = secrets.token_hex(16)
    return f"{COOKIE_PREFIX}{person}", f"{nonce}.{_signature(person, password_hash, nonce)}"


def known_device(cookies: Mapping[str, str], person: int, password_hash: str | None) -> str | None:
    """Return the nonce of a device that signed in to the account before; None if it is unknown."""
    nonce, _, signature = cookies.get(f"{COOKIE_PREFIX}{person}", "").partition(".")
    if password_hash is None or len(nonce) != 32 or not nonce.isalnum() or not nonce.isascii():
        return None
    expected = _signature(person, password_hash, nonce)
    valid = hmac.compare_digest(signature.encode("utf-8", "replace"), expected.encode())
    return nonce if valid else None


def has_device_cookie(cookies: Mapping[str, str]) -> bool:
    """Return whether there is the cookie of a device, valid or not."""
    return any(name.startswith(COOKIE_PREFIX) for name in cookies)


def _signature(person: int, password_hash: str, nonce: str) -> str:
    message = f"firstpage device {person} {nonce}".encode()
    return hmac.new(password_hash.encode(), message, hashlib.sha256).hexdigest()


P = ParamSpec("P")
T = TypeVar("T")

HASHES = 2  # password hashes at the same time
CAPACITY = 32  # sign-ins that hash or wait
RESERVED = 8  # of the capacity, for known devices, so that strangers cannot use all of it
PER_SOURCE = 8  # maximum of one network or device


class SignInBusy(FirstpageError):
    """Too many people are signing in at the same time."""


class SignInPool:
    """Runs the sign-ins of one application on `HASHES` threads, with a bounded queue."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(HASHES, "sign-in")
        self._lock = threading.Lock()
        self._pending: Counter[str] = Counter()

    async def run(
        self, source: RequestSource, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run `work` and return its result; raise `SignInBusy` if the queue is full."""
        self._enter(source)
        try:
            future = self._threads.submit(work, *args, **kwargs)
        except BaseException:  # whatever prevented the start: the place in the queue is freed
            self._leave(source)
            raise
        future.add_done_callback(lambda _: self._leave(source))
        return await asyncio.wrap_future(future)

    def _enter(self, source: RequestSource) -> None:
        with self._lock:
            capacity = CAPACITY if source.known else CAPACITY - RESERVED
            if self._pending.total() >= capacity or self._pending[source.name] >= PER_SOURCE:
                raise SignInBusy("Many people are signing in; please try again in a moment.")
            self._pending[source.name] += 1

    def _leave(self, source: RequestSource) -> None:
        with self._lock:
            self._pending[source.name] -= 1
            self._pending += Counter()  # drops sources at zero


WRONG = "The login or the password is wrong."


class WrongLogin(FirstpageError):
    """No such login, or a wrong password; the message does not say which."""


@dataclass(frozen=True)
class SignInResult:
    """The result of a sign-in: the cookie of the device, and the token of a new session."""

    device: tuple[str, str] | None = None
    token: str | None = None
    login: Login | None = None
    project: Project | None = None


def source(store: Store, login: str, address: str, cookies: Mapping[str, str]) -> RequestSource:
    """Return the source of a sign-in: a known device of this account, or the network."""
    by_network = attempts.network(address)
    if not has_device_cookie(cookies):
        return by_network
    with store.read() as tx:
        person = people.by_login(tx, login)
        password_hash = None if person is None else people.password_hash(tx, person.id)
    nonce = None if person is None else known_device(cookies, person.id, password_hash)
    return by_network if nonce is None else RequestSource(address, f"device {nonce}", known=True)


def log_in(
    store: Store, login: str, password: str, source: RequestSource, before: Login | None = None
) -> SignInResult:
    """Start a new session; the browser's session `before` ends.

    The password is checked outside any transaction, since it is slow by design.  The attempt is
    recorded as a failure first, so that concurrent ones are counted, and removed on success.
    """
    login = login.strip()[:100]
    with store.write() as tx:
        attempts.check(tx, login, source)
        attempts.add_failure(tx, login, source)
        person = people.by_login(tx, login)
        password_hash = None if person is None else people.password_hash(tx, person.id)
    matches = people.verify_password(password, password_hash)
    if not matches or person is None or password_hash is None:
        with store.write() as tx:
            audit.note(tx, "login failed", person, address=source.address)
        raise WrongLogin(WRONG)
    with store.write() as tx:
        attempts.forget(tx, login, source)
        if before is not None:
            logins.end(tx, before.id)
        audit.note(tx, "logged in", person, address=source.address)
        token, session = logins.start(tx, person)
    return SignInResult(device_cookie(person.id, password_hash), token, session)


def accept(
    store: Store,
    token: str,
    *,
    login: str = "",
    name: str = "",
    password: str = "",
    person: Person | None = None,
) -> SignInResult:
    """Accept an invitation as `person`, or with a new account, which is then signed in."""
    with store.read() as tx:
        invitations.acceptable_offer(tx, token, person)  # before the slow hash
    password_hash = None if person is not None else people.hash_password(password, login)
    with store.write() as tx:
        offer = invitations.acceptable_offer(tx, token, person)
        account = person or people.create(tx, login, name, password_hash)
        project = invitations.join(tx, offer, account)
        if password_hash is None:
            return SignInResult(project=project)
        session_token, session = logins.start(tx, account)
    return SignInResult(device_cookie(account.id, password_hash), session_token, session, project)


def reset(store: Store, token: str, password: str, before: Login | None = None) -> SignInResult:
    """Set a password with a link, and sign in; other sessions and API tokens of the account end.

    The browser's session `before`, which may be another account's, ends too.
    """
    with store.read() as tx:
        offer = invitations.find_offer(tx, token, "reset")
    password_hash = people.hash_password(password, offer.login or "")
    with store.write() as tx:
        offer = invitations.find_offer(tx, token, "reset")
        person = people.get(tx, offer.person or 0)
        if person is None:
            raise DataError(invitations.EXPIRED)
        invitations.use(tx, offer, person)
        people.set_password(tx, person, password_hash)
        logins.end_all(tx, person.id)
        tokens.revoke_all(tx, person.id)
        if before is not None:
            logins.end(tx, before.id)
        session_token, session = logins.start(tx, person)
    return SignInResult(device_cookie(person.id, password_hash), session_token, session)


def change_password(
    store: Store, login: Login, old: str, new: str, source: RequestSource
) -> SignInResult:
    """Change a password, given the old one; other sessions end.  Attempts are limited."""
    person = login.person
    people.check_password(new, person.login)
    with store.write() as tx:
        attempts.check(tx, person.login, source)
        attempts.add_failure(tx, person.login, source)
        old_hash = people.password_hash(tx, person.id)
    if not people.verify_password(old, old_hash):
        raise DataError("the old password is wrong.")
    password_hash = people.hash_password(new, person.login)
    with store.write() as tx:
        attempts.forget(tx, person.login, source)
        people.set_password(tx, person, password_hash)
        logins.end_all(tx, person.id, keep=login.id)
    return SignInResult(device_cookie(person.id, password_hash))
