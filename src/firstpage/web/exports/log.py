"""The raw log: every event as it was kept."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator
from typing import Any

from sqlalchemy import select

from firstpage.web.store.connect import Tx
from firstpage.web.store.projects import Project
from firstpage.web.store.tables import events, people, queries, tasks

RISKY = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet would run a cell that begins so
COLUMNS = (
    "project", "query", "assessor", "tool", "replicate", "task", "seq", "key", "event", "kind",
    "left", "right", "outcome", "bad", "skipped", "revised", "setting", "began", "shown_at",
    "answered_at", "active_ms", "paused_ms", "away_ms", "spans", "adjusted_times", "comment",
    "cost", "by", "at",
)  # fmt: skip


def rows(tx: Tx, project: Project) -> Iterator[dict[str, Any]]:
    """Events by task and number, each with its query and assessor."""
    doer = people.alias("doer")
    found = (
        select(
            events, tasks.c.tool, tasks.c.replicate, queries.c.key.label("query"),
            people.c.login.label("assessor"), doer.c.login.label("by"),
            tasks.c.setting.label("first_setting"),
        )
        .join(tasks, tasks.c.id == events.c.task)
        .join(queries, queries.c.id == tasks.c.query)
        .join(people, people.c.id == tasks.c.person)
        .join(doer, doer.c.id == events.c.person)
        .where(tasks.c.project == project.id)
        .order_by(events.c.task, events.c.seq)
    )  # fmt: skip
    for row in tx.all(found):
        event = dict(row["event"])
        if "at" in event:
            event["revised"] = event.pop("at")  # which judgment; `at` is the time of keeping
        event["began"] = row["first_setting"] if row["seq"] == 0 else None  # all a replay needs
        kept = {name: row[name] for name in COLUMNS if name in row}
        yield {name: {**event, **kept, "event": event["event"], "project": project.slug}.get(name)
               for name in COLUMNS}  # fmt: skip


def jsonl(found: Iterable[dict[str, Any]]) -> Iterator[str]:
    """One event a line."""
    for row in found:
        yield json.dumps(row, ensure_ascii=False) + "\n"


def as_csv(found: Iterable[dict[str, Any]]) -> Iterator[str]:
    """A table for spreadsheets; cells that would be formulas get an apostrophe in front."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    for row in found:
        writer.writerow([_cell(row[name]) for name in COLUMNS])
        yield out.getvalue()
        out.seek(0)
        out.truncate()
    yield out.getvalue()


def _cell(value: Any) -> Any:
    """Numbers stay numbers: -1 is an outcome, not a formula."""
    if value is None or isinstance(value, bool | int | float):
        return value
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"'{text}" if text.startswith(RISKY) else text
