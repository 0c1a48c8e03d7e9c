"""Sign-in without a form: API tokens of programs, and the header of an authenticating proxy.

Neither sets a cookie.  A browser never sends a token on its own, so requests with one need no CSRF
token; a proxy authenticates every request of a browser, so those do.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request

from firstpage.core import DataError
from firstpage.core.http import network_name
from firstpage.labeling.app.store import Login, Store, attempts, audit, logins, people, tokens
from firstpage.labeling.app.store.attempts import RequestSource
from firstpage.labeling.app.store.failures import StoreUnavailable
from firstpage.labeling.app.store.tokens import PREFIX, SCOPES, Scope

API = "/api/v1"
LOG = logging.getLogger("firstpage.labeling.app")
MAX_TOKEN = 200  # characters


def token_of(request: Request) -> str | None:
    """Return the API token of a request to the API; None if it has none."""
    if not request.url.path.startswith(f"{API}/"):
        return None
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    token = token.strip()
    return token if scheme.lower() == "bearer" and token.startswith(PREFIX) else None


def login_by_token(store: Store, token: str, address: str) -> Login:
    """Return the login of a token; raise 401 if it is invalid.

    Unknown tokens are limited per network.  Valid ones are not: nobody can guess one.
    """
    with store.read() as tx:
        login = tokens.find(tx, token) if len(token) <= MAX_TOKEN else None
    if login is None:
        source = RequestSource(address, f"token {network_name(address)}"[:64], known=True)
        with store.write() as tx:
            attempts.check(tx, "", source)
            attempts.add_failure(tx, "", source)
        raise HTTPException(
            401, "This API token is unknown, expired or revoked.", {"WWW-Authenticate": "Bearer"}
        )
    if login.stale:
        with suppress(StoreUnavailable), store.write() as tx:  # reading needs no writing
            tokens.touch(tx, login.id)
    return login


def check_scope(scope: str, needed: Scope | None) -> None:
    """Raise unless a token with this scope may do what needs one; None: no token may."""
    if needed is None:
        raise HTTPException(403, "API tokens cannot do this; sign in with a browser.")
    if SCOPES.index(needed) > SCOPES.index(scope):
        raise HTTPException(
            403, f"This API token has the scope {scope!r}; this needs one with {needed!r}."
        )


Network = IPv4Network | IPv6Network


def parse_networks(texts: Sequence[str]) -> list[Network]:
    """Return networks such as 10.0.0.0/8, or single addresses; raise on the first mistake."""
    networks = []
    for text in texts:
        try:
            networks.append(ip_network(text.strip()))
        except ValueError as error:
            raise DataError(
                f"{text!r} is not an address or a network ({error}); write 10.0.0.5 or 10.0.0.0/8."
            ) from error
    return networks


@dataclass
class ProxyHeader:
    """The header in which a proxy names the person whom it has authenticated.

    The address of the connection itself decides whether the header is trusted, never an address
    that a header reports.
    """

    name: str
    networks: Sequence[Network]
    _logged: dict[str, float] = field(default_factory=dict)

    def user(self, client: tuple[str, int] | None, headers: Headers) -> str | None:
        """Return the login that a trusted proxy reports; None if there is no header.

        Raises `ForgedHeader` for a header from any other address, and for several headers.
        """
        values = headers.getlist(self.name)
        if not values:
            return None
        if client is None or not self._trusted(client[0]):
            raise ForgedHeader("This address may not sign people in by a header.")
        if len(values) > 1 or "," in values[0]:
            raise ForgedHeader("The proxy sent several logins; it must replace the header.")
        return values[0].strip() or None

    def _trusted(self, host: str) -> bool:
        try:
            address = ip_address(host)
        except ValueError:
            return False
        mapped = getattr(address, "ipv4_mapped", None)
        return any((mapped or address) in network for network in self.networks)

    def should_log(self, address: str, interval: float = 60.0) -> bool:
        """Return whether to log a refusal: at most one per network and minute."""
        now, network = time.monotonic(), network_name(address)
        if now - self._logged.get(network, -interval) < interval:
            return False
        if len(self._logged) >= 1000:
            self._logged.clear()
        self._logged[network] = now
        return True


class ForgedHeader(Exception):
    """The header of the proxy came from elsewhere."""


def record_forged(store: Store, address: str) -> None:
    """Log a refused header, in the server's log and in the audit log."""
    LOG.warning("a sign-in header from %s was refused: not an address of --auth-from", address)
    with suppress(StoreUnavailable), store.write() as tx:
        audit.note(tx, "sign-in header refused", address=address)


def login_by_proxy(store: Store, user: str, create: bool, address: str) -> Login:
    """Return the session of the person whom the proxy names; raise 403 if there is no account."""
    with store.read() as tx:
        person = None if people.fold_login(user) == people.LOCAL else people.by_login(tx, user)
        login = None if person is None else logins.of_proxy(tx, person)
    if login is not None:
        if login.stale:
            with suppress(StoreUnavailable), store.write() as tx:
                logins.touch(tx, login.id)
        return login
    if person is None and (not create or people.fold_login(user) == people.LOCAL):
        raise HTTPException(
            403, f"There is no account {user[:100]!r} here; ask a lead to add this login."
        )
    try:
        with store.write() as tx:
            person = people.ensure(tx, user)
            audit.note(tx, "signed in by proxy", person, address=address)
            return logins.start_by_proxy(tx, person)
    except DataError as error:
        raise HTTPException(403, f"This login cannot have an account: {error}") from error
