"""User Behavior Insights (UBI): `ubi_queries` and `ubi_events`, joined by the id of the query.

A page is what was shown for one query.  Its impressions are the events of that name, or else the
documents that the engine returned.  Queries and events may be in one file or in several: as bulk
requests, as exported documents, or one per line.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from operator import attrgetter
from typing import Any, NamedTuple

from firstpage.clicks.formats.collector import READ, LogCollector
from firstpage.clicks.formats.lines import json_objects, reason_of
from firstpage.clicks.formats.page_rows import OFF_PAGE, REPEATED
from firstpage.clicks.formats.values import as_number, as_time

IMPRESSION = "impression"
BATCH_MILLISECONDS = 250  # between impressions that are logged at the same time
MARKS = re.compile(
    rb'"(?:action_name|query_response_id|query_response_hit_ids|query_attributes)"\s*:'
    rb'|"_index"\s*:\s*"[^"]*ubi'
)
EXPERIMENT = ("experiment", "digest", "method", "arms", "arm", "shares")
PER_HIT = ("teams", "credits", "ranks", "weights")  # of an experiment, in the order of the hits
BULK = ("index", "create", "update", "delete")
Row = Mapping[str, Any]


def recognizes(head: bytes) -> bool:
    """Return whether a file begins with queries or events of UBI."""
    return head.startswith((b"{", b"[")) and MARKS.search(head) is not None


def read(name: str, stream: Any, collector: LogCollector) -> None:
    """Take the queries and events of a file; they are joined after the last file."""
    if "ubi" not in collector.joined:
        collector.joined["ubi"] = UbiLog(collector)
        collector.at_end.append(collector.joined["ubi"].finish)
    log: UbiLog = collector.joined["ubi"]
    for where, row in json_objects(name, stream, collector):
        if len(row) == 1 and next(iter(row)) in BULK:
            continue  # the line before a document in a bulk request
        try:
            log.add(row)
        except (TypeError, ValueError, AttributeError) as error:
            collector.broken(where, f"is not a query or an event of UBI: {reason_of(error)}")


class UbiEvent(NamedTuple):
    """An impression of a document, or an action on it."""

    action: str
    application: str
    document: str | None
    ordinal: float
    time: float
    user: str | None


class UbiLog:
    """Queries and events of all files; `finish` joins them to pages.

    Parameters
    ----------
    collector : LogCollector
        Where the impressions go.
    """

    def __init__(self, collector: LogCollector) -> None:
        self._collector = collector
        self._queries: dict[str, Row] = {}
        self._texts: dict[str, str] = {}
        self._sessions: dict[str, str] = {}
        self._impressions: dict[str, list[UbiEvent]] = defaultdict(list)
        self._actions: dict[str, list[UbiEvent]] = defaultdict(list)
        self._other_actions: Counter[str] = Counter()
        self._seen: set[str] = set()
        self._first_ordinal: dict[str, float] = {}
        self._shown: Counter[str] = Counter()  # impressions by application
        self._columns: dict[str, list[Any]] = defaultdict(list)
        self._pages = 0

    def add(self, row: Row) -> None:
        """Take a query or an event."""
        application = row.get("application")
        wanted = self._collector.options.application
        if wanted is not None and application != wanted:
            self._collector.count("queries and events of other applications, not read")
        elif "action_name" in row:
            self._collector.count(READ[1])
            self._add_event(row, str(application or ""))
        elif row.get("query_id") is None:
            raise ValueError("it has neither an action nor the id of a query.")
        else:
            name = str(row["query_id"])
            self._queries[name] = self._continued(self._queries.get(name), row)
            self._collector.count(READ[0])

    def _continued(self, first: Row | None, row: Row) -> Row:
        """Return the longer list of two pages of a query, with the time of the first one."""
        if first is None:
            return row
        before, hits = (list(each.get("query_response_hit_ids") or ()) for each in (first, row))
        if hits[: len(before)] == before:
            return {**row, "timestamp": first.get("timestamp")}
        text = "queries logged again with another list, of which the first counts"
        self._collector.count(text, before[: len(hits)] != hits)
        return first

    def _add_event(self, row: Row, application: str) -> None:
        """Take an event that is an impression or an action on a document."""
        if row.get("query_id") is None:
            self._collector.count("events without the id of a query, left out")
            return
        query = str(row["query_id"])
        attributes = row.get("event_attributes") or {}
        document = (attributes.get("object") or {}).get("object_id")
        event = UbiEvent(
            action=str(row["action_name"]),
            application=application,
            document=None if document is None else str(document),
            ordinal=as_number((attributes.get("position") or {}).get("ordinal")),
            time=as_time(row.get("timestamp")),
            user=row.get("user_id") or row.get("client_id"),
        )
        text = row.get("message") if row.get("message_type") == "QUERY" else ""
        self._texts.setdefault(query, str(row.get("user_query") or text or ""))
        session = row.get("session_id") or attributes.get("session_id")
        if session:
            self._sessions.setdefault(query, str(session))
        key = repr((query, session, event))  # of a NaN too, which is not equal to itself
        if event.action != IMPRESSION and event.action not in self._collector.options.actions:
            self._other_actions[event.action] += 1
            return
        if key in self._seen:
            self._collector.count("events that repeat another one in all values, left out")
            return
        self._seen.add(key)
        if not session:
            self._collector.count("events without a session, joined by the id of the query")
        first = self._first_ordinal.get(application, math.inf)
        self._first_ordinal[application] = min(first, event.ordinal)  # of a NaN: the first one
        self._shown[application] += event.action == IMPRESSION
        (self._impressions if event.action == IMPRESSION else self._actions)[query].append(event)

    def finish(self) -> None:
        """Join queries and events, and add the impressions."""
        count = self._collector.count
        names = ", ".join(sorted(self._other_actions))
        count(f"events of other actions, not read ({names})", self._other_actions.total())
        for query in dict.fromkeys([*self._queries, *self._impressions, *self._actions]):
            self._add_query(query)
        for name, first in self._first_ordinal.items():
            if first == 0:
                count(f"impressions with ordinals from 0 ({name}), ranks from 1", self._shown[name])
        shown = sorted(+self._shown)
        if len(shown) > 1:
            count(f"applications are mixed ({', '.join(shown)}); read one of them", len(shown))
        for name in ("arm", "experiment"):
            if not any(self._columns.get(name, ())):
                self._columns.pop(name, None)
        if self._columns:
            self._collector.add(self._columns, "ubi", numbered=True)
        self._collector.end_of_file()

    def _add_query(self, query: str) -> None:
        """Add the pages of one query: each view of its list is a page."""
        count = self._collector.count
        record = self._queries.get(query, {})
        actions = self._actions.get(query, [])
        shown = self._ranked(self._impressions.get(query) or self._hits(record), record)
        views = _views(shown)
        count("impressions that were logged again, left out", len(shown) - sum(map(len, views)))
        if not views:
            count("queries without impressions, left out")
            count("actions on results of these queries, left out", len(actions))
            return
        typed = str(record.get("user_query") or self._texts.get(query) or "")
        text = " ".join(typed.split())  # "shoes " is the query "shoes"
        count("queries without a text, named by their ids", not text)
        count("further pages of a query whose list changed", len(views) - 1)
        acted = self._joined(views, actions)
        for number, view in enumerate(views):
            user = view[0].user or record.get("user_id") or record.get("client_id")
            page = {"page": self._pages, "query": text or query, "user": user, "time": view[0].time}
            page["session"] = self._sessions.get(query) or record.get("session_id")
            view.sort(key=lambda event: event.ordinal)
            page["experiment"], arms = self._experiment(record, [e.document for e in view])
            self._pages += 1
            for event, arm in zip(view, arms, strict=True):
                shift = 1 - self._begin(event.application)
                clicks, first, value = acted.get((number, event.document), (0, 0, 0.0))
                row = {"document": event.document, "rank": event.ordinal + shift, "clicks": clicks}
                row |= {"first_click": first, "value": value, "arm": arm, **page}
                for name, each in row.items():
                    self._columns[name].append(each)

    def _experiment(
        self, record: Row, shown: list[str | None]
    ) -> tuple[str | None, list[str | None]]:
        """Return what a query tells of its experiment, as JSON, and the arm of each document."""
        logged = record.get("query_attributes") or {}
        inner = logged.get("experiment")
        if isinstance(inner, Mapping):
            logged = {**logged, **inner, "experiment": inner.get("name")}
        none: list[str | None] = [None] * len(shown)
        if not logged.get("experiment") or not logged.get("arms"):
            return None, none
        told = {name: logged[name] for name in EXPERIMENT if logged.get(name) is not None}
        hits = {str(hit): n for n, hit in enumerate(record.get("query_response_hit_ids") or ())}
        known = {name: logged[name] for name in PER_HIT if logged.get(name)}
        lacking = any(len(values) != len(hits) for values in known.values())
        if known and (lacking or not hits.keys() >= set(shown)):
            self._collector.count("pages whose documents are not those of their experiment")
            return None, none
        places = [hits[str(document)] for document in shown] if known else []
        told |= {name: [values[n] for n in places] for name, values in known.items()}
        if "weights" in told:
            told["weights"] = [[row[n] for n in places] for row in told["weights"]]
        arms = dict(enumerate(map(str, told["arms"])))
        codes = told.get("teams") or [told.get("arm", -1)] * len(shown)
        return json.dumps(told, sort_keys=True), [arms.get(code) for code in codes]

    def _ranked(self, impressions: list[UbiEvent], record: Row) -> list[UbiEvent]:
        """Return impressions with positions; those without one have that of the engine's list."""
        hits = [str(hit) for hit in record.get("query_response_hit_ids") or ()]
        ranked = []
        for event in impressions:
            if not math.isnan(event.ordinal):
                ranked.append(event)
            elif event.document in hits:
                self._collector.count("impressions without a position, ranked by the engine's list")
                ordinal = hits.index(event.document) + self._begin(event.application)
                ranked.append(event._replace(ordinal=ordinal))
            else:
                self._collector.count("impressions without a position, left out")
        return ranked

    def _begin(self, application: str) -> int:
        """Return the first ordinal of an application: 0 or 1."""
        return 0 if self._first_ordinal.get(application) == 0 else 1

    def _hits(self, record: Row) -> list[UbiEvent]:
        """Return impressions of the documents that the engine returned, if none are logged."""
        application = str(record.get("application") or "")
        if self._shown[application] or not record.get("query_response_hit_ids"):
            return []
        self._collector.count("queries whose impressions are the documents that were returned")
        begin = self._begin(application)
        time = as_time(record.get("timestamp"))
        hits = enumerate(map(str, record["query_response_hit_ids"]), begin)
        return [UbiEvent(IMPRESSION, application, hit, n, time, None) for n, hit in hits]

    def _joined(
        self, views: list[list[UbiEvent]], actions: list[UbiEvent]
    ) -> dict[tuple[int, str | None], tuple[int, int, float]]:
        """Return clicks, the place of the first one, and the best value, by view and document."""
        count, values = self._collector.count, self._collector.options.actions
        clicking = {name for name in values if "click" in name} or set(values)
        acted: dict[tuple[int, str | None], tuple[int, int, float]] = {}
        places: Counter[int] = Counter()
        for event in sorted(actions, key=lambda e: (math.isnan(e.time), e.time)):
            is_click = event.action in clicking
            same = attrgetter("document" if event.document else "ordinal")
            on = [
                (view[0].time <= event.time, number, each.document)
                for number, view in enumerate(views)
                for each in view
                if same(each) == same(event)
            ]  # the view that began last before the action is the maximum
            if not on:
                count(OFF_PAGE if is_click else "other actions off the page, left out")
                continue
            _, number, document = max(on)
            if event.time < views[number][0].time:
                count("actions with a time before the impressions of their page")
                if self._collector.options.skip_broken:
                    continue
            clicks, first, value = acted.get((number, document), (0, 0, 0.0))
            if is_click:
                count(REPEATED, clicks > 0)
                places[number] += clicks == 0
                clicks, first = clicks + 1, first or places[number]
            acted[number, document] = clicks, first, max(value, values[event.action])
        return acted


def _views(impressions: list[UbiEvent]) -> list[list[UbiEvent]]:
    """Split the impressions of a query where its list has changed.

    Impressions that are logged at the same time belong together.  If one of them is at a rank where
    another document was, all of them begin a new view.
    """
    views: list[dict[float, UbiEvent]] = []
    batch: dict[float, UbiEvent] = {}
    latest = math.nan

    def end_batch() -> None:
        last = views[-1] if views else {}
        changed = any(last.get(rank, e).document != e.document for rank, e in batch.items())
        if batch and (changed or not views):
            views.append({})
        for rank, event in batch.items():
            views[-1].setdefault(rank, event)
        batch.clear()

    for event in sorted(impressions, key=lambda e: (math.isnan(e.time), e.time)):
        if event.time - latest > BATCH_MILLISECONDS or event.ordinal in batch:
            end_batch()
        latest = event.time
        batch[event.ordinal] = event
    end_batch()
    return [list(view.values()) for view in views]
