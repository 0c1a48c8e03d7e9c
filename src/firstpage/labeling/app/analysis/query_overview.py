"""The queries of a project, with their state and the confidence of their truth."""

from __future__ import annotations

from collections import Counter
from typing import Any

from firstpage.labeling.app.analysis.figures import nan_to_none
from firstpage.labeling.app.analysis.truth import truths
from firstpage.labeling.app.store import Project, Tx, tasks, texts


def queries(tx: Tx, project: Project, search: str = "") -> dict[str, Any]:
    """Return the queries whose id or text contains a text, for JSON; archived ones last.

    `confidence` is that of the top k as a set, given the answers so far; None without an answer,
    and with grades.  `state` is open (no answer), started, done or archived.
    """
    known = {truth.query: truth for truth in truths(tx, project, partial=True)}
    states: dict[int, Counter[str]] = {}
    judgments: Counter[int] = Counter()
    for task in tasks.of_project(tx, project.id):
        states.setdefault(task.query, Counter())[task.state] += 1
        judgments[task.query] += task.judgments
    rows = []
    for row in texts.of_project(tx, project.id, archived=True):
        if search.casefold() not in f"{row['key']}\n{row['text']}".casefold():
            continue
        counts, truth = states.get(row["id"], Counter()), known.get(row["key"])
        rows.append(
            {
                "id": row["id"],
                "query": row["key"],
                "text": row["text"],
                "documents": row["n"],
                "state": _state(row["archived"], counts),
                "archived": row["archived"],
                "tasks": counts["open"] + counts["started"] + counts["done"],
                "done": counts["done"],
                "judgments": judgments[row["id"]],
                "confidence": None if truth is None else truth.set_confidence,
                "verdicts": 0 if truth is None else truth.verdicts,
            }
        )
    rows.sort(key=lambda row: row["archived"] is not None)
    return nan_to_none({"queries": rows})


def _state(archived: str | None, counts: Counter[str]) -> str:
    if archived is not None:
        return "archived"
    if counts["done"] and not counts["open"] and not counts["started"]:
        return "done"
    return "started" if counts["done"] or counts["started"] else "open"
