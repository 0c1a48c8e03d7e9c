"""Exports by name, such as `truth.qrels`, for the API, the pages and the command line."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sqlalchemy import select

from firstpage.core import DataError, csv_line, escape_formula
from firstpage.data import BLANKS, Qrels
from firstpage.data.formats import write_qrels
from firstpage.data.preferences import Vote, csv_lines
from firstpage.labeling.app.analysis.figures import project_study
from firstpage.labeling.app.analysis.measure import (
    document_judgments,
    has_grades,
    learned_measure,
    list_judgments,
)
from firstpage.labeling.app.analysis.records import task_judgments
from firstpage.labeling.app.analysis.truth import QueryTruth, truths, weighted_verdicts
from firstpage.labeling.app.store import Project, Tx, adjudication, assigning, projects, texts
from firstpage.labeling.app.store.tables import events, people, queries, tasks
from firstpage.labeling.report import study_page

COLUMNS = ("query", "docid", "rating")


def quepid_csv(truths: Sequence[QueryTruth]) -> Iterator[str]:
    """Yield the ratings of all finished queries; nothing if there are none."""
    if not truths:
        return
    keys: dict[str, str] = {}
    lines = [csv_line(COLUMNS)]
    for truth in truths:
        text = truth.text.strip() or truth.query
        if keys.setdefault(text, truth.query) != truth.query:
            raise DataError(
                f"the queries {keys[text]!r} and {truth.query!r} have the same text, by which "
                "Quepid knows a query; export qrels instead."
            )
        for document in truth.documents:
            rating = "" if document in truth.unjudged else truth.labels[document]
            lines.append(csv_line((_quepid_text(text), _quepid_text(document), rating)))
    yield "".join(lines)


def _quepid_text(text: str) -> str:
    """Return a cell; a blank before the apostrophe of formulas marks it as Firstpage's."""
    cell = escape_formula(text)
    return text if cell == text else f" {cell}"


OPINIONS = ("judgment", "probe")  # kinds of answers that are an opinion of their own
VERDICT_VOTER = "verdict"
LOG_COLUMNS = (
    "project", "query", "assessor", "tool", "replicate", "task", "seq", "key", "event", "kind",
    "left", "right", "outcome", "bad", "skipped", "judgment_index", "setting", "initial_setting",
    "shown_at", "answered_at", "active_ms", "paused_ms", "away_ms", "spans", "adjusted_times",
    "comment", "reasons", "aspects", "cost", "recorded_by", "recorded_at",
)  # fmt: skip


def log_rows(tx: Tx, project: Project) -> Iterator[dict[str, Any]]:
    """Yield events by task and number, each with its query and assessor; then verdicts."""
    yield from judgment_rows(tx, project)
    for row in adjudication.log_rows(tx, project):
        event = dict(row["event"])
        if "index" in event:  # the index of the verdict that is withdrawn
            event["judgment_index"] = event.pop("index")
        record = {
            **event,
            "project": project.slug,
            "query": row["query_key"],
            "tool": row["tool"],
            "seq": row["seq"],
            "key": row["key"],
            "comment": row["reason"],
            "recorded_by": row["login"],
            "recorded_at": row["recorded_at"],
        }
        yield {name: record.get(name) for name in LOG_COLUMNS}


def judgment_rows(tx: Tx, project: Project) -> Iterator[dict[str, Any]]:
    """Yield the events of assessors by task and number, each with its query and assessor."""
    author = people.alias("author")
    statement = (
        select(
            events,
            tasks.c.tool,
            tasks.c.replicate,
            queries.c.key.label("query"),
            people.c.login.label("assessor"),
            author.c.login.label("recorded_by"),
            tasks.c.setting.label("first_setting"),
        )
        .join(tasks, tasks.c.id == events.c.task)
        .join(queries, queries.c.id == tasks.c.query)
        .join(people, people.c.id == tasks.c.person)
        .join(author, author.c.id == events.c.person)
        .where(tasks.c.project == project.id)
        .order_by(events.c.task, events.c.seq)
    )
    for row in tx.all(statement):
        event = dict(row["event"])
        if "index" in event:  # the index of the judgment that is revised
            event["judgment_index"] = event.pop("index")
        if row["seq"] == 0:  # a replay starts with the setting
            event["initial_setting"] = row["first_setting"]
        columns = {name: row[name] for name in LOG_COLUMNS if name in row}
        record = {**event, **columns, "event": event["event"], "project": project.slug}
        yield {name: record.get(name) for name in LOG_COLUMNS}


def log_jsonl(rows: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Yield one event per line."""
    for row in rows:
        yield json.dumps(row, ensure_ascii=False) + "\n"


def log_csv(rows: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Yield a table for spreadsheets; cells that would be formulas start with an apostrophe."""
    yield csv_line(LOG_COLUMNS)
    for row in rows:
        yield csv_line(_cell(row[name]) for name in LOG_COLUMNS)


def _cell(value: Any) -> Any:
    if value is None or isinstance(value, str | bool | int | float):
        return value
    return json.dumps(value, ensure_ascii=False)


def measure_json(tx: Tx, project: Project) -> Iterator[str]:
    """Yield the measure as `Utility.save` writes it; raise with the reason if there is none."""
    record = learned_measure(tx, project).require_utility().to_dict()
    yield json.dumps(record, indent=1, allow_nan=False) + "\n"


def preferences(tx: Tx, project: Project) -> Iterator[str]:
    """Yield one judgment per line: grades in rank order, null for unjudged items.

    If no item has a grade, the lists are the ids of their documents, which qrels grade later.
    """
    if has_grades(tx, project):
        for judgment in list_judgments(tx, project):
            yield json.dumps(asdict(judgment), ensure_ascii=False) + "\n"
        return
    for documents in document_judgments(tx, project):
        record = {**asdict(documents), "lists": "documents"}
        yield json.dumps(record, ensure_ascii=False) + "\n"


def compared_pairs(tx: Tx, project: Project) -> Iterator[Vote]:
    """Yield the current comparisons of two documents, by task, also those of unfinished queries.

    Skipped questions, hidden repeats, which would count an opinion twice, and gold questions are
    left out.  Verdicts of leads follow, with the project's weight.
    """
    if "pairs" not in project.tools:
        raise DataError(
            f"the project {project.slug!r} has no judgments of pairs of documents; its tool is "
            f"{' and '.join(project.tools)}."
        )
    for task in task_judgments(tx, project):
        if task.tool == "pairs":
            for judgment, _ in task.judgments:
                if judgment.kind in OPINIONS and judgment.right and not judgment.skipped:
                    sign = (judgment.outcome > 0) - (judgment.outcome < 0)
                    yield Vote(task.query, judgment.left, judgment.right, sign, voter=task.assessor)
    names = {row["id"]: row["key"] for row in texts.of_project(tx, project.id)}
    for query, verdicts in weighted_verdicts(tx, project, "pairs").items():
        for given in verdicts if query in names else ():
            if given.verdict.right is not None:
                yield Vote(
                    names[query],
                    given.verdict.left,
                    given.verdict.right,
                    given.verdict.outcome,
                    given.weight,
                    VERDICT_VOTER,
                )


def pairs_csv(tx: Tx, project: Project) -> Iterator[str]:
    """Yield one vote per line, as `read_pairs` reads it; nothing if nothing was judged."""
    votes = list(compared_pairs(tx, project))
    if votes:
        yield from csv_lines(votes)


def truth_letor(truths: Sequence[QueryTruth]) -> Iterator[str]:
    """Yield lines `label qid:query # docid = document`, without features."""
    for truth in truths:
        for name, kind, separators in (
            (truth.query, "query id", BLANKS + "#"),
            *((key, "document id", BLANKS) for key in truth.documents),
        ):
            if any(c in separators for c in name):
                raise DataError(
                    f"the {kind} {name!r} cannot be written to a LETOR file, since it has a "
                    "separator; export qrels, jsonl, or --content data as .parquet."
                )
        for key in truth.documents:
            yield f"{truth.labels[key]} qid:{truth.query} # docid = {key}\n"


def truth_qrels(truths: Sequence[QueryTruth]) -> Iterator[str]:
    """Yield the labels as `write_qrels` writes them."""
    if truths:
        with TemporaryDirectory(prefix="firstpage-") as folder:
            path = Path(folder) / "truth.qrels"
            write_qrels(qrels_of(truths), path)
            yield path.read_text("utf-8")


def qrels_of(truths: Sequence[QueryTruth]) -> Qrels:
    """Return the labels of all documents as judgments."""
    return Qrels.from_dict({t.query: {key: t.labels[key] for key in t.documents} for t in truths})


def truth_jsonl(truths: Sequence[QueryTruth]) -> Iterator[str]:
    """Yield one query per line: order, labels, tied groups, bad documents, confidence."""
    for truth in truths:
        yield json.dumps(asdict(truth), ensure_ascii=False, allow_nan=False) + "\n"


Export = Callable[[Tx, Project, str | None, bool], Iterator[str]]


def export(
    tx: Tx, project: Project, name: str, tool: str | None = None, partial: bool = False
) -> Iterator[str]:
    """Return the chunks of an export, such as `truth.qrels`, of a tool (default: the first).

    With `partial` the truth contains unfinished queries.
    """
    if name not in EXPORTS:
        raise DataError(f"an export must be one of {', '.join(EXPORTS)}; got {name!r}.")
    check_tool(project, name, tool)
    check_partial(name, partial)
    return EXPORTS[name][1](tx, project, tool, partial)


def check_partial(name: str, partial: bool) -> None:
    """Refuse to include unfinished queries where they are included anyway or make no sense."""
    if partial and not name.startswith(("truth.", "data.", "quepid.")):
        raise DataError(
            f"{name} has no partial form; only truth, data and quepid leave out queries."
        )


def check_tool(project: Project, name: str, tool: str | None) -> None:
    """Refuse a tool that the project does not have, or that the export does not depend on."""
    if tool is None:
        return
    if not name.startswith(("truth.", "data.", "quepid.")):
        raise DataError(f"{name} contains all tools; only truth and data are those of one tool.")
    if tool not in project.tools:
        raise DataError(
            f"the project {project.slug!r} has no judgments with the tool {tool!r}; it has "
            f"{' and '.join(project.tools)}."
        )


def media_type(name: str) -> str:
    """Return the media type of an export."""
    return EXPORTS[name][0]


def pool_jsonl(tx: Tx, project: Project) -> Iterator[str]:
    """Yield the documents of each query, with the runs that contain them, one per line."""
    for query in texts.of_project(tx, project.id):
        for row in texts.documents_of(tx, query["id"]):
            record = {"query": query["key"], "document": row["key"], "prior": row["prior"]}
            yield json.dumps({**record, "runs": row["runs"]}, ensure_ascii=False) + "\n"


def assignment(tx: Tx, project: Project) -> Iterator[str]:
    """Yield the assignment, with people by login."""
    logins = {str(r["person"]): r["login"] for r in projects.members(tx, project)}
    record = assigning.current_assignment(tx, project).to_dict()
    for task in (*record["tasks"], *record["abandoned"]):
        task["assessor"] = logins.get(task["assessor"], task["assessor"])
    for group in ("assessors", "departed"):
        record[group] = [logins.get(person, person) for person in record[group]]
    yield json.dumps(record, ensure_ascii=False, indent=1) + "\n"


def report(tx: Tx, project: Project) -> Iterator[str]:
    """Yield the study report, with the tables of the paper, as one HTML page."""
    yield study_page(project.title, *project_study(tx, project))


def _truth(write: Callable[[list[QueryTruth]], Iterator[str]]) -> Export:
    return lambda tx, project, tool, partial: write(truths(tx, project, tool, partial))


def _project(write: Callable[[Tx, Project], Iterator[str]]) -> Export:
    """Return an export of all tools."""
    return lambda tx, project, _, __: write(tx, project)


EXPORTS: dict[str, tuple[str, Export]] = {
    "truth.letor": ("text/plain; charset=utf-8", _truth(truth_letor)),
    "truth.qrels": ("text/plain; charset=utf-8", _truth(truth_qrels)),
    "truth.jsonl": ("application/x-ndjson", _truth(truth_jsonl)),
    "log.jsonl": ("application/x-ndjson", _project(lambda tx, p: log_jsonl(log_rows(tx, p)))),
    "log.csv": ("text/csv; charset=utf-8", _project(lambda tx, p: log_csv(log_rows(tx, p)))),
    "report.html": ("text/html; charset=utf-8", _project(report)),
    "assignment.json": ("application/json", _project(assignment)),
    "pool.jsonl": ("application/x-ndjson", _project(pool_jsonl)),
    "measure.json": ("application/json", _project(measure_json)),
    "quepid.csv": ("text/csv; charset=utf-8", _truth(quepid_csv)),
    "pairs.csv": ("text/csv; charset=utf-8", _project(pairs_csv)),
    "preferences.jsonl": ("application/x-ndjson", _project(preferences)),
}
