"""The service as a plain ASGI application: no layer between a request and the model."""

from __future__ import annotations

import asyncio
import hmac
import logging
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from typing import Any
from urllib.parse import parse_qsl

from firstpage.serving import page
from firstpage.serving.answers import Slow, answer
from firstpage.serving.description import GETS, POSTS, description
from firstpage.serving.holder import Holder, Reload
from firstpage.serving.json_body import dumps
from firstpage.serving.limits import Limits, Refusal, too_many_bytes
from firstpage.serving.metrics import MEDIA, Metrics
from firstpage.serving.replies import Headers, Receive, Reply, Scope, Send, media_of, send_reply
from firstpage.serving.served import Served
from firstpage.transport.limits import BodyReader, BodyTooLarge, BodyTooSlow

log = logging.getLogger("firstpage.serving")
LARGE = 1 << 20  # bytes of a body from which on it is worked on beside the loop
THREADS = 2
Place = ExitStack  # what is held until an answer is taken


class Gone(Exception):
    """The client closed the connection before its request was whole."""


class Serving:
    """Answers for the model of a holder.

    poll   seconds between looks at the model file; None: only when told to
    token  who knows it may POST /reload; None: nobody
    """

    def __init__(
        self, holder: Holder, limits: Limits | None = None, *, poll: float | None = 1.0,
        token: str | None = None,
    ) -> None:  # fmt: skip
        self.holder, self.limits = holder, limits or Limits()
        self.poll = poll
        self.token = None if token is None else token.encode("utf-8", "surrogateescape")
        self.metrics = Metrics()
        self.ranking = 0  # requests whose bodies are whole, until their answers are taken
        self.unread = 0  # bytes of bodies that are not whole yet
        self._threads = ThreadPoolExecutor(THREADS, "score")
        self._loader = ThreadPoolExecutor(1, "load")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            await self._serve(scope, receive, send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        start = time.perf_counter()
        path = scope["path"]
        route = path if path in POSTS or path in GETS else "other"
        self.metrics.busy += 1
        status = 499  # the client's own end, as proxies count it
        try:
            with ExitStack() as place:
                reply = await self._reply(scope, receive, path, place)
                status = reply.status
                await send_reply(reply, send)
        except (Gone, asyncio.CancelledError):  # they went, or we are told to end
            pass
        finally:
            self.metrics.busy -= 1
            self.metrics.count(route, status, time.perf_counter() - start)

    async def _reply(self, scope: Scope, receive: Receive, path: str, place: Place) -> Reply:
        try:
            return await self._answered(scope, receive, path, place)
        except Refusal as refusal:
            if any(name == b"expect" for name, _ in scope["headers"]):
                refusal.headers["connection"] = "close"  # whether the body comes, nobody knows
            body = dumps({"detail": refusal.detail})
            return Reply(refusal.status, body, headers=refusal.headers)
        except (Gone, asyncio.CancelledError):
            raise
        except Exception:
            log.exception("a request failed: %s", path)
            return Reply(500, dumps({"detail": "the server failed; its log says how."}))

    async def _answered(self, scope: Scope, receive: Receive, path: str, place: Place) -> Reply:
        method = scope["method"]
        if path in POSTS:
            if method != "POST":
                raise Refusal(405, f"{path} takes POST.", allow="POST")
            if path == "/reload":
                return await self._reload(dict(scope["headers"]))
            return await self._ranked(scope, receive, path == "/batch", place)
        if path not in GETS:
            raise Refusal(404, f"nothing is here; there are {', '.join((*POSTS, *GETS))}.")
        if method not in ("GET", "HEAD"):
            raise Refusal(405, f"{path} takes GET.", allow="GET, HEAD")
        if path == "/metrics":
            return Reply(200, self.metrics.text(self.holder).encode(), MEDIA)
        if path == "/health":
            return self._health()
        if path == "/openapi.json":
            return Reply(200, dumps(description(self.holder.served, self.limits)))
        if path == "/":
            return page.reply(self.holder, scope)
        return Reply(200, dumps(self._model().described()))

    # --- ranking

    async def _ranked(self, scope: Scope, receive: Receive, batch: bool, place: Place) -> Reply:
        headers: Headers = dict(scope["headers"])
        media = media_of(headers)
        given = dict(parse_qsl(scope["query_string"].decode("latin-1")))
        if batch and b"x-lengths" in headers:
            given.setdefault("lengths", headers[b"x-lengths"].decode("latin-1").replace(" ", ""))
        self._model()  # no body is read for nothing
        self._check_places()
        body = await self._body(headers, receive)
        place.enter_context(self._place())
        served = self._model()  # of now; a model that comes later is for later requests
        work = (served, self.limits, media, body, given, batch)
        found = None
        if len(body) < LARGE and served.quick:
            with suppress(Slow):
                found = answer(*work, beside=False)
        if found is None:
            loop = asyncio.get_running_loop()
            found = await loop.run_in_executor(self._threads, answer, *work)
        self.metrics.queries += found.queries
        self.metrics.candidates += found.candidates
        return Reply(200, found.body, found.media, {"x-model": served.digest})

    @contextmanager
    def _place(self) -> Iterator[None]:
        """A place among those that are answered at once, until the answer is taken.

        It is taken once the body is whole: a slow client takes nobody's.
        """
        self._check_places()
        self.ranking += 1
        try:
            yield
        finally:
            self.ranking -= 1

    def _check_places(self) -> None:
        if self.ranking >= self.limits.at_once:
            raise Refusal(
                503, f"{self.limits.at_once} requests are being answered; try again.",
                retry_after="1",
            )  # fmt: skip

    async def _body(self, headers: Headers, receive: Receive) -> bytes:
        """All of it, counted as it comes; of all bodies that are under way, so many bytes."""
        most = self.limits.bytes
        said = headers.get(b"content-length", b"0")
        if not said.isdigit() or len(said) > 18 or int(said) > most:
            raise too_many_bytes(self.limits)
        reader, parts = BodyReader(receive, most, self.limits.seconds), []
        counted = 0
        try:
            while not reader.complete:
                message = await reader.receive()
                if message["type"] == "http.disconnect":
                    raise Gone
                parts.append(message.get("body", b""))
                self.unread += reader.read - counted
                counted = reader.read
                if not reader.complete and self.unread > self.limits.at_once * most:
                    raise Refusal(
                        503, "too many bodies are being read; try again.", retry_after="1"
                    )
        except BodyTooLarge:
            raise too_many_bytes(self.limits) from None
        except BodyTooSlow:
            raise Refusal(
                408, f"the body did not come within {self.limits.seconds:g} seconds.",
                connection="close",
            ) from None  # fmt: skip
        finally:
            self.unread -= counted
        return parts[0] if len(parts) == 1 else b"".join(parts)

    # --- the model

    def _model(self) -> Served:
        served = self.holder.served
        if served is None:
            raise Refusal(503, f"no model yet: {self.holder.refused}", retry_after="1")
        return served

    def _health(self) -> Reply:
        held = self.holder
        told: dict[str, Any] = {"status": "no model", "file": held.name}
        if held.served is not None:
            told |= {
                "status": "ok" if held.refused is None else "degraded",
                "model": held.served.model.ranker, "digest": held.served.digest,
                "since": held.served.since,
            }  # fmt: skip
        told |= {"reloads": held.reloads, "refused": held.refused}
        return Reply(200 if held.served is not None else 503, dumps(told))

    async def _reload(self, headers: Headers) -> Reply:
        if self.token is None:
            raise Refusal(403, "this server has no --token, so nobody may ask it to reload.")
        given = headers.get(b"authorization", b"")
        if not hmac.compare_digest(given, b"Bearer " + self.token):
            raise Refusal(
                401, "give the server's token: 'Authorization: Bearer TOKEN'.",
                www_authenticate="Bearer",
            )  # fmt: skip
        done = await self.reload()
        answer = {**done.to_dict(), "reloads": self.holder.reloads}
        if done.accepted:
            return Reply(200, dumps({"digest": done.digest, **answer}))
        return Reply(422, dumps({"detail": f"refused: {done.refused}", **answer}))

    async def reload(self) -> Reload:
        """Look at the file now, in a thread: requests go on meanwhile."""
        return await asyncio.get_running_loop().run_in_executor(self._loader, self.holder.look)

    async def watch(self) -> None:
        """Look whether the file has changed, again and again."""
        while self.poll is not None:
            await asyncio.sleep(self.poll)
            if self.holder.changed():
                await self.reload()

    # --- the process

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        watching = asyncio.create_task(self.watch())
        self._listen_for_hangup()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching
        for pool in (self._threads, self._loader):
            pool.shutdown(wait=False)
        await send({"type": "lifespan.shutdown.complete"})

    def _listen_for_hangup(self) -> None:
        """SIGHUP, where there is such a thing, means: look at the file."""
        import signal

        again: set[asyncio.Task[Reload]] = set()

        def hung_up() -> None:
            task = asyncio.ensure_future(self.reload())
            again.add(task)
            task.add_done_callback(again.discard)

        with suppress(AttributeError, NotImplementedError, RuntimeError, ValueError):
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, hung_up)
