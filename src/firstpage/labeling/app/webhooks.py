"""Sends the messages of webhooks: signed, in the background, with bounded time and attempts.

Addresses that are not public are refused unless the operator of the server allows them, since a
lead could otherwise reach the services of its network.  They are refused when the webhook is set,
and again for each message: its address is resolved once, checked, and connected to, so that a name
cannot change its address in between.  Redirects are not followed.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import socket
import ssl
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from ipaddress import IPv6Address, ip_address, ip_network
from urllib.parse import urlsplit

from firstpage import __version__
from firstpage.core import DataError, FirstpageError
from firstpage.labeling.app.store import Store, webhooks
from firstpage.labeling.app.store.webhooks import Message

LOG = logging.getLogger("firstpage.labeling.app")
TIMEOUT = 10.0  # seconds for a whole request
POLL_INTERVAL = 2.0  # seconds
STOP_TIMEOUT = 2.0  # seconds that a message on its way may take when the server stops
NAT64 = ip_network("64:ff9b::/96")


class DeliveryError(Exception):
    """A message was not accepted; the message says why."""


def signature(secret: str, timestamp: int, body: bytes) -> str:
    """Return the header that proves who sent a body, and when."""
    digest = hmac.new(secret.encode(), f"{timestamp}.".encode() + body, hashlib.sha256)
    return f"t={timestamp},v1={digest.hexdigest()}"


def is_public(address: str) -> bool:
    """Return whether an address belongs to the public internet, also inside of IPv6 tunnels."""
    parsed = ip_address(address.partition("%")[0])
    if isinstance(parsed, IPv6Address):
        inner = parsed.ipv4_mapped or parsed.sixtofour
        if parsed.teredo is not None:
            return False
        if parsed in NAT64:
            inner = ip_address(int(parsed) & 0xFFFFFFFF)  # type: ignore[assignment]
        if inner is not None:
            return is_public(str(inner))
        if parsed.is_site_local:
            return False
    return parsed.is_global and not parsed.is_multicast and not parsed.is_reserved


def check_public(url: str, allow_private: bool) -> None:
    """Refuse to set a webhook whose address is not public; an unknown host is checked later."""
    parts = urlsplit(webhooks.check_url(url))
    host = parts.hostname or ""
    if not allow_private and not all(map(is_public, _addresses(host, parts.port))):
        raise DataError(
            f"the address of {host!r} is not public; webhooks to this machine or a private network "
            "need the option --private-webhooks of `label serve` and `label webhook`."
        )


def _addresses(host: str, port: int | None) -> list[str]:
    """Return the addresses of a host; none if it is not known."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    return [str(entry[4][0]) for entry in found]


def checked_address(host: str, port: int, allow_private: bool) -> str:
    """Return an address of a host; raise if one of its addresses may not be used."""
    addresses = _addresses(host, port)
    if not addresses:
        raise DeliveryError(f"the host {host!r} cannot be found")
    if not allow_private and not all(map(is_public, addresses)):
        raise DeliveryError(f"the address of {host!r} is not public (see --private-webhooks)")
    return addresses[0]


class _CheckedConnection(HTTPConnection):
    """A connection to a checked address; `host` stays the name for the headers and for TLS."""

    def __init__(self, host: str, port: int, address: str, secure: bool) -> None:
        super().__init__(host, port, timeout=TIMEOUT)
        self.address, self.secure = address, secure

    def connect(self) -> None:
        self.sock = socket.create_connection((self.address, self.port), TIMEOUT)
        if self.secure:
            context = ssl.create_default_context()
            self.sock = context.wrap_socket(self.sock, server_hostname=self.host)


def send(message: Message, allow_private: bool, now: float) -> None:
    """Send a message; raise `DeliveryError` unless it is accepted with a status of 2xx."""
    parts = urlsplit(message.url)
    secure, host = parts.scheme == "https", parts.hostname or ""
    port = parts.port or (443 if secure else 80)
    connection = _CheckedConnection(host, port, checked_address(host, port, allow_private), secure)
    body = json.dumps(message.body, ensure_ascii=False).encode()
    headers = {
        "Content-Type": "application/json",
        "User-Agent": f"Firstpage/{__version__}",
        "X-Firstpage-Event": str(message.body.get("event", "")),
        "X-Firstpage-Delivery": message.key,
        "X-Firstpage-Signature": signature(message.secret, int(now), body),
    }
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    deadline = threading.Timer(TIMEOUT, _abort, [connection])
    deadline.daemon = True
    deadline.start()
    try:
        connection.request("POST", target, body, headers)
        status = connection.getresponse().status
    except (OSError, HTTPException, ValueError, AttributeError) as error:
        raise DeliveryError(f"no answer ({type(error).__name__})") from error
    finally:
        deadline.cancel()
        connection.close()
    if not 200 <= status < 300:
        raise DeliveryError(f"answered with status {status}")


def _abort(connection: HTTPConnection) -> None:
    """End a request that takes too long, however slowly its answer arrives."""
    with suppress(OSError, AttributeError):
        connection.sock.shutdown(socket.SHUT_RDWR)


@dataclass
class WebhookSender:
    """Sends the due messages of a store, in a thread of its own; several processes share them."""

    store: Store
    allow_private: bool = False
    stopped: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread = field(init=False, repr=False)

    def __enter__(self) -> WebhookSender:
        """Start the thread."""
        self._thread = threading.Thread(target=self._run, name="webhooks", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the thread, before its store is closed; a message on its way may be sent again."""
        self.stopped.set()
        self._thread.join(STOP_TIMEOUT)

    def _run(self) -> None:
        while not self.stopped.wait(POLL_INTERVAL):
            try:
                while self.send_next() and not self.stopped.is_set():
                    pass
            except FirstpageError:
                pass  # the database is busy; the messages stay due
            except Exception:
                LOG.exception("messages of webhooks could not be sent")

    def send_next(self) -> bool:
        """Send one due message; return whether there was one."""
        with self.store.read() as tx:
            if not webhooks.any_due(tx):
                return False
        with self.store.write() as tx:
            message = webhooks.claim(tx)
        if message is None:
            return False
        error = None
        try:
            send(message, self.allow_private, time.time())
        except DeliveryError as failure:
            error = str(failure)
        with self.store.write() as tx:
            webhooks.finish(tx, message, error)
        return True
