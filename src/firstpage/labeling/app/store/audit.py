"""The audit log: who changed what, and when.

Rows refer to people by id, so that deleting a person's name deletes it here too; lists show names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from sqlalchemy import RowMapping, select

from firstpage.labeling.app.store.connect import Tx
from firstpage.labeling.app.store.tables import audit, people

ACCOUNT = "account"  # the detail that is the id of a person


class Stored(Protocol):
    """A person or a project."""

    @property
    def id(self) -> int: ...


def note(
    tx: Tx,
    action: str,
    person: Stored | int | None = None,
    project: Stored | int | None = None,
    **details: Any,
) -> None:
    """Record a change, in the transaction that makes it."""
    ids = {"person": _id(person), "project": _id(project)}
    tx.add(audit, recorded_at=tx.now, action=action, details=details, **ids)


def _id(stored: Stored | int | None) -> int | None:
    return stored if stored is None or isinstance(stored, int) else stored.id


def changes(
    tx: Tx, project: int | None, limit: int = 200, before: int | None = None
) -> list[dict[str, Any]]:
    """Return the changes of a project, or those of no project, newest first.

    `before` is the id of the oldest row of the page before.
    """
    rows = (
        select(audit, people.c.name.label("person_name"), people.c.login.label("person_login"))
        .outerjoin(people, people.c.id == audit.c.person)
        .where(audit.c.project == project)  # IS NULL if it is None
        .order_by(audit.c.id.desc())
        .limit(limit)
    )
    return _named(tx, tx.all(rows if before is None else rows.where(audit.c.id < before)))


def _named(tx: Tx, rows: Sequence[RowMapping]) -> list[dict[str, Any]]:
    """Return rows whose details have names in place of people's ids."""
    ids = {row["details"][ACCOUNT] for row in rows if ACCOUNT in row["details"]}
    names = {
        row["id"]: row["login"]
        if row["login"] == row["name"]
        else f"{row['name']} ({row['login']})"
        for row in tx.all(select(people).where(people.c.id.in_(ids)))
    }
    return [
        {
            **row,
            "details": {
                key: names.get(value, value) if key == ACCOUNT else value
                for key, value in row["details"].items()
            },
        }
        for row in rows
    ]
