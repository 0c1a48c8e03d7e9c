"""Who changed what, and when.

Rows hold people by id, so that deleting somebody's name deletes it here too; lists name them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import RowMapping, select

from firstpage.web.store.connect import Tx
from firstpage.web.store.tables import audit, people

OF_PEOPLE = ("who", "whose")  # details that are the id of a person


def note(
    tx: Tx, action: str, *, person: int | None = None, project: int | None = None, **what: Any
) -> None:
    """Write down a change, in the transaction that makes it."""
    tx.add(audit, at=tx.now, person=person, project=project, action=action, what=what)


def changes(
    tx: Tx, project: int | None, limit: int = 200, before: int | None = None
) -> list[dict[str, Any]]:
    """Return the newest changes of a project first, or those of no project; `before` pages on."""
    found = (
        select(audit, people.c.name.label("person_name"), people.c.login.label("person_login"))
        .outerjoin(people, people.c.id == audit.c.person)
        .where(audit.c.project == project)  # IS NULL, where it is None
        .order_by(audit.c.id.desc())
        .limit(limit)
    )
    return _named(tx, tx.all(found if before is None else found.where(audit.c.id < before)))


def _named(tx: Tx, rows: Sequence[RowMapping]) -> list[dict[str, Any]]:
    """Return rows whose details have people's names in place of their ids."""
    ids = {row["what"][key] for row in rows for key in OF_PEOPLE if key in row["what"]}
    names = {
        row["id"]: row["login"]
        if row["login"] == row["name"]
        else f"{row['name']} ({row['login']})"
        for row in tx.all(select(people).where(people.c.id.in_(ids)))
    }
    return [
        {
            **row,
            "what": {
                key: names.get(value, value) if key in OF_PEOPLE else value
                for key, value in row["what"].items()
            },
        }
        for row in rows
    ]
