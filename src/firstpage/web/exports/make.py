"""Exports by name, for the API, the pages and the command line: truth, measure, log, assignment."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import select

from firstpage.data.formats.letor import BLANKS, check_identifier
from firstpage.errors import DataError
from firstpage.report.labeling import study_page
from firstpage.web.analysis.figures import studied
from firstpage.web.analysis.measure import compared, learned
from firstpage.web.analysis.truth import Truth, truths
from firstpage.web.store import assigning, projects
from firstpage.web.store.connect import Tx
from firstpage.web.store.projects import Project
from firstpage.web.store.tables import events, people, queries, tasks

RISKY = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet would run a cell that begins so
LOG_COLUMNS = (
    "project", "query", "assessor", "tool", "replicate", "task", "seq", "key", "event", "kind",
    "left", "right", "outcome", "bad", "skipped", "revised", "setting", "began", "shown_at",
    "answered_at", "active_ms", "paused_ms", "away_ms", "spans", "adjusted_times", "comment",
    "cost", "by", "at",
)  # fmt: skip


def log_rows(tx: Tx, project: Project) -> Iterator[dict[str, Any]]:
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
        kept = {name: row[name] for name in LOG_COLUMNS if name in row}
        yield {name: {**event, **kept, "event": event["event"], "project": project.slug}.get(name)
               for name in LOG_COLUMNS}  # fmt: skip


def log_jsonl(found: Iterable[dict[str, Any]]) -> Iterator[str]:
    """One event a line."""
    for row in found:
        yield json.dumps(row, ensure_ascii=False) + "\n"


def log_csv(found: Iterable[dict[str, Any]]) -> Iterator[str]:
    """A table for spreadsheets; cells that would be formulas get an apostrophe in front."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(LOG_COLUMNS)
    for row in found:
        writer.writerow([_cell(row[name]) for name in LOG_COLUMNS])
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


def measure_json(tx: Tx, project: Project) -> Iterator[str]:
    """As `Utility.save` writes it; an error says why where there is none."""
    found = learned(tx, project).known().to_dict()
    yield json.dumps(found, indent=1, allow_nan=False) + "\n"


def preferences(tx: Tx, project: Project) -> Iterator[str]:
    """One judgment a line: grades from the first place on, null for what nobody has judged."""
    for judgment in compared(tx, project):
        yield json.dumps(asdict(judgment), ensure_ascii=False) + "\n"


def truth_letor(truths: Sequence[Truth]) -> Iterator[str]:
    """`label qid:query # docid = document`; features are for others to add."""
    for truth in truths:
        check_identifier(truth.query, "query id", "a LETOR file", BLANKS + "#")
        for key in truth.documents:
            check_identifier(key, "document id", "a LETOR file")
            yield f"{truth.labels[key]} qid:{truth.query} # docid = {key}\n"


def truth_qrels(truths: Sequence[Truth]) -> Iterator[str]:
    """`query 0 document label`."""
    for truth in truths:
        check_identifier(truth.query, "query id", "a qrels file")
        for key in truth.documents:
            check_identifier(key, "document id", "a qrels file")
            yield f"{truth.query} 0 {key} {truth.labels[key]}\n"


def truth_jsonl(truths: Sequence[Truth]) -> Iterator[str]:
    """One query a line: order, labels, tie groups, bad documents, confidence."""
    for truth in truths:
        yield json.dumps(asdict(truth), ensure_ascii=False, allow_nan=False) + "\n"


Export = Callable[[Tx, Project], Iterator[str]]


def export(tx: Tx, project: Project, name: str) -> Iterator[str]:
    """The parts of an export, such as `truth.qrels`."""
    if name not in EXPORTS:
        raise DataError(f"an export is one of {', '.join(EXPORTS)}; got {name!r}.")
    return EXPORTS[name][1](tx, project)


def media_type(name: str) -> str:
    return EXPORTS[name][0]


def assignment(tx: Tx, project: Project) -> Iterator[str]:
    """Who judges what, people by login."""
    logins = {str(r["person"]): r["login"] for r in projects.members(tx, project)}
    found = assigning.current(tx, project).to_dict()
    for task in (*found["tasks"], *found["abandoned"]):
        task["assessor"] = logins.get(task["assessor"], task["assessor"])
    for part in ("assessors", "gone"):
        found[part] = [logins.get(person, person) for person in found[part]]
    yield json.dumps(found, ensure_ascii=False, indent=1) + "\n"


def report(tx: Tx, project: Project) -> Iterator[str]:
    """The study with the paper's tables for this project, as one HTML page."""
    yield study_page(project.title, *studied(tx, project))


def _truth(write: Callable[[list[Truth]], Iterator[str]]) -> Export:
    return lambda tx, project: write(truths(tx, project))


EXPORTS: dict[str, tuple[str, Export]] = {
    "truth.letor": ("text/plain; charset=utf-8", _truth(truth_letor)),
    "truth.qrels": ("text/plain; charset=utf-8", _truth(truth_qrels)),
    "truth.jsonl": ("application/x-ndjson", _truth(truth_jsonl)),
    "log.jsonl": ("application/x-ndjson", lambda tx, p: log_jsonl(log_rows(tx, p))),
    "log.csv": ("text/csv; charset=utf-8", lambda tx, p: log_csv(log_rows(tx, p))),
    "report.html": ("text/html; charset=utf-8", report),
    "assignment.json": ("application/json", assignment),
    "measure.json": ("application/json", measure_json),
    "preferences.jsonl": ("application/x-ndjson", preferences),
}
