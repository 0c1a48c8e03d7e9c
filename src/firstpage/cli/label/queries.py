"""`firstpage label queries`: list the queries of a project with their state."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from firstpage.cli import options, outputs
from firstpage.cli.help import documented_command
from firstpage.cli.label.access import open_store, with_web
from firstpage.cli.shared import note
from firstpage.core import Table
from firstpage.labeling.app import analysis
from firstpage.labeling.app import store as stores

COLUMNS = ("query", "state", "documents", "tasks", "done", "judgments", "confidence", "text")
MAX_TEXT = 50  # characters of a query in the table


@documented_command(
    "queries", "firstpage label queries shop", "firstpage label queries shop --search tea --json"
)
@click.argument("project")
@click.option("--name", metavar="SLUG", help="Project to list, if the store has several.")
@click.option("--search", metavar="TEXT", help="Part of an id or text, in any case.")
@click.option(
    "--state",
    type=click.Choice(["open", "started", "done", "archived"]),
    help="Only queries in this state.",
)
@options.as_json
@options.output("text", "json", help="Write to this file: .txt or .json.")
@with_web
def command(
    project: str,
    name: str | None,
    search: str | None,
    state: str | None,
    as_json: bool,
    output: Path | None,
) -> None:
    """List the queries of a project.

    PROJECT is a folder or a database URL.  The confidence is the probability that the top k of the
    query is correct as a set, given the answers so far.
    """
    kind = outputs.report_format(None, as_json, output, ("text", "json"))
    with open_store(project) as store, store.read() as tx:
        rows = analysis.queries(tx, stores.find_project(tx, name), search or "")["queries"]
    chosen = [row for row in rows if state in (None, row["state"])]
    if kind == "json":
        outputs.write_text(json.dumps(chosen, indent=2, ensure_ascii=False), output)
        return
    outputs.write_text(_table(chosen), output)
    if not chosen:
        note("no query matches.")


def _table(rows: list[dict[str, Any]]) -> str:
    cells = [[_cell(name, row[name]) for name in COLUMNS] for row in rows]
    return Table(list(COLUMNS), cells, left_aligned=2).text()


def _cell(name: str, value: Any) -> str:
    if value is None:
        return "-"
    if name == "confidence":
        return f"{100 * value:.0f} %"
    text = " ".join(str(value).split())
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"
