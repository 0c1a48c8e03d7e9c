"""Queries and events of User Behavior Insights (UBI) 1.3.0: their check, and what is stored."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from firstpage.core import DataError
from firstpage.data.io import RepeatedKey, unique_keys
from firstpage.serving.limits import Refusal
from firstpage.serving.rank_request import short, unknown_field

Row = Mapping[str, Any]
ALWAYS = (
    "event_id",
    "query_id",
    "timestamp",
    "action_name",
    "user_query",
    "query_response_hit_ids",
)
OPTIONAL = (  # which a setting may name, besides event_attributes.NAME and query_attributes.NAME
    "application", "client_id", "session_id", "user_id", "message_type", "message",
    "object_id_field", "query_response_id",
)  # fmt: skip
STORED = ("application", "client_id")
MAX_ROW = 1 << 16  # bytes of a row
AHEAD = timedelta(days=1)  # by which a client's clock may be fast

Name = Annotated[str, Meta(max_length=100)] | UnsetType
Time = Annotated[datetime, Meta(tz=True)]
ObjectId = Annotated[str, Meta(max_length=256)] | int


class EventObject(Struct):
    """The document on which an event occurred."""

    object_id: ObjectId
    object_id_type: Name = UNSET
    object_id_field: Name = UNSET
    internal_id: ObjectId | UnsetType = UNSET


class Point(Struct):
    """Coordinates on the screen."""

    x: float
    y: float


class EventPosition(Struct):
    """Where an event occurred: either a rank, from 1, or coordinates."""

    ordinal: Annotated[int, Meta(ge=0)] | UnsetType = UNSET
    xy: Point | UnsetType = UNSET


class EventAttributes(Struct):
    """Attributes of an event; others are stored only if the server's settings name them."""

    position: EventPosition
    object: EventObject | UnsetType = UNSET


class QueryRow(Struct, kw_only=True):
    """A query and the documents that were shown for it."""

    query_id: Annotated[str, Meta(max_length=100)]
    user_query: Annotated[str, Meta(max_length=10_000)]
    query_response_hit_ids: Annotated[list[str], Meta(max_length=1000)] | UnsetType = UNSET
    query_response_id: str | UnsetType = UNSET
    query_attributes: dict[str, Any] | UnsetType = UNSET
    object_id_field: Name = UNSET
    application: Name = UNSET
    client_id: Name = UNSET
    event_id: Name = UNSET
    timestamp: Time


class EventRow(Struct, kw_only=True):
    """An action of a user, such as a click on a result."""

    action_name: Annotated[str, Meta(max_length=100)]
    timestamp: Time
    query_id: Name = UNSET
    user_query: Annotated[str, Meta(max_length=10_000)] | UnsetType = UNSET
    event_attributes: EventAttributes | UnsetType = UNSET
    application: Name = UNSET
    session_id: Name = UNSET
    client_id: Name = UNSET
    user_id: Name = UNSET
    message_type: Name = UNSET
    message: Annotated[str, Meta(max_length=1024)] | UnsetType = UNSET
    event_id: Annotated[
        str | UnsetType,
        Meta(description="An event that is sent again is not stored again; default: a digest."),
    ] = UNSET


class EventsAnswer(Struct):
    """How many rows are on disk since this request, and how many were before."""

    stored: int
    known: int


def check_fields(names: Iterable[str]) -> frozenset[str]:
    """Return the names of what is stored besides ids, times and positions."""
    for name in names:
        group, _, attribute = name.partition(".")
        if name not in OPTIONAL and not (
            group in ("event_attributes", "query_attributes") and attribute
        ):
            raise DataError(
                f"{short(name)} is not a field of the event log; the fields are "
                f"{', '.join(OPTIONAL)}, event_attributes.NAME and query_attributes.NAME."
            )
    return frozenset(names)


def read_events(body: bytes, fields: frozenset[str], most: int, client: str | None) -> list[Row]:
    """Return the rows of a body as they are stored; `client` replaces the id that it claims."""
    try:
        rows = msgspec.json.decode(body)
        json.loads(body, object_pairs_hook=unique_keys)  # msgspec keeps the last of equal keys
    except RepeatedKey as error:
        raise Refusal(f"the body is ambiguous: {error}") from None
    except (ValueError, RecursionError) as error:
        raise Refusal(f"the body is not valid JSON ({str(error)[:200]}).") from None
    rows = rows if isinstance(rows, list) else [rows]
    if len(rows) > most:
        raise Refusal(f"the body has {len(rows):,} events, and the limit is {most:,}.", 413)
    return [_stored(row, f"event {n}", fields, client) for n, row in enumerate(rows, 1)]


def _stored(row: Any, where: str, fields: frozenset[str], client: str | None) -> Row:
    """Return what is stored of a row; refuse one that is not of UBI."""
    if not isinstance(row, dict):
        raise Refusal(f"{where} must be an object; got {short(row)}.")
    kind: type[EventRow | QueryRow] = EventRow if "action_name" in row else QueryRow
    for name in row:
        if name not in kind.__struct_fields__:
            raise unknown_field(name, kind.__struct_fields__, where)
    try:
        checked = msgspec.convert(row, kind)
    except msgspec.ValidationError as error:
        problem, _, path = str(error).partition(" - at `$.")
        at = f"'{path.rstrip('`')}': " if path else ""
        raise Refusal(f"{where}: {at}{problem[0].lower()}{problem[1:]}.") from None
    if checked.timestamp > clock() + AHEAD:
        raise Refusal(f"{where}: 'timestamp' is more than a day ahead of this server's clock.")
    kept = {n: v for n, v in row.items() if n in ALWAYS or n in fields}
    if client is not None and "client_id" in fields:
        kept["client_id"] = client
    for group in ("event_attributes", "query_attributes"):
        if group in row:
            named = {n: v for n, v in row[group].items() if f"{group}.{n}" in fields}
            if named:
                kept[group] = named
    if isinstance(checked, EventRow) and checked.event_attributes is not UNSET:
        attributes = checked.event_attributes
        if (attributes.position.ordinal is UNSET) == (attributes.position.xy is UNSET):
            raise Refusal(f"{where}: 'position' must have either 'ordinal' or 'xy'.")
        known: dict[str, Any] = msgspec.to_builtins(attributes)
        kept["event_attributes"] = kept.get("event_attributes", {}) | known
    return identified(kept, where)


def identified(row: dict[str, Any], where: str = "the row") -> Row:
    """Return a row with its id, by default a digest; refuse a long row."""
    has_id = "event_id" in row
    content = msgspec.json.encode(row, order=None if has_id else "deterministic")
    if len(content) > MAX_ROW:
        raise Refusal(f"{where} has {len(content):,} bytes, and the limit is {MAX_ROW:,}.", 413)
    return row if has_id else {**row, "event_id": hashlib.sha256(content).hexdigest()[:32]}


def stored_fields(row: Row, fields: Collection[str]) -> Row:
    """Return a row of the server without the fields that are not stored."""
    return {n: v for n, v in row.items() if n not in OPTIONAL or n in fields}


def clock() -> datetime:
    """Return the current time, which is that of the system and may be set back."""
    return datetime.now(UTC)


def now() -> str:
    """Return the current time as UBI has it."""
    return clock().isoformat(timespec="milliseconds").replace("+00:00", "Z")
