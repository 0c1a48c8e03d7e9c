"""Machines of a project against its people, from the log of judgments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import func, select

from firstpage.core import DataError, plain_text
from firstpage.labeling.app.analysis.records import TaskJudgments, records, task_judgments
from firstpage.labeling.app.store import Project, Tx, projects, texts
from firstpage.labeling.app.store.tables import documents, queries
from firstpage.labeling.machines.biases import Lengths
from firstpage.labeling.machines.calibration import calibrate
from firstpage.labeling.machines.calibration_result import MachineCalibration


def project_calibration(
    tx: Tx, project: Project, margin: float, names: Sequence[str] = ()
) -> list[MachineCalibration]:
    """Return the calibration of a project's machines, or of those with these logins.

    A machine is an assessor with an answer that has a cost, as all answers of programs have.
    """
    judged = task_judgments(tx, project)
    machines = sorted({task.assessor for task in judged if _costs(task)})
    unknown = [name for name in names if name not in machines]
    if unknown:
        raise DataError(
            f"{unknown[0]!r} has no answers by a program in the project {project.slug!r}; "
            f"machines: {', '.join(machines) or 'none'}."
        )
    if not machines:
        raise DataError(
            f"no program has judged in the project {project.slug!r}; let one judge with "
            "`firstpage label judge`."
        )
    own = {name: [task for task in judged if task.assessor == name] for name in machines}
    answers = [
        record
        for record in records(tx, project, judged)
        if not names or record.assessor in names or record.assessor not in machines
    ]
    return calibrate(
        answers,
        list(names) or machines,
        orders={name: _orders(tasks) for name, tasks in own.items()},
        lengths=document_lengths(tx, project),
        shown={name: _shown(tasks) for name, tasks in own.items()},
        margin=margin,
    )


def machine_report(tx: Tx, project: Project, margin: float) -> dict[str, Any]:
    """Return the calibration of all machines for JSON, or the `reason` why there is none."""
    try:
        calibrations = project_calibration(tx, project, margin)
    except DataError as error:
        return {"machines": [], "reason": plain_text(error)}
    names = {row["login"]: row["name"] or row["login"] for row in projects.members(tx, project)}
    rows = texts.of_project(tx, project.id)
    query_names = {row["key"]: row["text"] or row["key"] for row in rows}
    machines = [
        {
            **calibration.to_dict(),
            "name": names.get(calibration.machine, calibration.machine),
            "summary": calibration.summary(names.get(calibration.machine)),
            "tables": [
                {"title": table.title, "head": list(table.head), "rows": list(table.rows)}
                for table in calibration.tables(query_names)
            ],
        }
        for calibration in calibrations
    ]
    return {"machines": machines, "reason": None}


def _costs(task: TaskJudgments) -> list[dict[str, Any]]:
    return [row["cost"] for _, row in task.judgments if row["cost"] is not None]


def _orders(judged: Sequence[TaskJudgments]) -> dict[tuple[str, str, str], tuple[int, int]]:
    """Return the answers to both orders of each pair, also of skipped contradictions."""
    orders: dict[tuple[str, str, str], tuple[int, int]] = {}
    for task in judged:
        for judgment, row in task.judgments:
            pair = (row["cost"] or {}).get("orders")
            if pair is not None and judgment.right is not None and judgment.kind == "judgment":
                orders.setdefault(
                    (task.query, judgment.left, judgment.right), (int(pair[0]), int(pair[1]))
                )
    return orders


def _shown(judged: Sequence[TaskJudgments]) -> set[str]:
    """Return the queries whose answers were examples in a prompt."""
    return {
        str(example[0])
        for task in judged
        for cost in _costs(task)
        for example in cost.get("examples", ())
    }


def document_lengths(tx: Tx, project: Project) -> Lengths:
    """Return the number of characters of the documents that are not archived."""
    rows = tx.all(
        select(
            queries.c.key.label("query"), documents.c.key, func.length(documents.c.body).label("n")
        )
        .join(queries, queries.c.id == documents.c.query)
        .where(
            queries.c.project == project.id,
            queries.c.archived.is_(None),
            documents.c.archived.is_(None),
        )
    )
    return {(row["query"], row["key"]): int(row["n"]) for row in rows}
