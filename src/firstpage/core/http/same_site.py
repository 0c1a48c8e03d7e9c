"""Checks that a request comes from a page of this site: its host, its origin and its CSRF token."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Collection, Mapping
from ipaddress import IPv6Address, ip_address, ip_network
from urllib.parse import urlsplit

LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
WRONG_HOST = "This host name is not allowed; see --allow-host."
FORGED = "This request did not come from a page of this site; reload the page and try again."
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; frame-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": PAGE_POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "x-dns-prefetch-control": "off",
    "cache-control": "no-store",
}
WITH_PORT = re.compile(r"^(?:\[([^\]]*)\](?::\d+)?|([\d.]+):\d+)$")  # [::1]:80, 192.0.2.7:80
MAX_NETWORK = 64  # characters


def allowed_hosts(names: Collection[str]) -> set[str]:
    """Return the host names of a server: those of this machine, and these; `*` allows any."""
    return {name.lower() for name in (*LOCAL_HOSTS, *names)}


def is_allowed_host(headers: Mapping[str, str], hosts: set[str]) -> bool:
    """Return whether the Host header has one of these names."""
    return "*" in hosts or host_name(headers.get("host", "")) in hosts


def host_name(host: str) -> str:
    """Return the name of a Host header without its port; empty if it cannot be parsed."""
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return ""


def is_own_origin(headers: Mapping[str, str]) -> bool:
    """Return whether a change comes from a page of this site, as far as the browser tells."""
    if headers.get("sec-fetch-site") in ("cross-site", "same-site"):
        return False
    origin = headers.get("origin")
    if origin is None:
        return True  # not a browser, or an old one; the CSRF token decides
    try:
        return urlsplit(origin).netloc.lower() == headers.get("host", "").lower()
    except ValueError:
        return False


def site_refusal(
    method: str, headers: Mapping[str, str], hosts: set[str]
) -> tuple[int, str] | None:
    """Return status and text for a request to another host or from another site; None if neither.

    Requests that change nothing may come from other sites, which cannot read their answers.
    """
    if not is_allowed_host(headers, hosts):
        return 421, WRONG_HOST
    if method not in SAFE_METHODS and not is_own_origin(headers):
        return 403, FORGED
    return None


def guest_cookie(name: str, guest: str, secure: bool) -> str:
    """Return the Set-Cookie header of a guest, whose CSRF token belongs to it."""
    return f"{name}={guest}; Path=/; HttpOnly; SameSite=lax{'; Secure' if secure else ''}"


def guest_csrf(guest: str) -> str:
    """Return the CSRF token of a guest cookie, which other sites can neither read nor set."""
    return hashlib.sha256(f"guest:{guest}".encode("utf-8", "replace")).hexdigest()


def equal_tokens(first: str, second: str) -> bool:
    """Return whether two tokens are equal, in a time that does not depend on them."""
    return hmac.compare_digest(first.encode("utf-8", "replace"), second.encode("utf-8", "replace"))


def network_name(address: str) -> str:
    """Return the network of an address: an IPv6 subscriber has a whole /64 network.

    Some proxies append the port, which differs from request to request.
    """
    host = WITH_PORT.sub(r"\1\2", address).partition("%")[0]
    try:
        parsed = ip_address(host)
    except ValueError:
        return address[:MAX_NETWORK]
    if isinstance(parsed, IPv6Address):
        if parsed.ipv4_mapped is not None:
            return str(parsed.ipv4_mapped)
        return str(ip_network((parsed, 64), strict=False))
    return str(parsed)
