"""Options for reading a log of clicks, which all commands on logs share."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from firstpage.cli import options, shared
from firstpage.clicks import FORMS, Sessions, read_sessions
from firstpage.core import DataError
from firstpage.data import Dataset
from firstpage.data.shards import Shards
from firstpage.search import read_queries

log_options = options.combine(
    click.argument("log", nargs=-1, required=True, type=options.FILE, metavar="LOG"),
    click.option(
        "--form", type=click.Choice(FORMS), show_default="recognized", help="Form of the log."
    ),
    click.option(
        "--columns",
        metavar="NAME=COLUMN,..",
        help="Columns of a table or of JSON lines, such as query=q,document=sku.",
    ),
    click.option("--layout", metavar="NAME", help="Read pages of this layout only, such as list."),
    click.option(
        "--hash-users",
        metavar="SALT",
        help="Replace ids of users by a hash of them and of this secret text.",
    ),
    click.option(
        "--actions",
        metavar="NAME=VALUE,..",
        help="Actions of UBI with their values, such as click=1,purchase=3.",
    ),
    click.option(
        "--skip-broken", is_flag=True, help="Skip broken lines and impossible rows; count them."
    ),
    click.option("--application", metavar="NAME", help="Read only this application (UBI)."),
    options.integer("--bots", help="Leave out users (or sessions) with more than N pages."),
)
query_option = click.option(
    "--queries",
    type=options.FILE,
    help="Texts of the queries with their ids, where LOG has the texts.",
)
READING = ("form", "columns", "layout", "hash_users", "actions", "skip_broken", "bots")
NAMES = ("log", "application", *READING)


def read_log(values: dict[str, Any]) -> Sessions:
    """Read the log of the options, which are taken out of `values`; print the decisions."""
    queries = values.pop("queries", None)
    read: dict[str, Any] = {name: values.pop(name) for name in NAMES}
    paths: tuple[Path, ...] = read.pop("log")
    read["columns"] = _assignments("--columns", read["columns"])
    actions = _assignments("--actions", read["actions"])
    try:
        read["actions"] = {name: float(value) for name, value in actions.items()} or None
    except ValueError:
        raise click.UsageError("--actions takes numbers, such as click=1,purchase=3.") from None
    with shared.reading_progress(paths[0]) as progress:
        sessions = read_sessions(list(paths), read.pop("form"), **read, progress=progress)
    for text, count in sessions.decisions.items():
        shared.note(f"{os.fspath(paths[0])}: {text} ({count:,}).")
    return sessions if queries is None else with_ids(sessions, queries)


def with_ids(sessions: Sessions, queries: Path) -> Sessions:
    """Return sessions with the ids of a file instead of the texts of queries."""
    ids = {text: name for name, text in read_queries(queries)}
    names = tuple(ids.get(name, name) for name in sessions.queries)
    if len(set(names)) < len(names):
        raise DataError(f"{sessions.source}: --queries gives two queries of the log the same id.")
    if names == sessions.queries:
        raise DataError(f"{queries}: has no query of the log, as it was typed.")
    return replace(sessions, queries=names)


def read_plain_log(path: Path) -> Sessions:
    """Read a log in a form that needs no options; print the decisions."""
    return read_log({**dict.fromkeys(NAMES), "log": (path,)})


def read_features(path: Path) -> Dataset:
    """Return the documents of queries with their features; labels are not needed."""
    data = shared.read_data_or_shards(path, labeled=False)
    if isinstance(data, Shards):
        raise click.UsageError("--features needs data in memory, not shards.")
    return data


def _assignments(option: str, text: str | None) -> dict[str, str]:
    """Return the assignments of an option: name=value,name=value."""
    pairs = [part.partition("=") for part in (text or "").split(",") if part.strip()]
    if any(not (name.strip() and equals and value.strip()) for name, equals, value in pairs):
        raise DataError(f"{option} takes name=value,name=value; got {text!r}.")
    return {name.strip(): value.strip() for name, _, value in pairs}
