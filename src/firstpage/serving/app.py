"""The Starlette application that serves a model over HTTP."""

from __future__ import annotations

import asyncio
import hmac
import logging
import secrets
import time
from collections.abc import AsyncIterator, Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any, TypeVar

from msgspec import UNSET
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Mount, Route, request_response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from firstpage.core.http import (
    HEADERS,
    JSON,
    Routes,
    allowed_hosts,
    error_response,
    guest_cookie,
    json_response,
    site_refusal,
)
from firstpage.serving import metrics, openapi
from firstpage.serving.about_page import about_page, drift_page
from firstpage.serving.access_log import AccessLog
from firstpage.serving.event_log import EventLog
from firstpage.serving.event_rows import EventsAnswer, read_events
from firstpage.serving.experiments import LiveExperiment, Traffic
from firstpage.serving.feedback import FeedbackFolder, RateLimit
from firstpage.serving.feedback_requests import (
    COOKIE,
    MAX_FORM,
    check_media_type,
    form_query,
    network_of,
    read_form,
    store_preference,
    store_query,
    visitor_of,
)
from firstpage.serving.json_messages import Health, SearchMessage
from firstpage.serving.limits import Limits, Refusal, RequestLimiter
from firstpage.serving.page_contents import PageQuery, Visitor, one_list, read_page_query
from firstpage.serving.pages import (
    compared_page,
    compile_templates,
    error_page,
    search_page,
    static_files,
)
from firstpage.serving.rank_request import RawRequest, User, unique_params, unknown_field
from firstpage.serving.ranking import EncodedAnswer, TooSlow, media_type_of, rank
from firstpage.serving.searching import check_message, depth_of, read_message, search, texts_of
from firstpage.serving.served_model import ServedModel
from firstpage.serving.watched_model import WatchedModel
from firstpage.serving.workers import Channel, RemoteFeedback, RemoteLog

log = logging.getLogger("firstpage.serving")
MAX_INLINE_BYTES = 1 << 20  # of a body that is processed in the event loop
SCORING_THREADS = 2
RERANKING_THREADS = 16  # where a search waits for a last stage
PAGES = dict.fromkeys(("/", "/about", "/drift"), "Not answered")  # titles of errors
PAGES |= dict.fromkeys(("/preference", "/judge"), "Not stored")
Result = TypeVar("Result")
CHUNK_BYTES = 1 << 16  # sent without waiting for the client to receive them


class Serving(Starlette):
    """The application that serves a watched model.

    Parameters
    ----------
    watched : WatchedModel
        The model, which is replaced when its file changes.
    limits : Limits, optional
        What a request may cost.
    poll : float or None
        Seconds between checks of the model file; None: only on request.
    token : str or None
        The token that a client needs for POST /reload; None: no client may reload.
    hosts : collection of str
        With an index: names of the server, in addition to those of this machine; `*` allows any.
    feedback : FeedbackFolder, RemoteFeedback or None
        With an index: where feedback is stored; None: none is asked for.
    events : EventLog, RemoteLog or None
        Where queries and events are stored; None: there is no POST /events.
    experiment : LiveExperiment or None
        With events: the experiment on users.
    access : AccessLog or None
        Where a line per request is written.
    parent : Channel or None
        With several workers: by which this one makes the others reload.
    """

    def __init__(
        self,
        watched: WatchedModel,
        limits: Limits | None = None,
        *,
        poll: float | None = 1.0,
        token: str | None = None,
        hosts: Collection[str] = (),
        feedback: FeedbackFolder | RemoteFeedback | None = None,
        events: EventLog | RemoteLog | None = None,
        experiment: LiveExperiment | None = None,
        access: AccessLog | None = None,
        parent: Channel | None = None,
    ) -> None:
        self.traffic = None if events is None else Traffic(events, experiment)
        self.watched, self.limits, self.poll = watched, limits or Limits(), poll
        self.parent, self.access = parent, access
        self.token = None if token is None else token.encode("utf-8", "surrogateescape")
        self.metrics, self.events = metrics.Metrics(watched, events), events
        self.admission = RequestLimiter(self.limits)
        self.scoring_pool = ThreadPoolExecutor(
            RERANKING_THREADS
            if watched.source is not None and watched.source.last_stage is not None
            else SCORING_THREADS,
            "score",
        )
        self.hosts, self.feedback, self.rate = allowed_hosts(hosts), feedback, RateLimit()
        self.declared = self._declared()
        routes = [*self.declared, *self._forms(), Mount(static_files().url, static_files())]
        observer = Middleware(
            RequestObserver,
            self.metrics,
            {route.path for route in routes if isinstance(route, Route)},
            access,
        )
        super().__init__(
            routes=routes,
            middleware=[observer],
            lifespan=lambda _: self._lifespan(),
            exception_handlers={HTTPException: self._error_response},
        )
        self.router.redirect_slashes = False

    def _declared(self) -> Routes:
        """Return the routes with their descriptions."""
        routes, source = Routes(), self.watched.source
        for batch in (False, True):
            routes.app(openapi.ranking(self.limits, batch), RankEndpoint(self, batch))
        if source is not None:
            for search in openapi.searches(self.limits, source.candidates):
                routes.app(search, SearchEndpoint(self))
            routes.app(openapi.SEARCH_PAGE, PageEndpoint(self))
        if self.events is not None:
            routes.app(openapi.events(self.limits), EventsEndpoint(self, self.events))
        for operation, answer in (
            (openapi.RELOAD, self._reload),
            (openapi.about("/" if source is None else "/about"), self.about),
            (openapi.DRIFT, self._drift),
            (openapi.HEALTH, self._health),
            (openapi.MODEL, self._model),
            (openapi.METRICS, self._metrics),
            (openapi.OPENAPI, self._openapi),
        ):
            routes.app(operation, request_response(answer))
        return routes

    def _forms(self) -> list[BaseRoute]:
        """Return the routes of the forms of the search page; none without feedback."""
        if self.watched.source is None or self.feedback is None:
            return []
        return [
            Route("/preference", FeedbackEndpoint(self, judge=False), methods=["POST"]),
            Route("/judge", FeedbackEndpoint(self, judge=True), methods=["POST"]),
        ]

    def check_site(self, request: Request) -> None:
        """Refuse a request to another host or from another site, since answers show documents."""
        if self.watched.source is not None:
            refusal = site_refusal(request.method, request.headers, self.hosts)
            if refusal is not None:
                raise Refusal(refusal[1], refusal[0])

    def model(self) -> ServedModel:
        """Return the model in service; refuse the request if there is none."""
        if self.watched.model is None:
            raise Refusal(f"no model yet: {self.watched.refused}", 503, retry_after="1")
        return self.watched.model

    async def watch(self) -> None:
        """Reload the model file whenever it changes; requests are answered meanwhile."""
        while self.poll is not None:
            await asyncio.sleep(self.poll)
            if self.watched.changed():
                await asyncio.to_thread(self.watched.reload)

    async def _reload(self, request: Request) -> Response:
        if self.token is None:
            raise Refusal("POST /reload is disabled: start the server with --token.", 403)
        authorization = request.headers.get("authorization", "").encode("latin-1")
        if not hmac.compare_digest(authorization, b"Bearer " + self.token):
            detail = "send the server's token: 'Authorization: Bearer TOKEN'."
            raise Refusal(detail, 401, www_authenticate="Bearer")
        report = await asyncio.to_thread(self.watched.reload)
        if report.accepted and self.parent is not None:
            refused = await asyncio.wrap_future(self.parent.call("reload"))
            if refused:
                raise Refusal(f"another worker of this server refuses the file: {refused[0]}")
        return json_response(report, 200 if report.accepted else 422)

    async def about(self, request: Request) -> Response:
        """Return the page about this server."""
        self.check_site(request)
        return await asyncio.to_thread(about_page, self.watched, self.metrics, request)

    async def _drift(self, request: Request) -> Response:
        self.check_site(request)
        return await asyncio.to_thread(drift_page, self.watched)

    async def _health(self, request: Request) -> Response:
        watched, model = self.watched, self.watched.model
        health = Health(
            status="no model" if model is None else "degraded" if watched.refused else "ok",
            file=watched.name,
            model=UNSET if model is None else model.model.ranker,
            digest=UNSET if model is None else model.digest,
            since=UNSET if model is None else model.since,
            index=UNSET if model is None else model.index_summary(),
            reloads=watched.reloads,
            refused=watched.refused,
        )
        return json_response(health, 503 if model is None else 200)

    async def _model(self, request: Request) -> Response:
        return json_response(self.model().description())

    async def _metrics(self, request: Request) -> Response:
        text = await asyncio.to_thread(self.metrics.text)
        return Response(text, media_type=metrics.MEDIA_TYPE)

    async def _openapi(self, request: Request) -> Response:
        depth = None if self.watched.source is None else self.watched.source.candidates
        operations = self.declared.operations()
        return json_response(openapi.openapi(operations, self.watched.model, self.limits, depth))

    async def _error_response(self, request: Request, error: Exception) -> Response:
        """Return a one-line answer to a refused request, ours or the router's."""
        assert isinstance(error, HTTPException)
        detail, headers = error.detail, dict(error.headers or {})
        if not isinstance(error, Refusal):
            path, routes = request.scope["path"], [r for r in self.routes if isinstance(r, Route)]
            paths = ", ".join(dict.fromkeys(route.path for route in routes))
            detail = f"there is no such route; the routes are {paths}."
            if error.status_code == 405:
                methods = {m for route in routes if route.path == path for m in route.methods or ()}
                headers["Allow"] = ", ".join(sorted(methods))
                detail = f"{path} accepts {headers['Allow']} only."
        if "expect" in request.headers:
            headers["connection"] = "close"  # whether the client will send the body is unknown
        title = PAGES.get(request.scope["path"])
        if title is not None and "text/html" in request.headers.get("accept", ""):
            page = await asyncio.to_thread(error_page, self.watched, title, detail)
            return HTMLResponse(page, error.status_code, {**HEADERS, **headers})
        return error_response(error.status_code, detail, headers)

    @asynccontextmanager
    async def _lifespan(self) -> AsyncIterator[None]:
        """Watch the model file until the server stops."""
        watching = asyncio.create_task(self.watch())
        if self.watched.source is not None:
            self.scoring_pool.submit(compile_templates)  # pages are opened soon
        yield
        watching.cancel()
        for store in (self.feedback, self.events, self.access):
            if store is not None:
                store.close()
        self.scoring_pool.shutdown(wait=False)


class RankEndpoint:
    """The endpoint POST /rank or POST /batch.

    This is an ASGI application and not a function of a request, because a request occupies its
    slot until the client has received the answer.
    """

    def __init__(self, serving: Serving, batch: bool) -> None:
        self.serving, self.batch = serving, batch

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request, serving = Request(scope), self.serving
        media_type = media_type_of(request.headers)
        params = unique_params(request.query_params.multi_items())
        if self.batch and "x-lengths" in request.headers:
            params.setdefault("lengths", request.headers["x-lengths"].replace(" ", ""))
        serving.model()  # the body is read only if there are a model and a slot
        serving.admission.check()
        body = await serving.admission.read_body(request.headers, receive)
        with serving.admission.slot():
            response = await self._rank(media_type, body, params)
            await response(scope, receive, send)

    async def _rank(self, media_type: str, body: bytes, params: dict[str, str]) -> Response:
        """Rank in the event loop if that is quick, else in a thread."""
        serving, model = self.serving, self.serving.model()
        read = model.names, serving.limits, model.model.reads_missing, model.category_codes
        raw = RawRequest(media_type, body, params, self.batch, *read)
        answer = None
        if len(body) < MAX_INLINE_BYTES and model.quick:
            with suppress(TooSlow):
                answer = rank(model, raw, serving.traffic, inline=True)
        if answer is None:
            loop = asyncio.get_running_loop()
            pool, traffic = serving.scoring_pool, serving.traffic
            answer = await loop.run_in_executor(pool, rank, model, raw, traffic)
        serving.metrics.queries.inc(answer.queries)
        serving.metrics.candidates.inc(answer.candidates)
        return ChunkedResponse(answer.body, 200, {"x-model": model.digest}, answer.media_type)


class TextEndpoint:
    """An endpoint that reads the index: an ASGI application that holds its slot like /rank."""

    def __init__(self, serving: Serving) -> None:
        self.serving = serving

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request, serving = Request(scope), self.serving
        serving.check_site(request)
        serving.admission.check()
        body = await self._body(request, receive)
        with serving.admission.slot():
            response = await self.respond(request, body)
            await response(scope, receive, send)

    async def _body(self, request: Request, receive: Receive) -> bytes | None:
        """Return the body of a POST request."""
        if request.method != "POST":
            return None
        return await self.serving.admission.read_body(request.headers, receive)

    async def respond(self, request: Request, body: bytes | None) -> Response:
        """Return the response."""
        raise NotImplementedError

    async def in_pool(self, function: Callable[..., Result], *args: Any) -> Result:
        """Run a search in the scoring pool, and count it."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.serving.scoring_pool, function, *args)

    def count(self, candidates: int) -> None:
        """Count a query and its candidates."""
        self.serving.metrics.queries.inc()
        self.serving.metrics.candidates.inc(candidates)


class SearchEndpoint(TextEndpoint):
    """The endpoint GET /search and POST /search."""

    async def _body(self, request: Request, receive: Receive) -> bytes | None:
        if request.method == "POST" and media_type_of(request.headers) != JSON:
            raise Refusal(f"send the query as {JSON}.", 415)
        self.serving.model()
        return await super()._body(request, receive)

    async def respond(self, request: Request, body: bytes | None) -> Response:
        serving, model = self.serving, self.serving.model()
        message = read_message(body, request.query_params.multi_items())
        check_message(message, texts_of(model).candidates, serving.limits)
        answer = await self.in_pool(self._search, model, message)
        self.count(answer.candidates)
        return ChunkedResponse(answer.body, 200, {"x-model": model.digest}, answer.media_type)

    def _search(self, model: ServedModel, message: SearchMessage) -> EncodedAnswer:
        """Search, within the experiment if the request does not itself choose how to rank."""
        traffic, limits = self.serving.traffic, self.serving.limits
        if traffic is None or message.client is UNSET or not message.model or message.explain:
            return search(model, message, limits)
        user = User(message.client, message.q, message.query_id or None, message.orders or {})
        shown, query_id = traffic.search(model, user, message.page * depth_of(model, message))
        return search(shown.model, message, limits, shown.ranking, query_id)


class PageEndpoint(TextEndpoint):
    """The endpoint GET /: the page to search and to compare."""

    async def respond(self, request: Request, body: bytes | None) -> Response:
        serving, model = self.serving, self.serving.watched.model
        if model is None:
            return await serving.about(request)
        query, problem = read_page_query(request.query_params, texts_of(model), serving.limits)
        headers, visitor = dict(HEADERS), None
        if serving.feedback is not None or serving.events is not None:
            visitor = visitor_of(request)
            if visitor is None:
                visitor = Visitor(secrets.token_urlsafe(32))
                secure = request.scope["scheme"] == "https"
                headers["set-cookie"] = guest_cookie(COOKIE, visitor.session, secure)
        if query.text and problem is None:
            if serving.traffic is None or visitor is None:
                work: Any = (compared_page, model, serving.watched, query, visitor)
            else:
                work = (self._logged_page, serving.traffic, model, query, visitor)
            page, candidates = await self.in_pool(*work)
            self.count(candidates)
        else:
            page = search_page(model, serving.watched, query, visitor, problem=problem)
        return HTMLResponse(page, 200 if problem is None else 422, headers)

    def _logged_page(
        self, traffic: Traffic, model: ServedModel, query: PageQuery, visitor: Visitor
    ) -> tuple[str, int]:
        """Search and log the query; return the page with one list, and the number of candidates."""
        user = User(visitor.client, query.text, query.query_id or None, None)
        shown, query_id = traffic.search(model, user, query.number * query.depth)
        query = replace(query, query_id=query_id)
        listed = one_list(shown.model, shown.ranking, query)
        page = search_page(model, self.serving.watched, query, comparison=listed)
        return page, listed.candidates


class FeedbackEndpoint(TextEndpoint):
    """The endpoints POST /preference and POST /judge: forms of the page."""

    def __init__(self, serving: Serving, judge: bool) -> None:
        super().__init__(serving)
        self.judge = judge

    async def _body(self, request: Request, receive: Receive) -> bytes | None:
        check_media_type(request)
        admission = self.serving.admission
        return await admission.read_body(request.headers, receive, MAX_FORM)

    async def respond(self, request: Request, body: bytes | None) -> Response:
        serving, model = self.serving, self.serving.model()
        assert serving.feedback is not None
        visitor, fields = read_form(request, body or b"")
        query = form_query(model, fields, serving.limits)
        serving.rate.check(network_of(request))
        if self.judge:
            query = await self.in_pool(store_query, serving.feedback, model, query)
        else:
            query = await self.in_pool(
                store_preference, serving.feedback, model, visitor, query, fields
            )
        return Response(status_code=303, headers={**HEADERS, "location": query.address})


class EventsEndpoint(TextEndpoint):
    """The endpoint POST /events, which answers after the events are on disk."""

    def __init__(self, serving: Serving, log: EventLog | RemoteLog) -> None:
        super().__init__(serving)
        self.log = log
        most = serving.limits.events
        self.rate = RateLimit(most, 10 * most, "traffic")

    async def _body(self, request: Request, receive: Receive) -> bytes | None:
        if media_type_of(request.headers) != JSON:
            raise Refusal(f"send the events as {JSON}.", 415)
        for name in request.query_params:
            raise unknown_field(name, [], "the query string")
        return await super()._body(request, receive)

    async def respond(self, request: Request, body: bytes | None) -> Response:
        visitor = visitor_of(request)
        client = None if visitor is None else visitor.client
        rows = read_events(body or b"", self.log.fields, self.serving.limits.queries, client)
        self.rate.check(network_of(request), len(rows))
        stored = await asyncio.wrap_future(self.log.submit(rows)) if rows else 0
        return json_response(EventsAnswer(stored, len(rows) - stored))


class ChunkedResponse(Response):
    """A response that waits for the client every 64 KiB, so that buffers stay small."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = self.body
        start = {"status": self.status_code, "headers": self.raw_headers}
        await send({"type": "http.response.start", **start})
        for first in range(0, max(len(body), 1), CHUNK_BYTES):
            last = first + CHUNK_BYTES
            message = {"body": body[first:last], "more_body": last < len(body)}
            await send({"type": "http.response.body", **message})


class RequestObserver:
    """Middleware that counts, times and logs requests, and answers failures with one line."""

    def __init__(
        self, app: ASGIApp, counts: metrics.Metrics, paths: set[str], access: AccessLog | None
    ) -> None:
        self.app, self.metrics, self.paths, self.access = app, counts, paths, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        start, status, size = time.perf_counter(), 499, 0  # 499: disconnected, as in nginx
        route = scope["path"] if scope["path"] in self.paths else metrics.OTHER

        async def observed_send(message: Message) -> None:
            nonlocal status, size
            if message["type"] == "http.response.start":
                status = message["status"]
            size += len(message.get("body", b""))
            await send(message)

        with self.metrics.in_flight.track_inprogress():
            try:
                await self.app(scope, receive, observed_send)
            except (ClientDisconnect, asyncio.CancelledError):
                pass  # the client disconnected, or the server stops
            except Exception:
                log.exception("request to %s failed", route)
                if status == 499:
                    detail = "internal error; the server's log has the details."
                    await error_response(500, detail)(scope, receive, observed_send)
        self.metrics.requests.labels(route, status).inc()
        seconds = time.perf_counter() - start
        self.metrics.seconds.labels(route).observe(seconds)
        if self.access is not None:
            self.access.write(scope, route, status, size, seconds)
