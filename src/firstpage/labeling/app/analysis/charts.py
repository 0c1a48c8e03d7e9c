"""Charts of a project: agreement of assessors, grades, answers by day, confidence, systems."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from html import escape
from itertools import combinations
from typing import Any

import numpy as np
from sqlalchemy import func, select

from firstpage.core import Floats
from firstpage.core import charts as draw
from firstpage.labeling.app.analysis.records import TaskJudgments, records, results, task_judgments
from firstpage.labeling.app.analysis.truth import QueryTruth
from firstpage.labeling.app.store import Project, Tx
from firstpage.labeling.app.store.scales import grade_names
from firstpage.labeling.app.store.tables import events, tasks
from firstpage.labeling.statistics.agreement import by_assessor, pair_overlaps, result_overlaps
from firstpage.labeling.statistics.intervals import Interval, bootstrap

MAX_DAYS = 60  # of the chart of answers by day, the last ones
MAX_ASSESSORS = 40  # of the heat map, those with the most shared judgments
CELL, LABELS, HEADER = 44, 150, 26  # of a heat map, in its own units
Matrix = Mapping[tuple[str, str], tuple[float, float]]  # value and count by row and column


def agreement_matrices(tx: Tx, project: Project) -> dict[str, dict[str, Any]]:
    """Return the agreement of every two assessors, by tool, for JSON.

    It is that on pairs which both answered; with grades, and where no pair was shared, that of
    the final orders.
    """
    judged = task_judgments(tx, project)
    rows, labels = records(tx, project, judged), results(tx, project, judged)
    names = {task.assessor: task.name for task in judged}
    found = {}
    for tool in project.tools:
        shared = by_assessor(pair_overlaps([r for r in rows if r.tool == tool]))
        tables = shared or by_assessor(result_overlaps(labels, tool))
        if tables:
            found[tool] = {
                "basis": "shared pairs" if shared else "final orders",
                "names": {login: names.get(login, login) for login in tables},
                "cells": [
                    {
                        "first": first,
                        "second": second,
                        "agreement": table.overall,
                        "kappa": table.symmetrized().kappa,
                        "pairs": table.total,
                    }
                    for first, partners in tables.items()
                    for second, table in partners.items()
                ],
            }
    return found


def agreement_heat_map(matrix: Mapping[str, Any], title: str) -> str:
    """Return the agreement of every two assessors as a heat map."""
    shared: Counter[str] = Counter()
    for cell in matrix["cells"]:
        shared[cell["first"]] += cell["pairs"]
    logins = [login for login, _ in shared.most_common(MAX_ASSESSORS)]
    names = matrix["names"]
    values = {
        (names[c["first"]], names[c["second"]]): (c["agreement"], c["pairs"])
        for c in matrix["cells"]
    }
    shown = [names[login] for login in logins]
    return heat_map(shown, shown, values, title, percent=True)


def grade_counts(tx: Tx, project: Project) -> list[list[int]] | None:
    """Return how often two assessors gave the grades i and j to a document; None without grades.

    Every two assessors of a document count in both orders, so the table is symmetric.
    """
    by_document: dict[tuple[str, str], dict[str, int]] = {}
    for record in records(tx, project):
        if record.grade is not None and record.kind == "judgment":
            grades = by_document.setdefault((record.query, record.left), {})
            grades[record.assessor] = record.grade
    pairs = [pair for grades in by_document.values() for pair in combinations(grades.values(), 2)]
    if not pairs:
        return None
    size = max(len(grade_names(project.options.grades)), *(1 + max(pair) for pair in pairs))
    counts = [[0] * size for _ in range(size)]
    for first, second in pairs:
        counts[first][second] += 1
        counts[second][first] += 1
    return counts


def grade_heat_map(counts: Sequence[Sequence[int]], labels: Sequence[str], title: str) -> str:
    """Return the grades of two assessors of the same document as a heat map, rows in percent."""
    names = [labels[i] if i < len(labels) else str(i) for i in range(len(counts))]
    values = {
        (names[i], names[j]): (count / sum(row), count)
        for i, row in enumerate(counts)
        if sum(row)
        for j, count in enumerate(row)
    }
    return heat_map(names, names, values, title, percent=True)


def answers_by_day(tx: Tx, project: Project) -> list[tuple[str, int]]:
    """Return the number of answers per day (UTC), days without one included."""
    day = func.substr(events.c.recorded_at, 1, 10).label("day")
    rows = tx.all(
        select(day, func.count().label("n"))
        .select_from(events.join(tasks, tasks.c.id == events.c.task))
        .where(tasks.c.project == project.id)
        .group_by(day)
    )
    counts = {date.fromisoformat(row["day"]): int(row["n"]) for row in rows}
    if not counts:
        return []
    first, last = min(counts), max(counts)
    days = [first + timedelta(days=i) for i in range((last - first).days + 1)]
    return [(day.isoformat(), counts.get(day, 0)) for day in days[-MAX_DAYS:]]


def confidence_curve(truths: Sequence[QueryTruth], title: str) -> str | None:
    """Return the confidence in the top k over the queries, the least certain first."""
    values = sorted(t.set_confidence for t in truths if t.set_confidence is not None)
    if len(values) < 2:
        return None
    return draw.line([(float(i + 1), value) for i, value in enumerate(values)], title)


def system_wins(tx: Tx, project: Project) -> list[dict[str, Any]]:
    """Return, for each system of a project with lists, the fraction of comparisons that it wins.

    A tie is half a win.  The interval is a 95 % bootstrap interval over queries.
    """
    points: dict[str, dict[str, list[float]]] = {}
    for task in task_judgments(tx, project):
        if task.tool == "lists":
            _add_points(points, task)
    rows = []
    for system, by_query in points.items():
        interval = _mean_interval(list(by_query.values()))
        outcomes = [x for values in by_query.values() for x in values]
        rows.append(
            {
                "system": system,
                "wins": outcomes.count(1.0),
                "ties": outcomes.count(0.5),
                "losses": outcomes.count(0.0),
                "queries": len(by_query),
                **interval.to_dict(),
            }
        )
    return sorted(rows, key=lambda row: -row["value"])


def _add_points(points: dict[str, dict[str, list[float]]], task: TaskJudgments) -> None:
    for judgment, _ in task.judgments:
        if judgment.right is None or judgment.skipped or judgment.kind != "judgment":
            continue
        sign = (judgment.outcome > 0) - (judgment.outcome < 0)
        for system, score in ((judgment.left, sign), (judgment.right, -sign)):
            points.setdefault(system, {}).setdefault(task.query, []).append((1 + score) / 2)


def _mean_interval(groups: Sequence[Sequence[float]]) -> Interval:
    """Return the mean of all values, with its interval over groups."""
    sums = np.array([sum(group) for group in groups])
    sizes = np.array([len(group) for group in groups], float)

    def mean(weights: Floats) -> Floats:
        ratio: Floats = (weights @ sums) / (weights @ sizes)
        return ratio

    return bootstrap(mean, len(groups))


def system_chart(rows: Sequence[Mapping[str, Any]], title: str) -> str:
    """Return the fraction of wins of each system, minus one half, with its interval."""
    drawn = [
        (str(row["system"]), *(_less_half(row[name], row["value"]) for name in BOUNDS))
        for row in rows
    ]
    return draw.intervals(drawn, title, zero=True)  # type: ignore[arg-type]


BOUNDS = ("value", "low", "high")


def _less_half(value: float | None, default: float) -> float:
    return (default if value is None else value) - 0.5


def heat_map(
    rows: Sequence[str], columns: Sequence[str], values: Matrix, title: str, percent: bool = False
) -> str:
    """Return a heat map; a cell has its value, and its count in a tooltip; others stay empty."""
    width = LABELS + CELL * len(columns)
    elements = []
    for j, column in enumerate(columns):
        x = LABELS + CELL * (j + 0.5)
        elements.append(
            f'<text class="tick" x="{x:.1f}" y="18" text-anchor="middle">'
            f"<title>{escape(column)}</title>{escape(_short(column, 6))}</text>"
        )
    for i, row in enumerate(rows):
        y = HEADER + CELL * i
        elements.append(
            f'<text x="{LABELS - 8}" y="{y + CELL / 2 + 4:.1f}" text-anchor="end">'
            f"<title>{escape(row)}</title>{escape(_short(row, 18))}</text>"
        )
        for j, column in enumerate(columns):
            value, count = values.get((row, column), (math.nan, 0.0))
            if not math.isnan(value):
                elements.append(_cell(LABELS + CELL * j, y, row, column, value, count, percent))
    height = HEADER + CELL * len(rows) + 6
    body = "".join(elements)
    # The width of a chart is fixed: a smaller map is drawn at its left.
    scale = min(1.0, draw.WIDTH / width)
    return draw.svg(height * scale, f'<g transform="scale({scale:.4f})">{body}</g>', title)


def _cell(
    x: float, y: float, row: str, column: str, value: float, count: float, percent: bool
) -> str:
    shown = f"{100 * value:.0f}" if percent else f"{value:.2f}"
    tooltip = escape(f"{row}, {column}: {shown}{' %' if percent else ''} of {count:.0f}")
    strong = ' class="in"' if value > 0.55 else ""
    return (
        f'<g><title>{tooltip}</title><rect class="heat" x="{x}" y="{y}" width="{CELL - 2}" '
        f'height="{CELL - 2}" fill-opacity="{max(0.04, min(1.0, value)):.2f}"/>'
        f'<text{strong} x="{x + CELL / 2 - 1}" y="{y + CELL / 2 + 4}" text-anchor="middle">'
        f"{shown}</text></g>"
    )


def _short(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
